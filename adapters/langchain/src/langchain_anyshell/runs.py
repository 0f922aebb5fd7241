"""When a run ends, and when it only pauses: no middleware has to be added, and langgraph need not be there.

LangChain puts the two handlers below into every run of the process. `_Tree` knows the root of each run that goes on, for
a few dictionary operations a run; when a root ends it asks who holds something for it. `_Close` wakes up only then: ending
a stubborn command takes seconds, and an event loop must not wait for that.
"""

from __future__ import annotations

import asyncio
import sys
from collections import OrderedDict
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, TypeAlias
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.tracers.context import register_configure_hook

Close: TypeAlias = Callable[[], None]
Ending: TypeAlias = Callable[[bool], Close | None]


@dataclass(slots=True, eq=False)
class Run:
    """A root run, such as one `invoke` of an agent.

    Attributes:
        id: LangChain's ID.
        inside: The runs in it that have not ended.
        paused: Whether something inside waits for a person.
        endings: Asked at its end, with whether that is a pause; what they return is called.
    """

    id: UUID
    inside: set[UUID] = field(default_factory=set[UUID])
    paused: bool = False
    endings: list[Ending] = field(default_factory=list[Ending])


FRESH = 1000
"""Roots with nothing in them that are remembered. The end of one that is broken off so early, such as a stream of events
that is closed at its first, is never told; a run beyond them has no session of its own."""

_fresh: OrderedDict[UUID, Run] = OrderedDict()
_runs: dict[UUID, Run] = {}
_closing: dict[UUID, list[Close]] = {}


def root_of(run_id: UUID | None) -> Run | None:
    """The root that a run is part of; `None` when it is a root itself, or when nobody saw its beginning."""
    run = None if run_id is None else _runs.get(run_id)
    return None if run is None or run.id == run_id else run


class _Handler(BaseCallbackHandler):
    run_inline = True  # at once and one after the other, also in asynchronous runs

    def on_chat_model_start(self, *_: Any, **__: Any) -> None:
        """Nothing; the base class would make LangChain put the whole prompt together as text."""


class _Tree(_Handler):
    def on_chain_start(
        self, *_: Any, run_id: UUID, parent_run_id: UUID | None = None, **__: Any
    ) -> None:
        if parent_run_id is None:
            _fresh[run_id] = Run(run_id)
            while len(_fresh) > FRESH:
                _fresh.popitem(last=False)
            return
        # In this order, since two threads may each begin the first run inside of one root.
        run = _fresh.get(parent_run_id) or _runs.get(parent_run_id)
        if run is not None:
            _runs[run.id] = _runs[run_id] = run
            run.inside.add(run_id)
            _fresh.pop(run.id, None)

    def on_chain_end(self, *_: Any, run_id: UUID, **__: Any) -> None:
        self.on_chain_error(None, run_id=run_id)

    def on_chain_error(self, error: BaseException | None, *, run_id: UUID, **_: Any) -> None:
        _fresh.pop(run_id, None)
        run = _runs.pop(run_id, None)
        if run is None:
            return
        if run.id != run_id:
            # langgraph's exception is known by its name, so that langgraph need not be imported.
            run.inside.discard(run_id)
            run.paused |= any(kind.__name__ == 'GraphInterrupt' for kind in type(error).__mro__)
            return
        for inside in run.inside:  # of what is broken off, not every end is told
            _runs.pop(inside, None)
        # Who reads a stream may close it at the interrupt; with any other error nobody will go on.
        paused = run.paused and (error is None or isinstance(error, GeneratorExit))
        closes = [close for ending in run.endings if (close := ending(paused)) is not None]
        if closes:
            _closing[run_id] = closes

    on_tool_start = on_chain_start
    on_tool_end = on_chain_end
    on_tool_error = on_chain_error


class _Close(_Handler):
    @property
    def ignore_chain(self) -> bool:
        # A stream that is still open when the interpreter ends is closed by that. It has ended all commands already, and to
        # start a thread now would wait for ever.
        return not _closing or sys.is_finalizing()

    @property
    def ignore_agent(self) -> bool:  # LangChain's word for tools, too
        return self.ignore_chain

    async def on_chain_end(self, *_: Any, run_id: UUID, **__: Any) -> None:
        for close in _closing.pop(run_id, ()):
            await asyncio.to_thread(close)  # a thread goes on when this task is cancelled

    on_chain_error = on_tool_end = on_tool_error = on_chain_end


# In this order: `_Tree` finds out what `_Close` has to do.
for _name, _handler in (('runs', _Tree()), ('closing', _Close())):
    register_configure_hook(ContextVar(f'anyshell_{_name}', default=_handler), inheritable=True)
