"""`ShellTools`: tools, denials, approvals, the end and live output in the words of the OpenAI Agents SDK."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import replace
from typing import Any, Self, Unpack, cast
from weakref import WeakKeyDictionary, WeakSet

import agents
from agents import FunctionTool, RunContextWrapper, ToolApprovalItem, custom_span
from agents.tool import FunctionToolCustomDataContext
from agents.tool_context import ToolContext
from pydantic import ValidationError
from pydantic_core import from_json

from anyshell import (
    ApprovalRequired,
    CommandDenied,
    Decision,
    Policy,
    Reply,
    Sandbox,
    Sessions,
    ShellKeywords,
    ShellSession,
    Tool,
    run_sync,
)
from openai_agents_anyshell.output import CommandOutput, Listener, Listeners

RUN_OUT = 5.0
"""Seconds that cancelled calls get to come back, when their commands have been ended."""


class ShellTools:
    """A shell for agents of the OpenAI Agents SDK.

        async with ShellTools(cwd='./workspace') as shell:
            agent = Agent(name='Builder', tools=shell.tools())
            result = await Runner.run(agent, 'Run the tests.')

    The SDK does not say when a run has ended, so the block is what bounds the working directory and the background
    commands: use one for a conversation, and keep it open while a run waits for an approval. Runs that share a
    `ShellTools` share its directory. `with` does the same for `Runner.run_sync`.

    Args:
        session: A live session to use; it stays yours to close, and takes no settings beside it.
        sandbox: Where commands run; it stays yours to close.
        policy: Judges commands instead of the policy that the settings describe.
        on_output: Gets output while a command runs, put together, 20 times a second at most.
        options: The settings of `anyshell.ShellOptions`.

    Attributes:
        session: What carries out the calls.

    Raises:
        OptionError: If a setting has a value that is not allowed.
        TypeError: If there is no such setting; the text names the nearest one.
        AttributeError: If a setting is assigned later.
    """

    def __init__(
        self,
        *,
        session: ShellSession | None = None,
        sandbox: Sandbox | None = None,
        policy: Policy | None = None,
        on_output: Listener | None = None,
        **options: Unpack[ShellKeywords],
    ) -> None:
        self._sessions = Sessions(options, session=session, sandbox=sandbox, policy=policy)
        self.session = self._sessions.own
        settings = self.session.options
        # Where nothing can be asked the SDK is not told to ask: it would pause for a call with broken JSON.
        self._asks = settings.on_ask == 'ask' and bool(
            session or policy or settings.ask_commands or settings.unresolved == 'ask'
        )
        self._edited: dict[tuple[str, str], str] = {}  # by the call: its ID and its arguments
        self._loops: WeakSet[asyncio.AbstractEventLoop] = WeakSet()
        self._listeners = Listeners(on_output)
        self._facts: WeakKeyDictionary[RunContextWrapper[Any], dict[str, Any]] = WeakKeyDictionary()

    def __setattr__(self, name: str, value: object) -> None:
        if name in {*ShellKeywords.__annotations__, 'sandbox', 'policy'}:
            msg = f'{name} holds from construction on; make another {type(self).__name__}({name}=…)'
            raise AttributeError(msg)
        super().__setattr__(name, value)

    # A copy of an agent has the same tools, in the same block.

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def tools(self) -> list[agents.Tool]:
        """The tools, for `Agent(tools=…)`."""
        return [self._tool(tool) for tool in self.session.tools]

    def request(self, item: ToolApprovalItem) -> dict[str, Any]:
        """What a person needs to decide about an interruption: `command`, `part`, `reason`, `rule`, as plain data."""
        try:
            given = from_json(item.arguments or '{}')
        except ValueError:
            given = None
        arguments = cast('dict[str, Any]', given) if isinstance(given, dict) else {}
        name = item.name or ''
        return ApprovalRequired(self._sessions.verdict(name, arguments)).request(name, arguments)

    def edit(self, item: ToolApprovalItem, command: str) -> None:
        """Have another command run in place of that of an interruption, once it is approved.

        It is judged again, so what the policy denies does not run; the model is told what ran. The SDK has no such
        answer: an approval is for the arguments that the model gave.
        """
        self._edited[item.call_id or '', item.arguments or ''] = command

    def output(self) -> AsyncGenerator[CommandOutput]:
        """The output of all commands from now on, piece by piece while they run, until the block ends.

        It is collected from this call on, read or not; of more than 256 pieces that wait the oldest are dropped.
        """
        return self._listeners.iterate()

    # -- a call

    def _tool(self, tool: Tool) -> FunctionTool:
        async def invoke(context: ToolContext[Any], arguments: str) -> str:
            sensitive = context.run_config is not None and (
                context.run_config.trace_include_sensitive_data
            )
            self._loops.add(asyncio.get_running_loop())
            # Never the current span: to make it so is undone in this task's context, which is not there any more when
            # the task is thrown away.
            span = custom_span('anyshell', {'arguments': arguments} if sensitive else {})
            span.start()
            try:
                reply = await self._call(tool, context, arguments)
                span.span_data.data.update(reply.facts)
            finally:
                span.finish()
            self._facts[context] = reply.facts
            return reply.text

        async def needs_approval(
            _context: RunContextWrapper[Any], arguments: dict[str, Any], _call_id: str
        ) -> bool:
            return self._sessions.verdict(tool.name, arguments).decision is Decision.ASK

        return FunctionTool(
            name=tool.name,
            description=tool.description,
            params_json_schema=tool.arguments.model_json_schema(),
            on_invoke_tool=invoke,
            strict_json_schema=False,  # a strict schema has no optional arguments
            needs_approval=needs_approval if self._asks else False,
            custom_data_extractor=self._extract,
        )

    async def _call(self, tool: Tool, context: ToolContext[Any], arguments: str) -> Reply:
        # The SDK would end the run, or hide the reason, for whatever is raised here.
        try:
            given = tool.arguments.model_validate_json(arguments or '{}')
        except ValidationError as error:
            return Reply(tool.wrong_arguments(error), is_error=True)
        # Also for tools that somebody has taken `needs_approval` from. The qualified name, since of a tool in a
        # namespace the plain one is not known.
        call_id = context.tool_call_id
        answer = context.is_tool_approved(context.qualified_tool_name, call_id)
        if (edited := self._edited.pop((call_id, arguments), None)) is not None:
            given = given.model_copy(update={'command': edited})
        try:
            # Without the ID, which may come again in a later run: the SDK itself carries out each call of a run once.
            reply = await tool.call(
                given,
                approved=answer is True,
                on_output=self._listeners.listener(call_id),
            )
        except CommandDenied as denied:
            return Reply(str(denied), denied.facts, is_error=True)
        except ApprovalRequired as ask:
            return Reply(ask.unanswered(), ask.facts, is_error=True)
        if edited is not None:
            reply = replace(reply, text=ApprovalRequired.edited(edited, reply.text))
        return reply

    def _extract(self, context: FunctionToolCustomDataContext) -> dict[str, Any]:
        return self._facts.pop(cast('RunContextWrapper[Any]', context.tool_context), {})

    # -- the end

    async def aclose(self) -> None:
        """End all commands, unless the session was handed in. Idempotent."""
        self._listeners.close()
        await self._sessions.aclose()

    def close(self) -> None:
        """`aclose` for synchronous code."""
        run_sync(self.aclose())
        for loop in self._loops:
            _run_out(loop)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _run_out(loop: asyncio.AbstractEventLoop) -> None:
    """Let cancelled tasks end on a loop that nobody runs: on Ctrl+C `Runner.run_sync` leaves those of its tools there."""
    if loop.is_running() or loop.is_closed():
        return
    tasks = [task for task in asyncio.all_tasks(loop) if task.cancelling()]
    if tasks:
        loop.run_until_complete(asyncio.wait(tasks, timeout=RUN_OUT))
