"""`Shell`: tools, denials, approvals, the end of a run and live output in the words of Pydantic AI."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Annotated, Any

from pydantic import GetPydanticSchema
from pydantic_ai import (
    ApprovalRequired,
    CapabilityEvent,
    DeferredToolRequests,
    FunctionToolset,
    ModelRetry,
    RunContext,
    Tool,
    ToolReturn,
)
from pydantic_ai.capabilities import AbstractCapability, WrapRunHandler
from pydantic_ai.exceptions import UserError
from pydantic_ai.run import AgentRunResult
from pydantic_ai.tools import AgentDepsT
from pydantic_core import core_schema

import anyshell
from anyshell import CommandDenied, Policy, Reply, Sandbox, ShellOptions, ShellSession, StreamChunk
from pydantic_ai_anyshell.runs import Runs

ENDLESS = 1_000_000
"""The retry budget of the tools. A denial is a `ModelRetry`, and at the framework's own budget of one the second denial
in a row ends the run; what bounds a run is its `UsageLimits`."""

LIVE_OBJECT = GetPydanticSchema(lambda _source, _handler: core_schema.none_schema())
"""An agent spec is plain data, so in its schema such a setting can only be null."""


@dataclass(kw_only=True)
class CommandOutput(CapabilityEvent, namespace='anyshell', name='output'):
    """A piece of output, in the run's event stream while the command runs.

    Attributes:
        text: What was written; of one stream, in order.
        stream: 'stdout' or 'stderr'.
    """

    text: str
    stream: str


@dataclass
class Shell(ShellOptions, AbstractCapability[AgentDepsT]):
    """A shell for an agent: `Agent(…, capabilities=[Shell(cwd='.', allowed_commands=['ls'])])`.

    Takes the settings of `anyshell.ShellOptions`, also from an agent spec. Each run has a working directory and background
    commands of its own, which end with it.

    Attributes:
        sandbox: Where commands run; yours to close. `None` for this machine.
        policy: Judges commands instead of the policy that the settings describe.
        session: A session of yours to use instead of one for each run: directory and jobs then outlive a run. It has
            its own settings, sandbox and policy, and is yours to close.
    """

    sandbox: Annotated[Sandbox | None, LIVE_OBJECT] = None
    policy: Annotated[Policy | None, LIVE_OBJECT] = None  # pyright: ignore[reportIncompatibleMethodOverride]  (`ShellOptions` has a method of that name; `options` has it too)
    session: Annotated[ShellSession | None, LIVE_OBJECT] = None
    _runs: Runs = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._runs = Runs(self._open)

    def _open(self) -> ShellSession:
        options = {setting.name: getattr(self, setting.name) for setting in fields(ShellOptions)}
        return ShellSession(ShellOptions(**options), sandbox=self.sandbox, policy=self.policy)

    def get_toolset(self) -> FunctionToolset[AgentDepsT]:
        tools = (self.session or self._open()).tools  # a session that runs nothing holds nothing
        return ShellToolset(self._runs, [self._tool(tool) for tool in tools], self.id or 'anyshell')

    def _tool(self, tool: anyshell.Tool) -> Tool[AgentDepsT]:
        async def call(ctx: RunContext[AgentDepsT], /, **arguments: Any) -> ToolReturn:
            session = self.session or self._runs.session(ctx)
            own = next(own for own in session.tools if own.name == tool.name)
            # IDs of calls are the provider's: some count from 0 in every answer.
            call_id = f'{ctx.run_id}:{ctx.run_step}:{ctx.tool_call_id}'
            pieces = own.stream(arguments, call_id=call_id, approved=ctx.tool_call_approved)
            reply = Reply('')
            listened = True
            try:
                async for piece in pieces:
                    if isinstance(piece, Reply):
                        reply = piece
                    elif listened:
                        listened = await _emit(ctx, piece)
            except CommandDenied as denied:
                raise ModelRetry(str(denied)) from denied
            except anyshell.ApprovalRequired as ask:
                self._runs.asked(ctx)
                raise ApprovalRequired(metadata=ask.request(tool.name, arguments)) from ask
            return ToolReturn(reply.text, metadata=reply.facts)

        # Without a validator of the framework's: `call` checks the arguments, and says what is wrong in core's words.
        schema = tool.arguments.model_json_schema()
        made = Tool[AgentDepsT].from_schema(
            call, tool.name, tool.description, schema, takes_ctx=True
        )
        made.max_retries = ENDLESS
        return made

    async def wrap_run(
        self, ctx: RunContext[AgentDepsT], *, handler: WrapRunHandler
    ) -> AgentRunResult[Any]:
        paused = False
        try:
            result = await handler()
            paused = isinstance(result.output, DeferredToolRequests)
            return result
        finally:
            await self._runs.end(ctx.run_id or '', ctx.conversation_id or '', paused=paused)

    async def aclose(self) -> None:
        """End the sessions of runs that wait for an approval which nobody will give any more. Idempotent."""
        await self._runs.aclose()


class ShellToolset(FunctionToolset[AgentDepsT]):
    """The tools without the capability, `toolsets=[Shell().get_toolset()]`: ends the session of a run all the same."""

    def __init__(self, runs: Runs, tools: Sequence[Tool[AgentDepsT]], name: str) -> None:
        super().__init__(tools, id=name)
        self.runs = runs
        self.run = self.conversation = ''

    async def for_run(self, ctx: RunContext[AgentDepsT]) -> ShellToolset[AgentDepsT]:
        mine = copy.copy(self)
        mine.run, mine.conversation = ctx.run_id or '', ctx.conversation_id or ''
        return mine

    async def for_run_step(self, ctx: RunContext[AgentDepsT]) -> ShellToolset[AgentDepsT]:
        self.runs.went_on(ctx)
        return self

    async def __aexit__(self, *args: object) -> None:
        # With the capability its `wrap_run`, which knows the run's output, came first, and nothing is left to end.
        await self.runs.end(self.run, self.conversation)


async def _emit(ctx: RunContext[Any], chunk: StreamChunk) -> bool:
    """Show a piece of output; `False` where the framework takes no events, such as a toolset without its capability."""
    try:
        await ctx.emit(CommandOutput(text=chunk.data, stream=chunk.stream_type))
    except UserError:
        return False
    return True
