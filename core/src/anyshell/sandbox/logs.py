"""Bounded logs on disk: the writer, which the watcher uses, and the readers.

Standard library only: the watcher process imports this module alone.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat

FULL = (errno.ENOSPC, errno.EDQUOT)
LOW = 1 << 20
"""Bytes of free space below which a disk is taken for full: a log there would keep next to nothing."""

SEGMENTS = 4
"""A log is this many files at most; the oldest one goes when their sum would exceed the limit."""


class Log:
    """One stream on disk: files named `<base>.<offset of the first byte>`, together never more than `limit` bytes.

    It goes on behind the files that are there: another process may have begun it. Where there is none it begins at
    `start`: what was before is lost already.
    """

    def __init__(self, base: str, limit: int, start: int = 0) -> None:
        self.base = base
        self.segment = max(1, limit // SEGMENTS)
        self.total = max(start, _end(base))
        self.offsets = _offsets(base)
        self.file = -1
        self.room: int = 0

    def append(self, data: bytes) -> None:
        """Write at the end; the oldest segment goes when there is no room, in the log or on the disk.

        Raises:
            OSError: If the disk takes no file at all.
        """
        view = memoryview(data)
        while view:
            if not self.room:
                self._next_segment()
            try:
                count = os.write(self.file, view[: self.room])
            except OSError as error:
                if error.errno not in FULL:
                    raise
                count = self._skip(len(view))
                view = view[count:]
                continue
            view = view[count:]
            self.room -= count
            self.total += count

    def _next_segment(self) -> None:
        self.close()
        if len(self.offsets) == SEGMENTS:
            os.unlink(f'{self.base}.{self.offsets.pop(0)}')
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
        self.file = os.open(f'{self.base}.{self.total}', flags, 0o600)
        self.offsets.append(self.total)
        self.room = self.segment

    def _skip(self, length: int) -> int:
        """The disk is full: the head goes, so that the tail stays; with no head left, what is to be written goes.

        Returns:
            How many bytes are not to be written any more.
        """
        if len(self.offsets) > 1:
            os.unlink(f'{self.base}.{self.offsets.pop(0)}')
            return 0
        lost = 0 if self.total > self.offsets[0] else length
        self.total += lost
        # Its name says how much has been written: what is lost shows as a head that was dropped.
        self.close()
        os.unlink(f'{self.base}.{self.offsets.pop()}')
        self._next_segment()
        return lost

    def close(self) -> None:
        """Close the segment that is being written; what is written stays."""
        if self.file >= 0:
            os.close(self.file)
            self.file = -1


def full(folder: str) -> bool:
    """Whether the disk of a folder has no room for a log."""
    try:
        status = os.statvfs(folder)
    except OSError:
        return True
    return status.f_bavail * status.f_frsize < LOW


def offsets(log: str, stream: str) -> list[int]:
    """Where the segments of a log begin, in order."""
    return _offsets(f'{log}.{stream}')


def _offsets(base: str) -> list[int]:
    folder, _, name = base.rpartition('/')
    prefix = f'{name}.'
    try:
        names = os.listdir(folder)
    except OSError:
        return []
    return sorted(
        int(name[len(prefix) :])
        for name in names
        if name.startswith(prefix) and name[len(prefix) :].isdecimal()
    )


def size(log: str, stream: str) -> int:
    """How many bytes the stream has written in all, the dropped ones included."""
    return _end(f'{log}.{stream}')


def _end(base: str) -> int:
    for offset in reversed(_offsets(base)):
        with contextlib.suppress(OSError):
            return offset + os.stat(f'{base}.{offset}').st_size
    return 0


def read(log: str, stream: str, start: int, length: int) -> tuple[int, bytes]:
    """At most `length` bytes from `start` on, and where they really begin: later when the head was dropped."""
    found = bytearray()
    first = start
    for offset in offsets(log, stream):
        if not found and offset > first:
            first = offset  # the head was dropped
        position = first + len(found) - offset
        if position < 0 or len(found) == length:
            break
        found += _read_at(f'{log}.{stream}.{offset}', position, length - len(found))
    return first, bytes(found)


def _read_at(path: str, position: int, length: int) -> bytes:
    # A command could have put anything here: no link is followed, no FIFO waited for.
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:  # dropped just now
        return b''
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            return b''
        # What is asked for is allocated, so no more than there is.
        return os.pread(descriptor, min(length, max(0, status.st_size - position)), position)
    finally:
        os.close(descriptor)
