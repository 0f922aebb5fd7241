"""Sandboxes behind kept shells: commands are read as they write, background commands and files go by scripts."""

from __future__ import annotations

import asyncio
import contextlib
import io
import os
import secrets
import shlex
import shutil
import time
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from anyshell.errors import (
    SandboxClosed,
    SandboxError,
    SandboxTimeoutError,
    WorkingDirectoryGone,
)
from anyshell.sandbox import logs, waits
from anyshell.sandbox.base import STREAMS, Spawn, StreamType, Written
from anyshell.sandbox.kept import KeptChannel
from anyshell.sandbox.lanes import Lane, new_mark
from anyshell.sandbox.posix import (
    PosixShellSandbox,
    file_error,
    reading,
    staging,
    write_error,
    writing,
)
from anyshell.sandbox.process import DRAIN, QUIET
from anyshell.sandbox.scripts import KEPT, FarProcess, ScriptProcesses, answering
from anyshell.sandbox.streaming import stream_command
from anyshell.sandbox.waits import CHUNK, given_up, ready, step
from anyshell.sandbox.watch import Watcher, temporary_directory

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

    from anyshell.sandbox.base import ExecutionResult, Flag, Process, Shell, StreamChunk

T = TypeVar('T')

MAX_TRIES = 3
"""A command is sent again when it certainly has not run: its shell, and then its directory, may have to be made anew."""


@dataclass(slots=True)
class KeptProcess(FarProcess):
    """A command of a kept shell.

    Attributes:
        lane: The shell that runs it, while it does.
        mark: What ends its output.
        codes: The word after the mark, for each stream that has ended.
        memory: What it has written, until that is too much.
        log: The base path of its logs on this machine, once it was too much.
        files: The writers of those logs.
        tries: How often it was sent; more than once when there was nothing yet that could run it.
    """

    lane: Lane | None = field(default=None, kw_only=True)
    mark: bytes = field(default=b'', kw_only=True)
    codes: dict[StreamType, str] = field(default_factory=dict[StreamType, str], kw_only=True)
    memory: dict[StreamType, bytearray] = field(
        default_factory=lambda: {stream: bytearray() for stream in STREAMS}, kw_only=True
    )
    log: str = field(default='', kw_only=True)
    files: dict[StreamType, logs.Log] = field(
        default_factory=dict[StreamType, logs.Log], kw_only=True
    )
    tries: int = field(default=1, kw_only=True)

    @property
    def done(self) -> bool:
        """Whether the command's own process has ended."""
        return len(self.codes) == len(STREAMS)


