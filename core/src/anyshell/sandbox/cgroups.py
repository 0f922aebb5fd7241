"""Limits on memory and processes for a whole tree of processes, by a control group where one can be made."""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Container, Iterator

ROOT = '/sys/fs/cgroup'
OWN = '/proc/self/cgroup'


class Group:
    """A control group, of version 2 or of version 1, where there is one for each resource.

    It is made below this process' own group, so that the limits of that hold for it too, or in the nearest group above
    that takes one. Version 2 gives limits to no group whose parent has processes in it, as ours has; so there it is as a
    rule a neighbour, which a user may make where the user's systemd runs this process.

    Args:
        memory: The limit on memory in bytes; `None` for none.
        pids: The limit on processes; `None` for none.

    Attributes:
        kind: 'cgroup v2', 'cgroup v1', or 'none' when no group could be made.
        folders: Where it is.
    """

    def __init__(self, *, memory: int | None, pids: int | None) -> None:
        self.kind = 'none'
        self.folders: list[str] = []
        if memory is None and pids is None:
            return
        name = f'anyshell-{secrets.token_hex(8)}'
        if os.path.exists(f'{ROOT}/cgroup.controllers'):
            kind = 'cgroup v2'
            limits = {
                'memory.max': memory,
                'memory.swap.max': None if memory is None else 0,
                'pids.max': pids,
            }
            made = self._make('', name, limits, optional={'memory.swap.max'})
        else:
            kind = 'cgroup v1'
            limits = {'memory.limit_in_bytes': memory, 'memory.memsw.limit_in_bytes': memory}
            made = (
                memory is None
                or self._make('memory', name, limits, optional={'memory.memsw.limit_in_bytes'})
            ) and (pids is None or self._make('pids', name, {'pids.max': pids}))
        if made:
            self.kind = kind
        else:
            self.remove()

    def _make(
        self,
        controller: str,
        name: str,
        limits: dict[str, int | None],
        *,
        optional: Container[str] = (),
    ) -> bool:
        for place in _places(controller):
            # Whoever moves a process has to be allowed to in the group that holds both ends of the way (version 2).
            if controller or os.access(f'{place}/cgroup.procs', os.W_OK):
                folder = f'{place}/{name}'
                try:
                    os.mkdir(folder)
                except OSError:
                    continue
                if _limit(folder, limits, optional):
                    self.folders.append(folder)
                    return True
                with contextlib.suppress(OSError):
                    os.rmdir(folder)
        return False

    def enter(self) -> str:
        """Shell text that puts the shell, and so all its children, into the group."""
        return ''.join(f'echo $$ >{folder}/cgroup.procs || exit 125; ' for folder in self.folders)

    def remove(self) -> None:
        """End what is still in the group and remove it; within 10 seconds, or it stays."""
        end = time.monotonic() + 10
        while self.folders and time.monotonic() < end:
            for folder in tuple(self.folders):
                try:
                    os.rmdir(folder)
                except FileNotFoundError:
                    pass
                except OSError:
                    self._kill(folder)
                    continue
                self.folders.remove(folder)
            if self.folders:
                time.sleep(0.01)

    def _kill(self, folder: str) -> None:
        with contextlib.suppress(OSError, ValueError):
            with open(f'{folder}/cgroup.procs') as file:
                members = [int(line) for line in file]
            for pid in members:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)


def _places(controller: str) -> Iterator[str]:
    """The folders of this process' own group and of those above it; `controller` is '' for version 2."""
    hierarchy = f'{ROOT}/{controller}' if controller else ROOT
    path = _own(controller)
    while path.strip('/'):
        yield hierarchy + path
        path = os.path.dirname(path)
    yield hierarchy


def _own(controller: str) -> str:
    """The path of this process' own group, as cgroups(7) has it: 'number:controllers:path'; '' when it can't be seen."""
    try:
        with open(OWN) as file:
            lines = [line.rstrip('\n').split(':', 2) for line in file]
    except OSError:
        return ''
    for _, controllers, path in lines:
        if controller in controllers.split(',') and '/..' not in path:
            return path
    return ''


def _limit(folder: str, limits: dict[str, int | None], optional: Container[str]) -> bool:
    """Set the limits of a group; `False` when one that is not optional is not to be had there."""
    for name, value in limits.items():
        try:
            if value is not None:
                with open(os.open(f'{folder}/{name}', os.O_WRONLY), 'w') as file:
                    file.write(str(value))
        except OSError:
            if name not in optional:
                return False
    return True
