"""The shells of a command: which there are on this machine, and the text of ours that they run before its line."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from anyshell.sandbox.base import Shell

MAX_ARGUMENT = 131_071
"""Linux: MAX_ARG_STRLEN less the final NUL. A longer line comes over a descriptor."""

LINE = 'eval "set --; $1"'
"""Run the line, which is the first argument, without leaving it in the arguments. Nothing comes after it, so that a
trailing backslash or an open here-document has nothing to swallow."""

READ_LINE = 'set -- "$(command -p cat && printf x)"; exec </dev/null; [ "$1" ] || exit 126; eval "set --; ${1%x}"'
"""The same for a line that is too long for an argument and comes on standard input. The `x` keeps its last newlines;
`-p` finds `cat` whatever PATH the command was given."""


REPORT = 'trap : TERM; exec 3>&2 2>/dev/null; "$@" 2>&3 3>&-; _c=$?; exec 2>&3; set -C; printf %s "$_c" >"$0"'
"""Run the program in the arguments and write its exit code to the file that is this shell's name. For a process that
can't learn it from the system."""


def set_mark(mark: int) -> str:
    """Shell text that marks the shell and all its children; bash knows the limit as `-x`, dash and busybox as `-w`."""
    return f'ulimit -S -x {mark} 2>/dev/null || ulimit -S -w {mark} 2>/dev/null; '


def local_shell() -> Shell:
    """The best shell of this machine."""
    return 'bash' if program('bash') else 'sh'


def program(shell: Shell) -> str | None:
    """Where the shell is on this machine; `None` where it is not."""
    path = _PROGRAMS.get(shell)
    if path is None:
        path = shutil.which(shell) or shutil.which(shell, path=os.defpath + ':/usr/local/bin')
        if path is not None:
            _PROGRAMS[shell] = path
    return path


_PROGRAMS: dict[Literal['bash', 'sh'], str] = {}
