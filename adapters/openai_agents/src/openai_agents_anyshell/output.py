"""Output while a command runs. The SDK's own event stream is closed to others, so it comes beside it."""

from __future__ import annotations

import asyncio
import inspect
import weakref
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass
from typing import TypeAlias

from anyshell import OptionError, StreamChunk

WAITING = 256
"""Pieces that wait for a listener; of one that is slower the oldest are dropped."""


@dataclass(frozen=True, slots=True)
class CommandOutput:
    """A piece of output.

    Attributes:
        call_id: The ID of the tool call, as in the `tool_called` event of the run.
        text: What was written; of one stream, in order.
        stream: 'stdout' or 'stderr'.
    """

    call_id: str
    text: str
    stream: str


Listener: TypeAlias = Callable[[CommandOutput], Awaitable[None] | None]


class Listeners:
    """Who listens: a callback, and iterators, each in a loop of its own.

    Args:
        callback: Gets each piece; `None` for nobody.

    Raises:
        OptionError: If the callback can't be called.
    """

    def __init__(self, callback: Listener | None) -> None:
        if callback is not None and not callable(callback):
            allowed = 'None or a callable that takes a CommandOutput'
            raise OptionError('on_output', callback, allowed)
        self._callback = callback
        self._waiting: set[_Waiting] = set()
        self._closed = False

    def listener(self, call_id: str) -> Callable[[StreamChunk], Awaitable[None]] | None:
        """What takes in the output of a call; `None` when nobody listens, so that it costs nothing."""
        if self._callback is None and not self._waiting:
            return None

        async def tell(chunk: StreamChunk) -> None:
            piece = CommandOutput(call_id, chunk.data, chunk.stream_type)
            if self._callback is not None and inspect.isawaitable(answer := self._callback(piece)):
                await answer
            self._put(piece)

        return tell

    def _put(self, piece: CommandOutput | None) -> None:
        for waiting in tuple(self._waiting):
            waiting.put(piece)

    def close(self) -> None:
        """End all iterators, also those that come."""
        self._closed = True
        self._put(None)

    def iterate(self) -> AsyncGenerator[CommandOutput]:
        """All pieces from this call on, until `close`."""
        waiting = _Waiting()
        if self._closed:
            waiting.put(None)
        self._waiting.add(waiting)
        found = self._read(waiting)
        # One that nobody reads never comes to its `finally`.
        weakref.finalize(found, self._waiting.discard, waiting).atexit = False
        return found

    async def _read(self, waiting: _Waiting) -> AsyncGenerator[CommandOutput]:
        try:
            while (piece := await waiting.get()) is not None:
                yield piece
        finally:
            self._waiting.discard(waiting)


class _Waiting:
    """The pieces that wait for one listener; they may come from any thread."""

    def __init__(self) -> None:
        self._pieces: deque[CommandOutput | None] = deque(maxlen=WAITING)
        self._wake: tuple[asyncio.AbstractEventLoop, asyncio.Event] | None = None

    def put(self, piece: CommandOutput | None) -> None:
        self._pieces.append(piece)
        if self._wake is not None:
            loop, news = self._wake
            if not loop.is_closed():
                loop.call_soon_threadsafe(news.set)

    async def get(self) -> CommandOutput | None:
        while not self._pieces:
            news = asyncio.Event()
            self._wake = asyncio.get_running_loop(), news
            try:
                if not self._pieces:  # one may have come meanwhile
                    await news.wait()
            finally:
                self._wake = None
        return self._pieces.popleft()
