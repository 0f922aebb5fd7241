"""The process engine of this machine: start a command, read it, and end it with everything that it started."""

from __future__ import annotations

import array
import asyncio
import contextlib
import errno
import fcntl
import itertools
import json
import os
import secrets
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import termios
import threading
import time
import weakref
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from anyshell.errors import InvalidCommand, SandboxError, SandboxUnavailable, SessionClosed, WorkingDirectoryGone
from anyshell.sandbox import marks
from anyshell.sandbox.base import Process, Processes, Shell, Spawn, StreamType, Written

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence

CHUNK = 1 << 20
KEPT = 1 << 18
"""Output up to this many bytes a stream stays in memory; a longer one goes to the watcher's logs."""

MAX_ARGUMENT = 131_071
"""Linux: MAX_ARG_STRLEN less the final NUL. A longer line comes over a descriptor."""

QUIET, DRAIN = 0.05, 0.3
"""Seconds. When the command has ended and a child holds its output open, what the child still says is taken in until it
was quiet for QUIET, for DRAIN at most: `cmd > >(tee log)` ends before its `tee`."""

STREAMS: tuple[StreamType, StreamType] = ('stdout', 'stderr')


class Watcher:
    """The owning process' end of its watcher; see `watcher.py` for what that does."""

    _current: Watcher | None = None
    _guard = threading.Lock()

    @classmethod
    def get(cls) -> Watcher:
        """The watcher of this process, started when there is none."""
        with cls._guard:
            if cls._current is None or not cls._current.alive():
                known = cls._current.owners if cls._current else {}
                cls._current = cls(known)
            return cls._current

    def __init__(self, owners: dict[int, str]) -> None:
        self.owners = owners
        self._lock = threading.Lock()
        self._socket, theirs = socket.socketpair()
        with theirs:
            self.pid = _start_watcher(theirs.fileno())
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
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', descriptors))] if descriptors else []
        try:
            with self._lock:
                sent = self._socket.sendmsg([data], rights)
                if sent < len(data):
                    self._socket.sendall(data[sent:])
        except OSError:
            return False
        return True

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
            cls._current._socket.close()
            cls._current = None


os.register_at_fork(after_in_child=Watcher.forked)


def _start_watcher(control: int) -> int:
    """Start the watcher program and return its process ID, without waiting for it."""
    python = sys.executable
    if not python or getattr(sys, 'frozen', False):  # a frozen application would start itself again
        python = shutil.which('python3') or ''
    if not python:
        msg = 'anyshell needs a Python interpreter for its watcher process: sys.executable is empty and no python3 is on PATH'
        raise SandboxUnavailable(msg)
    code = f'import sys; sys.path.append({os.path.dirname(__file__)!r}); import watcher; watcher.main()'
    # The loader's variables only: the watcher needs no secret of ours.
    environment = {k: v for k in ('LD_LIBRARY_PATH', 'DYLD_LIBRARY_PATH', 'PATH', 'HOME') if (v := os.environ.get(k))}
    owner = _pidfd(os.getpid())
    # Away from 3 and 4, so that neither dup2 closes the other's source.
    high = [fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 16) for descriptor in (control, owner if owner >= 0 else control)]
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
        msg = f'the watcher process could not be started: {error}'
        raise SandboxUnavailable(msg) from error
    finally:
        for descriptor in high:
            os.close(descriptor)
        if owner >= 0:
            os.close(owner)


def _pidfd(pid: int) -> int:
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


async def readable(descriptors: Iterable[int], timeout: float | None) -> None:
    """Wait until a descriptor can be read or `timeout` seconds have passed."""
    loop = asyncio.get_running_loop()
    future = loop.create_future()

    def ready() -> None:
        if not future.done():
            future.set_result(None)

    descriptors = tuple(descriptors)
    timer = None if timeout is None else loop.call_later(timeout, ready)
    for descriptor in descriptors:
        loop.add_reader(descriptor, ready)
    try:
        await future
    finally:
        if timer is not None:
            timer.cancel()
        for descriptor in descriptors:
            loop.remove_reader(descriptor)


