"""The commands of one owner, kept by shell scripts on the far side; all it asks for is a way to run a script there."""

from __future__ import annotations

import asyncio
import base64
import itertools
import logging
import os
import posixpath
import re
import secrets
import shlex
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from anyshell.errors import (
    InvalidCommand,
    JobsRefused,
    SandboxError,
    SandboxUnavailable,
    SessionClosed,
    WorkingDirectoryGone,
)
from anyshell.sandbox import far
from anyshell.sandbox.base import (
    STREAMS,
    CommandLost,
    Process,
    Processes,
    Shell,
    Spawn,
    StreamType,
    Written,
)
from anyshell.sandbox.channels import Channel, Far, decoded, settings
from anyshell.sandbox.shells import LINE, MAX_ARGUMENT, READ_LINE
from anyshell.sandbox.waits import until

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Generator
    from typing import Any

    from anyshell.sandbox.base import Flag

logger = logging.getLogger('anyshell')

KEPT = 1 << 18
"""A command's output up to this many bytes a stream comes with the news of its end."""

STEP = 0.02
"""Seconds between two looks of a far side's script at what it waits for."""

PATIENCE = 20.0
"""Seconds that one request waits on the far side at most; a longer wait is several requests."""

NUMBERS = 7
"""Decimal digits of a command's number within its owner's marks."""


@dataclass(slots=True)
class FarProcess(Process):
    """A command of a far side.

    Attributes:
        spawn: What it is.
        state: Whether its script was sent.
        directory: The owner's private directory when it was started.
        epoch: The channel's epoch then.
        kept: The end of each stream as last seen: its offset and its bytes.
        total: How much each stream has written, as last seen.
    """

    spawn: Spawn = field(kw_only=True)
    state: str = field(default='new', kw_only=True)
    directory: str = field(default='', kw_only=True)
    epoch: int = field(default=0, kw_only=True)
    kept: dict[StreamType, tuple[int, bytes]] = field(
        default_factory=lambda: dict.fromkeys(STREAMS, (0, b'')), kw_only=True
    )
    total: dict[StreamType, int] = field(
        default_factory=lambda: dict.fromkeys(STREAMS, 0), kw_only=True
    )

    @property
    def name(self) -> str:
        """What its files in the private directory begin with; sessions have files of other names there."""
        return f'c{self.number}'


