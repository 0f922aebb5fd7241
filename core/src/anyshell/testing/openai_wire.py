"""How OpenAI's two APIs look on the wire: reads requests, writes answers, does no I/O.

Both APIs are read into one `ModelRequest`. An answer is first made whole; the events of a stream are cut from that.
"""

from __future__ import annotations

import itertools
import json
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

if TYPE_CHECKING:
    from collections.abc import Iterator

Json: TypeAlias = dict[str, Any]  # anything can be in what a client sends

PIECE_CHARS = 12
"""Short, so that a client has to put texts and arguments together from several events."""


class RefusedError(Exception):
    """Raised when the real server would refuse the request."""

    def __init__(self, message: str, *, status: int = 400) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool call that the model makes.

    Attributes:
        name: The tool's name.
        arguments: Its arguments; a string is sent as it is, so that it may be broken JSON.
        call_id: The call's id; in a script None means a new one (`call_1`, `call_2`, ...).
    """

    name: str
    arguments: Mapping[str, object] | str = field(default_factory=dict[str, object])
    call_id: str | None = None


Calls: TypeAlias = Sequence[
    ToolCall
    | tuple[str, Mapping[str, object] | str]
    | tuple[str, Mapping[str, object] | str, str | None]
]


@dataclass(frozen=True, slots=True)
class ModelTurn:
    """What the model says in one turn: a text, tool calls, or both.

    In a script a plain string stands for a turn with that text, and a list of calls for a turn with those calls. A
    call may be a tuple: `(name, arguments)` or `(name, arguments, call_id)`.
    """

    text: str = ''
    calls: Calls = ()


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One request of a client: the parts that both APIs have.

    Attributes:
        api: Which of the two APIs was called.
        body: The JSON body.
        headers: The HTTP headers, names in lower case.
        history: The messages or input items so far; what `previous_response_id` stands for is filled in.
    """

    api: Literal['chat', 'responses']
    body: Json
    headers: Mapping[str, str]
    history: tuple[Json, ...]

    @property
    def stream(self) -> bool:
        """Whether the client asked for a stream."""
        return bool(self.body.get('stream'))

    @property
    def prompt(self) -> str:
        """The text of the last message from the user."""
        texts = [_text(item.get('content')) for item in self.history if item.get('role') == 'user']
        return texts[-1] if texts else ''

    @property
    def tools(self) -> dict[str, Json]:
        """The function tools on offer by name: their `description`, `parameters` and `strict`, where given."""
        keys = ('description', 'parameters', 'strict')
        return {
            tool['name']: {key: tool[key] for key in keys if key in tool}
            for tool in self._offered()
        }

    @property
    def calls(self) -> dict[str, ToolCall]:
        """The tool calls so far by id, in order; their arguments are the JSON that was sent."""
        found: dict[str, ToolCall] = {}
        for item in self.history:
            for call in item.get('tool_calls') or ():
                function = call['function']
                found[call['id']] = ToolCall(function['name'], function['arguments'], call['id'])
            if item.get('type') == 'function_call':
                call_id = item['call_id']
                found[call_id] = ToolCall(item['name'], item['arguments'], call_id)
        return found

    @property
    def tool_results(self) -> dict[str, str]:
        """What tools have returned so far by call id, in order, as the model reads it; of calls with one id the last."""
        return dict(self._results())

    @property
    def results(self) -> tuple[str, ...]:
        """What tools have returned so far, in order, as the model reads it; every one, also where call ids repeat."""
        return tuple(text for _, text in self._results())

    def check(self) -> None:
        """Refuse what the real server refuses of a client that uses tools.

        Raises:
            RefusedError: With the reason.
        """
        for name, tool in self.tools.items():
            if not re.fullmatch(r'[a-zA-Z0-9_-]{1,64}', name):
                raise RefusedError(f'Invalid tool name {name!r}: expected [a-zA-Z0-9_-]{{1,64}}.')
            if reason := _schema_fault(tool.get('parameters'), strict=bool(tool.get('strict'))):
                raise RefusedError(f'Invalid schema for function {name!r}: {reason}.')
        if len(self.tools) < len(self._offered()):
            raise RefusedError('Tool names must be unique.')
        if missing := list(self.calls.keys() - self.tool_results.keys()):
            raise RefusedError(f'No tool output found for function calls {missing}.')
        if orphans := list(self.tool_results.keys() - self.calls.keys()):
            raise RefusedError(f'No tool call found for function call outputs {orphans}.')

    def _results(self) -> Iterator[tuple[str, str]]:
        for item in self.history:
            if item.get('role') == 'tool':
                yield item['tool_call_id'], _text(item.get('content'))
            if item.get('type') == 'function_call_output':
                yield item['call_id'], _text(item.get('output'))

    def _offered(self) -> list[Json]:
        tools = [tool for tool in self.body.get('tools') or () if tool.get('type') == 'function']
        return [tool['function'] for tool in tools] if self.api == 'chat' else tools


