"""Make `cd` last: a preamble that records the shell's last directory out of band, and the reader of that record.

The record goes to a file in the session's private directory, not to a numbered descriptor (the line may open that
number itself) and not to the output (which the line writes). It is written by an EXIT trap of the very shell that runs
the line, so that it holds after `;`, comments, here-documents, a trailing backslash and `exit 0`. A line that sets an
EXIT trap of its own keeps it: ours is put around it. A line that replaces the shell (`exec`) leaves no record, and the
directory stays as it was.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from anyshell.sandbox.base import Processes, Shell

# All of it stands on one line, so that the shell counts the lines of the command from 1 in its messages.
_RECORD = (
    '__anyshell_nl=${{IFS#??}}; '  # a newline; IFS is the default one here, since no shell takes it from outside
    "__anyshell_cwd() {{ local __s=$? __p=''; "
    # Only the main shell records, since a subshell's directory is its own. `read` runs in the shell itself, so
    # /proc/self is whoever is asking; where there is no /proc, the main shell's record comes last and wins.
    "{{ IFS=' ' read -r __p __r </proc/self/stat; }} 2>/dev/null; "
    "case $__p in ''|$$) {{ command pwd && command printf '\\0'; }} 2>/dev/null >>{path};; esac; "
    'return $__s; }}; '
    '__anyshell_trap() {{ '
    'case ${{1-}} in --) shift;; -?*) command trap "$@"; return;; esac; '
    'command trap "$@" || return; '
    'case $# in 0) return 0;; 1) set -- - "$1";; esac; '
    'local __a="$1" __s; shift; '
    'case $__a in *[!0-9]*|\'\') ;; *) set -- "$__a" "$@"; __a=-;; esac; '
    'for __s do case $__s in 0|EXIT|exit|SIGEXIT|sigexit) case $__a in '
    '-|\'\') command trap "$__anyshell_record" EXIT;; '
    '*) command trap "$__anyshell_record$__anyshell_nl$__a$__anyshell_nl$__anyshell_record" EXIT;; '
    'esac;; esac; done; }}; '
    # The group's redirection hides our commands from `set -x`.
    "__anyshell_record='{{ __anyshell_cwd; }} 2>/dev/null'; "
    'command trap "$__anyshell_record" EXIT; '
)

_TRAP = {
    # A function may stand before a special builtin in bash only; a POSIX sh expands aliases in scripts instead, and so
    # does a bash that POSIXLY_CORRECT made one.
    'bash': 'if [[ -o posix ]]; then alias trap=__anyshell_trap; else eval \'trap() { __anyshell_trap "$@"; }\'; fi; ',
    'sh': 'alias trap=__anyshell_trap; ',
}


def recorder(path: str, shell: str) -> str:
    """Shell text to run before the line, which makes the shell append its last directory to `path`.

    Args:
        path: A file in a private directory inside the sandbox.
        shell: 'bash' or 'sh'.
    """
    return _RECORD.format(path=shlex.quote(path)) + _TRAP[shell]


def last_directory(record: bytes) -> str | None:
    """The last complete entry of a record; `None` when there is none.

    An entry is what `pwd` prints (a path and a newline) and a NUL, so that a directory's name may end in a newline.
    """
    entries = record.split(b'\0')
    if len(entries) < 2:  # nothing before a NUL
        return None
    path = entries[-2].removesuffix(b'\n')
    return path.decode('utf-8', 'surrogateescape') if path.startswith(b'/') else None


class Directory:
    """The working directory of a session: where the next command starts, and the reader of what the last one recorded.

    Args:
        processes: Where commands run.
        path: The first directory; relative to the sandbox's own.
        persist: Whether a `cd` holds for later commands.
    """

    def __init__(self, processes: Processes, path: str, *, persist: bool) -> None:
        self._processes = processes
        self._first = path
        self._absolute = False
        self._records = 0
        self.path = path
        self.persist = persist

    async def start(self) -> str:
        """The absolute directory that the next command starts in."""
        if not self._absolute:
            self._first = self.path = await self._processes.resolve(self._first)
            self._absolute = True
        return self.path

    def reset(self) -> bool:
        """Go back to the first directory; `False` when that is where we are."""
        moved = self.path != self._first
        self.path = self._first
        return moved

    async def recorder(self, shell: Shell) -> tuple[str, str]:
        """The name of a new record and the preamble that writes it."""
        self._records += 1
        name = f'{self._records}.cwd'
        return name, recorder(f'{await self._processes.directory()}/{name}', shell)

    async def follow(self, name: str, *, succeeded: bool) -> str:
        """Take over what a command recorded if it succeeded; something that is no directory is ignored.

        Returns:
            What there is to say when nothing could be recorded; else ''.
        """
        found = last_directory(await self._processes.take_private(name))
        if (
            succeeded
            and found is not None
            and found != self.path
            and await self._processes.is_directory(found)
        ):
            self.path = found
        if succeeded and found is None and await self._processes.full():
            return f'\n[the disk for temporary files is full: the working directory is still {self.path}, wherever the command went]\n'
        return ''