class KeptProcesses(ScriptProcesses):
    """The commands of one owner behind kept shells.

    A command that is waited for runs in a kept shell of its own, which passes its output on as it comes: one request,
    no files. A background command is started by a script.
    """

    def __init__(self, channel: KeptChannel, *, max_log_bytes: int) -> None:
        super().__init__(channel, max_log_bytes=max_log_bytes)
        self._lanes = channel

    def _begin(self) -> None:
        super()._begin()
        self._here = ''
        self._here_owner = secrets.randbits(41) | 1 << 41

    async def spawn(self, spawn: Spawn) -> KeptProcess:
        return self._kept(await super().spawn(spawn))

    def _make(self, number: int, spawn: Spawn) -> KeptProcess:
        return KeptProcess(number, spawn=spawn)

    async def wait(
        self,
        process: Process,
        *,
        timeout: float | None,
        on_bytes: Callable[[StreamType, bytes], Awaitable[None]] | None = None,
        cancelled: Flag | None = None,
    ) -> bool:
        it = self._kept(process)
        if it.state not in {'new', 'attached'} or (
            it.state == 'new' and (it.spawn.stdin or it.spawn.keep)
        ):
            return await super().wait(
                process, timeout=timeout, on_bytes=on_bytes, cancelled=cancelled
            )
        if it.exit_code is not None:
            return True
        deadline = None if timeout is None else time.monotonic() + timeout
        output = self.stream(it, deadline=deadline, cancelled=cancelled)
        async with aclosing(output):
            async for stream, data in output:
                self._keep(it, stream, data)
                if on_bytes is not None:
                    await on_bytes(stream, data)
        return it.exit_code is not None

    async def stream(  # noqa: C901 - one loop that reads from top to bottom
        self, process: KeptProcess, *, deadline: float | None, cancelled: Flag | None = None
    ) -> AsyncGenerator[tuple[StreamType, bytes]]:
        """Read the command's output in the caller's loop until it has ended; `deadline` is a `time.monotonic()`."""
        lane = await self._attach(process) if process.state == 'new' else process.lane
        if lane is None:
            return
        while not process.done:
            pieces = self._pieces(process, lane)
            for piece in pieces:
                yield piece
            if process.done or given_up(deadline, cancelled):
                break
            if lane.eof:
                if not lane.stillborn or process.tries == MAX_TRIES:
                    raise await self._lost_lane(process, lane)
                # Nothing was run: the shell's parent died before there was a shell.
                self._lanes.drop(lane)
                process.tries, process.state = process.tries + 1, 'new'
                lane = await self._attach(process)
                continue
            if not pieces:
                await ready(lane.watched(), timeout=step(deadline, polling=cancelled is not None))
        if not process.done:
            return
        word = process.codes['stderr']  # on standard output "ready" may have come after it
        if word in {'gone', 'lost'}:
            self._never_ran(process, lane)
            if word == 'lost' and process.tries < MAX_TRIES:
                # Nothing was run: the far side had lost our directory, and gets a new one.
                process.tries += 1
                async for stream, data in self.stream(
                    process, deadline=deadline, cancelled=cancelled
                ):
                    yield stream, data
                return
            raise self._refusal(process, word)
        async for stream, data in self._rest(process, lane, deadline):
            yield stream, data
        with answering():
            process.exit_code = int(process.codes['stdout'])

    async def _lost_lane(self, process: KeptProcess, lane: Lane) -> SandboxError:
        process.state = 'lost'
        error = await self._lanes.ended(lane)
        process.lane = None
        self._lanes.drop(lane)
        return error

    def _never_ran(self, process: KeptProcess, lane: Lane) -> None:
        lost = process.codes['stderr'] == 'lost'
        self._settle(process, lane)
        process.state = 'never'
        if lost:
            self._forget_directory()
            process.codes.clear()
            process.state = 'never' if process.tries == MAX_TRIES else 'new'

    def _refusal(self, process: KeptProcess, word: str) -> Exception:
        if word == 'lost':
            return SandboxError(
                'the sandbox keeps losing its temporary files; nothing was run. See what removes them there, and try again'
            )
        return WorkingDirectoryGone(
            f'the working directory {process.spawn.cwd!r} does not exist; nothing was run'
        )

    async def _rest(
        self, process: KeptProcess, lane: Lane, deadline: float | None
    ) -> AsyncGenerator[tuple[StreamType, bytes]]:
        """What children that still hold the output say, until they were quiet for a moment or have gone."""
        end = min(time.monotonic() + DRAIN, deadline or float('inf'))
        last = time.monotonic()
        while process.codes['stdout'] != 'ready' and not lane.eof:
            pieces = self._pieces(process, lane)
            now = time.monotonic()
            if pieces:
                last = now
            for piece in pieces:
                yield piece
            if now >= end or now >= last + QUIET:
                break
            if not pieces and process.codes['stdout'] != 'ready':
                await ready(lane.watched(), timeout=min(end, last + QUIET) - now)
        self._settle(process, lane)

    def _settle(self, process: KeptProcess, lane: Lane) -> None:
        ready = process.codes['stdout'] == 'ready'
        process.codes['stdout'] = process.codes['stderr']
        process.lane = None
        self._lanes.give(lane, settling=None if ready else process.mark)

    def _pieces(self, process: KeptProcess, lane: Lane) -> list[tuple[StreamType, bytes]]:
        """What can be read now."""
        return [(stream, data) for stream in STREAMS if (data := self._pull(process, lane, stream))]

    def _pull(self, process: KeptProcess, lane: Lane, stream: StreamType) -> bytes:
        data, word = lane.take(stream, process.mark)
        if word is not None:
            process.codes[stream] = word
        return data

    async def _attach(self, process: KeptProcess) -> Lane:
        """Send the command to a shell; it counts as running from here on."""
        request = await self._request(process)
        await self._lanes.prepare()
        lane, before = self._lanes.lend()
        process.lane, process.mark, process.state = lane, new_mark(), 'attached'
        await lane.send(f'{before}{{ {request}_as_attached {process.mark.decode()}; }}\n')
        return lane

    def _keep(self, process: KeptProcess, stream: StreamType, data: bytes) -> None:
        process.total[stream] += len(data)
        if not process.log:
            memory = process.memory[stream]
            memory += data
            if len(memory) <= KEPT:
                return
            if self._no_log(process):
                del memory[:-KEPT]
                return
            process.log = f'{self._folder()}/{process.name}'
            for name in STREAMS:
                process.files[name] = logs.Log(f'{process.log}.{name}', self._max_log_bytes)
                process.files[name].append(bytes(process.memory[name]))
                process.memory[name].clear()
            return
        process.files[stream].append(data)

    def _no_log(self, process: KeptProcess) -> bool:
        """Whether only the tail can be kept: the disk is full, or was when the head was too much for memory."""
        if any(process.total[name] > len(process.memory[name]) for name in STREAMS):
            return True
        try:
            return logs.full(self._folder())
        except SandboxError:  # not even a directory can be made
            return True

    def _folder(self) -> str:
        """A private directory on this machine, for output that is too much for memory."""
        if not self._here:
            self._here = temporary_directory()
            Watcher.get().own(self._here_owner, self._here)
        return self._here

    async def detach(self, process: Process) -> None:
        # A command that was waited for without `Spawn.keep` stays with its shell: it runs on, and waits when its
        # output is full.
        if self._kept(process).state != 'attached':
            await super().detach(process)

    async def written(self, process: Process, stream: StreamType, limit: int) -> Written:
        it = self._kept(process)
        if not it.mark:
            return await super().written(process, stream, limit)
        if it.log:
            start, data = logs.read(it.log, stream, max(0, it.total[stream] - limit), limit)
            return Written(data, start + len(data))
        memory = it.memory[stream]
        return Written(bytes(memory[max(0, len(memory) - limit) :]), it.total[stream])

    async def read(
        self, process: Process, stream: StreamType, start: int, length: int
    ) -> tuple[int, bytes]:
        it = self._kept(process)
        if not it.mark:
            return await super().read(process, stream, start, length)
        if it.log:
            return logs.read(it.log, stream, start, length)
        memory = it.memory[stream]
        offset = it.total[stream] - len(memory)
        start = max(start, offset)
        return start, bytes(memory[start - offset : start - offset + length])

    async def terminate(self, process: Process, *, grace: float) -> None:
        it = self._kept(process)
        if it.state == 'lost':
            return
        hearing = None if it.lane is None else asyncio.ensure_future(self._hear_out(it, it.lane))
        try:
            await super().terminate(process, grace=grace)
        finally:
            if hearing is not None:
                hearing.cancel()
                await asyncio.wait((hearing,))

    async def _hear_out(self, process: KeptProcess, lane: Lane) -> None:
        """Read what a command says while it ends: a full pipe would hold it up, and nobody waits for it now."""
        with contextlib.suppress(OSError, SandboxError):  # whoever reads on hears of it
            while not process.done and not lane.eof:
                for stream, data in self._pieces(process, lane):
                    self._keep(process, stream, data)
                if not process.done and not lane.eof:
                    await ready(lane.watched())

    async def forget(self, process: Process) -> None:
        it = self._kept(process)
        if not it.mark:
            await super().forget(process)
            return
        if self._processes.pop(it.number, None) is None:
            return
        if it.lane is not None:
            self._lanes.drop(it.lane)
            it.lane = None
        for stream, file in it.files.items():
            file.close()
            for offset in logs.offsets(it.log, stream):
                with contextlib.suppress(OSError):
                    os.unlink(f'{it.log}.{stream}.{offset}')

    async def _close(self, grace: float) -> None:
        try:
            await super()._close(grace)
        finally:
            if self._here:
                shutil.rmtree(self._here, ignore_errors=True)
                Watcher.get().disown(self._here_owner)

    def _kept(self, process: Process) -> KeptProcess:
        assert isinstance(process, KeptProcess)  # noqa: S101 - only `spawn` makes them
        return process