def read_body(data: bytes) -> Json:
    """Read the JSON of a request.

    Raises:
        RefusedError: If it is no JSON object.
    """
    try:
        body = json.loads(data)
    except ValueError as error:  # no JSON, or no UTF-8
        raise RefusedError(f'The body is not JSON: {error}.') from error
    if not isinstance(body, dict):
        raise RefusedError('The body is not a JSON object.')
    return cast('Json', body)


def read_request(
    path: str, body: Json, headers: Mapping[str, str], stored: Mapping[str, tuple[Json, ...]]
) -> ModelRequest:
    """Read a request of either API.

    Args:
        path: The URL's path.
        body: The JSON body.
        headers: The HTTP headers, names in lower case.
        stored: The history behind each id that `previous_response_id` can name.

    Raises:
        RefusedError: If the real server would not take it.
    """
    if path == '/v1/chat/completions':
        request = ModelRequest('chat', body, headers, tuple(body.get('messages') or ()))
    elif path == '/v1/responses':
        previous: str | None = body.get('previous_response_id')
        if previous is not None and previous not in stored:
            raise RefusedError(f'Previous response with id {previous!r} not found.')
        given: str | list[Json] = body.get('input') or []
        items: list[Json] = (
            [{'role': 'user', 'content': given}] if isinstance(given, str) else given
        )
        earlier = stored[previous] if previous is not None else ()
        request = ModelRequest('responses', body, headers, (*earlier, *items))
    else:
        raise RefusedError(f'Unknown path {path!r}.', status=404)
    request.check()
    return request


def write_answer(request: ModelRequest, turn: ModelTurn) -> Json:
    """The body of a plain answer; every call in `turn` is a `ToolCall` with an id."""
    return _chat(request, turn) if request.api == 'chat' else _response(request, turn)


def write_events(request: ModelRequest, answer: Json) -> Iterator[Json]:
    """The same answer as the events of a stream."""
    if request.api == 'chat':
        options: Json = request.body.get('stream_options') or {}
        return _chat_events(answer, usage=bool(options.get('include_usage')))
    return (
        event | {'sequence_number': number} for number, event in enumerate(_response_events(answer))
    )


def write_broken_stream(request: ModelRequest, answer: Json) -> Iterator[Json]:
    """The events of a stream that breaks off right after the text."""

    def goes_on(event: Json) -> bool:
        finished = any(choice['finish_reason'] for choice in event.get('choices', ()))
        return not finished and event.get('type') != 'response.output_text.done'

    return itertools.takewhile(goes_on, write_events(request, answer))


def _text(content: object) -> str:
    """The text of a content, which is a string or a list of parts."""
    if isinstance(content, list):
        return ''.join(part.get('text') or '' for part in cast('list[Json]', content))
    return content if isinstance(content, str) else ''


def _schema_fault(schema: Json | None, *, strict: bool) -> str | None:
    if schema is None:
        return None
    if schema.get('type') != 'object':
        return 'its type must be "object"'
    closed = schema.get('additionalProperties') is False
    required: list[str] = schema.get('required') or []
    properties: Json = schema.get('properties') or {}
    if strict and not (closed and set(required) == set(properties)):
        return 'strict needs additionalProperties: false and every property in required'
    return None


_numbers = itertools.count(1)  # next() is atomic, so ids are unique in a process


def _id(prefix: str) -> str:
    return f'{prefix}_{next(_numbers)}'


def _pieces(text: str) -> list[str]:
    return [text[start : start + PIECE_CHARS] for start in range(0, len(text), PIECE_CHARS)]


def _calls(turn: ModelTurn) -> Iterator[tuple[str | None, str, str]]:
    """The calls of a turn: id, name, and arguments in JSON."""
    for call in cast('tuple[ToolCall, ...]', turn.calls):
        raw = call.arguments
        yield call.call_id, call.name, raw if isinstance(raw, str) else json.dumps(dict(raw))


def _chat(request: ModelRequest, turn: ModelTurn) -> Json:
    message: Json = {'role': 'assistant', 'content': turn.text or None, 'refusal': None}
    if turn.calls:
        message['tool_calls'] = [
            {'id': call_id, 'type': 'function', 'function': {'name': name, 'arguments': arguments}}
            for call_id, name, arguments in _calls(turn)
        ]
    reason = 'tool_calls' if turn.calls else 'stop'
    return {
        'id': _id('chatcmpl'),
        'object': 'chat.completion',
        'created': int(time.time()),
        'model': request.body.get('model', ''),
        'choices': [{'index': 0, 'message': message, 'finish_reason': reason, 'logprobs': None}],
        'usage': {'prompt_tokens': 1, 'completion_tokens': 1, 'total_tokens': 2},
    }


