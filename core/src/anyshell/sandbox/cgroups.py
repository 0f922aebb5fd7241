"""Limits on memory and processes for a whole tree of processes, by a control group where one can be made."""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import time

ROOT = '/sys/fs/cgroup'


class Group:
    """A control group, of version 2 or of version 1, where there is one for each resource.

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
            limits = {
                'memory.max': memory,
                'memory.swap.max': None if memory is None else 0,
                'pids.max': pids,
            }
            made = self._make(f'{ROOT}/{name}', limits, optional={'memory.swap.max'})
            self.kind = 'cgroup v2' if made else 'none'
            return
        made = (
            memory is None
            or self._make(
                f'{ROOT}/memory/{name}',
                {'memory.limit_in_bytes': memory, 'memory.memsw.limit_in_bytes': memory},
                optional={'memory.memsw.limit_in_bytes'},
            )
        ) and (pids is None or self._make(f'{ROOT}/pids/{name}', {'pids.max': pids}))
        if made:
            self.kind = 'cgroup v1'
        else:
            self.remove()

    def _make(
        self, folder: str, limits: dict[str, int | None], *, optional: set[str] | None = None
    ) -> bool:
        try:
            os.mkdir(folder)
        except OSError:
            return False
        self.folders.append(folder)
        for name, value in limits.items():
            if value is None:
                continue
            try:
                with open(f'{folder}/{name}', 'w') as file:
                    file.write(str(value))
            except OSError:
                if name not in (optional or ()):
                    return False
        return True

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
