"""`Shell`: tools, denials, approvals and the end of a run in the words of Pydantic AI."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Self, cast, get_type_hints

from pydantic import GetPydanticSchema
from pydantic_ai import (
    ApprovalRequired,
    DeferredToolRequests,
    FunctionToolset,
    ModelRetry,
    RunContext,
    Tool,
    ToolReturn,
)
from pydantic_ai.capabilities import AbstractCapability, WrapRunHandler
from pydantic_ai.messages import ToolCallPart
from pydantic_ai.run import AgentRunResult
from pydantic_ai.tools import AgentDepsT
from pydantic_core import SchemaValidator, core_schema

import anyshell
from anyshell import (
    CommandDenied,
    OptionError,
    Policy,
    Sandbox,
    Sessions,
    ShellKeywords,
    ShellOptions,
    ShellSession,
)
from pydantic_ai_anyshell.output import emitter
from pydantic_ai_anyshell.toolset import ShellToolset
from pydantic_ai_anyshell.workspace import WORKSPACE, WorkspaceSandbox

ENDLESS = 1_000_000
"""The retry budget of the tools. A denial is a `ModelRetry`, and at the framework's own budget of one the second denial
in a row ends the run; what bounds a run is its `UsageLimits`."""


def _as_object(given: object) -> object:
    return given if isinstance(given, dict) else {}  # pyright: ignore[reportUnknownVariableType]  (a dict of anything)


OBJECT = SchemaValidator(
    core_schema.no_info_before_validator_function(_as_object, core_schema.dict_schema())
)
"""What the framework checks of a call's arguments: nothing. Core does, and says what is wrong in its own words; of
something else than an object, such as a list, that all of them are missing."""

LIVE_OBJECT = GetPydanticSchema(lambda _source, _handler: core_schema.none_schema())
"""An agent spec is plain data, so in its schema such a setting can only be null."""


@dataclass
class Shell(ShellOptions, AbstractCapability[AgentDepsT]):
    """A shell for an agent: `Agent(…, capabilities=[Shell(cwd='.', allowed_commands=['ls'])])`.

    Takes the settings of `anyshell.ShellOptions`, also from an agent spec. Each run has a working directory and background
    commands of its own, which end with it. What is assigned later, such as `shell.denied_commands = ['ls']`, is checked when
    the next run begins, and holds from there on.

    Attributes:
        sandbox: Where commands run; yours to close. `None` for this machine.
        policy: Judges commands instead of the policy that the settings describe.
        session: A session of yours to use instead of one for each run: directory and jobs then outlive a run. It has
            its own settings, sandbox and policy, and is yours to close.
        workspace: Whether commands run in the workspace that the run has, of another capability; `cwd` is then inside it.
    """

    cwd: str | Path = '.'  # here again, since the origin takes it by position too
    _: KW_ONLY
    sandbox: Annotated[Sandbox | None, LIVE_OBJECT] = None
    policy: Annotated[Policy | None, LIVE_OBJECT] = None  # pyright: ignore[reportIncompatibleMethodOverride]  (`ShellOptions` has a method of that name, which nobody calls on this class)
    session: Annotated[ShellSession | None, LIVE_OBJECT] = None
    workspace: bool = False
    _sessions: Sessions = field(init=False, repr=False, compare=False)
    _workspace: WorkspaceSandbox = field(init=False, repr=False, compare=False)
    _asked: set[str | None] = field(init=False, repr=False, compare=False)
    _changed: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._workspace = WorkspaceSandbox()
        self._asked = set()
        self._changed = 0
        self._sessions = Sessions(self._settings(), **self._parts())

    def _settings(self) -> ShellKeywords:
        given = {
            setting.name: value
            for setting in fields(ShellOptions)
            if (value := getattr(self, setting.name)) != setting.default
        }
        return cast('ShellKeywords', given)

    def _parts(self) -> dict[str, Any]:
        if self.workspace and self.sandbox is not None:
            raise OptionError('workspace', self.workspace, 'False beside a sandbox')
        sandbox = self._workspace if self.workspace else self.sandbox
        return {'session': self.session, 'sandbox': sandbox, 'policy': self.policy}

    def _changes(self) -> int:
        """Take in what was assigned since the last run began, and say how often that was something."""
        super().__post_init__()
        before = self._sessions.own
        self._sessions.change(self._settings(), **self._parts())
        self._changed += self._sessions.own is not before
        return self._changed

    def __copy__(self) -> Self:
        return replace(self)  # a plain copy would share the runs

    def get_toolset(self) -> FunctionToolset[AgentDepsT]:
        name = self.id or 'anyshell'
        return ShellToolset(name, self._changes, self._tools, self._asked, self._end)

    def _tools(self) -> list[Tool[AgentDepsT]]:
        return [self._tool(tool) for tool in self._sessions.own.tools]

    def _tool(self, tool: anyshell.Tool) -> Tool[AgentDepsT]:
        schema = tool.arguments.model_json_schema()
        # No closure, which a copy of the toolset would share with this one.
        call = partial(self._call, tool.name)
        made = Tool[AgentDepsT].from_schema(
            call, tool.name, tool.description, schema, takes_ctx=True
        )
        made.function_schema.validator = OBJECT
        made.max_retries = ENDLESS
        return made

    async def _call(
        self, name: str, ctx: RunContext[AgentDepsT], /, **arguments: Any
    ) -> ToolReturn:
        self._enter(ctx)
        session = self._sessions.of(ctx.run_id, thread=ctx.conversation_id)
        tool = next(tool for tool in session.tools if tool.name == name)
        # IDs of calls are the provider's: some count from 0 in every answer.
        call_id = f'{ctx.run_id}:{ctx.run_step}:{ctx.tool_call_id}'
        try:
            reply = await tool.call(
                arguments,
                call_id=call_id,
                approved=ctx.tool_call_approved,
                on_output=emitter(ctx),
            )
        except CommandDenied as denied:
            raise ModelRetry(str(denied)) from denied
        except anyshell.ApprovalRequired as ask:
            self._asked.add(ctx.run_id)
            raise ApprovalRequired(metadata=ask.request(name, arguments)) from ask
        text = reply.text
        if ctx.tool_call_approved and (command := _changed(ctx, arguments)) is not None:
            text = anyshell.ApprovalRequired.edited(command, text)
        return ToolReturn(text, metadata=reply.facts)

    async def wrap_run(
        self, ctx: RunContext[AgentDepsT], *, handler: WrapRunHandler
    ) -> AgentRunResult[Any]:
        paused = False
        try:
            result = await handler()
            paused = isinstance(result.output, DeferredToolRequests)
            return result
        finally:
            await self._end(ctx, paused)

    def _enter(self, ctx: RunContext[AgentDepsT]) -> None:
        if self.workspace:
            WORKSPACE.set(ctx.workspace)

    async def _end(self, ctx: RunContext[AgentDepsT], paused: bool) -> None:  # noqa: FBT001  (a callback)
        self._asked.discard(ctx.run_id)
        session = None if ctx.run_id is None else self._sessions.end(ctx.run_id, paused=paused)
        if session is not None:
            self._enter(ctx)
            await session.aclose()

    async def aclose(self) -> None:
        """End all sessions, also those of runs that wait for an approval; later calls are refused. Idempotent."""
        await self._sessions.aclose()


# For the schema of an agent spec: the constructor of a dataclass has its annotations as texts, and not all of the names
# in those of `ShellOptions` are known in this module.
_HINTS = get_type_hints(Shell, include_extras=True)
Shell.__init__.__annotations__ |= {
    name: _HINTS[name] for name in Shell.__init__.__annotations__ if name in _HINTS
}


def _changed(ctx: RunContext[Any], arguments: dict[str, Any]) -> str | None:
    """The command of a call that a person has edited, which the model doesn't know."""
    made = (part for message in reversed(ctx.messages) for part in message.parts)
    for part in made:
        if isinstance(part, ToolCallPart) and part.tool_call_id == ctx.tool_call_id:
            command: object = arguments.get('command')
            own = part.args_as_dict().get('command')
            return command if isinstance(command, str) and command != own else None
    return None
