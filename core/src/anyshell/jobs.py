"""The one engine: a command is a job from its first instant.

`run` starts a job and waits for it in the same call; `start` starts one and lets go. Everything else (the time limit,
the output, the end of the whole tree) is the same for both, so a limit can leave a command running as a job, and a
stop reaches it. State is plain data: every method may be called from another loop or thread.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
import time
from collections import deque
from concurrent.futures import Future
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from anyshell import cwd as directories
from anyshell.errors import JobsRefused, UnknownCommandID
from anyshell.result import CommandResult
from anyshell.sandbox.base import StreamChunk
from anyshell.sandbox.capture import Decoder, decode_tail

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

    from anyshell.sandbox.base import Process, Processes, Shell, Spawn, StreamType

CANCEL_GRACE = 0.5
"""Seconds between SIGTERM and SIGKILL when the caller is cancelled: somebody waits for us to leave."""

BYTES_PER_CHAR = 4
"""UTF-8 takes at most this many (RFC 3629)."""


@dataclass(slots=True)
class Job:
    """A command that was started and that a model can look at and stop by its ID."""

    id: str
    command: str
    cwd: str
    process: Process
    started: float = field(default_factory=time.monotonic)
    ended: float | None = None
    stopped: bool = False


class Turns:
    """First come, first served, across event loops and threads; holds no asyncio object."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._queue: deque[Future[None]] = deque()

    @asynccontextmanager
    async def turn(self) -> AsyncGenerator[None]:
        """Wait for one's turn, and pass it on at the end."""
        mine: Future[None] = Future()
        with self._lock:
            self._queue.append(mine)
            if len(self._queue) == 1:
                mine.set_result(None)
        try:
            if not mine.done():
                await asyncio.wrap_future(mine)
            yield
        finally:
            with self._lock:
                self._queue.remove(mine)
                if self._queue and not self._queue[0].done():
                    self._queue[0].set_result(None)