SMALL = 40_000
"""Bytes of a file that travel in a request; a larger one has a connection of its own."""


class KeptSandbox(PosixShellSandbox):
    """What sandboxes behind kept shells have in common.

    Attributes:
        max_result_bytes: The most bytes of each stream that an `ExecutionResult` holds.
    """

    def __init__(self, channel: KeptChannel) -> None:
        super().__init__()
        self.max_result_bytes = 8 << 20
        self._channel = channel
        self._own: KeptProcesses | None = None
        self._closed = False

    def __reduce__(self) -> NoReturn:
        msg = f'a {type(self).__name__} lives in one process and can not be pickled; make one of the same settings there'
        raise TypeError(msg)

    def processes(self, *, max_log_bytes: int = 100_000_000) -> KeptProcesses:
        return KeptProcesses(self._channel, max_log_bytes=max_log_bytes)

    def known_shell(self) -> Shell | None:
        known = self._channel.far
        return None if known is None else 'bash' if known.bash else 'sh'

    def _processes(self) -> KeptProcesses:
        if self._closed:
            raise SandboxClosed
        if self._own is None:
            self._own = self.processes()
        return self._own

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

    async def run_script(
        self, script: str, *, timeout: float | None = None
    ) -> tuple[int, bytes, str]:
        output = io.BytesIO()
        code, noise = await self._collect(script, output, timeout=timeout)
        return code, output.getvalue(), noise

    async def _collect(
        self, script: str, output: io.BytesIO, *, timeout: float | None = None
    ) -> tuple[int, str]:
        """Run a script of ours in the sandbox's directory and take its output in, byte for byte."""
        own = self._processes()
        process = await own.spawn(Spawn(line=script, shell='sh', cwd=await own.resolve('.')))  # noqa: S604 - ours
        deadline = None if timeout is None else time.monotonic() + timeout
        noise = bytearray()
        chunks = own.stream(process, deadline=deadline)
        try:
            async with aclosing(chunks):
                while (found := await self._moving(anext(chunks, None))) is not None:
                    stream, data = found
                    if stream == 'stdout':
                        output.write(data)
                    else:
                        noise += data[: 1 << 16]
        finally:
            if process.exit_code is None:
                await own.terminate(process, grace=0.5)
            await own.forget(process)
        if process.exit_code is None:
            raise SandboxTimeoutError(timeout)
        return process.exit_code, noise.decode('utf-8', 'replace').strip()

    async def _moving(self, work: Awaitable[T]) -> T:
        """Wait for the next piece of an operation of ours; a command of the user's may be silent for longer."""
        try:
            return await asyncio.wait_for(work, waits.STALLED)
        except TimeoutError:
            raise self._stalled() from None

    def _stalled(self) -> SandboxError:
        return SandboxError(
            f'{self._channel.place} has not answered for {waits.STALLED:.0f} seconds; see that it is not frozen, and '
            'try again'
        )

    async def read_file(self, path: str, **kwargs: Any) -> bytes:  # noqa: ARG002 - the spec's
        output = io.BytesIO()  # hands out what it holds without a copy
        code, noise = await self._collect(reading(path, 'cat'), output)
        if code:
            raise file_error(code, path, noise, f'Failed to read file: {path}')
        return output.getvalue()

    async def write_file(self, path: str, content: bytes, **kwargs: Any) -> None:
        if len(content) <= SMALL:
            await super().write_file(path, content, **kwargs)
            return
        name, staged = staging(path)
        own = self._processes()
        script = writing(name, staged, 'cat')
        try:
            code, noise = await self._feed(
                f'cd {shlex.quote(await own.resolve("."))} || exit 1; {script}', content
            )
        except BaseException:
            with contextlib.suppress(SandboxError):
                await self.run_script(f'rm -f {shlex.quote(staged)}')
            raise
        if code:
            raise write_error(code, path, noise)

    async def _feed(self, script: str, content: bytes) -> tuple[int, str]:
        """Run a script with `content` on its standard input, over a connection of its own.

        Returns:
            The exit code and standard error.
        """
        mark = new_mark()
        await self._channel.prepare()
        lane = self._channel.pour(f'( {script}\n); printf "%s %s\\n" {mark.decode()} $? >&2')
        noise = bytearray()
        word: str | None = None
        view = memoryview(content)
        moved = time.monotonic()
        try:
            while word is None and not lane.eof:
                while view:
                    try:
                        view = view[os.write(lane.stdin, view[:CHUNK]) :]
                        moved = time.monotonic()
                    except BlockingIOError:
                        break
                    except BrokenPipeError:
                        view = view[:0]
                data, word = lane.take('stderr', mark)
                noise += data
                lane.take('stdout', mark)
                if not view and lane.stdin >= 0 and lane.begun['stderr']:
                    os.close(lane.stdin)  # not before the other side has opened its end
                    lane.stdin = -1
                if word is None and not lane.eof:
                    await ready(lane.watched(), [lane.stdin] if view else (), timeout=waits.STALLED)
                    if time.monotonic() > moved + waits.STALLED:
                        raise self._stalled()
        finally:
            self._channel.drop(lane)
        if word is None:
            lane.noise = bytes(noise)
            raise await self._channel.ended(lane)
        return int(word), noise.decode('utf-8', 'replace').strip()

    async def aclose(self) -> None:
        """End what `execute` left running and give up every connection. Idempotent."""
        self._closed = True
        if self._own is not None:
            await self._own.close(grace=2.0)
        await self._channel.aclose()
