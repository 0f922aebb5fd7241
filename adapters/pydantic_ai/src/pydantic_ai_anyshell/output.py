"""Output while a command runs, in the run's event stream."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from pydantic_ai import CapabilityEvent, RunContext
from pydantic_ai.exceptions import UserError

from anyshell import StreamChunk


@dataclass(kw_only=True)
class CommandOutput(CapabilityEvent, namespace='anyshell', name='output'):
    """A piece of output, in the run's event stream while the command runs.

    Attributes:
        text: What was written; of one stream, in order.
        stream: 'stdout' or 'stderr'.
    """

    text: str
    stream: str


def emitter(ctx: RunContext[Any]) -> Callable[[StreamChunk], Awaitable[None]]:
    """What puts the output of a call into the event stream of its run, where that has one."""
    refused = False

    async def emit(chunk: StreamChunk) -> None:
        nonlocal refused
        if not refused:
            try:
                await ctx.emit(CommandOutput(text=chunk.data, stream=chunk.stream_type))
            except UserError:
                # Here are no events: a toolset without its capability, a durable unit.
                refused = True

    return emit