class Jobs:
    """The commands of one session.

    Args:
        processes: Where they run; closed with this object.
        max_jobs: The most background commands at a time.
        max_output_chars: How much of each stream a `CommandResult` holds.
        kill_grace: Seconds between SIGTERM and SIGKILL.
    """

    def __init__(self, processes: Processes, *, max_jobs: int, max_output_chars: int, kill_grace: float) -> None:
        self._processes = processes
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
        on_output: Callable[[StreamChunk], Awaitable[None] | None] | None = None,
        cancelled: threading.Event | None = None,
    ) -> CommandResult:
        """Start a command and wait until it has ended or its time is up.

        The limit counts from the start of the command; ending it takes `kill_grace` seconds more at most.

        Args:
            spawn: What to run.
            timeout: Seconds.
            background: Whether the command goes on as a job when its time is up.
            on_output: Gets each piece of output in this task, as it comes.
            cancelled: When it is set, the command is ended and what it wrote is returned.
        """
        started = time.monotonic()
        process = await self._processes.spawn(spawn)
        keep = False
        ended = False
        try:
            ended = await self._processes.wait(
                process,
                timeout=timeout,
                on_bytes=None if on_output is None else _decoded(on_output),
                cancelled=cancelled,
            )
            taken_back = not ended and cancelled is not None and cancelled.is_set()
            if not ended and background and not taken_back:
                keep = True
                await self._processes.detach(process)
                job = self._publish(spawn, process, started)
                return await self._result(job, timed_out=timeout)
            if not ended:
                await self._processes.terminate(process, grace=CANCEL_GRACE if taken_back else self._grace)
                await self._processes.wait(process, timeout=1)
            result = await self._facts(
                spawn,
                process,
                started,
                timed_out=None if ended or taken_back else timeout,
                cancelled=taken_back,
            )
            ended = True
            return result
        finally:
            if not keep:
                if not ended:  # cancelled, or an error in `on_output`: the command ends before that leaves here
                    await self._processes.terminate(process, grace=CANCEL_GRACE)
                await self._processes.forget(process)

    async def start(self, spawn: Spawn, *, call_id: str | None = None) -> CommandResult:
        """Start a background command; the same `call_id` starts it once.

        Raises:
            JobsRefused: If `max_jobs` commands are running.
        """
        async with self._starts.turn():
            if call_id is not None and (known := self._jobs.get(self._by_call.get(call_id, ''))):
                return await self._result(known)
            await self._make_room()
            process = await self._processes.spawn(spawn)
            try:
                await self._processes.detach(process)
                job = self._publish(spawn, process, time.monotonic())
            except BaseException:
                await self._processes.terminate(process, grace=CANCEL_GRACE)
                raise
            if call_id is not None:
                self._by_call[call_id] = job.id
            return CommandResult(command=job.command, exit_code=None, cwd=job.cwd, job_id=job.id)

    async def check(self, command_id: str) -> CommandResult:
        """The state and the output so far of a background command.

        Raises:
            UnknownCommandID: If the ID names none.
        """
        job = self._get(command_id)
        await self._look(job, timeout=0)
        return await self._result(job)

    async def stop(self, command_id: str) -> CommandResult:
        """End a background command with all that it started; one that has ended is left as it is.

        Raises:
            UnknownCommandID: If the ID names none.
        """
        job = self._get(command_id)
        # A command that has ended may have left children: they are part of what is stopped.
        await self._processes.terminate(job.process, grace=self._grace)
        job.stopped = True
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
        job = self._jobs.get(command_id)
        if job is None:
            raise UnknownCommandID(command_id, self.ids)
        return job

    def _publish(self, spawn: Spawn, process: Process, started: float) -> Job:
        self._count += 1
        job = Job(f'j{self._count}', spawn.line, spawn.cwd, process, started)
        self._jobs[job.id] = job
        return job

    async def _make_room(self) -> None:
        running = [job for job in tuple(self._jobs.values()) if not await self._look(job, timeout=0)]
        if len(running) >= self._max_jobs:
            msg = (
                f'{len(running)} background commands are running, which is the limit (max_jobs={self._max_jobs}); '
                f'stop one with stop_command first. Running: {", ".join(job.id for job in running)}'
            )
            raise JobsRefused(msg)
        # Ended jobs stay readable, but not for ever: the oldest ones go.
        ended = [job for job in self._jobs.values() if job.ended is not None]
        for job in ended[: max(0, len(ended) - self._max_jobs)]:
            await self._processes.forget(job.process)
            del self._jobs[job.id]

    async def _look(self, job: Job, *, timeout: float) -> bool:
        """Whether the job has ended, after waiting `timeout` seconds for it."""
        if job.ended is None and await self._processes.wait(job.process, timeout=timeout):
            job.ended = time.monotonic()
        return job.ended is not None

    async def _result(self, job: Job, *, timed_out: float | None = None) -> CommandResult:
        stdout, stderr, truncated = await self._output(job.process)
        return CommandResult(
            command=job.command,
            exit_code=job.process.exit_code,
            stdout=stdout,
            stderr=stderr,
            truncated=truncated,
            timed_out=timed_out,
            duration=(job.ended or time.monotonic()) - job.started,
            cwd=job.cwd,
            job_id=job.id,
        )

    async def _facts(
        self, spawn: Spawn, process: Process, started: float, *, timed_out: float | None, cancelled: bool
    ) -> CommandResult:
        stdout, stderr, truncated = await self._output(process)
        return CommandResult(
            command=spawn.line,
            exit_code=None if timed_out is not None or cancelled else process.exit_code,
            stdout=stdout,
            stderr=stderr,
            truncated=truncated,
            timed_out=timed_out,
            cancelled=cancelled,
            duration=time.monotonic() - started,
            cwd=spawn.cwd,
        )

    async def _output(self, process: Process) -> tuple[str, str, bool]:
        texts: dict[StreamType, str] = {}
        truncated = False
        for stream in ('stdout', 'stderr'):
            written = await self._processes.written(process, stream, BYTES_PER_CHAR * self._limit)
            text = decode_tail(written.tail, cut=written.total > len(written.tail))
            truncated |= written.total > len(written.tail) or len(text) > self._limit
            texts[stream] = text[-self._limit :]
        return texts['stdout'], texts['stderr'], truncated


class Directory:
    """The working directory of a session: where the next command starts, and the reader of what the last one recorded.

    Args:
        processes: Where commands run.
        path: The first directory; relative to the sandbox's own.
        persist: Whether a `cd` holds for later commands.
    """

    def __init__(self, processes: Processes, path: str, *, persist: bool) -> None:
        self._processes = processes
        self._first = path
        self._absolute = False
        self._records = 0
        self.path = path
        self.persist = persist

    async def start(self) -> str:
        """The absolute directory that the next command starts in."""
        if not self._absolute:
            self._first = self.path = await self._processes.resolve(self._first)
            self._absolute = True
        return self.path

    def reset(self) -> bool:
        """Go back to the first directory; `False` when that is where we are."""
        moved = self.path != self._first
        self.path = self._first
        return moved

    async def recorder(self, shell: Shell) -> tuple[str, str]:
        """The name of a new record and the preamble that writes it."""
        self._records += 1
        name = f'{self._records}.cwd'
        return name, directories.recorder(f'{await self._processes.directory()}/{name}', shell)

    async def follow(self, name: str) -> None:
        """Take over what a command recorded; something that is no directory is ignored."""
        found = directories.last_directory(await self._processes.read_private(name))
        if found is not None and found != self.path and await self._processes.is_directory(found):
            self.path = found


def _decoded(
    on_output: Callable[[StreamChunk], Awaitable[None] | None],
) -> Callable[[StreamType, bytes], Awaitable[None]]:
    decoder = Decoder()

    async def on_bytes(stream: StreamType, data: bytes) -> None:
        if text := decoder.decode(stream, data):
            answer = on_output(StreamChunk(text, stream))
            if inspect.isawaitable(answer):
                await answer

    return on_bytes
