"""Output while a command runs: pieces put together, in order, never more than a person could read."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, TypeVar

from anyshell.sandbox.base import StreamChunk

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

T = TypeVar('T')

EVERY = 0.05
"""Seconds between two looks: a person sees no difference, a framework gets 20 events a second instead of thousands."""

MOST = 1 << 16
"""Characters that are passed on of one look. Who listens may be slow, and neither slows the command nor fills the memory."""


class Pieces:
    """What has come since it was last taken: neighbours of one stream are put together, the oldest go when it is too much."""

    def __init__(self) -> None:
        self._chunks: deque[StreamChunk] = deque()
        self._length = 0
        self._dropped = 0

    def add(self, chunk: StreamChunk) -> None:
        """Take in a piece."""
        self._chunks.append(chunk)
        self._length += len(chunk.data)
        while self._length > MOST:
            oldest = self._chunks.popleft()
            kept = oldest.data[self._length - MOST :]
            self._dropped += len(oldest.data) - len(kept)
            self._length -= len(oldest.data) - len(kept)
            if kept:
                self._chunks.appendleft(StreamChunk(kept, oldest.stream_type))

    def take(self) -> list[StreamChunk]:
        """Give what there is."""
        runs: list[tuple[StreamChunk, list[str]]] = []
        for chunk in self._chunks:
            if not runs or runs[-1][0].stream_type != chunk.stream_type:
                runs.append((chunk, []))
            runs[-1][1].append(chunk.data)
        if self._dropped:
            runs[0][1].insert(0, f'[... {self._dropped} characters are not shown here]\n')
        self._chunks.clear()
        self._length = self._dropped = 0
        return [StreamChunk(''.join(texts), first.stream_type) for first, texts in runs]


async def live(
    call: Callable[[Callable[[StreamChunk], None]], Awaitable[T]],
) -> AsyncGenerator[StreamChunk | T]:
    """Run a call and yield its output while it runs, then what it returns.

    Closing the generator early, or cancelling the task, cancels the call and waits for its end.

    Args:
        call: Gets the function that takes in output.
    """
    pieces = Pieces()
    news = asyncio.Event()  # lives as long as this call

    def take_in(chunk: StreamChunk) -> None:
        pieces.add(chunk)
        news.set()

    async def run() -> T:
        try:
            return await call(take_in)
        finally:
            news.set()

    task = asyncio.ensure_future(run())
    try:
        while not task.done():
            await news.wait()
            news.clear()
            for chunk in pieces.take():
                yield chunk
            await asyncio.wait({task}, timeout=EVERY)
        for chunk in pieces.take():
            yield chunk
        yield task.result()
    finally:
        if not task.done():
            task.cancel()
            await asyncio.wait({task})
