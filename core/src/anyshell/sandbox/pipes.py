"""A command of this machine as plain data, and what its pipes hold."""

from __future__ import annotations

import contextlib
import fcntl
import os
import subprocess
import sys
import tempfile
import termios
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from anyshell.sandbox.base import STREAMS, Process, StreamType
from anyshell.sandbox.waits import CHUNK

if TYPE_CHECKING:
    from collections.abc import Iterator


class Popen(subprocess.Popen[bytes]):
    """`Popen` that does not warn when it is dropped: what a session leaves running is its watcher's to end."""

    def __del__(self) -> None:
        super().__del__(_warn=lambda *_, **__: None)  # pyright: ignore[reportCallIssue, reportUnknownLambdaType]  # typeshed has no `__del__`


@dataclass(slots=True)
class LocalProcess(Process):
    """A command of this machine.

    Attributes:
        popen: Its shell.
        pidfd: Readable when the shell has ended; -1 where the system has none.
        pipes: The read ends that this process still reads itself.
        watched: The read ends that the watcher reads: were it killed, they would be with it, and the command by SIGPIPE.
        kept: What it has read, per stream, until that goes to a log.
        total: How much each stream has written, as far as it was read here.
        log: The base path of the watcher's logs, once it has them.
        stdin: The write end of standard input, or -1.
        big: Whether its pipes were made larger.
        reading: Whether a call reads the pipes now; then that call closes them.
        code: The name of the private file that gets the exit code, where the system does not tell it; else ''.
        brief: Whether the time has passed in which it is only watched for its end.
    """

    popen: subprocess.Popen[bytes] = field(repr=False, kw_only=True)
    pidfd: int = field(kw_only=True)
    pipes: dict[StreamType, int] = field(kw_only=True)
    watched: dict[StreamType, int] = field(default_factory=dict[StreamType, int], kw_only=True)
    kept: dict[StreamType, bytearray] = field(
        default_factory=lambda: {s: bytearray() for s in STREAMS}, kw_only=True
    )
    total: dict[StreamType, int] = field(
        default_factory=lambda: dict.fromkeys(STREAMS, 0), kw_only=True
    )
    log: str = field(default='', kw_only=True)
    stdin: int = field(default=-1, kw_only=True)
    big: bool = field(default=False, kw_only=True)
    reading: bool = field(default=False, kw_only=True)
    code: str = field(default='', kw_only=True)
    brief: bool = field(default=False, kw_only=True)


def take(process: LocalProcess, stream: StreamType, limit: int = CHUNK) -> bytes:
    """Read what a pipe holds; b'' when that is nothing. The pipe is closed when every writer has gone."""
    descriptor = process.pipes.get(stream)
    if descriptor is None:
        return b''
    try:
        data = os.read(descriptor, limit)
    except BlockingIOError:
        return b''
    if not data:
        os.close(process.pipes.pop(stream))
    elif len(data) >= 1 << 16 and not process.big:
        process.big = True  # more than the default pipe holds: fewer, larger reads from now on
        for other in process.pipes.values():
            with contextlib.suppress(OSError):
                fcntl.fcntl(other, 1031, CHUNK)  # F_SETPIPE_SZ
    process.total[stream] += len(data)
    return data


def remainder(process: LocalProcess) -> Iterator[tuple[StreamType, bytes]]:
    """What an ended command has left: what is there now belongs to it, however much its children add meanwhile."""
    for stream in STREAMS:
        left = _waiting(process, stream) + 1  # and the read that finds the end of the file
        while left > 0 and (data := take(process, stream, left)):
            left -= len(data)
            yield stream, data


def _waiting(process: LocalProcess, stream: StreamType) -> int:
    descriptor = process.pipes.get(stream)
    if descriptor is None:
        return 0
    return int.from_bytes(fcntl.ioctl(descriptor, termios.FIONREAD, bytes(4)), sys.byteorder)


def file_or_none(data: bytes | bytearray) -> int | None:
    """`file_of`, or `None` where this process may write no file so long (RLIMIT_FSIZE): the head of a log is lost."""
    try:
        return file_of(data)
    except OSError:
        return None


def file_of(data: bytes | bytearray) -> int:
    """A descriptor of a nameless file that holds the data, at its start."""
    if hasattr(os, 'memfd_create'):
        descriptor = os.memfd_create('anyshell')
    else:
        descriptor, name = tempfile.mkstemp()
        os.unlink(name)
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def close_descriptors(process: LocalProcess) -> None:
    """Give up all descriptors of a command, whatever still writes to them."""
    _close(*process.pipes.values())
    process.pipes.clear()
    close_ends(process)


def close_ends(process: LocalProcess) -> None:
    """Give up what is of no use any more when a command has ended, which is all but the pipes that are read here."""
    _close(process.pidfd, process.stdin, *process.watched.values())
    process.pidfd = process.stdin = -1
    process.watched.clear()


def _close(*descriptors: int) -> None:
    for descriptor in descriptors:
        if descriptor >= 0:
            with contextlib.suppress(OSError):
                os.close(descriptor)
