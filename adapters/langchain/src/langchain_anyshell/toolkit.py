"""The shell as a toolkit: tools, denials, questions to a person, output while a command runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Annotated, Any, Self, Unpack

from langchain_core.callbacks import BaseCallbackManager
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import (
    BaseTool,
    BaseToolkit,
    InjectedToolArg,
    StructuredTool,
    ToolException,
)
from pydantic import PrivateAttr

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
    StreamChunk,
    Tool,
    run_sync,
)
from langchain_anyshell.approvals import Reviewed, ask_person, thread_of
from langchain_anyshell.runs import Close, root_of


class ShellToolkit(BaseToolkit):
    """A shell for LangChain agents.

        agent = create_agent(model, ShellToolkit(cwd='./workspace').get_tools())

    Each run (each `invoke` or `stream` of an agent) has a session of its own: a working directory and background
    commands, which end with the run, however it ends. A run that pauses for a person has not ended; the run that
    resumes its thread goes on with its session. With `session` all runs share that one and nothing is ended here.

    A command that needs an approval interrupts the graph with the request that LangChain's human-in-the-loop middleware
    makes, and takes its answers, such as `{'decisions': [{'type': 'approve'}]}`; or `True`. Anything else is a no.

    Args:
        session: A live session for all runs; it stays the caller's to close and takes no settings beside it.
        sandbox: Where commands run; it stays the caller's to close.
        policy: Judges commands instead of the policy that the settings describe.
        options: The settings of `anyshell.ShellOptions`.

    Raises:
        OptionError: If a setting has a value that is not allowed.
        TypeError: If there is no such setting; the text names the nearest one.
        ValueError: If a setting is assigned later.
    """

    _sessions: Sessions = PrivateAttr()
    _reviewed: Reviewed = PrivateAttr(default_factory=Reviewed)

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

    def get_tools(self) -> list[BaseTool]:
        """The tools, for `create_agent` or a `ToolNode`."""
        return [self._tool(tool) for tool in self._sessions.own.tools]

    def needs_approval(self, request: Any) -> bool:
        """Whether a person has to approve a call: the `when` of LangChain's `HumanInTheLoopMiddleware`.

        What this has sent to the middleware is not asked about a second time.

        Args:
            request: The middleware's `ToolCallRequest`.
        """
        call = request.tool_call
        if self._sessions.verdict(call['name'], call['args']).decision is not Decision.ASK:
            return False
        self._reviewed.add(request)
        return True

    async def aclose(self) -> None:
        """End the sessions of all runs, also of those that wait for a person. Idempotent."""
        await self._sessions.aclose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        run_sync(self.aclose())

    def _tool(self, tool: Tool) -> BaseTool:
        # LangChain fills these by name: `runtime` only in a graph, where the model's own value is thrown away.
        # An input that is no dict, `tool.invoke('ls')`, comes by position; it is the first argument.
        async def coroutine(
            *text: str,
            callbacks: BaseCallbackManager,
            config: RunnableConfig,
            runtime: Annotated[Any, InjectedToolArg] = None,
            **arguments: Any,
        ) -> tuple[str, dict[str, Any]]:
            session = self._session(callbacks, config)
            own = next(own for own in session.tools if own.name == tool.name)
            arguments |= zip(tool.arguments.model_fields, text)  # noqa: B905  (there is one, or none)
            # LangChain fills in the defaults, which a person who is asked has no need to see.
            given = {
                name: value
                for name, value in arguments.items()
                if value != tool.arguments.model_fields[name].default
            }
            reply = await self._reply(own, given, config, runtime)
            if reply.is_error:
                raise ToolException(reply.text)
            return reply.text, reply.facts

        def func(
            *text: str,
            callbacks: BaseCallbackManager,
            config: RunnableConfig,
            runtime: Annotated[Any, InjectedToolArg] = None,
            **arguments: Any,
        ) -> tuple[str, dict[str, Any]]:
            return run_sync(
                coroutine(*text, callbacks=callbacks, config=config, runtime=runtime, **arguments)
            )

        tool.arguments.model_rebuild()  # older langchain-core reads a signature that is there only then
        return StructuredTool.from_function(
            func=func,
            coroutine=coroutine,
            name=tool.name,
            description=tool.description,
            args_schema=tool.arguments,
            response_format='content_and_artifact',
            handle_tool_error=True,
            handle_validation_error=tool.wrong_arguments,
        )

    async def _reply(
        self, tool: Tool, arguments: Mapping[str, Any], config: RunnableConfig, runtime: Any
    ) -> Reply:
        emit: Callable[[object], None] | None = getattr(runtime, 'emit_output_delta', None)

        # IDs of calls are the provider's, and some count from 0 in every answer. The namespace is of one step.
        tool_call_id: str | None = getattr(runtime, 'tool_call_id', None)
        namespace = config.get('metadata', {}).get('langgraph_checkpoint_ns')
        call_id = tool_call_id and f'{namespace}:{tool_call_id}'
        call = partial(tool.call, call_id=call_id, on_output=emit and partial(_show, emit))
        state: object = getattr(runtime, 'state', None)
        approved = self._reviewed.take(tool.name, tool_call_id, state, config)
        try:
            try:
                return await call(arguments, approved=approved)
            except ApprovalRequired as ask:
                edited = ask_person(tool.name, arguments, ask)
                reply = await call(edited, approved=True)
                command = edited.get('command')
                if reply.is_error or command == arguments['command']:
                    return reply
                return Reply(ask.edited(command, reply.text), reply.facts)
        except CommandDenied as denied:
            raise ToolException(str(denied)) from denied

    def _session(self, callbacks: BaseCallbackManager, config: RunnableConfig) -> ShellSession:
        run = root_of(callbacks.parent_run_id)
        if run is not None and not self._sessions.knows(run):
            run.endings.append(partial(self._end, run))
        return self._sessions.of(run, thread=thread_of(config))

    def _end(self, run: object, paused: bool) -> Close | None:  # noqa: FBT001 - as `Run.endings` wants it
        session = self._sessions.end(run, paused=paused)
        return None if session is None else session.close


def _show(emit: Callable[[object], None], chunk: StreamChunk) -> None:
    emit({'stream': chunk.stream_type, 'text': chunk.data})
