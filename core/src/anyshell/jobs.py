"""The one engine: a command is a job from its first instant.

`run` starts a job and waits for it in the same call; `start` starts one and lets go. Everything else (the time limit,
the output, the end of the whole tree) is the same for both, so a limit can leave a command running as a job, and a
stop reaches it. State is plain data: every method may be called from another loop or thread.
"""

from __future__ import annotations

import asyncio
import codecs
import inspect
import threading
import time
from collections import deque
from concurrent.futures import Future
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from anyshell.errors import InvalidCommand, JobsRefused, UnknownCommandID
from anyshell.result import CommandResult
from anyshell.sandbox.base import STREAMS, CommandLost, Flag, StreamChunk
from anyshell.sandbox.capture import Decoder, decode_tail
from anyshell.waiting import Condition, Search

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping

    from anyshell.sandbox.base import Process, Processes, Spawn, StreamType

CANCEL_GRACE = 0.5
"""Seconds between SIGTERM and SIGKILL when the caller is cancelled: somebody waits for us to leave."""

MAX_LINE = 1 << 20
"""Characters after which a line that has not ended counts as one."""

LAST = 'last'
"""Stands for the latest command whose output was cut: the reply that says so is the origin's and has no ID."""

MAX_LINES = 2000
"""The most lines of one stream that one look at a log gives."""

BYTES_PER_CHAR = 4
"""UTF-8 takes at most this many (RFC 3629)."""


@dataclass(slots=True)
class Job:
    """A command that was started and that a model can look at and stop by its ID.

    Attributes:
        id: Short, and unique within the session.
        command: As it was given.
        cwd: The directory it started in.
        process: The sandbox's handle.
        started: When, by `time.monotonic()`.
        ended: When it was first seen to have ended.
        stdin: Whether it was started with a standard input to write to.
        background: `False` for a command that was waited for and is kept because its output was cut.
        lost: Whether the sandbox no longer knows it; a look at it says why.
        size: How much output of such a command there is, in bytes.
        seen: How much of each stream a `since='last'` has shown.
    """

    id: str
    command: str
    cwd: str
    process: Process
    started: float = field(default_factory=time.monotonic)
    ended: float | None = None
    stdin: bool = False
    background: bool = True
    lost: bool = False
    size: int = 0
    seen: dict[StreamType, int] = field(default_factory=lambda: dict.fromkeys(STREAMS, 0))


