"""Kept shells: a client process that stays, with a small shell on the far side that runs one request after the other.

Each is lent to one call at a time. A request is one complete shell command on the shell's standard input; a command that
is cut off by a broken connection is a syntax error and does not run. What comes back ends at a mark made for that
request alone, so that nothing else can be taken for the end.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import select
import shlex
import signal
import subprocess
import threading
import time
from abc import abstractmethod
from typing import TYPE_CHECKING

from anyshell.errors import SandboxError, SandboxUnavailable
from anyshell.sandbox import far, marks
from anyshell.sandbox.base import STREAMS
from anyshell.sandbox.scripts import Channel
from anyshell.sandbox.shells import set_mark
from anyshell.sandbox.waits import CHUNK, ready
from anyshell.sandbox.watch import Watcher

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from anyshell.sandbox.base import StreamType
    from anyshell.sandbox.scripts import Far

WORD = 64
"""The most bytes of the word after a mark."""

IDLE = 16
"""How many shells stay for later calls; each takes three descriptors here and a process or two on the far side."""

FLUSH = 5.0
"""Seconds that a client which is no longer needed has to pass on what it was given."""


class Lane:
    """One kept shell.

    Args:
        popen: The client; `None` when the shell is reached without one of its own.
        stdin: The write end of the shell's input; like the others a descriptor that this object closes.
        stdout: The read end of its output.
        stderr: The read end of its second output.

    Attributes:
        parent: The lane whose end is the end of this one, if any.
        paths: Named pipes of this machine to remove when the shell has opened them.
    """

    def __init__(
        self, popen: subprocess.Popen[bytes] | None, stdin: int, stdout: int, stderr: int
    ) -> None:
        self.popen = popen
        self.pid = os.getpid()
        self.stdin = stdin
        self.outputs: dict[StreamType, int] = {'stdout': stdout, 'stderr': stderr}
        for descriptor in (stdin, stdout, stderr):
            os.set_blocking(descriptor, False)
        self.buffers: dict[StreamType, bytearray] = {stream: bytearray() for stream in STREAMS}
        self.hello = new_mark()
        self.begun = dict.fromkeys(STREAMS, False)
        self.noise = b''
        self.eof = False
        self.settling: bytes | None = None
        self.retired = 0.0
        self.parent: Lane | None = None
        self.paths: Sequence[str] = ()

    def greeting(self, setup: str) -> str:
        """The text that makes a shell a kept one."""
        hello = self.hello.decode()
        return (
            f'{far.LIBRARY}{far.KEPT}{setup}\n'
            f"exec 5<&0 6>&1 7>&2 >/dev/null 2>&1; printf '%s hello\\n' {hello} >&6; "
            f"printf '%s hello\\n' {hello} >&7\n"
        )

    async def send(self, text: str) -> None:
        """Write text; all that a pipe holds is written before this coroutine first suspends."""
        view = memoryview(text.encode('utf-8', 'surrogateescape'))
        try:
            while view:
                try:
                    view = view[os.write(self.stdin, view) :]
                except BlockingIOError:
                    await ready(write=[self.stdin])
        except OSError:
            self.eof = True

    def take(self, stream: StreamType, mark: bytes) -> tuple[bytes, str | None]:
        """Read what is there.

        Returns:
            Output, and the word after `mark` when that has come.
        """
        buffer = self.buffers[stream]
        if not self.eof:
            try:
                data = os.read(self.outputs[stream], CHUNK)
                # A named pipe that nobody has opened for writing yet gives nothing, without being at its end.
                self.eof = not data and self._hung_up(stream)
                buffer += data
            except BlockingIOError:
                pass
            except OSError:
                self.eof = True
        if not self.begun[stream]:
            noise, word = _cut(buffer, self.hello)
            if stream == 'stderr':
                self.noise = (self.noise + noise)[-4000:]
            if word is None:
                return b'', None
            self.begun[stream] = True
            self._unlink()
        return _cut(buffer, mark)

    def watched(self) -> list[int]:
        """The descriptors to wait on: there is something to take, or the end."""
        parent = self.parent
        return [*self.outputs.values(), *(() if parent is None else (parent.outputs['stdout'],))]

    def gone(self) -> bool:
        """Whether the client has ended."""
        return (
            bool(self.retired)
            or self._hung_up('stdout')
            or (self.popen is not None and self.popen.poll() is not None)
        )

    @property
    def stillborn(self) -> bool:
        """Whether it ended before its shell was there, because its parent ended: nothing that it was sent has run."""
        return self.eof and self.parent is not None and not self.begun['stdout']

    def _hung_up(self, stream: StreamType) -> bool:
        poll = select.poll()
        poll.register(self.outputs[stream], select.POLLIN)
        ended = any(
            event & select.POLLHUP and not event & select.POLLIN for _, event in poll.poll(0)
        )
        return ended or (self.parent is not None and self.parent.gone())

    def _unlink(self) -> None:
        for path in self.paths:
            with contextlib.suppress(OSError):
                os.unlink(path)
        self.paths = ()

    def idle(self) -> bool | None:
        """Whether it can be lent; `None` while it still settles."""
        if self.retired or self.eof or self.gone():
            return False
        if not self._pending():
            return True if self.settling is None else None
        data, word = self.take('stdout', self.settling or self.hello)
        self.take(
            'stderr', self.hello
        )  # what a client says between two requests is nobody's output
        self.buffers['stderr'].clear()
        if self.settling is not None and word is not None and not self.eof:
            self.settling = None
            return not self.buffers['stdout']
        if self.eof or (data and self.settling is None):
            return False
        return True if self.settling is None else None

    def _pending(self) -> bool:
        poll = select.poll()
        for descriptor in self.outputs.values():
            poll.register(descriptor, select.POLLIN)
        return bool(poll.poll(0))

    def retire(self) -> None:
        """Give the shell up: it ends when it has done what it was sent."""
        if self.retired:
            return
        self.retired = time.monotonic()
        if self.pid == os.getpid():
            self._unlink()
        for descriptor in (self.stdin, *self.outputs.values()):
            if descriptor >= 0:
                with contextlib.suppress(OSError):
                    os.close(descriptor)

    def leave(self) -> None:
        """In a forked child: let go of the parent's shell."""
        self.retire()
        if self.popen is not None:
            self.popen.returncode = (
                0  # no child of this process: `Popen` must not wait for it, nor warn
            )

    def reap(self, *, now: bool = False) -> bool:
        """Whether a retired shell's client has gone; it is killed when it takes too long."""
        if self.popen is None or self.pid != os.getpid() or self.popen.poll() is not None:
            return True
        if now or time.monotonic() > self.retired + FLUSH:
            with contextlib.suppress(OSError):
                os.killpg(self.popen.pid, signal.SIGKILL)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.popen.wait(2)
        return self.popen.poll() is not None

    def why(self) -> str:
        """What the client said before it ended, as one line."""
        if self.popen is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.popen.wait(1)  # the end of its output comes a moment before its own
        # The first output to end says that the client has gone; what the second one says is still to be read.
        with contextlib.suppress(OSError):
            while not self.retired and (data := os.read(self.outputs['stderr'], CHUNK)):
                self.buffers['stderr'] += data
        self.noise = (self.noise + bytes(self.buffers['stderr']))[-4000:]
        text = self.noise.decode('utf-8', 'replace').replace('\r', '')
        lines = [line for line in text.split('\n') if line.strip()]
        return ' '.join(lines[-3:]) or 'it gave no reason'