def _chat_events(answer: Json, *, usage: bool) -> Iterator[Json]:
    head = {key: answer[key] for key in ('id', 'created', 'model')}
    head['object'] = 'chat.completion.chunk'
    (choice,) = answer['choices']
    message: Json = choice['message']

    def chunk(delta: Json, finish_reason: str | None = None) -> Json:
        one = {'index': 0, 'delta': delta, 'finish_reason': finish_reason, 'logprobs': None}
        return head | {'choices': [one]}

    yield chunk({'role': 'assistant', 'content': '' if message['content'] else None})
    for piece in _pieces(message['content'] or ''):
        yield chunk({'content': piece})
    for index, call in enumerate(message.get('tool_calls', ())):
        function: Json = call['function']
        opening = call | {'index': index, 'function': function | {'arguments': ''}}
        yield chunk({'tool_calls': [opening]})
        for piece in _pieces(function['arguments']):
            yield chunk({'tool_calls': [{'index': index, 'function': {'arguments': piece}}]})
    yield chunk({}, choice['finish_reason'])
    if usage:
        yield head | {'choices': [], 'usage': answer['usage']}


def _response(request: ModelRequest, turn: ModelTurn) -> Json:
    output: list[Json] = []
    if turn.text or not turn.calls:
        part: Json = {'type': 'output_text', 'text': turn.text, 'annotations': [], 'logprobs': []}
        message: Json = {'type': 'message', 'id': _id('msg'), 'status': 'completed'}
        output.append(message | {'role': 'assistant', 'content': [part]})
    for call_id, name, arguments in _calls(turn):
        call: Json = {'type': 'function_call', 'id': _id('fc'), 'status': 'completed'}
        output.append(call | {'call_id': call_id, 'name': name, 'arguments': arguments})
    body = request.body
    return {
        'id': _id('resp'),
        'object': 'response',
        'created_at': int(time.time()),
        'status': 'completed',
        'error': None,
        'incomplete_details': None,
        'instructions': body.get('instructions'),
        'max_output_tokens': body.get('max_output_tokens'),
        'metadata': body.get('metadata') or {},
        'model': body.get('model', ''),
        'output': output,
        'parallel_tool_calls': body.get('parallel_tool_calls', True),
        'previous_response_id': body.get('previous_response_id'),
        'store': body.get('store', True),
        'temperature': body.get('temperature', 1.0),
        'text': {'format': {'type': 'text'}},
        'tool_choice': body.get('tool_choice', 'auto'),
        'tools': body.get('tools') or [],
        'top_p': body.get('top_p', 1.0),
        'truncation': 'disabled',
        'usage': {
            'input_tokens': 1,
            'input_tokens_details': {'cached_tokens': 0},
            'output_tokens': 1,
            'output_tokens_details': {'reasoning_tokens': 0},
            'total_tokens': 2,
        },
    }


def _response_events(answer: Json) -> Iterator[Json]:
    unfinished: Json = {'status': 'in_progress', 'output': [], 'usage': None}
    yield {'type': 'response.created', 'response': answer | unfinished}
    yield {'type': 'response.in_progress', 'response': answer | unfinished}
    for index, item in enumerate(answer['output']):
        events = _call_events(item) if item['type'] == 'function_call' else _message_events(item)
        for event in events:
            yield {'output_index': index, **event}
    yield {'type': 'response.completed', 'response': answer}


def _call_events(item: Json) -> Iterator[Json]:
    opening = item | {'status': 'in_progress', 'arguments': ''}
    yield {'type': 'response.output_item.added', 'item': opening}
    place: Json = {'item_id': item['id']}
    for piece in _pieces(item['arguments']):
        yield place | {'type': 'response.function_call_arguments.delta', 'delta': piece}
    done = {'name': item['name'], 'arguments': item['arguments']}
    yield place | done | {'type': 'response.function_call_arguments.done'}
    yield {'type': 'response.output_item.done', 'item': item}


def _message_events(item: Json) -> Iterator[Json]:
    opening: Json = {'status': 'in_progress', 'content': []}
    yield {'type': 'response.output_item.added', 'item': item | opening}
    place: Json = {'item_id': item['id'], 'content_index': 0}
    (part,) = item['content']
    yield place | {'type': 'response.content_part.added', 'part': part | {'text': ''}}
    place['logprobs'] = []
    for piece in _pieces(part['text']):
        yield place | {'type': 'response.output_text.delta', 'delta': piece}
    yield place | {'type': 'response.output_text.done', 'text': part['text']}
    del place['logprobs']
    yield place | {'type': 'response.content_part.done', 'part': part}
    yield {'type': 'response.output_item.done', 'item': item}