@dataclass(slots=True)
class LocalProcess(Process):
    """A command of this machine.

    Attributes:
        popen: Its shell.
        pidfd: Readable when the shell has ended; -1 where the system has none.
        pipes: The read ends that this process still reads itself.
        kept: What it has read, per stream, until that goes to a log.
        total: How much each stream has written, as far as it was read here.
        log: The base path of the watcher's logs, once it has them.
        stdin: The write end of standard input, or -1.
        big: Whether its pipes were made larger.
        reading: Whether a call reads the pipes now; then that call closes them.
    """

    popen: subprocess.Popen[bytes] = field(repr=False, kw_only=True)
    pidfd: int = field(kw_only=True)
    pipes: dict[StreamType, int] = field(kw_only=True)
    kept: dict[StreamType, bytearray] = field(default_factory=lambda: {s: bytearray() for s in STREAMS}, kw_only=True)
    total: dict[StreamType, int] = field(default_factory=lambda: dict.fromkeys(STREAMS, 0), kw_only=True)
    log: str = field(default='', kw_only=True)
    stdin: int = field(default=-1, kw_only=True)
    big: bool = field(default=False, kw_only=True)
    reading: bool = field(default=False, kw_only=True)


class LocalProcesses(Processes):
    """The commands of one owner on this machine.

    Args:
        cwd: The directory that relative paths start from.
        env: Exactly the variables that commands see by default; `None` for those of this process.
        max_log_bytes: The most that the log of one stream may take on disk.
    """

    def __init__(self, *, cwd: str, env: Mapping[str, str] | None, max_log_bytes: int) -> None:
        self._cwd = cwd
        self._env = env
        self._max_log_bytes = max_log_bytes
        self._begin()

    def _begin(self) -> None:
        self._pid = os.getpid()
        self._owner = secrets.randbits(41) | 1 << 41
        self._numbers = itertools.count(1)
        self._processes: dict[int, LocalProcess] = {}
        self._directory = ''
        self._closed = False
        self._used = False
        self._lock = threading.Lock()
        self._finalizer: weakref.finalize[..., LocalProcesses] | None = None

    def _enter(self) -> None:
        """Called first by every method: a forked child has commands, marks and files of its own."""
        if self._pid != os.getpid():
            closed = self._closed
            for process in self._processes.values():
                _close_descriptors(process)
                process.popen.returncode = 0  # not this process' child: `Popen` must not wait for it, nor warn
            self._begin()
            self._closed = closed
        if self._closed:
            msg = 'this session is closed; open a new one to run commands'
            raise SessionClosed(msg)

    async def shell(self) -> Shell:
        return local_shell()

    async def environment(self) -> dict[str, str]:
        return dict(os.environ if self._env is None else self._env)

    async def resolve(self, path: str) -> str:
        return os.path.abspath(os.path.join(self._cwd, path))  # noqa: PTH100, PTH118 - strings, not files

    async def is_directory(self, path: str) -> bool:
        return os.path.isdir(path) and os.access(path, os.X_OK)

    async def directory(self) -> str:
        self._enter()
        return self._private()

    def _private(self) -> str:
        with self._lock:
            if not self._directory:
                try:
                    self._directory = tempfile.mkdtemp(prefix='anyshell-')
                except OSError as error:
                    msg = f'no temporary directory can be made ({error.strerror}); free some space or set TMPDIR'
                    raise SandboxError(msg) from error
                Watcher.get().own(self._owner, self._directory)
            return self._directory

    async def read_private(self, name: str, limit: int = 1 << 16) -> bytes:
        if not self._directory:
            return b''
        # The command could have put anything here: no link is followed, no FIFO waited for.
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        try:
            descriptor = os.open(os.path.join(self._directory, name), flags)
        except OSError:
            return b''
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                return b''
            return os.pread(descriptor, limit, max(0, status.st_size - limit))
        finally:
            os.close(descriptor)

    # -- starting

    async def spawn(self, spawn: Spawn) -> LocalProcess:
        self._enter()
        self.reap()
        number = next(self._numbers)
        if number == marks.COMMANDS_PER_OWNER:
            msg = f'one session runs at most {number - 1} commands; open a new one'
            raise SandboxError(msg)
        if self._finalizer is None:
            Watcher.get().own(self._owner, self._directory)
            self._finalizer = weakref.finalize(self, _abandon, self._owner, self._pid)
        self._used = True
        process = self._popen(number, spawn)
        self._processes[number] = process
        return process

    def _popen(self, number: int, spawn: Spawn) -> LocalProcess:
        if not os.path.isdir(spawn.cwd):
            raise WorkingDirectoryGone(_gone(spawn.cwd, 'no longer exists'))
        line = spawn.line.encode()
        over_stdin = len(line) > MAX_ARGUMENT
        if over_stdin and spawn.stdin:
            msg = f'a command that keeps its standard input open may be {MAX_ARGUMENT} bytes long, this one has {len(line)}'
            raise InvalidCommand(msg)
        environment = dict(os.environ if self._env is None else self._env) if spawn.env is None else dict(spawn.env)
        environment['PWD'] = spawn.cwd  # a shell keeps a path with symbolic links when it is told so, and sets PWD anyway
        script = f'{set_mark(marks.mark_range(self._owner)[0] + number)}{spawn.preamble}{READ_LINE if over_stdin else LINE}'
        program = _program(spawn.shell) or '/bin/sh'
        argv = [program, *(['-p'] if spawn.shell == 'bash' else []), '-c', script, spawn.shell]
        pipes: list[int] = []
        files: list[int] = []
        try:
            out, out_end = os.pipe()
            pipes += [out, out_end]
            err, err_end = os.pipe()
            pipes += [err, err_end]
            stdin, stdin_end = -1, -1
            if spawn.stdin:
                stdin_end, stdin = os.pipe()
                pipes += [stdin_end, stdin]
            elif over_stdin:
                stdin_end = _file_of(line)
                files.append(stdin_end)
            popen = subprocess.Popen(  # noqa: S603 - running commands is what this is for
                [os.fsencode(word) for word in argv] + ([] if over_stdin else [line]),
                stdin=stdin_end if stdin_end >= 0 else subprocess.DEVNULL,
                stdout=out_end,
                stderr=err_end,
                cwd=spawn.cwd,
                env=environment,
                start_new_session=True,
            )
        except OSError as error:
            for descriptor in (*pipes, *files):
                os.close(descriptor)
            raise _spawn_error(error, spawn) from error
        except ValueError as error:  # a NUL or an "=" where the system takes none
            for descriptor in (*pipes, *files):
                os.close(descriptor)
            msg = f'the command or a variable of its environment can not be passed on: {error}'
            raise InvalidCommand(msg) from error
        for descriptor in (out_end, err_end, *((stdin_end,) if stdin_end >= 0 else ())):
            os.close(descriptor)
        for descriptor in (out, err):
            os.set_blocking(descriptor, False)
        return LocalProcess(
            number,
            popen=popen,
            pidfd=_pidfd(popen.pid),
            pipes={'stdout': out, 'stderr': err},
            stdin=stdin,
        )

    # -- waiting and reading

    async def wait(
        self,
        process: Process,
        *,
        timeout: float | None,
        on_bytes: Callable[[StreamType, bytes], Awaitable[None]] | None = None,
        cancelled: threading.Event | None = None,
    ) -> bool:
        local = self._local(process)
        deadline = None if timeout is None else time.monotonic() + timeout
        if not local.log:
            async for stream, data in self.stream(local, deadline=deadline, cancelled=cancelled):
                local.kept[stream] += data
                if on_bytes is not None:
                    await on_bytes(stream, data)
                if len(local.kept[stream]) > KEPT:
                    await self.detach(local)
                    break
            else:
                return local.exit_code is not None
        seen = dict(local.total)
        while True:
            ended = await self._ended(local, _slice(deadline, on_bytes is not None or cancelled is not None))
            if ended:
                await self._sync(local)
            if on_bytes is not None:
                for stream in STREAMS:
                    while data := (await self.read(local, stream, seen[stream], CHUNK))[1]:
                        seen[stream] += len(data)
                        await on_bytes(stream, data)
            if ended:
                return True
            if (deadline is not None and time.monotonic() >= deadline) or (cancelled is not None and cancelled.is_set()):
                return False

    async def stream(
        self,
        process: LocalProcess,
        *,
        deadline: float | None,
        cancelled: threading.Event | None = None,
    ) -> AsyncGenerator[tuple[StreamType, bytes]]:
        """Read the command's pipes in the caller's loop until it has ended; `deadline` is a `time.monotonic()`."""
        process.reading = True
        # A copy of the pidfd: whoever reaps the process meanwhile closes the original, and the loop would not wake.
        ended = os.dup(process.pidfd) if process.pidfd >= 0 else -1
        try:
            async for stream, data in self._stream(process, ended, deadline, cancelled):
                yield stream, data
        finally:
            process.reading = False
            if ended >= 0:
                os.close(ended)
            if self._closed:
                _close_descriptors(process)

    async def _stream(
        self, process: LocalProcess, ended: int, deadline: float | None, cancelled: threading.Event | None
    ) -> AsyncGenerator[tuple[StreamType, bytes]]:
        while not self._poll(process):
            idle = True
            for stream in STREAMS:
                if data := _take(process, stream):
                    idle = False
                    yield stream, data
            now = time.monotonic()
            if (deadline is not None and now >= deadline) or (cancelled is not None and cancelled.is_set()):
                return
            if idle:
                await self._readable(process, ended, _slice(deadline, cancelled is not None))
            else:
                await asyncio.sleep(0)  # a chatty command must not starve the loop
        # What was in the pipes when it ended belongs to it, however much its children add meanwhile.
        for stream in STREAMS:
            left = _waiting(process, stream)
            while left > 0 and (data := _take(process, stream, left)):
                left -= len(data)
                yield stream, data
        end = min(time.monotonic() + DRAIN, deadline or float('inf'))
        while process.pipes:
            before = len(process.pipes)
            await readable(process.pipes.values(), min(QUIET, max(0, end - time.monotonic())))
            chunks = [(stream, data) for stream in STREAMS if (data := _take(process, stream))]
            for stream, data in chunks:
                yield stream, data
            if time.monotonic() >= end or (not chunks and len(process.pipes) == before):
                break
        self._drain(process)

    async def _readable(self, process: LocalProcess, ended: int, timeout: float | None) -> None:
        if ended < 0:
            await readable(process.pipes.values(), 0.01 if timeout is None else min(0.01, timeout))
            return
        await readable([*process.pipes.values(), ended], timeout)

    async def _ended(self, process: LocalProcess, timeout: float | None) -> bool:
        """Wait for the shell's end; several callers may wait for one, each in its own loop."""
        if self._poll(process):
            return True
        if process.pidfd < 0:
            await asyncio.sleep(0.02 if timeout is None else min(0.02, timeout))
            return self._poll(process)
        try:
            own = os.dup(process.pidfd)
        except OSError:  # another caller has just reaped it
            return self._poll(process)
        try:
            await readable([own], timeout)
        finally:
            os.close(own)
        return self._poll(process)

    def _poll(self, process: LocalProcess) -> bool:
        """Whether the shell has ended; reaps it."""
        if process.exit_code is None and (code := process.popen.poll()) is not None:
            with self._lock:
                process.exit_code = 128 - code if code < 0 else code
                descriptor, process.pidfd = process.pidfd, -1
                if descriptor >= 0:
                    os.close(descriptor)
                stdin, process.stdin = process.stdin, -1
                if stdin >= 0:
                    os.close(stdin)
        return process.exit_code is not None

    def reap(self) -> None:
        """Take the exit codes of commands that nobody waits for, so that no zombie stays."""
        for process in tuple(self._processes.values()):
            if process.exit_code is None:
                self._poll(process)

    async def detach(self, process: Process) -> None:
        local = self._local(process)
        if local.log or self._closed:
            return
        base = f'{self._private()}/{local.number}'
        streams: list[tuple[str, int, bool]] = []
        descriptors: list[int] = []
        files: list[int] = []
        for stream in STREAMS:
            if kept := local.kept[stream]:
                files.append(_file_of(kept))
                descriptors.append(files[-1])
            if stream in local.pipes:
                descriptors.append(local.pipes[stream])
            streams.append((stream, len(kept), stream in local.pipes))
        Watcher.get().tell('pump', self._key(local), base, self._max_log_bytes, streams, descriptors=descriptors)
        for descriptor in (*files, *local.pipes.values()):
            os.close(descriptor)
        local.pipes.clear()
        local.log = base
        local.kept = {stream: bytearray() for stream in STREAMS}

    def _key(self, process: LocalProcess) -> str:
        return f'{self._owner}.{process.number}'

    async def _sync(self, process: LocalProcess) -> None:
        """Have the watcher take in what is in the pipes now; bounded, since the watcher may have been killed."""
        here, there = os.pipe()
        try:
            told = Watcher.get().tell('sync', self._key(process), descriptors=[there])
            os.close(there)
            if told:
                await readable([here], 5)
        finally:
            os.close(here)

    async def written(self, process: Process, stream: StreamType, limit: int) -> Written:
        local = self._local(process)
        if not local.log:
            kept = local.kept[stream]
            return Written(bytes(kept[max(0, len(kept) - limit) :]), local.total[stream])
        await self._sync(local)
        total = _log_size(local.log, stream)
        start, tail = _read_log(local.log, stream, max(0, total - limit), limit)
        return Written(tail, start + len(tail))

    async def read(self, process: Process, stream: StreamType, start: int, length: int) -> tuple[int, bytes]:
        local = self._local(process)
        if local.log:
            return _read_log(local.log, stream, start, length)
        kept = local.kept[stream]
        offset = local.total[stream] - len(kept)
        start = max(start, offset)
        return start, bytes(kept[start - offset : start - offset + length])

    async def send(self, process: Process, data: bytes) -> None:
        local = self._local(process)
        end = time.monotonic() + 10
        while data:
            if self._poll(local) or local.stdin < 0:
                msg = 'the command no longer reads its standard input'
                raise InvalidCommand(msg)
            os.set_blocking(local.stdin, False)
            try:
                data = data[os.write(local.stdin, data) :]
            except BlockingIOError:
                if time.monotonic() > end:
                    msg = 'the command has not read its standard input for 10 seconds; the text was sent in part'
                    raise InvalidCommand(msg) from None
                await asyncio.sleep(0.02)
            except BrokenPipeError:
                msg = 'the command has closed its standard input'
                raise InvalidCommand(msg) from None

    # -- ending

    async def terminate(self, process: Process, *, grace: float) -> None:
        local = self._local(process)
        low = marks.mark_range(self._owner)[0] + local.number
        await self._end(low, low + 1, [local], grace)

    async def _end(self, low: int, high: int, processes: Sequence[LocalProcess], grace: float) -> None:
        """SIGTERM now, SIGKILL after `grace` seconds or when cancelled meanwhile; then reap."""
        alive = self._signal(low, high, processes, signal.SIGTERM)
        try:
            end, pause = time.monotonic() + grace, 0.004
            while alive and time.monotonic() < end:
                await asyncio.sleep(min(pause, max(0, end - time.monotonic())))
                pause = min(2 * pause, 0.05)
                alive = any([not self._poll(process) for process in processes]) or any(True for _ in marks.marked(low, high))
        finally:
            if alive:
                self._signal(low, high, processes, signal.SIGKILL)
            marks.kill_marked(low, high)
            for process in processes:
                # Bounded: a process in uninterruptible sleep does not answer to SIGKILL before it wakes.
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.popen.wait(2)
                self._poll(process)

    def _signal(self, low: int, high: int, processes: Sequence[LocalProcess], number: int) -> bool:
        """Signal by group, which also reaches a shell that has not marked itself yet, and by mark."""
        alive = False
        for process in processes:
            if not self._poll(process) or not marks.LINUX:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.popen.pid, number)
                    alive = True
        return bool(marks.signal_marked(low, high, number)) or alive

    def _drain(self, process: LocalProcess) -> None:
        """Hand pipes that children still hold to the watcher."""
        if process.pipes:
            Watcher.get().tell('drain', len(process.pipes), descriptors=list(process.pipes.values()))
            for descriptor in process.pipes.values():
                os.close(descriptor)
            process.pipes.clear()

    async def forget(self, process: Process) -> None:
        if self._pid != os.getpid() or self._processes.pop(process.number, None) is None:
            return
        local = self._local(process)
        self._drain(local)
        if local.log:
            Watcher.get().tell('forget', self._key(local))
            await self._sync(local)
            for stream in STREAMS:
                for offset in _offsets(local.log, stream):
                    with contextlib.suppress(OSError):
                        os.unlink(f'{local.log}.{stream}.{offset}')
        local.kept = {stream: bytearray() for stream in STREAMS}

    async def close(self, *, grace: float) -> None:
        if self._closed or self._pid != os.getpid():
            self._closed = True
            return
        self._closed = True
        if not self._used:
            self._remove()
            return
        low, high = marks.mark_range(self._owner)
        running = [process for process in tuple(self._processes.values()) if not self._poll(process)]
        try:
            await self._end(low, high, running, grace)
        finally:
            for process in self._processes.values():
                if not process.reading:
                    _close_descriptors(process)
            self._processes.clear()
            self._remove()

    def _remove(self) -> None:
        if self._finalizer is not None:
            self._finalizer.detach()
        if self._directory:
            shutil.rmtree(self._directory, ignore_errors=True)
        if self._used or self._directory:
            Watcher.get().disown(self._owner)

    def _local(self, process: Process) -> LocalProcess:
        assert isinstance(process, LocalProcess)  # noqa: S101 - only `spawn` makes them
        return process


