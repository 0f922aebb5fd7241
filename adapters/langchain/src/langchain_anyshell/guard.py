"""The policy over shell tools that are not ours, such as the `execute` of deepagents. Needs `langchain`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import cached_property, partial
from typing import Any, TypeAlias

from langchain.agents.middleware import AgentMiddleware, ToolCallRequest
from langchain_core.messages import ToolMessage
from langchain_core.tools import ToolException
from langgraph.types import Command

from anyshell import ApprovalRequired, CommandDenied, Guard
from langchain_anyshell.approvals import Reviewed, ask_person

Result: TypeAlias = 'ToolMessage | Command[Any]'
Word: TypeAlias = Callable[[Result], Result]


class ShellPolicy(Guard, AgentMiddleware):
    """Judges the commands of other shell tools: of deepagents, of `ShellToolMiddleware`, of an MCP server, of your own.

        create_agent(model, tools, middleware=[ShellPolicy(Policy.from_lists(denied_commands=['rm']))])

    A call that has to be approved interrupts the graph as one of `ShellToolkit` does.

    Args:
        policy: What judges; `ShellOptions(…).policy()` makes one from settings.
        tools: The names of the tools that it is about; `None` for every tool that has one of `arguments`.
        arguments: The names of the arguments that hold a command.
        on_ask: 'deny' denies a call that has to be approved, where nobody is there to ask.
    """

    @cached_property
    def _reviewed(self) -> Reviewed:
        return Reviewed()

    def needs_approval(self, request: ToolCallRequest) -> bool:
        """Whether a person has to approve a call: the `when` of LangChain's `HumanInTheLoopMiddleware`.

        What this has sent to that middleware is not asked about a second time.
        """
        try:
            self.judge(request.tool_call['name'], request.tool_call['args'])
        except ApprovalRequired:
            self._reviewed.add(request)
            return True
        except CommandDenied:
            pass  # it is denied when it is called; nobody needs to be asked
        return False

    def wrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Result]
    ) -> Result:
        try:
            admitted, word = self._admit(request)
        except ToolException as refused:
            return _refusal(request, refused)
        return word(handler(admitted))

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[Result]]
    ) -> Result:
        try:
            admitted, word = self._admit(request)
        except ToolException as refused:
            return _refusal(request, refused)
        return word(await handler(admitted))

    def _admit(self, request: ToolCallRequest) -> tuple[ToolCallRequest, Word]:
        call = request.tool_call
        config = request.runtime.config  # pyright: ignore[reportUnknownMemberType]  (a generic class without arguments)
        try:
            try:
                reviewed = self._reviewed.take(call['name'], call['id'], request.state, config)
                self.judge(call['name'], call['args'], approved=reviewed)
            except ApprovalRequired as ask:
                edited = ask_person(call['name'], call['args'], ask)
                if edited == call['args']:
                    return request, _as_it_is
                changed = request.override(tool_call={**call, 'args': edited})
                self.judge(call['name'], edited, approved=True)
                command = next((edited[name] for name in self.arguments if name in edited), edited)
                return changed, partial(_told, command)
        except CommandDenied as denied:
            raise ToolException(str(denied)) from denied
        return request, _as_it_is


def _as_it_is(result: Result) -> Result:
    return result


def _told(command: object, result: Result) -> Result:
    if isinstance(result, ToolMessage) and isinstance(result.content, str):
        content = ApprovalRequired.edited(command, result.content)
        return result.model_copy(update={'content': content})
    return result


def _refusal(request: ToolCallRequest, refused: ToolException) -> ToolMessage:
    call = request.tool_call
    return ToolMessage(
        str(refused), name=call['name'], tool_call_id=str(call['id']), status='error'
    )
