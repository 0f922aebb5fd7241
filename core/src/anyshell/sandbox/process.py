"""The process engine of this machine: start a command, read it, and end it with everything that it started."""

from __future__ import annotations

import _thread
import asyncio
import contextlib
import errno
import functools
import itertools
import logging
import os
import secrets
import shutil
import signal
import stat
import subprocess
import threading
import time
import weakref
from typing import TYPE_CHECKING

from anyshell.errors import InvalidCommand, SandboxError, SessionClosed, WorkingDirectoryGone
from anyshell.sandbox import logs, marks
from anyshell.sandbox.base import (
    STREAMS,
    Flag,
    Process,
    Processes,
    Shell,
    Spawn,
    StreamType,
    Written,
    listening_ports,
)
from anyshell.sandbox.pipes import (
    LocalProcess,
    Popen,
    close_descriptors,
    close_ends,
    file_of,
    file_or_none,
    remainder,
    take,
)
from anyshell.sandbox.shells import (
    LINE,
    MAX_ARGUMENT,
    READ_LINE,
    REPORT,
    local_shell,
    program,
    set_mark,
)
from anyshell.sandbox.waits import CHUNK, given_up, ready, step, until
from anyshell.sandbox.watch import Watcher, pidfd_of, temporary_directory

if TYPE_CHECKING:
    from collections.abc import (
        AsyncGenerator,
        Awaitable,
        Callable,
        Generator,
        Mapping,
        Sequence,
    )

logger = logging.getLogger('anyshell')

KEPT = 1 << 18
"""Output up to this many bytes a stream stays in memory; a longer one goes to the watcher's logs."""

BRIEF = 0.002
"""Seconds that a new command is only watched for its end: most that end at all do so by then, and are read once. A pipe
holds 64 KiB meanwhile."""

LOST = b'[the disk for temporary files is full: this output is lost]\n'

UNKNOWN = 255
"""The exit code of a command whose own one nobody knows; that is not to be taken for success."""

