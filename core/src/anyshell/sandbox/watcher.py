"""The watcher: one small process per owning process that outlives it for a moment and leaves nothing behind.

It does two things. It reads the output of commands that nobody waits for and keeps it in bounded logs. And when the
owning process ends, however it ends, it ends every marked command of it, runs the clean-up commands of far sides and
removes the private directories.

Run as a program with two descriptors: 3, a socket for messages (JSON lines, descriptors attached), and 4, a pidfd of
the owner or a copy of 3 where the system has none. Standard library only, and little of it: its start is part of the
first command's time.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import resource
import select
import signal
import socket
import termios
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from anyshell.sandbox import marks
    from anyshell.sandbox.logs import Log
else:
    try:  # the modules beside this file, which runs alone: the package would be slow to import
        import marks
        from logs import Log
    except ImportError:
        from anyshell.sandbox import marks
        from anyshell.sandbox.logs import Log

CONTROL, OWNER = 3, 4
CHUNK = 1 << 20


class Pump:
    """A pipe that is emptied into a log, or into nothing."""

    def __init__(self, descriptor: int, log: Log | None) -> None:
        self.descriptor = descriptor
        self.log = log

    def step(self, limit: int = CHUNK) -> int:
        """Take in at most `limit` bytes; 0 means that every writer has gone, -1 that there is nothing yet."""
        try:
            data = os.read(self.descriptor, limit)
        except BlockingIOError:
            return -1
        except OSError:
            return 0
        if self.log is not None and data:
            try:
                self.log.append(data)
            except OSError:
                # The disk is full: the command must not stall because its log can't grow.
                self.log.close()
                self.log = None
        return len(data)

    def close(self) -> None:
        os.close(self.descriptor)
        if self.log is not None:
            self.log.close()


class Watcher:
    """The event loop, and what it knows."""

    def __init__(self) -> None:
        self.control = socket.socket(fileno=CONTROL)
        self.poll = select.poll()
        self.pumps: dict[int, Pump] = {}
        self.keys: dict[str, list[int]] = {}
        self.owners: dict[int, str] = {}
        self.dropped: dict[int, str] = {}
        self.far: dict[str, list[str]] = {}
        self.text = b''
        self.descriptors: list[int] = []

    def run(self) -> None:
        self.poll.register(CONTROL, select.POLLIN)
        if not os.path.sameopenfile(CONTROL, OWNER):
            self.poll.register(OWNER, select.POLLIN)
        while True:
            for descriptor, _ in self.poll.poll():
                if descriptor in self.pumps:
                    self.pump(descriptor)
                elif descriptor == OWNER or not self.receive():
                    return

    def pump(self, descriptor: int) -> None:
        if self.pumps[descriptor].step() == 0:
            self.drop(descriptor)

    def drop(self, descriptor: int) -> None:
        self.poll.unregister(descriptor)
        self.pumps.pop(descriptor).close()

    def receive(self) -> bool:
        """Take in messages; `False` when the owner has closed its end."""
        try:
            data, descriptors, _, _ = socket.recv_fds(self.control, 1 << 16, 16)
        except OSError:
            return False
        self.descriptors += descriptors
        if not data:
            return False
        *lines, self.text = (self.text + data).split(b'\n')
        for line in lines:
            name, *arguments = json.loads(line)
            # One command's log is not worth all the others: a watcher that ends takes them with it.
            with contextlib.suppress(OSError, LookupError):
                getattr(self, f'do_{name}')(*arguments)
        if self.dropped:  # all that were named by now at once: each takes a moment of waiting
            dropped, self.dropped = self.dropped, {}
            self.end(dropped)
        return True

    def do_own(self, owner: int, directory: str) -> None:
        self.owners[owner] = directory

    def do_disown(self, owner: int) -> None:
        self.owners.pop(owner, None)

    def do_end(self, owner: int) -> None:
        """An owner was dropped without being closed: end what it started."""
        self.dropped[owner] = self.owners.pop(owner, '')

    def do_far(self, key: str, argv: list[str]) -> None:
        self.far[key] = argv

    def do_near(self, key: str) -> None:
        self.far.pop(key, None)

    def do_pump(
        self, key: str, base: str, limit: int, streams: list[tuple[str, int, int, bool]]
    ) -> None:
        """Collect a command's streams into logs.

        Each stream is a name, how many bytes the owner has dropped, how many it has kept (they come in an attached file)
        and whether its pipe, attached as well, is still open. One message carries it all, so that the order of bytes holds.
        """
        self.keys[key] = []
        # All of them first: one that stayed would be taken for that of a later message.
        attached = [
            (self.descriptors.pop(0) if length else -1, self.descriptors.pop(0) if is_open else -1)
            for _, _, length, is_open in streams
        ]
        for (stream, start, length, is_open), (prefix, descriptor) in zip(
            streams, attached, strict=True
        ):
            log = Log(f'{base}.{stream}', limit, start)
            if is_open:
                self.add(descriptor, Pump(descriptor, log))
                self.keys[key].append(descriptor)
            if length:
                copy(prefix, log)  # before the loop comes round to the pipe
            if not is_open:
                log.close()

    def do_drain(self, count: int) -> None:
        """Empty the pipes that children of an ended command still hold, so that they neither block nor die of SIGPIPE."""
        for _ in range(count):
            descriptor = self.descriptors.pop(0)
            self.add(descriptor, Pump(descriptor, None))

    def add(self, descriptor: int, pump: Pump) -> None:
        os.set_blocking(descriptor, False)
        self.pumps[descriptor] = pump
        self.poll.register(descriptor, select.POLLIN)

    def do_sync(self, key: str) -> None:
        """Take in all that has been written up to now, then write a byte to the attached descriptor."""
        reply = self.descriptors.pop(0)
        for descriptor in self.keys.get(key, []):
            if descriptor in self.pumps:
                self.catch_up(descriptor)
        with contextlib.suppress(OSError):  # the caller may have given up
            os.write(reply, b'.')
        os.close(reply)

    def catch_up(self, descriptor: int) -> None:
        # Bounded by what is in the pipe now: a child that writes for ever must not hold up the answer.
        left = int.from_bytes(fcntl.ioctl(descriptor, termios.FIONREAD, bytes(4)), 'little')
        while left > 0:
            count = self.pumps[descriptor].step(left)
            if count <= 0:
                break
            left -= count

    def do_forget(self, key: str) -> None:
        """Stop keeping a command's output; children that still write are drained."""
        for descriptor in self.keys.pop(key, []):
            pump = self.pumps.get(descriptor)
            if pump is not None and pump.log is not None:
                pump.log.close()
                pump.log = None

    def end(self, owners: dict[int, str]) -> None:
        ranges = [marks.mark_range(owner) for owner in owners]
        alive = sum(marks.signal_marked(low, high, signal.SIGTERM) for low, high in ranges)
        end = time.monotonic() + 0.5
        while alive and time.monotonic() < end:
            time.sleep(0.02)
            alive = sum(1 for low, high in ranges for _ in marks.marked(low, high))
        for low, high in ranges:
            marks.kill_marked(low, high)
        for directory in owners.values():
            if directory:
                remove_tree(directory)

    def finish(self) -> None:
        """The owner has gone; what it said last counts."""
        self.control.settimeout(0)
        while self.receive():
            pass
        self.control.close()
        far = [os.posix_spawn(argv[0], argv, os.environ) for argv in self.far.values()]
        self.end(self.owners)
        # A shell that was only just started marks itself a moment later.
        time.sleep(0.1)
        self.end(self.owners)
        end = time.monotonic() + 20
        while far and time.monotonic() < end:
            far = [pid for pid in far if os.waitpid(pid, os.WNOHANG)[0] == 0]
            time.sleep(0.02)


def copy(source: int, log: Log) -> None:
    """Append a whole file to a log, as far as that can grow, and close the file."""
    try:
        os.lseek(source, 0, os.SEEK_SET)
        while data := os.read(source, CHUNK):
            log.append(data)
    except OSError:
        log.close()
    finally:
        os.close(source)


def remove_tree(directory: str) -> None:
    """Remove a directory; symbolic links in it are removed, never followed."""
    import shutil  # noqa: PLC0415 - slow to import, and needed once if ever

    shutil.rmtree(directory, ignore_errors=True)


def main() -> None:
    """Run until the owner ends."""
    os.closerange(5, os.sysconf('SC_OPEN_MAX'))
    os.setsid()
    os.chdir('/')
    os.umask(0o077)
    # Inside another session's command this process would carry the mark of that; it has to outlive that for a moment.
    marks.unmark()
    # Four descriptors a job add up; what is received beyond the limit would be lost without a word.
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _terminated)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    watcher = Watcher()
    try:
        watcher.run()
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        watcher.finish()


def _terminated(_number: int, _frame: Any) -> None:
    raise SystemExit