class ScriptProcesses(Processes):
    """The commands of one owner on a far side.

    Starting a command is put off to the first wait, so that a short one is one request.

    Args:
        channel: How scripts get there.
        max_log_bytes: The most that the log of one stream may take on the far side's disk.
    """

    def __init__(self, channel: Channel, *, max_log_bytes: int) -> None:
        self._channel = channel
        self._max_log_bytes = max_log_bytes
        self._closed = False
        self._begin()

    def _begin(self) -> None:
        self._pid = os.getpid()
        self._closing = False
        # Eleven random digits after a 1: with a command's number a decimal below 2**63 whose range `grep` can tell.
        self._owner = str(10**11 + secrets.randbelow(10**11))
        self._numbers = itertools.count(1)
        self._token = secrets.token_hex(12)
        self._directory = ''
        self._epoch = 0
        self._processes: dict[int, FarProcess] = {}

    def _enter(self) -> None:
        if self._pid != os.getpid():  # a forked child has commands, marks and files of its own
            self._begin()
        if self._closed:
            raise SessionClosed(
                'this session is closed and nothing was run; open a new one to run commands'
            )

    async def _call(
        self, script: str, process: FarProcess | None = None, *, timeout: float = 60.0
    ) -> bytes:
        """Run a script of ours with the owner's directory, or the one that a process was started with."""
        directory = process.directory if process is not None else self._directory
        return await self._channel.call(
            f'_as_d={shlex.quote(directory)}; {script}', timeout=timeout
        )

    async def _open(self) -> Far:
        """Make the owner's private directory, once."""
        self._enter()
        known = await self._channel.know()
        if not known.linux:
            raise SandboxUnavailable(
                'sessions need a Linux /proc in the sandbox and an untouched limit on file locks (ulimit -H -x), by which they find and end commands; see to both there, or use another sandbox'
            )
        if self._directory and self._epoch != self._channel.epoch:
            # Everything was disconnected: the far side may have cleaned up, or be a new one. What was started in the
            # old directory stays known as lost, so a new one has another name.
            epoch = self._channel.epoch
            if not await self._call('[ ! -d "$_as_d" ] || echo there'):
                self._forget_directory()
            self._epoch = epoch
        if not self._directory:
            epoch = self._channel.epoch
            directory = f'{self._channel.folder or known.tmp}/anyshell-{self._token}'
            made = await self._made(directory)
            if not made and self._channel.renew():
                made = await self._made(directory)
            if not made:
                raise SandboxError(
                    f'no private directory can be made below {known.tmp!r} in the sandbox; make room there, or have its TMPDIR name a directory that can be written'
                )
            self._directory, self._epoch = directory, max(epoch, self._epoch)
        return known

    async def _made(self, directory: str) -> bool:
        reply = await self._channel.call(
            f'umask 077; {self._making(directory)} && echo made; :', timeout=60
        )
        return reply.strip() == b'made'

    def _making(self, directory: str) -> str:
        quoted = shlex.quote(directory)
        owner = f'echo {shlex.quote(self._marks())} >{quoted}/owner'
        return f'{{ [ -d {quoted} ] || mkdir -m 700 {quoted}; }} && {owner}'

    def _forget_directory(self) -> None:
        self._directory = ''
        self._token = secrets.token_hex(12)

    async def shell(self) -> Shell:
        return 'bash' if (await self._channel.know()).bash else 'sh'

    async def environment(self) -> dict[str, str]:
        return dict((await self._channel.know()).environment)

    async def resolve(self, path: str) -> str:
        if path.startswith('/'):
            return posixpath.normpath(path)
        return posixpath.normpath(posixpath.join((await self._channel.know()).cwd, path))

    async def is_directory(self, path: str) -> bool:
        quoted = shlex.quote(path)
        return bool(
            await self._channel.call(
                f'[ -d {quoted} ] && [ -x {quoted} ] && echo yes; :', timeout=60
            )
        )

    async def directory(self) -> str:
        await self._open()
        return self._directory

    async def take_private(self, name: str, limit: int = 1 << 16) -> bytes:
        if not self._directory:
            return b''
        path = shlex.quote(f'{self._directory}/{name}')
        return decoded(
            await self._call(
                f'if [ -f {path} ] && [ ! -h {path} ]; then tail -c {limit} {path} | base64; fi; rm -f -- {path}'
            )
        )

    # -- starting

    async def spawn(self, spawn: Spawn) -> FarProcess:
        self._enter()
        number = next(self._numbers)
        if number >= 10**NUMBERS:
            raise SandboxError(f'one session runs at most {number - 1} commands; open a new one')
        if '\0' in spawn.line + spawn.cwd:
            raise InvalidCommand(
                'the command or its directory holds a NUL character, which can not be passed on; leave it out'
            )
        for name, value in (spawn.env or {}).items():
            if not name or '=' in name or '\0' in name + value:
                raise InvalidCommand(
                    f'the variable {name!r} can not be passed on: no name is empty or holds "=", and no value holds a NUL'
                )
            if len(f'{name}={value}'.encode('utf-8', 'surrogateescape')) > MAX_ARGUMENT:
                raise InvalidCommand(
                    f'the variable {name!r} is longer than the {MAX_ARGUMENT} bytes that the system takes; pass a shorter one'
                )
        process = self._make(number, spawn)
        self._processes[number] = process
        return process

    def _make(self, number: int, spawn: Spawn) -> FarProcess:
        return FarProcess(number, spawn=spawn)

    async def _request(self, process: FarProcess) -> str:
        """Shell text that sets what the far side's functions need to start the command."""
        known = await self._open()
        spawn = process.spawn
        process.directory, process.epoch = self._directory, self._epoch
        long = len(spawn.line.encode('utf-8', 'surrogateescape')) > MAX_ARGUMENT
        if long and spawn.stdin:
            raise InvalidCommand(
                f'a command that keeps its standard input open may be {MAX_ARGUMENT} bytes long, this one is longer; write it to a file and run that'
            )
        bash = spawn.shell == 'bash' and bool(known.bash)
        values = {
            'd': process.directory,
            'n': process.name,
            'k': self._mark(process),
            'w': spawn.cwd,
            'e': settings(known, spawn),
            'v': known.setsid,
            's': known.bash if bash else 'sh',
            'f': '--norc -p' if bash else '',
            'p': spawn.preamble + (READ_LINE if long else LINE),
            'a': 'bash' if bash else 'sh',
            'l': spawn.line,
            'i': 'line' if long else 'fifo' if spawn.stdin else 'null',
        }
        return ''.join(f'_as_{name}={shlex.quote(value)}; ' for name, value in values.items())

    def _marks(self) -> str:
        """All marks of this owner, as a basic regular expression."""
        return re.escape(self._owner) + f'[0-9]\\{{{NUMBERS}\\}}'

    def _mark(self, process: FarProcess) -> str:
        return f'{self._owner}{process.number:0{NUMBERS}}'

    async def _start(self, process: FarProcess) -> str:
        """Shell text that starts the command as a process that nobody waits for."""
        request = await self._request(process)
        if process.spawn.stdin:
            request += 'mkfifo -m 600 "$_as_d/$_as_n.i"; '
        request += f'{far.rates(self._max_log_bytes)}; _as_begin; '
        limit = self._channel.max_script
        if limit is None or len(request.encode('utf-8', 'surrogateescape')) <= limit:
            return request
        # Too long for the channel: it goes ahead in pieces, as a file that is read by the shell itself.
        encoded = base64.b64encode(request.encode('utf-8', 'surrogateescape')).decode('ascii')
        name = f'"$_as_d/{process.name}.b"'
        for start in range(0, len(encoded), limit // 2):
            piece = encoded[start : start + limit // 2]
            await self._call(f'printf %s {piece} >>{name}', process)
        return f'_as_l=$(base64 -d <{name}; echo .); rm -f {name}; eval "${{_as_l%.}}"; '

    async def _begin_job(self, process: FarProcess) -> None:
        script = await self._start(process)
        process.state = 'running'
        await self._call(script, process)

    async def _probe(self) -> None:
        """Find out, before the first background command, whether the place can keep one."""
        if self._channel.keeps_jobs:
            return
        probe = await self.spawn(Spawn(line='sleep 0.2; echo up', shell='sh', cwd='/'))  # noqa: S604 - ours
        await self._begin_job(probe)
        try:
            reply = await self._look(probe, wait=3.0)
            if reply == 'lost':
                raise JobsRefused(
                    'this sandbox keeps no background commands: its calls do not share one file system. '
                    'Run the command with run_command'
                )
            if probe.exit_code != 0 or probe.kept['stdout'][1] != b'up\n':
                raise JobsRefused(
                    'this sandbox keeps no background commands: what a call leaves running ends with the call. '
                    'Run the command with run_command'
                )
        finally:
            await self.forget(probe)
        self._channel.keeps_jobs = True

    # -- waiting and reading

    async def wait(
        self,
        process: Process,
        *,
        timeout: float | None,
        on_bytes: Callable[[StreamType, bytes], Awaitable[None]] | None = None,
        cancelled: Flag | None = None,
    ) -> bool:
        it = self._of(process)
        if it.exit_code is not None and on_bytes is None:
            return True
        deadline = None if timeout is None else time.monotonic() + timeout
        seen = dict(it.total)
        while True:
            left = (
                PATIENCE
                if deadline is None
                else min(PATIENCE, max(0.0, deadline - time.monotonic()))
            )
            after = seen if on_bytes is not None else None
            look = self._begin_and_look if it.state == 'new' else self._look
            state = await _flagged(look(it, wait=left, after=after), cancelled)
            if state is None:
                return False
            if state == 'lost':
                self._lost(it)
            if on_bytes is not None:
                more = await self._news(it, seen, on_bytes)
                if more:
                    continue
            if it.exit_code is not None:
                return True
            if deadline is not None and time.monotonic() >= deadline:
                return False

    async def _news(
        self,
        process: FarProcess,
        seen: dict[StreamType, int],
        on_bytes: Callable[[StreamType, bytes], Awaitable[None]],
    ) -> bool:
        """Hand on what the last look brought; whether there is more than that already."""
        more = False
        for stream in STREAMS:
            start, data = process.kept[stream]
            data = data[max(0, seen[stream] - start) :]
            if data:
                seen[stream] = start + len(process.kept[stream][1])
                await on_bytes(stream, data)
            more |= seen[stream] < process.total[stream]
        return more

    async def _begin_and_look(
        self, process: FarProcess, *, wait: float, after: dict[StreamType, int] | None
    ) -> str:
        """Start a command and look at it in one request."""
        first = await self._start(process)
        process.state = 'running'
        state = await self._look(process, wait=wait, after=after, first=first)
        if state == 'lost' and not self._channel.keeps_jobs:
            # It was not started. Where calls share no files the directory has to be made by the one that needs it.
            first = f'{self._making(process.directory)}; {await self._start(process)}'
            state = await self._look(process, wait=wait, after=after, first=first)
        return state

    async def _look(
        self,
        process: FarProcess,
        *,
        wait: float,
        after: dict[StreamType, int] | None = None,
        first: str = '',
    ) -> str:
        """Ask how a command is, after waiting for its end or, with `after`, for output beyond those offsets."""
        steps = int(wait / STEP)
        out, err = (str(after[stream]) if after else 'tail' for stream in STREAMS)
        if process.epoch != self._channel.epoch:
            # The place may have been started anew since, with the files as they were and no process left.
            first += f'_as_alive {process.name} {self._mark(process)}; '
        reply = await self._call(
            f'{first}_as_look {process.name} {steps} {out} {err} {KEPT}', process, timeout=wait + 60
        )
        return self._take(process, reply, tail=after is None)

    def _take(self, process: FarProcess, reply: bytes, *, tail: bool) -> str:
        head, _, rest = reply.partition(b'\n')
        state = head.removeprefix(b'state').strip().decode('ascii', 'replace')
        if state == 'gone':
            process.state = 'never'
            raise WorkingDirectoryGone(
                f'the working directory {process.spawn.cwd!r} does not exist; nothing was run'
            )
        with answering():
            for stream in STREAMS:
                numbers, _, rest = rest.partition(b'\n')
                start, total = map(int, numbers.split())
                data, _, rest = rest.partition(b'.\n')
                process.kept[stream] = start, decoded(data)
                process.total[stream] = total
        if state.isdecimal():
            process.exit_code = int(state)
            process.state = 'ended' if tail else 'shown'
        return state

    def _lost(self, process: FarProcess) -> None:
        process.state = 'never'
        raise CommandLost(
            'the sandbox no longer has the files of this command: it was restarted, or not heard of for too long, '
            'and the command has been ended. Start it again if it is still needed'
        )

    async def detach(self, process: Process) -> None:
        it = self._of(process)
        if it.state != 'new':
            return
        await self._probe()
        await self._begin_job(it)
        if (
            await self._look(it, wait=0) == 'lost'
        ):  # also tells of a working directory that is not there
            self._forget_directory()
            await self._begin_job(it)
            if await self._look(it, wait=0) == 'lost':
                self._lost(it)

    async def written(self, process: Process, stream: StreamType, limit: int) -> Written:
        it = self._of(process)
        start, data = it.kept[stream]
        if it.state != 'ended' or (len(data) < limit and start > 0):
            if it.state in {'new', 'never'}:
                return Written()
            start, data = await self._range(it, stream, 'tail', limit)
        return Written(data[max(0, len(data) - limit) :], it.total[stream])

    async def read(
        self, process: Process, stream: StreamType, start: int, length: int
    ) -> tuple[int, bytes]:
        it = self._of(process)
        kept, data = it.kept[stream]
        if it.state == 'ended' and start >= kept:
            return start, data[start - kept : start - kept + length]
        if it.state in {'new', 'never'}:
            return start, b''
        return await self._range(it, stream, str(start), length)

    async def _range(
        self, process: FarProcess, stream: StreamType, start: str, length: int
    ) -> tuple[int, bytes]:
        letter = 'o' if stream == 'stdout' else 'e'
        reply = await self._call(
            f'_as_show {process.name}.{letter} {start} {length}', process, timeout=120
        )
        numbers, _, data = reply.partition(b'\n')
        with answering():
            first, total = map(int, numbers.split())
            process.total[stream] = total
            return first, decoded(data.removesuffix(b'.\n'))

    async def send(self, process: Process, data: bytes) -> None:
        it = self._of(process)
        if not it.spawn.stdin or await self._look(it, wait=0):
            raise InvalidCommand(
                'the command no longer reads its standard input; check_command says whether it still runs'
            )
        encoded = base64.b64encode(data).decode('ascii')
        for start in range(0, len(encoded), 40_000):
            await self._call(
                f'printf %s {encoded[start : start + 40_000]} | base64 -d >>"$_as_d/{it.name}.i"',
                it,
            )

    # -- ending

    async def terminate(self, process: Process, *, grace: float) -> None:
        it = self._of(process)
        if it.state == 'new':
            it.state = 'never'
        if it.state == 'never':
            return
        script = (
            f'[ ! -d "$_as_d" ] || : >"$_as_d/{it.name}.t"; _as_end {self._mark(it)} {steps(grace)}'
        )
        try:
            await self._end(script, grace, it)
        except SandboxError:
            if not await self._channel.abandon():
                raise

    async def forget(self, process: Process) -> None:
        it = self._of(process)
        if self._pid != os.getpid() or self._processes.pop(it.number, None) is None:
            return
        if it.state not in {'new', 'never'} and not self._closed:
            try:
                await self._call(f'rm -f "$_as_d/{it.name}".[!t]*', it)
            except SandboxError:  # its files go with the directory
                logger.debug('the files of a command could not be removed yet')

    async def close(self, *, grace: float) -> None:
        if self._pid != os.getpid():
            self._closed = True
            return
        if self._closed:
            await until(lambda: not self._closing, timeout=grace + self._channel.patience)
            return
        self._closed = self._closing = True
        try:
            await self._close(grace)
        finally:
            self._closing = False

    async def _close(self, grace: float) -> None:
        if not self._directory:
            return
        script = f'[ ! -d "$_as_d" ] || : >"$_as_d/t"; _as_end {shlex.quote(self._marks())} {steps(grace)}; rm -rf "$_as_d"'
        for last in (False, True):  # a connection may have broken unnoticed: the second one is new
            try:
                await self._end(script, grace)
                break
            except SandboxError as error:
                if await self._channel.abandon():
                    break
                # What is not there runs nothing; what is there but out of reach ends its commands itself.
                if last or isinstance(error, SandboxUnavailable):
                    logger.warning('the sandbox could not be asked to end what it runs: %s', error)
                    break
        self._processes.clear()

    async def _end(self, script: str, grace: float, process: FarProcess | None = None) -> None:
        """Have the far side end commands, again and again while it can start no process to do that with."""
        deadline = time.monotonic() + grace + self._channel.patience
        while True:
            left = max(1.0, deadline - time.monotonic())
            reply = await self._call(f'{script}; echo ended', process, timeout=left)
            if reply.strip() == b'ended':
                return
            if time.monotonic() > deadline:
                raise SandboxError(
                    'the sandbox can start no process any more, not even one that ends others; what it runs goes on. '
                    'Say that the sandbox is full of processes'
                )
            await asyncio.sleep(0.2)

    def _of(self, process: Process) -> FarProcess:
        assert isinstance(process, FarProcess)  # noqa: S101 - only `spawn` makes them
        return process


@contextmanager
def answering() -> Generator[None]:
    """A script that could start no process gives half an answer, or none."""
    try:
        yield
    except ValueError as error:
        raise SandboxError(
            'the sandbox gave half an answer, as it does when it can start no more processes; '
            'stop background commands, or wait, and try again'
        ) from error


async def _flagged(work: Coroutine[Any, Any, str], cancelled: Flag | None) -> str | None:
    """Wait for `work`; `None` when the flag was set first."""
    if cancelled is None:
        return await work
    task = asyncio.ensure_future(work)
    try:
        while not task.done() and not cancelled.is_set():
            await asyncio.wait((task,), timeout=0.05)
        return await task if task.done() else None
    finally:
        if not task.done():
            task.cancel()
            await asyncio.wait((task,), timeout=5)


def steps(grace: float) -> int:
    """How often `_as_end` looks whether anyone is left before it kills; a look takes a few milliseconds itself."""
    return max(1, round(grace / (STEP + 0.006)))
