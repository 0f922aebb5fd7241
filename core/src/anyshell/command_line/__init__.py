"""The commands of `anyshell`, a module or a package for each of them; they are added to the group in `cli.py`."""