QUIET, DRAIN = 0.05, 0.3
"""Seconds. When the command has ended and a child holds its output open, what the child still says is taken in until it
was quiet for QUIET, for DRAIN at most: `cmd > >(tee log)` ends before its `tee`."""


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
        self._closed = self._closing = False
        self._used = False
        self._lock = threading.Lock()
        self._last_watcher: Watcher | None = None
        self._finalizer: weakref.finalize[..., LocalProcesses] | None = None

    def _enter(self) -> None:
        """Called first by every method: a forked child has commands, marks and files of its own."""
        if self._pid != os.getpid():
            closed = self._closed
            for process in self._processes.values():
                close_descriptors(process)
                process.popen.returncode = (
                    0  # not this process' child: `Popen` must not wait for it, nor warn
                )
            self._begin()
            self._closed = closed
        if self._closed:
            msg = 'this session is closed and nothing was run; open a new one to run commands'
            raise SessionClosed(msg)

    async def shell(self) -> Shell:
        return local_shell()

    async def environment(self) -> dict[str, str]:
        return dict(os.environ if self._env is None else self._env)

    async def resolve(self, path: str) -> str:
        return _absolute(self._cwd, path)

    async def is_directory(self, path: str) -> bool:
        return _enterable(path)

    async def directory(self) -> str:
        self._enter()
        return self._private()

    def _private(self) -> str:
        with self._lock:
            if not os.path.isdir(self._directory):  # not yet, or no more: `rm -rf /tmp/*` happens
                self._enter()
                self._directory = temporary_directory()
                Watcher.get().own(self._owner, self._directory)
            return self._directory

    async def take_private(self, name: str, limit: int = 1 << 16) -> bytes:
        return self._take_private(name, limit)

    def _take_private(self, name: str, limit: int = 1 << 16) -> bytes:
        if not self._directory:
            return b''
        # The command could have put anything here: no link is followed, no FIFO waited for.
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        path = os.path.join(self._directory, name)
        try:
            descriptor = os.open(path, flags)
        except OSError:
            return b''
        try:
            with contextlib.suppress(OSError):
                os.unlink(path)
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
        watcher = self._watcher()
        if self._finalizer is None:
            _warn_of_marks()
            watcher.own(self._owner, self._directory)
            self._finalizer = weakref.finalize(
                self, _abandon, self._owner, self._pid, self._processes
            )
            self._finalizer.atexit = False  # then the watcher sees that this process has ended
        self._used = True
        process = self._popen(number, spawn)
        self._processes[number] = process
        if self._closed:  # by another thread, which may have looked before this command was there
            await self.terminate(process, grace=0)
            self._give_up(process)
            self._enter()
        return process

    def _popen(self, number: int, spawn: Spawn) -> LocalProcess:
        if not os.path.isdir(spawn.cwd):
            raise WorkingDirectoryGone(_gone(spawn.cwd, 'does not exist'))
        line = spawn.line.encode()
        by_file = len(line) > MAX_ARGUMENT
        if by_file and spawn.stdin:
            msg = f'a command that keeps its standard input open may be {MAX_ARGUMENT} bytes long, this one has {len(line)}; write it to a file and run that'
            raise InvalidCommand(msg)
        mark = marks.mark_range(self._owner)[0] + number
        script = f'{set_mark(mark)}{spawn.preamble}{READ_LINE if by_file else LINE}'
        shell = [
            program(spawn.shell) or '/bin/sh',
            *(['-p'] if spawn.shell == 'bash' else []),
            '-c',
        ]
        argv, code = [*shell, script, spawn.shell], ''
        if _forgets_codes():
            code = f'{number}.code'
            argv = [*shell, f'{set_mark(mark)}{REPORT}', f'{self._private()}/{code}', *argv]
        with (
            contextlib.ExitStack() as ours
        ):  # what the child has taken over is closed here, whatever happens
            reads: list[int] = []
            writes: list[int] = []
            try:
                for _ in STREAMS:
                    read, write = os.pipe()
                    reads.append(read)
                    writes.append(write)
                    ours.callback(os.close, write)
                stdin, source = -1, subprocess.DEVNULL
                if spawn.stdin:
                    source, stdin = os.pipe()
                    reads.append(stdin)
                    ours.callback(os.close, source)
                elif by_file:
                    source = file_of(line)
                    ours.callback(os.close, source)
                popen = Popen(
                    [os.fsencode(word) for word in argv] + ([] if by_file else [line]),
                    stdin=source,
                    stdout=writes[0],
                    stderr=writes[1],
                    cwd=spawn.cwd,
                    env=self._variables(spawn),
                    start_new_session=True,
                )
            except (OSError, ValueError) as error:
                for descriptor in reads:
                    os.close(descriptor)
                raise _spawn_error(error, spawn) from error
        for descriptor in reads[:2]:
            os.set_blocking(descriptor, False)
        return LocalProcess(
            number,
            popen=popen,
            pidfd=pidfd_of(popen.pid),
            code=code,
            pipes=dict(zip(STREAMS, reads, strict=False)),
            stdin=stdin,
        )

    def _variables(self, spawn: Spawn) -> Mapping[str, str] | Mapping[bytes, bytes] | None:
        """The environment of a command; `None` for this process' as it is."""
        # PWD: a shell keeps a path with symbolic links when it is told so, and sets the variable anyway.
        variables = self._env if spawn.env is None else spawn.env
        if variables is not None:
            return {**variables, 'PWD': spawn.cwd}
        if os.environ.get('PWD') == spawn.cwd:
            return None
        return {**os.environb, b'PWD': os.fsencode(spawn.cwd)}

    # -- waiting and reading

    async def wait(
        self,
        process: Process,
        *,
        timeout: float | None,
        on_bytes: Callable[[StreamType, bytes], Awaitable[None]] | None = None,
        cancelled: Flag | None = None,
    ) -> bool:
        local = self._local(process)
        deadline = None if timeout is None else time.monotonic() + timeout
        if not local.log and await self._brief(local, timeout) and on_bytes is None:
            # The way of most commands, short of the cost of two generators.
            for stream, data in remainder(local):
                local.kept[stream] += data
            if not local.pipes:
                return True
        if not local.log:
            chunks = self.stream(local, deadline=deadline, cancelled=cancelled)
            async with contextlib.aclosing(chunks):
                async for stream, data in chunks:
                    local.kept[stream] += data
                    if on_bytes is not None:
                        await on_bytes(stream, data)
                    if await self._too_much(local):
                        break
                else:
                    return local.exit_code is not None
        return await self._wait_detached(local, deadline, on_bytes, cancelled)

    async def _brief(self, process: LocalProcess, timeout: float | None) -> bool:
        """Give a new command a moment to end before its output is looked at; whether it has."""
        if process.brief or process.pidfd < 0 or process.reading:
            return False
        process.brief = process.reading = True
        try:
            with self._own_pidfd(process) as ended:
                if ended >= 0:  # another thread may have reaped it just now
                    await ready([ended], timeout=BRIEF if timeout is None else min(BRIEF, timeout))
        finally:
            process.reading = False
            if self._closed:
                self._give_up(process)
        return self._poll(process)

    async def _wait_detached(
        self,
        process: LocalProcess,
        deadline: float | None,
        on_bytes: Callable[[StreamType, bytes], Awaitable[None]] | None,
        cancelled: Flag | None,
    ) -> bool:
        seen = dict(process.total)
        while True:
            ended = await self._ended(process, step(deadline, polling=bool(on_bytes or cancelled)))
            if ended:
                await self._sync(process)
            if on_bytes is not None:
                for stream in STREAMS:
                    # Up to what there is now: a command may write faster than its listener hears.
                    end = logs.size(process.log, stream)
                    while seen[stream] < end and (ended or not given_up(deadline, cancelled)):
                        # It begins later than asked for when the log has dropped its head.
                        start, data = await self.read(process, stream, seen[stream], CHUNK)
                        lost = (start if data else end) - seen[stream]
                        if lost > 0:
                            note = f'\n[... {lost} bytes of output are lost: their reader was too slow, or the disk is full]\n'
                            await on_bytes(stream, note.encode())
                        seen[stream] = start + len(data) if data else end
                        await on_bytes(stream, data)
            if ended or given_up(deadline, cancelled):
                return ended

    async def stream(
        self,
        process: LocalProcess,
        *,
        deadline: float | None,
        cancelled: Flag | None = None,
    ) -> AsyncGenerator[tuple[StreamType, bytes]]:
        """Read the command's pipes in the caller's loop until it has ended; `deadline` is a `time.monotonic()`."""
        process.reading = True
        try:
            with self._own_pidfd(process) as ended:
                chunks = self._stream(process, ended, deadline, cancelled)
                async with contextlib.aclosing(chunks):
                    async for stream, data in chunks:
                        yield stream, data
        finally:
            process.reading = False
            if self._closed:
                self._give_up(process)

    @contextlib.contextmanager
    def _own_pidfd(self, process: LocalProcess) -> Generator[int]:
        """A copy of the pidfd: whoever reaps the process meanwhile closes the original, and a loop would not wake."""
        with self._lock:
            own = os.dup(process.pidfd) if process.pidfd >= 0 else -1
        try:
            yield own
        finally:
            if own >= 0:
                os.close(own)

    async def _stream(
        self,
        process: LocalProcess,
        ended: int,
        deadline: float | None,
        cancelled: Flag | None,
    ) -> AsyncGenerator[tuple[StreamType, bytes]]:
        while not self._poll(process):
            idle = True
            for stream in STREAMS:
                if data := take(process, stream):
                    idle = False
                    yield stream, data
            if given_up(deadline, cancelled):
                return
            if idle:
                await self._readable(process, ended, step(deadline, polling=cancelled is not None))
            else:
                await asyncio.sleep(0)  # a chatty command must not starve the loop
        async for stream, data in self._rest(process, deadline):
            yield stream, data

    async def _rest(
        self, process: LocalProcess, deadline: float | None
    ) -> AsyncGenerator[tuple[StreamType, bytes]]:
        """What an ended command has left in its pipes."""
        for stream, data in remainder(process):
            yield stream, data
        end = min(time.monotonic() + DRAIN, deadline or float('inf'))
        quiet = False
        while process.pipes and not quiet and time.monotonic() < end:
            before = len(process.pipes)
            await ready(process.pipes.values(), timeout=min(QUIET, max(0, end - time.monotonic())))
            quiet = True
            for stream in STREAMS:
                if data := take(process, stream):
                    quiet = False
                    yield stream, data
            quiet = quiet and len(process.pipes) == before
        self._drain(process)

    async def _readable(self, process: LocalProcess, ended: int, timeout: float | None) -> None:
        if ended < 0:
            await ready(
                process.pipes.values(), timeout=0.01 if timeout is None else min(0.01, timeout)
            )
            return
        await ready([*process.pipes.values(), ended], timeout=timeout)

    async def _ended(self, process: LocalProcess, timeout: float | None) -> bool:
        """Wait for the shell's end; several callers may wait for one, each in its own loop."""
        if self._poll(process) or (timeout is not None and timeout <= 0):
            return process.exit_code is not None
        with self._own_pidfd(process) as own:
            if own >= 0:
                await ready([own], timeout=timeout)
            elif not self._poll(process):
                await asyncio.sleep(0.02 if timeout is None else min(0.02, timeout))
        return self._poll(process)

    def _poll(self, process: LocalProcess) -> bool:
        """Whether the shell has ended; reaps it."""
        with self._lock:  # an exit code can be had once
            if process.exit_code is None and (code := self._code(process)) is not None:
                process.exit_code = code
                close_ends(process)
        return process.exit_code is not None

    def _code(self, process: LocalProcess) -> int | None:
        """The exit code of the shell, which is reaped; `None` while it runs."""
        # Not `Popen.poll`, which takes a code that somebody else was given for 0.
        try:
            pid, status = os.waitpid(process.popen.pid, os.WNOHANG)
        except ChildProcessError:
            process.popen.returncode = 0
            return self._reported(process) if process.code else _taken(process)
        if not pid:
            return None
        code = process.popen.returncode = os.waitstatus_to_exitcode(status)
        if process.code:
            return self._reported(process)
        return 128 - code if code < 0 else code

    def _reported(self, process: LocalProcess) -> int:
        text = self._take_private(process.code, 3)
        # What is not there was not written, since the shell that was to do it has been killed.
        return int(text) if text.isdigit() else 128 + signal.SIGKILL

    def reap(self) -> None:
        """Take the exit codes of commands that nobody waits for, so that no zombie stays."""
        for process in tuple(self._processes.values()):
            if process.exit_code is None:
                self._poll(process)

    async def detach(self, process: Process) -> None:
        local = self._local(process)
        if local.log or self._closed:
            return
        base, watcher = f'{self._private()}/{local.number}', self._watcher()
        streams: list[tuple[str, int, int, bool]] = []
        descriptors: list[int] = []
        files: list[int] = []
        for stream in STREAMS:
            kept = local.kept[stream]
            if kept and (file := file_or_none(kept)) is not None:
                files.append(file)
                descriptors.append(file)
            else:
                kept.clear()
            if stream in local.pipes:
                descriptors.append(local.pipes[stream])
            start = local.total[stream] - len(kept)
            streams.append((stream, start, len(kept), stream in local.pipes))
        watcher.tell(
            'pump', self._key(local), base, self._max_log_bytes, streams, descriptors=descriptors
        )
        for descriptor in files:
            os.close(descriptor)
        with self._lock:
            local.watched, local.pipes = local.pipes, {}
            if local.exit_code is not None:  # reaped before they were there to be closed
                close_ends(local)
        local.log = base
        local.kept = {stream: bytearray() for stream in STREAMS}

    async def _too_much(self, process: LocalProcess) -> bool:
        """Hand output that is too much for memory to the watcher, if it is; on a full disk only its tail stays.

        Returns:
            Whether the watcher has it now.
        """
        if all(len(kept) <= KEPT for kept in process.kept.values()):
            return False
        if self._closed or self._full():
            for kept in process.kept.values():
                del kept[:-KEPT]
            return False
        await self.detach(process)
        return True

    async def full(self) -> bool:
        # Of the folder above: a command may have removed the private directory, and to ask must not make a new one.
        return logs.full(os.path.dirname(self._directory)) if self._directory else self._full()

    def _full(self) -> bool:
        try:
            return logs.full(self._private())
        except SandboxError:  # not even a directory can be made
            return True

    def _watcher(self) -> Watcher:
        """The watcher; a new one, when the last has been killed, goes on with the logs of that."""
        watcher = Watcher.get()
        with self._lock:  # a command that ends meanwhile closes what is handed over
            last, self._last_watcher = self._last_watcher, watcher
            if last is not None and last is not watcher:
                for process in tuple(self._processes.values()):
                    if process.watched:
                        self._hand_over(process, watcher)
        return watcher

    def _hand_over(self, process: LocalProcess, watcher: Watcher) -> None:
        streams = [(stream, 0, 0, stream in process.watched) for stream in STREAMS]
        message = ('pump', self._key(process), process.log, self._max_log_bytes, streams)
        watcher.tell(*message, descriptors=list(process.watched.values()))

    def _key(self, process: LocalProcess) -> str:
        return f'{self._owner}.{process.number}'

    async def _sync(self, process: LocalProcess) -> None:
        """Have the watcher take in what is in the pipes now; bounded, since the watcher may have been killed."""
        here, there = os.pipe()
        try:
            told = self._watcher().tell('sync', self._key(process), descriptors=[there])
            os.close(there)
            if told:
                await ready([here], timeout=5)
        finally:
            os.close(here)

    async def written(self, process: Process, stream: StreamType, limit: int) -> Written:
        local = self._local(process)
        if not local.log:
            kept = local.kept[stream]
            return Written(bytes(kept[max(0, len(kept) - limit) :]), local.total[stream])
        await self._sync(local)
        total = logs.size(local.log, stream)
        start, tail = logs.read(local.log, stream, max(0, total - limit), limit)
        if total and limit and not tail:
            return Written(LOST, total)
        return Written(tail, start + len(tail))

    async def read(
        self, process: Process, stream: StreamType, start: int, length: int
    ) -> tuple[int, bytes]:
        local = self._local(process)
        if local.log:
            return logs.read(local.log, stream, start, length)
        kept = local.kept[stream]
        offset = local.total[stream] - len(kept)
        start = max(start, offset)
        return start, bytes(kept[start - offset : start - offset + length])

    async def send(self, process: Process, data: bytes) -> None:
        local = self._local(process)
        end = time.monotonic() + 10
        while data:
            if self._poll(local) or local.stdin < 0:
                msg = 'the command no longer reads its standard input; check_command says whether it still runs'
                raise InvalidCommand(msg)
            os.set_blocking(local.stdin, False)
            try:
                data = data[os.write(local.stdin, data) :]
            except BlockingIOError:
                if time.monotonic() > end:
                    msg = 'the command has not read its standard input for 10 seconds; the text was sent in part. See with check_command what it does'
                    raise InvalidCommand(msg) from None
                await asyncio.sleep(0.02)
            except BrokenPipeError:
                msg = 'the command has closed its standard input; check_command says whether it still runs'
                raise InvalidCommand(msg) from None

    async def listening(self) -> set[int]:
        return listening_ports(''.join(map(_text_of, ('/proc/net/tcp', '/proc/net/tcp6'))))

    # -- ending

    async def terminate(self, process: Process, *, grace: float) -> None:
        local = self._local(process)
        low = marks.mark_range(self._owner)[0] + local.number
        await self._end(low, low + 1, [local], grace)

    async def _end(
        self, low: int, high: int, processes: Sequence[LocalProcess], grace: float
    ) -> None:
        """SIGTERM now, SIGKILL after `grace` seconds or when cancelled meanwhile; then reap."""
        alive = self._signal(low, high, processes, signal.SIGTERM)
        try:
            end, pause = time.monotonic() + grace, 0.004
            while alive and time.monotonic() < end:
                await asyncio.sleep(min(pause, max(0, end - time.monotonic())))
                pause = min(2 * pause, 0.05)
                for process in processes:
                    await self._hear_out(process)
                self.reap()
                alive = any(process.exit_code is None for process in processes) or any(
                    True for _ in marks.marked(low, high)
                )
        finally:
            if alive:
                self._signal(low, high, processes, signal.SIGKILL)
            marks.kill_marked(low, high)
            for process in processes:
                self._reap_killed(process)

    async def _hear_out(self, process: LocalProcess) -> None:
        """Read what an attached command says while it ends: a full pipe would hold it up, and nobody waits for it now."""
        if process.reading or self._closed:
            return
        for stream in STREAMS:
            process.kept[stream] += take(process, stream)
        await self._too_much(process)

    def _reap_killed(self, process: LocalProcess) -> None:
        # Bounded: a process in uninterruptible sleep does not answer to SIGKILL before it wakes.
        end = time.monotonic() + 2
        while not self._poll(process) and time.monotonic() < end:
            time.sleep(0.001)

    def _signal(self, low: int, high: int, processes: Sequence[LocalProcess], number: int) -> bool:
        """Signal by group, which also reaches a shell that has not marked itself yet, and by mark whoever is elsewhere."""
        groups: set[int] = set()
        for process in processes:
            if not self._poll(process) or not marks.LINUX:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.popen.pid, number)
                    groups.add(process.popen.pid)
                    if number == signal.SIGTERM:
                        os.killpg(process.popen.pid, signal.SIGCONT)
        # A handler that hears of SIGTERM twice takes it for impatience, and what it started to tidy up is not to be ended.
        told = groups if number == signal.SIGTERM else ()
        return bool(marks.signal_marked(low, high, number, told=told)) or bool(groups)

    def _drain(self, process: LocalProcess) -> None:
        """Hand pipes that children still hold to the watcher."""
        if process.pipes:
            Watcher.get().tell(
                'drain', len(process.pipes), descriptors=list(process.pipes.values())
            )
            for descriptor in process.pipes.values():
                os.close(descriptor)
            process.pipes.clear()

    def _give_up(self, process: LocalProcess) -> None:
        with self._lock:  # another thread may be reaping it
            close_descriptors(process)

    async def forget(self, process: Process) -> None:
        if self._pid != os.getpid() or self._processes.pop(process.number, None) is None:
            return
        local = self._local(process)
        self._drain(local)
        self._give_up(local)
        if local.log:
            Watcher.get().tell('forget', self._key(local))
            await self._sync(local)
            for stream in STREAMS:
                for offset in logs.offsets(local.log, stream):
                    with contextlib.suppress(OSError):
                        os.unlink(f'{local.log}.{stream}.{offset}')
        local.kept = {stream: bytearray() for stream in STREAMS}

    async def close(self, *, grace: float) -> None:
        if self._pid != os.getpid():
            self._closed = True
            return
        if self._closed:
            await until(lambda: not self._closing, timeout=grace + 10)
            return
        self._closed = self._closing = True
        try:
            await self._close(grace)
        finally:
            self._closing = False

    async def _close(self, grace: float) -> None:
        if not self._used:
            self._remove()
            return
        low, high = marks.mark_range(self._owner)
        running = [
            process for process in tuple(self._processes.values()) if not self._poll(process)
        ]
        try:
            await self._end(low, high, running, grace)
        finally:
            for process in self._processes.values():
                if not process.reading:
                    self._give_up(process)
            self._processes.clear()
            self._remove()

    def _remove(self) -> None:
        if self._finalizer is not None:
            self._finalizer.detach()
        with self._lock:  # another thread may be making the directory
            if self._directory:
                shutil.rmtree(self._directory, ignore_errors=True)
        if self._used or self._directory:
            Watcher.get().disown(self._owner)

    def _local(self, process: Process) -> LocalProcess:
        assert isinstance(process, LocalProcess)  # noqa: S101 - only `spawn` makes them
        return process


