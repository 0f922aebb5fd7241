"""The owning process' end of its watcher: start it, and tell it what to look after."""

from __future__ import annotations

import array
import fcntl
import json
import os
import shutil
import socket
import sys
import tempfile
import threading
import time
from typing import TYPE_CHECKING

from anyshell.errors import SandboxError, SandboxUnavailable
from anyshell.sandbox import marks

if TYPE_CHECKING:
    from collections.abc import Sequence


class Watcher:
    """The owning process' end of its watcher; see `watcher.py` for what that does."""

    _current: Watcher | None = None
    _guard = threading.Lock()

    @classmethod
    def get(cls) -> Watcher:
        """The watcher of this process, started when there is none."""
        with cls._guard:
            if cls._current is None or not cls._current.alive():
                known: dict[int, str] = {}
                if cls._current is not None:
                    known = cls._current.owners
                    cls._current.close()
                cls._current = cls(known)
            return cls._current

    def __init__(self, owners: dict[int, str]) -> None:
        self.owners = owners
        self._lock = threading.Lock()
        self._socket, theirs = socket.socketpair()
        with theirs:
            self.pid = _start_watcher(theirs.fileno())
        _outlive_others(self.pid)
        for owner, directory in owners.items():
            self.tell('own', owner, directory)

    def alive(self) -> bool:
        """Whether it still runs; someone may have killed it."""
        try:
            return os.waitpid(self.pid, os.WNOHANG)[0] == 0
        except ChildProcessError:  # the host ignores SIGCHLD or waits for every child
            return _exists(self.pid)

    def tell(self, *message: object, descriptors: Sequence[int] = ()) -> bool:
        """Send a message; `False` when the watcher has gone."""
        data = json.dumps(message).encode() + b'\n'
        rights = (
            [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', descriptors))]
            if descriptors
            else []
        )
        try:
            with self._lock:
                sent = self._socket.sendmsg([data], rights)
                if sent < len(data):
                    self._socket.sendall(data[sent:])
        except OSError:
            return False
        return True

    def close(self) -> None:
        """Let go of it."""
        self._socket.close()

    def own(self, owner: int, directory: str) -> None:
        """Name an owner, so that its commands and its directory end with this process."""
        self.owners[owner] = directory
        self.tell('own', owner, directory)

    def disown(self, owner: int) -> None:
        """The owner has cleaned up itself."""
        if self.owners.pop(owner, None) is not None:
            self.tell('disown', owner)

    @classmethod
    def forked(cls) -> None:
        """In a forked child: the parent's watcher is not ours; the child gets its own."""
        cls._guard = threading.Lock()
        if cls._current is not None:
            cls._current.close()
            cls._current = None


os.register_at_fork(after_in_child=Watcher.forked)


def _start_watcher(control: int) -> int:
    """Start the watcher program and return its process ID, without waiting for it."""
    python = sys.executable
    if not python or getattr(sys, 'frozen', False):  # a frozen application would start itself again
        python = shutil.which('python3') or ''
    if not python:
        msg = 'anyshell needs a Python interpreter for its watcher process: sys.executable is empty and no python3 is on PATH; put one there'
        raise SandboxUnavailable(msg)
    code = f'import sys; sys.path.append({os.path.dirname(__file__)!r}); import watcher; watcher.main()'
    # The loader's variables only: the watcher needs no secret of ours.
    environment = {
        k: v
        for k in ('LD_LIBRARY_PATH', 'DYLD_LIBRARY_PATH', 'PATH', 'HOME')
        if (v := os.environ.get(k))
    }
    owner = pidfd_of(os.getpid())
    # Away from 3 and 4, so that neither dup2 closes the other's source.
    high = [
        fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 16)
        for descriptor in (control, owner if owner >= 0 else control)
    ]
    actions: list[tuple[object, ...]] = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDWR, 0),
        (os.POSIX_SPAWN_DUP2, 0, 1),
        (os.POSIX_SPAWN_DUP2, 0, 2),
        (os.POSIX_SPAWN_DUP2, high[0], 3),
        (os.POSIX_SPAWN_DUP2, high[1], 4),
    ]
    try:
        return os.posix_spawn(
            python,
            [python, '-I', '-S', '-X', 'utf8', '-c', code],
            environment,
            file_actions=actions,
        )
    except OSError as error:
        # Not the error itself: it names this Python, and a model may read it.
        msg = f'the watcher process could not be started ({error.strerror}); see "anyshell doctor"'
        raise SandboxUnavailable(msg) from error
    finally:
        for descriptor in high:
            os.close(descriptor)
        if owner >= 0:
            os.close(owner)


def _outlive_others(watcher: int) -> None:
    """In a command of another session: wait until the watcher has taken off the mark that would end it with that.

    Before, whatever this session starts could lose its watcher and live on.
    """
    end = time.monotonic() + 5
    if marks.is_marked(os.getpid()):
        while marks.is_marked(watcher) and time.monotonic() < end:
            time.sleep(0.001)


def temporary_directory() -> str:
    """Make a private directory of this machine; who asks for it tells the watcher.

    Raises:
        SandboxError: If none can be made.
    """
    try:
        return tempfile.mkdtemp(prefix='anyshell-')
    except OSError as error:
        msg = (
            f'no temporary directory can be made ({error.strerror}); free some space or set TMPDIR'
        )
        raise SandboxError(msg) from error


def pidfd_of(pid: int) -> int:
    """A descriptor that becomes readable when the process ends; -1 where the system has none."""
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):  # macOS, or a kernel before 5.3
        return -1


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