class Turns:
    """First come, first served, across event loops and threads; holds no asyncio object."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._queue: deque[Future[None]] = deque()

    @asynccontextmanager
    async def turn(self, cancelled: Flag | None = None) -> AsyncGenerator[bool]:
        """Wait for one's turn, and pass it on at the end.

        Args:
            cancelled: When it is set, the wait ends within 0.1 seconds.

        Yields:
            Whether the turn has come.
        """
        mine: Future[None] = Future()
        with self._lock:
            self._queue.append(mine)
            if len(self._queue) == 1:
                mine.set_result(None)
        try:
            yield mine.done() or await self._come(mine, cancelled)
        finally:
            with self._lock:
                self._queue.remove(mine)
                if self._queue and not self._queue[0].done():
                    self._queue[0].set_result(None)

    async def _come(self, mine: Future[None], cancelled: Flag | None) -> bool:
        come = asyncio.wrap_future(mine)
        pause = None if cancelled is None else 0.05
        while not (cancelled is not None and cancelled.is_set()):
            # `wait` leaves the future alone when its task is cancelled: whoever is before us may be about to set it.
            await asyncio.wait((come,), timeout=pause)
            if come.done():
                return True
        return False


class Jobs:
    """The commands of one session.

    Args:
        processes: Where they run; closed with this object.
        max_jobs: The most background commands at a time.
        max_output_chars: How much of each stream a `CommandResult` holds.
        max_log_bytes: How much output of commands that were waited for stays readable after it was cut.
        kill_grace: Seconds between SIGTERM and SIGKILL.
    """

    def __init__(
        self,
        processes: Processes,
        *,
        max_jobs: int,
        max_output_chars: int,
        max_log_bytes: int,
        kill_grace: float,
    ) -> None:
        self._processes = processes
        self._max_log_bytes = max_log_bytes
        self._max_jobs = max_jobs
        self._limit = max_output_chars
        self._grace = kill_grace
        self._jobs: dict[str, Job] = {}
        self._by_call: dict[str, str] = {}
        self._count = 0
        self._starts = Turns()

    async def run(
        self,
        spawn: Spawn,
        *,
        timeout: float,
        background: bool = False,
        keep_cut: bool = False,
        on_output: Callable[[StreamChunk], Awaitable[None] | None] | None = None,
        cancelled: Flag | None = None,
    ) -> CommandResult:
        """Start a command and wait until it has ended or its time is up.

        The limit counts from the start of the command; ending it takes `kill_grace` seconds more at most.

        Args:
            spawn: What to run.
            timeout: Seconds.
            background: Whether the command goes on as a job when its time is up, unless `max_jobs` are running.
            keep_cut: Whether output that is longer than what the result holds stays readable by a job ID.
            on_output: Gets each piece of output in this task, as it comes.
            cancelled: When it is set, the command is ended and what it wrote is returned.
        """
        started = time.monotonic()
        if cancelled is not None and cancelled.is_set():
            return CommandResult(command=spawn.line, exit_code=None, cancelled=True, cwd=spawn.cwd)
        listener = None if on_output is None else _Listener(on_output)
        process = await self._processes.spawn(replace(spawn, keep=background))
        keep = False
        ended = False
        try:
            ended = await self._processes.wait(
                process, timeout=timeout, on_bytes=listener, cancelled=cancelled
            )
            taken_back = not ended and cancelled is not None and cancelled.is_set()
            if not ended and background and not taken_back:
                job = await self._let_go(spawn, process, started)
                if job is not None:
                    keep = True
                    return await self._result(job, timed_out=timeout)
            if not ended:
                await self._processes.terminate(
                    process, grace=CANCEL_GRACE if taken_back else self._grace
                )
                await self._processes.wait(process, timeout=1)
            if listener is not None:
                await listener.finish()
            result = await self._facts(
                spawn,
                process,
                started,
                timed_out=None if ended or taken_back else timeout,
                cancelled=taken_back,
            )
            ended = True
            if result.truncated and keep_cut:
                keep = True
                return replace(result, job_id=await self._keep(spawn, process, started))
            return result
        finally:
            if not keep:
                if not ended:  # cancelled, or an error in `on_output`: the command ends before that leaves here
                    await self._processes.terminate(process, grace=CANCEL_GRACE)
                await self._processes.forget(process)

    async def start(
        self,
        spawn: Spawn,
        *,
        call_id: str | None = None,
        ready: Condition | None = None,
        ready_timeout: float = 0.0,
    ) -> CommandResult:
        """Start a background command; the same `call_id` starts it once.

        Args:
            spawn: What to run.
            call_id: The framework's ID of the call.
            ready: What to wait for before returning; the command's end always ends the wait.
            ready_timeout: Seconds to wait at most.

        Raises:
            JobsRefused: If `max_jobs` commands are running, or somebody else has the port that would mean "ready".
        """
        async with self._starts.turn():
            job = self._jobs.get(self._by_call.get(call_id, '')) if call_id is not None else None
            # Another command is another start: some providers count the IDs of calls from 0 in every answer.
            if job is None or job.command != spawn.line:
                job = await self._start(spawn, ready)
                if call_id is not None:
                    self._by_call[call_id] = job.id
        if ready is None:
            return CommandResult(
                command=job.command, exit_code=None, running=True, cwd=job.cwd, job_id=job.id
            )
        return await self._report(job, ready, ready_timeout)

    async def _start(self, spawn: Spawn, ready: Condition | None) -> Job:
        await self._make_room()
        if (
            ready is not None
            and ready.kind == 'port'
            and ready.number in await self._processes.listening()
        ):
            raise JobsRefused(
                f'something already listens on port {int(ready.number)}, so nothing was started; '
                'stop that first, or use another port'
            )
        process = await self._processes.spawn(spawn)
        try:
            await self._processes.detach(process)
            return self._publish(spawn, process, time.monotonic())
        except BaseException:
            await self._processes.terminate(process, grace=CANCEL_GRACE)
            raise

    async def check(
        self,
        command_id: str,
        *,
        until: Condition | None = None,
        wait: float = 0.0,
        since_last: bool = False,
    ) -> CommandResult:
        """The state and the output of a background command.

        Args:
            command_id: Its ID.
            until: What to wait for; the command's end always ends the wait.
            wait: Seconds to wait at most.
            since_last: Whether only output that no such call has shown yet is wanted.

        Raises:
            UnknownCommandID: If the ID names none.
        """
        job = self._get(command_id)
        return await self._report(job, until, wait, since_last=since_last)

    async def send(self, command_id: str, text: str) -> CommandResult:
        """Write to the standard input of a background command that was started with one.

        Raises:
            UnknownCommandID: If the ID names none.
            InvalidCommand: If it has no open standard input.
        """
        job = self._get(command_id)
        if not job.stdin:
            raise InvalidCommand(
                f'the command {command_id!r} has no open standard input; '
                'stop it and start it again by start_command with stdin=true'
            )
        if await self._look(job, timeout=0):
            raise InvalidCommand(
                f'the command {command_id!r} has ended, so nothing was sent; check_command shows its output and exit code'
            )
        await self._processes.send(job.process, text.encode())
        # An answer takes a moment; a program that stays silent costs no more than that.
        await self._wait_for(job, Condition('quiet:0.2', 'quiet', number=0.2), 1.0, None)
        return await self._report(job, None, 0.0)

    async def lines(
        self, command_id: str, first: int, last: int | None
    ) -> tuple[dict[StreamType, list[str]], int]:
        """Some lines of a command's whole output, as far as the log still has them, and how many bytes it has not.

        Lines are counted from the first one that is there.

        Args:
            command_id: Its ID.
            first: The number of the first line of each stream, from 1; negative counts from the end.
            last: The number of the last line; `None` for the end.

        Raises:
            UnknownCommandID: If the ID names none.
        """
        job = self._get(command_id)
        await self._look(job, timeout=0)
        dropped = 0
        for stream in STREAMS:
            dropped += (await self._processes.read(job.process, stream, 0, 1))[0]
        found: dict[StreamType, list[str]] = {}
        for stream in STREAMS:
            found[stream] = await self._lines(job.process, stream, first, last)
        return found, dropped

    async def _lines(
        self, process: Process, stream: StreamType, first: int, last: int | None
    ) -> list[str]:
        found: deque[str] = deque(maxlen=min(-first, MAX_LINES) if first < 0 else MAX_LINES)
        number = 0
        async for line in self._every_line(process, stream):
            number += 1
            if first < 0 or (
                number >= first and (last is None or number <= last) and len(found) < MAX_LINES
            ):
                found.append(line)
            if last is not None and number >= last:
                break
        return list(found)

    async def _every_line(self, process: Process, stream: StreamType) -> AsyncGenerator[str]:
        decoder, rest, position = Decoder(), '', 0
        await self._processes.written(process, stream, 0)
        while True:
            start, data = await self._processes.read(process, stream, position, 1 << 20)
            position = start + len(data)
            *lines, rest = (rest + decoder.decode(stream, data, final=not data)).split('\n')
            for line in lines:
                yield line
            if not data:
                break
            if len(rest) > MAX_LINE:  # output without newlines must not fill the memory
                yield rest
                rest = ''
            await asyncio.sleep(0)  # a big log must not hold up the loop
        if rest:
            yield rest

    async def states(self, *, before: Job | None = None) -> list[tuple[Job, bool]]:
        """Every background command, and whether it has ended; with `before` those that were known before that one."""
        states: list[tuple[Job, bool]] = []
        for job in tuple(self._jobs.values()):
            if job is before:
                break
            if job.background:
                try:
                    states.append((job, await self._look(job, timeout=0)))
                except CommandLost:  # no reason to refuse all others
                    job.ended, job.lost = job.ended or time.monotonic(), True
                    states.append((job, True))
        return states

    async def stop(self, command_id: str) -> CommandResult:
        """End a background command with all that it started; one that has ended is left as it is.

        Raises:
            UnknownCommandID: If the ID names none.
        """
        job = self._get(command_id)
        # A command that has ended may have left children: they are part of what is stopped.
        await self._processes.terminate(job.process, grace=self._grace)
        await self._look(job, timeout=1)
        return await self._result(job)

    async def close(self) -> None:
        """End everything and remove every file. Idempotent."""
        await self._processes.close(grace=self._grace)

    @property
    def ids(self) -> tuple[str, ...]:
        """The IDs of the background commands that are known."""
        return tuple(self._jobs)

    def _get(self, command_id: str) -> Job:
        if command_id == LAST:
            cut = [job for job in tuple(self._jobs.values()) if not job.background]
            command_id = cut[-1].id if cut else command_id
        job = self._jobs.get(command_id)
        if job is None:
            raise UnknownCommandID(command_id, self.ids)
        return job

    def _publish(self, spawn: Spawn, process: Process, started: float) -> Job:
        self._count += 1
        job = Job(f'j{self._count}', spawn.line, spawn.cwd, process, started, stdin=spawn.stdin)
        self._jobs[job.id] = job
        return job

    async def _keep(self, spawn: Spawn, process: Process, started: float) -> str:
        """Keep the output of a command that was waited for; the oldest ones go when all together are too big."""
        await self._processes.detach(process)
        job = self._publish(spawn, process, started)
        job.background = False
        job.ended = time.monotonic()
        for stream in STREAMS:
            written = await self._processes.written(process, stream, 0)
            job.size += min(self._max_log_bytes, written.total)
        left = self._max_log_bytes
        for kept in [job for job in reversed(tuple(self._jobs.values())) if not job.background]:
            left -= kept.size
            if left < 0 and kept is not job:
                await self._forget(kept)
        return job.id

    async def _forget(self, job: Job) -> None:
        del self._jobs[job.id]
        self._by_call = {call: known for call, known in self._by_call.items() if known != job.id}
        await self._processes.forget(job.process)

    async def _let_go(self, spawn: Spawn, process: Process, started: float) -> Job | None:
        """Make a job of a command that is waited for; `None` when there is no room for it."""
        await self._processes.detach(process)
        # Known before the others are counted: of commands at the same time, the first ones have room.
        job = self._publish(spawn, process, started)
        room = False
        try:
            states = await self.states(before=job)
            room = sum(not ended for _, ended in states) < self._max_jobs
        finally:
            if not room:
                self._jobs.pop(job.id, None)
        return job if room else None

    async def _make_room(self) -> None:
        states = await self.states()
        running = [job.id for job, ended in states if not ended]
        if len(running) >= self._max_jobs:
            raise JobsRefused(
                f'{len(running)} background commands are running, which is the limit (max_jobs={self._max_jobs}); '
                f'stop one with stop_command first. Running: {", ".join(running)}'
            )
        # Ended jobs stay readable, but not for ever: the oldest ones go.
        finished = [job for job, ended in states if ended]
        for job in finished[: max(0, len(finished) - self._max_jobs)]:
            await self._forget(job)

    async def _report(
        self, job: Job, until: Condition | None, seconds: float, *, since_last: bool = False
    ) -> CommandResult:
        met = (
            None
            if until is None
            else await self._wait_for(job, until, seconds, job.seen if since_last else None)
        )
        await self._look(job, timeout=0)
        result = await (self._news(job) if since_last else self._result(job))
        return result if until is None else replace(result, condition=until.text, condition_met=met)

    async def _wait_for(
        self, job: Job, condition: Condition, seconds: float, since: Mapping[StreamType, int] | None
    ) -> bool:
        """Wait until the condition holds, the command has ended, or the time is up; `True` when it holds."""
        end = time.monotonic() + seconds
        search = Search(self._processes, job.process, condition, since)
        pause = 0.02
        while True:
            ended = await self._look(job, timeout=min(pause, max(0.0, end - time.monotonic())))
            if await self._holds(condition, search, ended=ended):
                return True
            if ended or time.monotonic() >= end:
                return False
            pause = min(1.5 * pause, 0.25)

    async def _holds(self, condition: Condition, search: Search, *, ended: bool) -> bool:
        if condition.kind == 'exit':
            return ended
        if condition.kind == 'port':
            return not ended and condition.number in await self._processes.listening()
        return await search.step()

    async def _look(self, job: Job, *, timeout: float) -> bool:
        """Whether the job has ended, after waiting `timeout` seconds for it."""
        if (job.ended is None or job.lost) and await self._processes.wait(
            job.process, timeout=timeout
        ):
            job.ended = time.monotonic()
        return job.ended is not None

    async def _result(self, job: Job, *, timed_out: float | None = None) -> CommandResult:
        return self._of(job, await self._output(job.process), timed_out=timed_out)

    async def _news(self, job: Job) -> CommandResult:
        """What no `since='last'` has shown yet; half a character at the end waits for its rest."""
        texts: dict[StreamType, str] = {}
        truncated, size = False, 0
        for stream in STREAMS:
            total = (await self._processes.written(job.process, stream, 0)).total
            size += total
            wanted = max(job.seen[stream], total - BYTES_PER_CHAR * self._limit)
            start, data = await self._processes.read(job.process, stream, wanted, total - wanted)
            final = job.ended is not None
            text, taken = codecs.utf_8_decode(data, 'replace', final)
            truncated |= start > job.seen[stream] or len(text) > self._limit
            job.seen[stream] = start + taken
            texts[stream] = text[-self._limit :]
        return self._of(job, _Output(texts['stdout'], texts['stderr'], truncated, size))

    def _of(self, job: Job, output: _Output, *, timed_out: float | None = None) -> CommandResult:
        return CommandResult(
            command=job.command,
            exit_code=job.process.exit_code,
            stdout=output.stdout,
            stderr=output.stderr,
            truncated=output.truncated,
            output_bytes=output.size,
            timed_out=timed_out,
            duration=(job.ended or time.monotonic()) - job.started,
            cwd=job.cwd,
            running=job.ended is None,
            job_id=job.id,
        )

    async def _facts(
        self,
        spawn: Spawn,
        process: Process,
        started: float,
        *,
        timed_out: float | None,
        cancelled: bool,
    ) -> CommandResult:
        output = await self._output(process)
        return CommandResult(
            command=spawn.line,
            exit_code=None if timed_out is not None or cancelled else process.exit_code,
            stdout=output.stdout,
            stderr=output.stderr,
            truncated=output.truncated,
            output_bytes=output.size,
            timed_out=timed_out,
            cancelled=cancelled,
            duration=time.monotonic() - started,
            cwd=spawn.cwd,
        )

    async def _output(self, process: Process) -> _Output:
        texts: dict[StreamType, str] = {}
        truncated, size = False, 0
        for stream in STREAMS:
            written = await self._processes.written(process, stream, BYTES_PER_CHAR * self._limit)
            size += written.total
            text = decode_tail(written.tail, cut=written.total > len(written.tail))
            truncated |= written.total > len(written.tail) or len(text) > self._limit
            texts[stream] = text[-self._limit :]
        return _Output(texts['stdout'], texts['stderr'], truncated, size)


@dataclass(frozen=True, slots=True)
class _Output:
    stdout: str
    stderr: str
    truncated: bool
    size: int


class _Listener:
    """Hands output on as text, in the caller's own task."""

    def __init__(self, on_output: Callable[[StreamChunk], Awaitable[None] | None]) -> None:
        self._on_output = on_output
        self._decoder = Decoder()

    async def __call__(self, stream: StreamType, data: bytes, *, final: bool = False) -> None:
        if text := self._decoder.decode(stream, data, final=final):
            answer = self._on_output(StreamChunk(text, stream))
            if inspect.isawaitable(answer):
                await answer

    async def finish(self) -> None:
        """There is no more: what waits for the rest of a character goes out without."""
        for stream in STREAMS:
            await self(stream, b'', final=True)
