"""The shell as a plugin: tools, denials, questions to a person, output while a command runs, the end of a run."""

from __future__ import annotations

import asyncio
import inspect
import threading
import weakref
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from functools import partial
from typing import Any, TypeAlias, Unpack
from uuid import uuid4

from strands import (
    Agent,
    Plugin,
    ToolContext,
    tool,  # pyright: ignore[reportUnknownVariableType]  (its `inputSchema` is a bare `dict`)
)
from strands.hooks import AfterInvocationEvent, BeforeToolCallEvent
from strands.tools.decorator import DecoratedFunctionTool

from anyshell import (
    ApprovalRequired,
    CommandDenied,
    Policy,
    Reply,
    Sandbox,
    Sessions,
    ShellKeywords,
    ShellSession,
    Tool,
)
from strands_anyshell.approvals import NAME, Answer

Event: TypeAlias = dict[str, Any]

PAUSES = ('interrupt', 'checkpoint')
ALWAYS = 'anyshell_approved'
"""Where the agent's state keeps the calls that a person has approved for good, each with its tool and all its arguments."""


class ShellPlugin(Plugin):
    """A shell for Strands agents: `Agent(plugins=[ShellPlugin(cwd='./workspace')])`.

    Each invocation of an agent has a session of its own: a working directory and background commands, which end with it,
    however it ends. An interrupt is no end: the session is still there when the agent is invoked with the answer. With
    `session` all invocations share that one and nothing is ended here. Several agents may have one plugin.

    A command that needs an approval interrupts the agent; the interrupt's `reason` has the command, the part that the
    policy asks about, the reason and the rule. Answers:

        True                                        run it
        {'approved': True, 'always': True}          run it, and this very call from now on
        {'approved': True, 'command': 'git status'} run this instead, if the policy allows it
        {'approved': False, 'message': 'Why?'}      don't; a plain text is a message too, anything else a no

    While a command runs, the agent's stream has `{'stream': 'stdout', 'text': …}` as the data of a `tool_stream_event`;
    before the result comes `{'facts': {…}}` with the exit code and the like.

    Args:
        session: A live session for all invocations; it stays the caller's to close and takes no settings beside it.
        sandbox: Where commands run; it stays the caller's to close.
        policy: Judges commands instead of the policy that the settings describe.
        options: The settings of `anyshell.ShellOptions`.

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
        **options: Unpack[ShellKeywords],
    ) -> None:
        super().__init__()
        self._sessions = Sessions(options, session=session, sandbox=sandbox, policy=policy)
        self._invocations: dict[int, str] = {}  # by the agent's `id`

    def __setattr__(self, name: str, value: object) -> None:
        if name in {*ShellKeywords.__annotations__, 'session', 'sandbox', 'policy'}:
            msg = f'{name} holds from construction on; make another {type(self).__name__}({name}=…)'
            raise AttributeError(msg)
        super().__setattr__(name, value)

    @property
    def name(self) -> str:
        return 'anyshell'

    @property
    def tools(self) -> list[DecoratedFunctionTool[..., Any]]:
        # Made for each agent, so that no closure outlives a copy of the plugin; before them those of a subclass.
        ours = (self._tool(tool) for tool in self._sessions.own.tools)
        return [*super().tools, *ours]  # pyright: ignore[reportUnknownMemberType]  (a generic class without arguments)

    def init_agent(self, agent: Agent) -> None:
        agent.add_hook(self._before_tool_call, BeforeToolCallEvent)
        agent.add_hook(self._after_invocation, AfterInvocationEvent)
        # An agent that waits for an answer may be dropped; its session goes with it, and takes its commands along.
        weakref.finalize(agent, _drop, self._sessions, self._invocations, id(agent)).atexit = False

    async def aclose(self) -> None:
        """End the sessions of all agents, also of those that wait for a person. Idempotent."""
        await self._sessions.aclose()

    def _before_tool_call(self, event: BeforeToolCallEvent) -> None:
        # What is no object, such as a list, Strands would answer in words of its own.
        made: object = event.tool_use['input']
        ours = (own.name for own in self._sessions.own.tools)
        if not isinstance(made, dict) and event.tool_use['name'] in ours:
            event.tool_use = {**event.tool_use, 'input': {}}

    async def _after_invocation(self, event: AfterInvocationEvent) -> None:
        if event.result is not None and event.result.stop_reason in PAUSES:
            return
        self._invocations.pop(id(event.agent), None)
        session = self._sessions.end(id(event.agent))
        if session is not None:
            await asyncio.to_thread(session.close)  # a thread goes on when this task is cancelled

    def _tool(self, own: Tool) -> DecoratedFunctionTool[..., AsyncGenerator[Event]]:
        async def call(tool_context: ToolContext, **arguments: Any) -> AsyncGenerator[Event]:
            given = {name: value for name, value in arguments.items() if value is not None}
            async with aclosing(self._call(own.name, given, tool_context)) as events:
                async for event in events:
                    yield event

        # Strands reads this signature and would answer wrong arguments in its own words, so it may pass on anything.
        # Without it, `**arguments` would be the name of an argument that every call lacks.
        call.__annotations__ = {
            'tool_context': ToolContext,
            **dict.fromkeys(own.arguments.model_fields, Any),
        }
        call.__signature__ = inspect.Signature(  # pyright: ignore[reportFunctionMemberAccess]  (what `inspect` asks for)
            [
                inspect.Parameter(
                    name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind
                )
                for name, kind in call.__annotations__.items()
            ]
        )
        schema = {'json': own.arguments.model_json_schema()}
        return tool(name=own.name, description=own.description, inputSchema=schema, context=True)(
            call
        )

    async def _call(
        self, name: str, arguments: Mapping[str, Any], context: ToolContext
    ) -> AsyncGenerator[Event]:
        session = self._sessions.of(id(context.agent))
        own = next(own for own in session.tools if own.name == name)
        # IDs of calls are the provider's, and some count from 0 in every answer.
        invocation = self._invocations.setdefault(id(context.agent), uuid4().hex)
        call_id = f'{invocation}:{len(context.agent.messages)}:{context.tool_use["toolUseId"]}'
        stream = partial(own.stream, call_id=call_id, cancelled=context.cancel_signal)
        known: list[dict[str, Any]] = context.agent.state.get(ALWAYS) or []
        this = {'tool': name, 'arguments': dict(arguments)}
        approved = this in known
        word: Callable[[str], str] = str
        while True:  # twice, when a person is asked
            try:
                async with aclosing(stream(arguments, approved=approved)) as pieces:
                    async for piece in pieces:
                        if isinstance(piece, Reply):
                            yield {'facts': piece.facts}
                            text = piece.text if piece.is_error else word(piece.text)
                            yield _result(text, is_error=piece.is_error)
                        else:
                            yield {'stream': piece.stream_type, 'text': piece.data}
            except CommandDenied as denied:
                yield {'facts': denied.facts}
                # OpenAI's API has no place for the status of a result, so the text has to say it.
                text = str(denied)
                yield _result(text if 'denied' in text else f'Denied. {text}', is_error=True)
            except ApprovalRequired as ask:
                answer = Answer.of(context.interrupt(NAME, reason=ask.request(name, arguments)))
                if not answer.approved:
                    yield _result(ask.refused(answer.message), is_error=True)
                    return
                approved = True
                command = arguments['command']
                if answer.command not in (None, command):
                    arguments = {**arguments, 'command': answer.command}
                    word = partial(ask.edited, answer.command)
                elif answer.always:
                    known = context.agent.state.get(ALWAYS) or []
                    context.agent.state.set(ALWAYS, [*known, this])
                continue
            return


def _drop(sessions: Sessions, invocations: dict[int, str], agent: int) -> None:
    invocations.pop(agent, None)
    session = sessions.end(agent)
    if session is not None:  # who collects garbage must not wait for it
        threading.Thread(target=session.close, name='anyshell-close').start()


def _result(text: str, *, is_error: bool) -> Event:
    return {'status': 'error' if is_error else 'success', 'content': [{'text': text}]}
