"""One kept shell: its descriptors, what it has said, and where a reply of it ends."""

from __future__ import annotations

import contextlib
import os
import secrets
import select
import signal
import subprocess
import time
from typing import TYPE_CHECKING

from anyshell.errors import SandboxError
from anyshell.sandbox import far, waits
from anyshell.sandbox.base import STREAMS
from anyshell.sandbox.waits import CHUNK, ready

if TYPE_CHECKING:
    from collections.abc import Sequence

    from anyshell.sandbox.base import StreamType

WORD = 64
"""The most bytes of the word after a mark."""

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
        # The end of this is the end of the parent. It is the lane's own, since who waits on one that is closed waits on.
        self.lifeline = -1
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
        moved = time.monotonic()
        try:
            while view and not self.eof:
                try:
                    view = view[os.write(self.stdin, view) :]
                    moved = time.monotonic()
                except BlockingIOError:
                    await ready(write=[self.stdin], timeout=waits.STALLED)
                    self.eof = time.monotonic() > moved + waits.STALLED
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
        return [*self.outputs.values(), *(() if self.lifeline < 0 else (self.lifeline,))]

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

    def hang_up(self) -> None:
        """Close its input: the far side ends its command, and the call that has the shell hears of that."""
        if self.stdin >= 0:
            with contextlib.suppress(OSError):
                os.close(self.stdin)
            self.stdin = -1

    def retire(self) -> None:
        """Give the shell up: it ends when it has done what it was sent."""
        if self.retired:
            return
        self.retired = time.monotonic()
        if self.pid == os.getpid():
            self._unlink()
        for descriptor in (self.stdin, *self.outputs.values(), self.lifeline):
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
