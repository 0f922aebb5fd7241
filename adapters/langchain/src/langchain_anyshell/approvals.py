"""Questions to a person: one graph interrupt, in the shape of LangChain's own human-in-the-loop middleware."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, NamedTuple, cast

from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import ToolException

from anyshell import ApprovalRequired

REMEMBERED = 1000
"""Calls that are with LangChain's middleware and have not run; about an older one a person would be asked again."""


class Reviewed:
    """The calls that LangChain's middleware asks about, so that nobody is asked twice.

    What is remembered is one call: of one tool, in one answer of the model, with one ID. Nobody tells which calls a person
    refused, and some providers count IDs from 0 in every answer, so the ID alone would let a later call run. Its
    arguments may be others by now, those that a person wrote.
    """

    def __init__(self) -> None:
        self._calls: OrderedDict[_Call, None] = OrderedDict()

    def add(self, request: Any) -> None:
        """Remember a call, LangChain's `ToolCallRequest`, that is sent to the middleware: it runs only if a person agrees."""
        name, call_id = request.tool_call['name'], request.tool_call['id']
        self._calls[_call(name, call_id, request.state, request.runtime.config)] = None
        while len(self._calls) > REMEMBERED:
            self._calls.popitem(last=False)

    def take(self, name: str, call_id: str | None, state: object, config: RunnableConfig) -> bool:
        """Whether a call that is about to run was sent there; it counts once.

        Args:
            name: The tool's name.
            call_id: The call's ID.
            state: The graph's, as LangChain hands it to tools.
            config: The run's.
        """
        call = _call(name, call_id, state, config)
        if call.message is None:  # nobody can tell it from a later one
            return False
        known = call in self._calls
        self._calls.pop(call, None)
        return known


class _Call(NamedTuple):
    thread: str | None
    message: str | None
    name: str
    call_id: str | None


def _call(name: str, call_id: str | None, state: object, config: RunnableConfig) -> _Call:
    found = cast('dict[str, Any]', state).get('messages') if isinstance(state, dict) else state
    messages = cast('list[object]', found) if isinstance(found, list) else []
    made = (message.id for message in reversed(messages) if isinstance(message, AIMessage))
    return _Call(thread_of(config), next(made, None), name, call_id)


def thread_of(config: RunnableConfig) -> str | None:
    """The thread that a run is part of; it lasts over a pause."""
    thread = config.get('configurable', {}).get('thread_id')
    return None if thread is None else str(thread)


def ask_person(name: str, arguments: Mapping[str, Any], ask: ApprovalRequired) -> dict[str, Any]:
    """Interrupt the graph; when it goes on, return the arguments that a person approved.

    Raises:
        ToolException: If the person said no, or nobody is there; its text is for the model.
    """
    request = ask.request(name, arguments)
    action = {'name': name, 'args': request['arguments'], 'description': request['reason']}
    review = {'action_name': name, 'allowed_decisions': ['approve', 'edit', 'reject']}
    try:
        from langgraph.types import interrupt  # noqa: PLC0415 - langchain-core alone is enough

        answer = interrupt({'action_requests': [action], 'review_configs': [review], **request})
    except (ImportError, KeyError, RuntimeError) as error:  # no langgraph, or outside of a graph
        raise ToolException(ask.unanswered()) from error
    match answer:
        case {'decisions': [decision]} | decision:
            pass
    match decision:
        case True | {'type': 'approve'}:
            return dict(arguments)
        case {'type': 'edit', 'edited_action': {'name': str(edited), 'args': dict()}} if (
            edited == name
        ):
            return cast('dict[str, Any]', decision['edited_action']['args'])
        case {'type': 'reject', 'message': str(message)}:
            raise ToolException(ask.refused(message))
        case _:
            raise ToolException(ask.refused())