def _abandon(owner: int, pid: int) -> None:
    """Nobody closed the owner: its watcher ends what it started."""
    if pid == os.getpid():
        watcher = Watcher.get()
        watcher.owners.pop(owner, None)
        watcher.tell('end', owner)


# -- the shell's side

LINE = 'eval "set --; $1"'
"""Run the line, which is the first argument, without leaving it in the arguments. Nothing comes after it, so that a
trailing backslash or an open here-document has nothing to swallow."""

READ_LINE = 'set -- "$(cat; printf x)"; exec </dev/null; eval "set --; ${1%x}"'
"""The same for a line that is too long for an argument and comes on standard input. The `x` keeps its last newlines."""


def set_mark(mark: int) -> str:
    """Shell text that marks the shell and all its children; bash knows the limit as `-x`, dash and busybox as `-w`."""
    return f'ulimit -S -x {mark} 2>/dev/null || ulimit -S -w {mark} 2>/dev/null; '


def local_shell() -> Shell:
    """The best shell of this machine."""
    return 'bash' if _program('bash') else 'sh'


def _program(shell: Shell) -> str | None:
    path = _PROGRAMS.get(shell)
    if path is None:
        path = shutil.which(shell) or shutil.which(shell, path=os.defpath + ':/usr/local/bin')
        if path is not None:
            _PROGRAMS[shell] = path
    return path


