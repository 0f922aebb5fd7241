"""Ctrl+C for synchronous agents, by choice: a library sets no signal handler unasked."""

from __future__ import annotations

import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Generator
    from types import FrameType

    from anyshell.sandbox.base import Flag


_active = 0
_count = 0


@contextmanager
def interruptible() -> Generator[None]:
    """End running commands on Ctrl+C (SIGINT), then let Python raise `KeyboardInterrupt` as usual.

    Frameworks run a synchronous agent's tools in other threads, which no signal reaches: without this, Ctrl+C is seen
    only when the command has ended by itself. Inside this context every command that runs in this process is ended
    within a second. Nothing else changes, and the former handler is back at the end.

    Raises:
        RuntimeError: If this is not the main thread; Python lets no other one set a signal handler.
    """
    global _active  # noqa: PLW0603 - one process has one handler for SIGINT
    if threading.current_thread() is not threading.main_thread():
        msg = 'interruptible() must be entered in the main thread: no other one can set a signal handler'
        raise RuntimeError(msg)
    former = signal.getsignal(signal.SIGINT)

    def on_interrupt(number: int, frame: FrameType | None) -> None:
        global _count  # noqa: PLW0603 - as above
        _count += 1
        if callable(former):
            former(number, frame)

    signal.signal(signal.SIGINT, on_interrupt)
    _active += 1
    try:
        yield
    finally:
        _active -= 1
        signal.signal(signal.SIGINT, former)


class _Interrupts:
    """Set by the caller's own flag, or by a Ctrl+C that comes after this was made."""

    def __init__(self, own: Flag | None) -> None:
        self._own = own
        self._count = _count

    def is_set(self) -> bool:
        return _count != self._count or (self._own is not None and self._own.is_set())


def watched(own: Flag | None) -> Flag | None:
    """The flag that a command looks at: the caller's, and Ctrl+C inside `interruptible`."""
    return _Interrupts(own) if _active else own