class KeptChannel(Channel):
    """The pool of kept shells of one sandbox, and scripts over them.

    Subclasses say how a shell is reached.

    Args:
        grace: Seconds that the far side keeps background commands after the last connection has gone; 0 where they end
            with it anyway.
        cwd: Where commands start; `None` for where a shell starts there.
    """

    def __init__(self, *, grace: int, cwd: str | None = None) -> None:
        self.cwd = cwd
        self.token = secrets.token_hex(12)
        self.grace = grace
        self.epoch = 0
        self._lock = threading.Lock()
        self._begin()

    def _begin(self) -> None:
        self._pid = os.getpid()
        self._free: list[Lane] = []
        self._lent: set[Lane] = set()
        self._settling: list[Lane] = []
        self._dying: list[Lane] = []
        self._owner = secrets.randbits(41) | 1 << 41
        self._closed = False
        self.here = ''

    def _leave(self) -> None:
        """In a forked child: the shells are the parent's."""
        for lane in (*self._free, *self._lent, *self._settling, *self._dying):
            lane.leave()
        self._begin()
        # What is kept on the far side under the old token is the parent's too.
        self.token = secrets.token_hex(12)
        self.far = None
        self.folder = ''

    async def prepare(self) -> None:
        """Do what has to be done once before the first shell. Called before every request; does not suspend later."""
        if self._pid != os.getpid():
            with self._lock:
                self._leave()

    @abstractmethod
    def argv(self, script: str | None) -> list[str]:
        """The client program that runs a script, or a shell that reads its standard input, on the far side."""

    def connect(self) -> Lane:
        """Start one more shell, without waiting for it.

        Raises:
            SandboxUnavailable: If that can't even be begun.
        """
        return self.client(self.argv(None))

    def pour(self, script: str) -> Lane:
        """Start a script with a connection of its own, whose standard input is raw.

        Raises:
            SandboxUnavailable: If that can't even be begun.
        """
        lane = self.client(self.argv(script))
        lane.begun = dict.fromkeys(STREAMS, True)
        return lane

    @abstractmethod
    def refused(self, why: str) -> SandboxError:
        """The error for a shell that did not come up; `why` is what its client said. Called in a thread."""

    def lost(self, why: str) -> SandboxError:
        """The error for a shell that went away in the middle of a request. Called in a thread."""
        return SandboxError(
            f'the connection to {self.place} was lost in the middle of the call ({why}). The command was running; '
            'the far side ends it when it notices. The next call connects again'
        )

    keeps_jobs = True
    place = 'the sandbox'

    def client(
        self, argv: Sequence[str], *, before: str = '', env: Mapping[str, str] | None = None
    ) -> Lane:
        """A lane over a client program that connects its standard streams with a shell's.

        Args:
            argv: The program.
            before: Shell text to run before it. The program is then a child of that shell, and not of a thread of
                this process, whose end it could take for its parent's.
            env: Its variables; `None` for those of this process.
        """
        Watcher.get().own(self._owner, self.here)  # cleans up when this process ends
        mark = set_mark(marks.mark_range(self._owner)[0] + 1)
        try:
            popen = subprocess.Popen(
                [
                    '/bin/sh',
                    '-c',
                    f'{mark}{before}"$@"; exit' if before else f'{mark}exec "$@"',
                    'sh',
                    *argv,
                ],
                env=env,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                start_new_session=True,
            )
        except OSError as error:
            raise SandboxUnavailable(
                f'{argv[0]} could not be started ({error.strerror}); "anyshell doctor" says which sandboxes work here'
            ) from error
        assert popen.stdin is not None  # noqa: S101 - PIPE
        assert popen.stdout is not None  # noqa: S101 - PIPE
        assert popen.stderr is not None  # noqa: S101 - PIPE
        own: list[int] = []
        for file in (popen.stdin, popen.stdout, popen.stderr):
            own.append(os.dup(file.fileno()))
            file.close()
        return Lane(popen, *own)

    def lend(self) -> tuple[Lane, str]:
        """A shell for one call, and the text to send before the request."""
        with self._lock:
            if self._closed:
                raise SandboxError('this sandbox is closed; make a new one to run commands')
            self._dying = [lane for lane in self._dying if not lane.reap()]
            self._settle()
            while self._free:
                lane = self._free.pop()
                if lane.idle():
                    self._lent.add(lane)
                    return lane, ''
                self._retire(lane)
            alone = not (self._lent or self._settling)
        lane = self.connect()
        with self._lock:
            self._lent.add(lane)
            if alone:
                self.epoch += 1
        return lane, lane.greeting(self._setup())

    def _setup(self) -> str:
        lines: list[str] = []
        if self.cwd is not None:
            name = shlex.quote(self.cwd)
            lines.append(
                f'cd -- {name} || {{ echo the directory {name} is not there >&2; exit 1; }}'
            )
        if self.grace:
            lines.append(f'_as_connect {self.token} {self.grace}')
        return '\n'.join(lines)

    def _settle(self) -> None:
        settling, self._settling = self._settling, []
        for lane in settling:
            state = lane.idle()
            if state is None and len(self._settling) < 8:
                self._settling.append(lane)
            elif state:
                lane.settling = None
                self._free.append(lane)
            else:
                self._retire(lane)

    def give(self, lane: Lane, *, settling: bytes | None = None) -> None:
        """Take a shell back; with `settling` it can be lent again when that mark has come."""
        with self._lock:
            self._lent.discard(lane)
            if lane.retired:
                return
            lane.settling = settling
            if self._closed or lane.eof or len(self._free) >= IDLE:
                self._retire(lane)
            elif settling is None:
                self._free.append(lane)
            else:
                self._settling.append(lane)

    def drop(self, lane: Lane) -> None:
        """Give up a shell that is in the middle of something."""
        with self._lock:
            self._lent.discard(lane)
            self._retire(lane)

    def _retire(self, lane: Lane) -> None:
        if not lane.retired:
            lane.retire()
            self._dying.append(lane)

    async def know(self) -> Far:
        known = await super().know()
        if self.grace:
            self.folder = f'{known.tmp}/anyshell-{self.token}'  # where the far side's keeper looks
        return known

    async def call(self, script: str, *, timeout: float) -> bytes:
        reply = await self._once(script, timeout, again=False)
        return await self._once(script, timeout, again=True) or b'' if reply is None else reply

    async def _once(self, script: str, timeout: float, *, again: bool) -> bytes | None:
        """Run a script; `None`, unless it is the second time, when the shell for it never came to be."""
        await self.prepare()
        lane, before = self.lend()
        mark = new_mark()
        done = False
        try:
            await lane.send(f'{before}{{ _as_call {mark.decode()} {shlex.quote(script)}; }}\n')
            reply = await self._reply(lane, mark, timeout)
            done = True
        except SandboxError:
            if again or not lane.stillborn:
                raise
            return None
        else:
            return reply
        finally:
            if done:
                self.give(lane)
            else:
                self.drop(lane)

    async def _reply(self, lane: Lane, mark: bytes, timeout: float) -> bytes:
        reply = bytearray()
        deadline = time.monotonic() + timeout
        while True:
            data, word = lane.take('stdout', mark)
            lane.take('stderr', mark)
            reply += data
            if word is not None:
                return bytes(reply)
            if lane.eof:
                raise await self.ended(lane)
            left = deadline - time.monotonic()
            if left <= 0:
                raise SandboxError(
                    f'{self.place} did not answer within {timeout:.0f} seconds; see that it still runs, and try again'
                )
            await ready(lane.watched(), timeout=left)

    async def ended(self, lane: Lane) -> SandboxError:
        """The error for a shell whose output has ended."""
        return await asyncio.to_thread(self._ended, lane)

    def _ended(self, lane: Lane) -> SandboxError:
        return self.lost(lane.why()) if lane.begun['stdout'] else self.refused(lane.why())

    async def aclose(self) -> None:
        """Remove what is kept on the far side and give up every shell. Idempotent."""
        if not self._closed and self._free and self.grace and self._pid == os.getpid():
            with contextlib.suppress(SandboxError):
                await self.call('rm -rf "$_as_h"', timeout=10)
        await asyncio.to_thread(self.close)

    def close(self) -> None:
        """Give up every shell. Idempotent."""
        with self._lock:
            if self._pid != os.getpid():
                self._leave()
            self._closed = True
            for lane in (*self._free, *self._settling, *self._lent):
                self._retire(lane)
            self._free, self._settling = [], []
            end = time.monotonic() + FLUSH
            while self._dying and time.monotonic() < end:
                self._dying = [lane for lane in self._dying if not lane.reap()]
                time.sleep(0.01)
            for lane in self._dying:
                lane.reap(now=True)
            self._dying = []
            Watcher.get().disown(self._owner)