_PROGRAMS: dict[Literal['bash', 'sh'], str] = {}


def _spawn_error(error: OSError, spawn: Spawn) -> Exception:
    if error.errno == errno.E2BIG:
        return InvalidCommand('the environment is too big for the system (E2BIG); pass fewer or shorter variables')
    if error.filename is not None and os.fsdecode(error.filename) == spawn.cwd:
        return WorkingDirectoryGone(_gone(spawn.cwd, f'can not be entered ({error.strerror})'))
    return SandboxError(f'the system can not start another process ({error.strerror}); stop background commands, or wait')


def _gone(cwd: str, what: str) -> str:
    return f'the working directory {cwd!r} {what}; nothing was run'


# -- pipes, files, logs


def _take(process: LocalProcess, stream: StreamType, limit: int = CHUNK) -> bytes:
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


def _waiting(process: LocalProcess, stream: StreamType) -> int:
    descriptor = process.pipes.get(stream)
    if descriptor is None:
        return 0
    # At least one byte, so that the read which finds the end of the file takes place.
    return max(1, int.from_bytes(fcntl.ioctl(descriptor, termios.FIONREAD, bytes(4)), sys.byteorder))


def _slice(deadline: float | None, polling: bool) -> float | None:
    """How long to wait now: to the deadline, in steps when there is something to look at meanwhile."""
    left = None if deadline is None else max(0.0, deadline - time.monotonic())
    if not polling:
        return left
    return 0.05 if left is None else min(0.05, left)


