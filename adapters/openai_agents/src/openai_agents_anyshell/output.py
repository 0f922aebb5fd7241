"""Output while a command runs. The SDK's own event stream is closed to others, so it comes beside it."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass
from typing import TypeAlias

from anyshell import StreamChunk

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
    """Who listens: a callback, and iterators, each in a loop of its own."""

    def __init__(self, callback: Listener | None) -> None:
        self._callback = callback
        self._queues: dict[asyncio.Queue[CommandOutput | None], asyncio.AbstractEventLoop] = {}

    def listener(self, call_id: str) -> Callable[[StreamChunk], Awaitable[None]] | None:
        """What takes in the output of a call; `None` when nobody listens, so that it costs nothing."""
        if self._callback is None and not self._queues:
            return None

        async def tell(chunk: StreamChunk) -> None:
            piece = CommandOutput(call_id, chunk.data, chunk.stream_type)
            if self._callback is not None and inspect.isawaitable(answer := self._callback(piece)):
                await answer
            self._put(piece)

        return tell

    def _put(self, piece: CommandOutput | None) -> None:
        def put(queue: asyncio.Queue[CommandOutput | None]) -> None:
            if queue.full():
                queue.get_nowait()
            queue.put_nowait(piece)

        for queue, loop in tuple(self._queues.items()):
            if not loop.is_closed():
                loop.call_soon_threadsafe(put, queue)

    def close(self) -> None:
        """End all iterators."""
        self._put(None)

    async def iterate(self) -> AsyncGenerator[CommandOutput]:
        """All pieces from now on, until `close`."""
        queue: asyncio.Queue[CommandOutput | None] = asyncio.Queue(WAITING)
        self._queues[queue] = asyncio.get_running_loop()
        try:
            while (piece := await queue.get()) is not None:
                yield piece
        finally:
            del self._queues[queue]
