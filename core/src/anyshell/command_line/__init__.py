"""The commands of `anyshell` that start something: `doctor`, `run` and `demo`. They are added to the group in `cli.py`."""
