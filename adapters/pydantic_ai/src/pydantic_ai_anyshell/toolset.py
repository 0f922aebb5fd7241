"""The toolset of `Shell`, which knows when a run ends that has the tools without the capability."""

from __future__ import annotations

import copy
from collections.abc import Awaitable, Callable, Sequence

from pydantic_ai import FunctionToolset, RunContext, Tool
from pydantic_ai.tools import AgentDepsT


class ShellToolset(FunctionToolset[AgentDepsT]):
    """The tools; without the capability, `toolsets=[Shell().get_toolset()]`, they end the session of a run themselves."""

    def __init__(
        self,
        name: str,
        changes: Callable[[], int],
        make: Callable[[], Sequence[Tool[AgentDepsT]]],
        asked: set[str | None],
        end: Callable[[RunContext[AgentDepsT], bool], Awaitable[None]],
    ) -> None:
        self.changes = changes
        self.seen = changes()
        self.make = make
        super().__init__(make(), id=name)
        self.asked = asked
        self.end = end
        self.ctx: RunContext[AgentDepsT] | None = None

    async def for_run(self, ctx: RunContext[AgentDepsT]) -> ShellToolset[AgentDepsT]:
        # The settings that hold now are those of the run.
        if (seen := self.changes()) != self.seen:
            self.seen = seen
            self.tools = {tool.name: tool for tool in self.make()}
        mine = copy.copy(self)
        mine.ctx = ctx
        return mine

    async def for_run_step(self, ctx: RunContext[AgentDepsT]) -> ShellToolset[AgentDepsT]:
        self.asked.discard(ctx.run_id)  # the run goes on, so what was asked is answered
        return self

    async def __aexit__(self, *args: object) -> None:
        # With the capability its `wrap_run`, which knows the run's output, came first, and nothing is left to end.
        if self.ctx is not None:
            await self.end(self.ctx, self.ctx.run_id in self.asked)
