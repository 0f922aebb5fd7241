"""The command `anyshell` as `python -m anyshell`, for a Python whose scripts are not on PATH."""

from anyshell.cli import main

if __name__ == '__main__':
    main(prog_name='python -m anyshell')
