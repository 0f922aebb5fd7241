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
import shlex
import subprocess
import threading
import time
from abc import abstractmethod
from typing import TYPE_CHECKING

from anyshell.errors import SandboxClosed, SandboxError, SandboxUnavailable
from anyshell.sandbox import marks
from anyshell.sandbox.base import STREAMS
from anyshell.sandbox.channels import Channel
from anyshell.sandbox.lanes import FLUSH, Lane, new_mark
from anyshell.sandbox.shells import set_mark
from anyshell.sandbox.waits import ready
from anyshell.sandbox.watch import Watcher

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from anyshell.sandbox.channels import Far

IDLE = 16
"""How many shells stay for later calls; each takes three or four descriptors here and a process or two on the far side."""


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
        if self._closed:
            raise SandboxClosed

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
                raise SandboxClosed
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
            closed = self._closed  # in between
            if not closed:
                self._lent.add(lane)
                if alone:
                    self.epoch += 1
        if closed:
            lane.retire()
            lane.reap(now=True)
            raise SandboxClosed
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
            if self._closed or lane.eof or len(self._free) + len(self._settling) >= IDLE:
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

    def renew(self) -> bool:
        with self._lock:  # somebody may have removed the folder, which a new shell makes
            for lane in (*self._free, *self._settling):
                self._retire(lane)
            self._free, self._settling = [], []
        return bool(self.grace)

    def _retire(self, lane: Lane) -> None:
        if lane.retired:
            return
        lane.retire()
        if self._closed:
            lane.reap(now=True)
        else:
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
        if self._closed:
            return SandboxClosed()
        return self.lost(lane.why()) if lane.begun['stdout'] else self.refused(lane.why())

    async def aclose(self) -> None:
        """End what still runs on the far side, remove what is kept there and give up every shell. Idempotent."""
        if not self._closed and self._free and self.grace and self._pid == os.getpid():
            with contextlib.suppress(SandboxError):
                await self.call('_as_over', timeout=10)
        await asyncio.to_thread(self.close)

    def close(self) -> None:
        """Give up every shell. Idempotent."""
        with self._lock:
            if self._pid != os.getpid():
                self._leave()
            for lane in (*self._free, *self._settling):
                self._retire(lane)
            self._free, self._settling = [], []
            self._closed = True
            # Calls watch the output of these, which therefore stays theirs to close.
            for lane in self._lent:
                lane.hang_up()
        end = time.monotonic() + FLUSH
        while time.monotonic() < end:
            with self._lock:  # not held meanwhile: the calls give their shells back
                self._dying = [lane for lane in self._dying if not lane.reap()]
                if not (self._dying or self._lent):
                    break
            time.sleep(0.01)
        with self._lock:
            for lane in (*self._dying, *self._lent):
                lane.reap(now=True)
            self._dying = []
            Watcher.get().disown(self._owner)