def _file_of(data: bytes | bytearray) -> int:
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


def _offsets(log: str, stream: StreamType) -> list[int]:
    folder, _, base = log.rpartition('/')
    prefix = f'{base}.{stream}.'
    try:
        names = os.listdir(folder)
    except OSError:
        return []
    return sorted(int(name[len(prefix) :]) for name in names if name.startswith(prefix) and name[len(prefix) :].isdecimal())


def _log_size(log: str, stream: StreamType) -> int:
    for offset in reversed(_offsets(log, stream)):
        with contextlib.suppress(OSError):
            return offset + os.stat(f'{log}.{stream}.{offset}').st_size
    return 0


def _read_log(log: str, stream: StreamType, start: int, length: int) -> tuple[int, bytes]:
    found = bytearray()
    first = start
    for offset in _offsets(log, stream):
        if not found and offset > first:
            first = offset  # the head was dropped
        position = first + len(found) - offset
        if position < 0 or len(found) == length:
            break
        try:
            descriptor = os.open(f'{log}.{stream}.{offset}', os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except FileNotFoundError:  # dropped just now
            continue
        try:
            found += os.pread(descriptor, length - len(found), position)
        finally:
            os.close(descriptor)
    return first, bytes(found)


def _close_descriptors(process: LocalProcess) -> None:
    for descriptor in (*process.pipes.values(), process.pidfd, process.stdin):
        if descriptor >= 0:
            with contextlib.suppress(OSError):
                os.close(descriptor)
    process.pipes.clear()
    process.pidfd = process.stdin = -1