def new_mark() -> bytes:
    """A mark for a request, free of anything that a shell would expand."""
    # The first character is rare in output, so that the search for a mark cut in two is cheap.
    return b'\x01' + secrets.token_hex(16).encode()


def _cut(buffer: bytearray, mark: bytes) -> tuple[bytes, str | None]:
    """Take from the buffer what stands before the mark, and the word after it when its line is complete."""
    at = buffer.find(mark)
    if at >= 0:
        end = buffer.find(b'\n', at)
        if end < 0:
            data, word = bytes(buffer[:at]), None
            del buffer[:at]
            if len(buffer) > len(mark) + WORD:
                raise SandboxError(
                    'the sandbox answered with something that is no answer; see that its shell prints nothing of its own when it starts'
                )
            return data, word
        data, word = (
            bytes(buffer[:at]),
            bytes(buffer[at + len(mark) : end]).decode('ascii', 'replace').strip(),
        )
        del buffer[: end + 1]
        return data, word
    # The end of the buffer may be the beginning of a mark.
    keep = 0
    start = buffer.find(mark[:1], max(0, len(buffer) - len(mark) + 1))
    while start >= 0:
        if mark.startswith(buffer[start:]):
            keep = len(buffer) - start
            break
        start = buffer.find(mark[:1], start + 1)
    data = bytes(memoryview(buffer)[: len(buffer) - keep])
    del buffer[: len(buffer) - keep]
    return data, None