@functools.cache  # once a process is enough
def _warn_of_marks() -> None:
    if (most := marks.lowered()) is not None:
        logger.warning(
            'commands can not be marked, since the hard limit on file locks is %d here: what they leave '
            'running, and what leaves their process group (setsid), outlives them and this process; leave that limit alone (ulimit -H -x, LimitLOCKS= of systemd)',
            most,
        )


def _abandon(owner: int, pid: int, processes: Mapping[int, LocalProcess]) -> None:
    """Nobody closed the owner: its watcher ends what it started."""
    if pid == os.getpid():
        for (
            process
        ) in processes.values():  # nobody reads them: a method that runs would hold the owner
            close_descriptors(process)
        # The garbage collector calls this at any moment, perhaps in a thread that holds the watcher's locks: another
        # one has to wait for them. `threading.Thread` has locks of its own that this thread could hold.
        with contextlib.suppress(RuntimeError):  # the interpreter ends, which the watcher sees
            _thread.start_new_thread(_end_abandoned, (owner,))


def _end_abandoned(owner: int) -> None:
    watcher = Watcher.get()
    watcher.owners.pop(owner, None)
    watcher.tell('end', owner)


def _spawn_error(error: OSError | ValueError, spawn: Spawn) -> Exception:
    if isinstance(error, ValueError):  # a NUL or an "=" where the system takes none
        return InvalidCommand(
            f'the command or a variable of its environment can not be passed on: {error}'
        )
    if error.errno == errno.E2BIG:
        return InvalidCommand(
            'the environment is too big for the system (E2BIG); pass fewer or shorter variables'
        )
    if error.filename is not None and os.fsdecode(error.filename) == spawn.cwd:
        return WorkingDirectoryGone(_gone(spawn.cwd, f'can not be entered ({error.strerror})'))
    return SandboxError(
        f'the system can not start another process ({error.strerror}); stop background commands, or wait'
    )


def _forgets_codes() -> bool:
    """Whether the system or somebody in this process takes exit codes that are not theirs."""
    return _codes_are_taken or signal.getsignal(signal.SIGCHLD) is signal.SIG_IGN


_codes_are_taken = False


def _taken(process: LocalProcess) -> int:
    """The exit code of a command when somebody else in this process has waited for it: none that is known.

    It happens once: later commands write theirs down.
    """
    global _codes_are_taken  # noqa: PLW0603 - who waits for every child does so for the whole process
    _codes_are_taken = True
    if not process.log:
        note = b'\n[anyshell: something in the program that ran this command took its exit code, which is not known; later ones will be]\n'
        process.kept['stderr'] += note
        process.total['stderr'] += len(note)
    return UNKNOWN


def _text_of(path: str) -> str:
    try:
        with open(path, encoding='ascii') as file:
            return file.read()
    except OSError:
        return ''


def _absolute(base: str, path: str) -> str:
    return os.path.abspath(os.path.join(base, path))


def _enterable(path: str) -> bool:
    return os.path.isdir(path) and os.access(path, os.X_OK)


def _gone(cwd: str, what: str) -> str:
    return f'the working directory {cwd!r} {what}; nothing was run'
