"""The machine itself. It isolates nothing: a command can do all that its user can."""

from __future__ import annotations

import asyncio
import errno
import os
import stat
import sys
import tempfile
from typing import TYPE_CHECKING, Any

from anyshell.errors import SandboxClosed, SandboxPathNotFoundError, SandboxUnavailable
from anyshell.sandbox.base import FileInfo
from anyshell.sandbox.posix import (
    PathForbidden,
    PathIsDirectory,
    PosixShellSandbox,
    no_file,
)
from anyshell.sandbox.process import LocalProcesses
from anyshell.sandbox.shells import local_shell
from anyshell.sandbox.streaming import stream_command

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping
    from pathlib import Path

    from anyshell.sandbox.base import ExecutionResult, Shell, StreamChunk


class LocalSandbox(PosixShellSandbox):
    """Commands and files of this machine, as this process' user, without any isolation.

    Args:
        cwd: The directory that commands start in and relative paths start from; relative to this process' own at
            construction.
        env: Exactly the variables that commands see; `None` for those of this process at the time of the command.

    Raises:
        SandboxUnavailable: On Windows, which has no POSIX processes.
    """

    def __init__(self, *, cwd: str | Path = '.', env: Mapping[str, str] | None = None) -> None:
        super().__init__()
        if sys.platform == 'win32':
            msg = 'LocalSandbox needs a POSIX system; on Windows run the agent in WSL, or use DockerSandbox or SshSandbox'
            raise SandboxUnavailable(msg)
        self.cwd = os.path.abspath(cwd)
        self.env = None if env is None else dict(env)
        self.max_result_bytes = 8 << 20
        self._own: LocalProcesses | None = None
        self._closed = False

    def __getstate__(self) -> dict[str, Any]:
        # Pickled, it is the same place; what runs there by the first one's hand is the first one's.
        return {**self.__dict__, '_own': None, '_closed': False}

    def processes(self, *, max_log_bytes: int = 100_000_000) -> LocalProcesses:
        if self._closed:
            raise SandboxClosed
        return LocalProcesses(cwd=self.cwd, env=self.env, max_log_bytes=max_log_bytes)

    def known_shell(self) -> Shell:
        return local_shell()

    def execute_streaming(
        self,
        command: str,
        *,
        timeout: float | None = None,
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        **kwargs: Any,  # noqa: ARG002 - the spec's
    ) -> AsyncGenerator[StreamChunk | ExecutionResult, None]:
        own, limit = self._processes(), self.max_result_bytes
        return stream_command(own, command, timeout=timeout, cwd=cwd, env=env, limit=limit)

    async def read_file(self, path: str, **kwargs: Any) -> bytes:  # noqa: ARG002 - the spec's
        return await asyncio.to_thread(_read, self._path(path), path)

    async def write_file(self, path: str, content: bytes, **kwargs: Any) -> None:  # noqa: ARG002 - the spec's
        await asyncio.to_thread(_write, self._path(path), content, path)

    async def remove_file(self, path: str, **kwargs: Any) -> None:  # noqa: ARG002 - the spec's
        try:
            os.unlink(self._path(path))
        except FileNotFoundError:
            raise
        except OSError as error:
            raise _precise(error, self._path(path), path) from error

    async def list_files(self, path: str, **kwargs: Any) -> list[FileInfo]:  # noqa: ARG002 - the spec's
        return await asyncio.to_thread(_list, self._path(path), path)

    def _path(self, path: str) -> str:
        if not path or '\0' in path:
            raise FileNotFoundError(errno.ENOENT, 'No such file or directory', path)
        return os.path.join(self.cwd, path)

    def _processes(self) -> LocalProcesses:
        if self._own is None or self._closed:
            self._own = self.processes()
        return self._own

    async def aclose(self) -> None:
        """End what `execute_streaming` left running. Sessions over this sandbox close themselves. Idempotent."""
        self._closed = True
        if self._own is not None:
            await self._own.close(grace=2.0)


def _read(path: str, name: str) -> bytes:
    try:
        # Never waiting for the other end of a named pipe: nobody can take back what a thread waits for.
        with open(path, 'rb', opener=_at_once) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise no_file(name)
            return file.read()
    except FileNotFoundError:
        raise
    except OSError as error:
        raise _precise(error, path, name) from error


def _at_once(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK, 0o666)


def _precise(error: OSError, path: str, name: str) -> OSError:
    """The spec has `FileNotFoundError` for every file that can't be read or removed; this says why as well."""
    if os.path.isdir(path) or error.errno == errno.EISDIR:
        return PathIsDirectory(errno.EISDIR, 'Is a directory', name)
    if isinstance(error, PermissionError):
        return PathForbidden(error.errno, error.strerror, name)
    return FileNotFoundError(error.errno, error.strerror, name)


def _write(path: str, content: bytes, name: str) -> None:
    folder = os.path.dirname(path)
    if os.path.exists(path) and stat.S_ISFIFO(os.stat(path).st_mode):
        raise no_file(name)
    try:
        os.makedirs(folder, exist_ok=True)
    except RecursionError:  # it makes the one above first
        raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG), name) from None
    try:
        status = os.lstat(path)
    except FileNotFoundError:
        status = None
    # Staged and moved into place, so that a full disk leaves the old file whole; but what is not a plain file of one's
    # own (a symbolic link, a device, a file with two names) stays what it is and is written in place.
    plain = status is None or (
        stat.S_ISREG(status.st_mode) and status.st_nlink == 1 and status.st_uid == os.geteuid()
    )
    try:
        descriptor, staged = (
            tempfile.mkstemp(prefix='.anyshell_', dir=folder) if plain else (-1, '')
        )
    except PermissionError:  # the directory takes no new file, the file itself may be writable
        descriptor, staged = -1, ''
    if descriptor < 0:
        with open(path, 'wb', opener=_at_once) as file:
            file.write(content)
        return
    try:
        with open(descriptor, 'wb') as file:
            file.write(content)
            os.fchmod(
                descriptor, 0o666 & ~_umask() if status is None else stat.S_IMODE(status.st_mode)
            )
        os.replace(staged, path)
    except BaseException:
        os.unlink(staged)
        raise


def _umask() -> int:
    """The file mode mask; asked of /proc, since the system call can only change it, for all threads at once."""
    try:
        with open('/proc/self/status', 'rb') as file:
            for line in file:
                if line.startswith(b'Umask:'):
                    return int(line.split()[1], 8)
    except OSError:
        pass
    return 0o022


def _list(path: str, name: str) -> list[FileInfo]:
    try:
        with os.scandir(path) as entries:
            found = [
                FileInfo(
                    entry.name,
                    is_dir=entry.is_dir(follow_symlinks=False),
                    size=None
                    if entry.is_dir(follow_symlinks=False)
                    else entry.stat(follow_symlinks=False).st_size,
                )
                for entry in entries
            ]
    except (FileNotFoundError, NotADirectoryError) as error:
        raise SandboxPathNotFoundError(name) from error
    return sorted(found, key=lambda entry: entry.name)
