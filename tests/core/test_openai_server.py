"""The wire format of the scripted model. That real clients understand it is tested with the adapters."""

import http.client
import json
import threading
from collections.abc import Iterator
from contextlib import closing
from typing import Any
from urllib.parse import urlsplit

import pytest

from anyshell.testing import (
    Exchange,
    Failure,
    Hang,
    ModelRequest,
    ModelTurn,
    OpenAIServer,
    ToolCall,
)

LS = ('run_command', {'command': 'ls'})
LONG = 'A text that takes more than one piece, with an é in it.'
USER = {'role': 'user', 'content': 'Look around.'}


def post(server: OpenAIServer, path: str, body: object) -> tuple[int, str]:
    """Send one request; returns the status and the body."""
    url = urlsplit(server.base_url)
    assert url.hostname
    with closing(http.client.HTTPConnection(url.hostname, url.port, timeout=5)) as connection:
        data = body if isinstance(body, str) else json.dumps(body)
        connection.request('POST', url.path + path, data)
        response = connection.getresponse()
        return response.status, response.read().decode()


def chat(server: OpenAIServer, *messages: object, **more: object) -> dict[str, Any]:
    status, body = post(server, '/chat/completions', {'model': 'm', 'messages': messages, **more})
    assert status == 200, body
    return json.loads(body)


def respond(server: OpenAIServer, given: object, **more: object) -> dict[str, Any]:
    status, body = post(server, '/responses', {'model': 'm', 'input': given, **more})
    assert status == 200, body
    return json.loads(body)


def events(body: str) -> Iterator[dict[str, Any]]:
    for line in body.splitlines():
        if line.startswith('data: ') and line != 'data: [DONE]':
            yield json.loads(line.removeprefix('data: '))


def refusal(server: OpenAIServer, path: str, body: object) -> str:
    status, text = post(server, path, body)
    assert status == 400
    return json.loads(text)['error']['message']


# What both APIs answer


def test_chat_answers_with_a_text() -> None:
    with OpenAIServer(['Done.']) as server:
        (choice,) = chat(server, USER)['choices']

    assert choice['message'] == {'role': 'assistant', 'content': 'Done.', 'refusal': None}
    assert choice['finish_reason'] == 'stop'


def test_chat_answers_with_calls_and_numbers_their_ids() -> None:
    with OpenAIServer(
        [ModelTurn('First.', [LS, ('run_command', '{broken', 'mine'), LS])]
    ) as server:
        (choice,) = chat(server, USER)['choices']

    function = {'name': 'run_command', 'arguments': '{"command": "ls"}'}
    assert choice['finish_reason'] == 'tool_calls'
    assert choice['message']['content'] == 'First.'
    assert choice['message']['tool_calls'] == [
        {'id': 'call_1', 'type': 'function', 'function': function},
        {'id': 'mine', 'type': 'function', 'function': function | {'arguments': '{broken'}},
        {'id': 'call_2', 'type': 'function', 'function': function},
    ]


def test_streamed_chat_puts_together_what_the_plain_one_says() -> None:
    turn = ModelTurn(LONG, [LS, LS])
    with OpenAIServer([turn]) as server:
        _, body = post(
            server,
            '/chat/completions',
            {'messages': [USER], 'stream': True, 'stream_options': {'include_usage': True}},
        )

    *chunks, usage = events(body)
    deltas = [chunk['choices'][0]['delta'] for chunk in chunks]
    calls = [call for delta in deltas for call in delta.get('tool_calls', ())]
    arguments = [
        ''.join(call['function']['arguments'] for call in calls if call['index'] == index)
        for index in (0, 1)
    ]
    assert ''.join(delta.get('content') or '' for delta in deltas) == LONG
    assert [call['id'] for call in calls if 'id' in call] == ['call_1', 'call_2']
    assert arguments == ['{"command": "ls"}'] * 2
    assert [chunk['choices'][0]['finish_reason'] for chunk in chunks][-2:] == [None, 'tool_calls']
    assert usage['choices'] == []
    assert usage['usage']['total_tokens'] == 2
    assert body.endswith('data: [DONE]\n\n')


def test_responses_answers_with_text_and_call_items() -> None:
    with OpenAIServer([ModelTurn('First.', [LS])]) as server:
        message, call = respond(server, 'Look around.')['output']

    assert message['content'][0]['text'] == 'First.'
    assert {key: call[key] for key in ('type', 'call_id', 'name', 'arguments')} == {
        'type': 'function_call',
        'call_id': 'call_1',
        'name': 'run_command',
        'arguments': '{"command": "ls"}',
    }


def test_streamed_responses_put_together_what_the_plain_one_says() -> None:
    with OpenAIServer([ModelTurn(LONG, [LS])]) as server:
        _, body = post(server, '/responses', {'input': [USER], 'stream': True})

    found = list(events(body))

    def delta(kind: str) -> str:
        return ''.join(
            event['delta'] for event in found if event['type'] == f'response.{kind}.delta'
        )

    assert [event['sequence_number'] for event in found] == list(range(len(found)))
    assert delta('output_text') == LONG
    assert delta('function_call_arguments') == '{"command": "ls"}'
    assert found[0]['type'] == 'response.created'
    assert found[0]['response']['output'] == []
    assert found[-1]['type'] == 'response.completed'
    done = [event['item'] for event in found if event['type'] == 'response.output_item.done']
    assert found[-1]['response']['output'] == done


# What the test of an agent reads


def test_tool_results_are_what_the_model_reads_in_chat() -> None:
    with OpenAIServer([[LS], 'Done.']) as server:
        said = chat(server, USER)['choices'][0]['message']
        parts = [{'type': 'text', 'text': '[stdout]\n'}, {'type': 'text', 'text': 'a.txt'}]
        chat(server, USER, said, {'role': 'tool', 'tool_call_id': 'call_1', 'content': parts})

        assert server.tool_results() == ('[stdout]\na.txt',)
        assert server.requests[-1].calls == {
            'call_1': ToolCall('run_command', '{"command": "ls"}', 'call_1')
        }


def test_tool_results_are_what_the_model_reads_in_responses() -> None:
    result = {'type': 'function_call_output', 'call_id': 'call_1', 'output': 'a.txt'}
    with OpenAIServer([[LS], 'Done.', 'More.']) as server:
        first = respond(server, [USER])
        second = respond(server, [result], previous_response_id=first['id'])
        respond(server, 'And now?', previous_response_id=second['id'])

        assert server.tool_results() == ('a.txt',)
        assert server.requests[-1].calls.keys() == {'call_1'}
        assert server.requests[1].prompt == 'Look around.'
        assert server.requests[2].prompt == 'And now?'


def test_results_of_calls_with_one_id_are_all_there() -> None:
    again = [call('a'), result('a', 'one'), call('a'), result('a', 'two')]
    with OpenAIServer(['Done.']) as server:
        respond(server, again)

        assert server.tool_results() == ('one', 'two')
        assert server.requests[-1].tool_results == {'a': 'two'}


def test_tools_read_the_same_from_both_apis() -> None:
    tool = {'name': 't', 'description': 'd', 'parameters': {'type': 'object', 'properties': {}}}
    with OpenAIServer(lambda _: 'Done.') as server:
        chat(server, USER, tools=[{'type': 'function', 'function': tool}])
        respond(server, [USER], tools=[{'type': 'function', **tool}, {'type': 'shell'}])

        one, other = server.requests
        assert (
            one.tools
            == other.tools
            == {'t': {'description': 'd', 'parameters': tool['parameters']}}
        )


def test_exchanges_hold_the_answers_spelled_out() -> None:
    with OpenAIServer([[LS], 'Done.', Failure(429)]) as server:
        chat(server, USER)
        respond(server, 'x')
        post(server, '/responses', {'input': 'x'})

    first, second, third = server.exchanges
    assert isinstance(first, Exchange)
    assert first.answer == ModelTurn('', (ToolCall('run_command', {'command': 'ls'}, 'call_1'),))
    assert second.answer == ModelTurn('Done.')
    assert third.answer == Failure(429)


def test_nothing_asked_is_no_result() -> None:
    with OpenAIServer([]) as server:
        assert server.tool_results() == ()


def test_environment_leads_a_client_here_and_no_traces_to_openai() -> None:
    with OpenAIServer([]) as server:
        assert server.environment == {
            'OPENAI_BASE_URL': server.base_url,
            'OPENAI_API_KEY': 'loopback',
            'OPENAI_AGENTS_DISABLE_TRACING': '1',
        }


# What a script can be


def test_a_function_can_stand_for_a_turn_and_for_the_whole_script() -> None:
    def echo(request: ModelRequest) -> str:
        return f'{request.api}: {request.prompt}'

    with OpenAIServer(['Hello.', echo]) as server:
        chat(server, USER)
        assert chat(server, USER)['choices'][0]['message']['content'] == 'chat: Look around.'
    with OpenAIServer(echo) as server:
        (item,) = respond(server, 'Hi.')['output']
        assert item['content'][0]['text'] == 'responses: Hi.'


def test_a_failure_is_a_status_and_tells_clients_not_to_try_again() -> None:
    with OpenAIServer([Failure(503, 'Too busy.'), Failure(429, retry=True)]) as server:
        url = urlsplit(server.base_url)
        retry: list[str | None] = []
        for _ in range(2):
            with closing(http.client.HTTPConnection(str(url.hostname), url.port)) as connection:
                connection.request('POST', '/v1/responses', '{"input": "x"}')
                response = connection.getresponse()
                retry.append(response.headers['x-should-retry'])
                response.read()

    assert retry == ['false', 'true']


def test_a_request_after_the_last_turn_is_refused() -> None:
    with OpenAIServer(['One.']) as server:
        chat(server, USER)
        message = refusal(server, '/chat/completions', {'messages': [USER]})

    assert message == 'The script has 1 turn, and all were taken.'


def test_an_assertion_in_the_script_fails_the_test() -> None:
    def turn(request: ModelRequest) -> str:
        assert request.prompt == 'something else'
        return ''

    with pytest.raises(AssertionError, match='something else'), OpenAIServer([turn]) as server:  # noqa: PT012  (the block's end raises)
        status, _ = post(server, '/responses', {'input': 'x'})
        assert status == 500


def test_the_block_s_own_error_is_not_replaced_by_the_script_s() -> None:
    def turn(request: ModelRequest) -> str:
        raise ValueError(request.api)

    with pytest.raises(LookupError) as caught, OpenAIServer([turn]) as server:  # noqa: PT012  (as above)
        post(server, '/responses', {'input': 'x'})
        raise LookupError

    assert caught.value.__notes__ == [
        'The script of the OpenAIServer failed, ValueError: responses'
    ]


def test_a_failed_test_in_the_script_reaches_the_client_and_the_test() -> None:
    def turn(request: ModelRequest) -> str:
        pytest.fail(f'asked for {request.prompt}')

    with pytest.raises(pytest.fail.Exception), OpenAIServer([turn]) as server:  # noqa: PT012  (as above)
        status, body = post(server, '/responses', {'input': 'x'})
        assert (status, 'asked for x' in body) == (500, True)


CIRCLE: dict[str, object] = {}
CIRCLE['again'] = CIRCLE


@pytest.mark.parametrize(
    ('turn', 'message'),
    [
        (5, 'is 5. A turn is a text, a list of calls such as'),
        (None, 'is None. A turn is'),
        (b'Done.', "is b'Done.'. A turn is"),
        ({'command': 'ls'}, "is {'command': 'ls'}. A turn is"),
        (LS, "is ('run_command', {'command': 'ls'}), a call outside a list. A turn is"),
        (
            ToolCall('ls'),
            "is ToolCall(name='ls', arguments={}, call_id=None), a call outside a list. A",
        ),
        (
            Failure('500'),
            "is Failure(status='500', message='The scripted model failed.', retry=False). A turn",
        ),
        (Hang(5), 'is Hang(after=5). A turn is'),
        (ModelTurn(5), 'is ModelTurn(text=5, calls=()). A turn is'),
        (ModelTurn(calls='ls'), "is ModelTurn(text='', calls='ls'). A turn is"),
        ([None], ', call 1, is None. A call is a ToolCall, (name, arguments) or'),
        ([LS, 'ls'], ", call 2, is 'ls'. A call is"),
        ([('ls', ['a'])], ", call 1, is ('ls', ['a']). A call is"),
        ([(5, {})], ', call 1, is (5, {}). A call is'),
        ([('ls', {}, 5)], ", call 1, is ('ls', {}, 5). A call is"),
        ([('ls', {}, 'a', 'b')], ", call 1, is ('ls', {}, 'a', 'b'). A call is"),
        (
            ModelTurn('', [('t', {'a': {1}})]),
            ", call 1, has the arguments {'a': {1}}, which can't be JSON: Object of type set is not",
        ),
        ([('t', CIRCLE)], "{...}}}}}}}, which can't be JSON: Circular reference"),
    ],
)
def test_a_turn_that_cannot_be_is_named_before_any_request_and_to_the_client(
    turn: Any, message: str
) -> None:
    with pytest.raises(TypeError) as early:
        OpenAIServer(['Done.', turn])
    with pytest.raises(TypeError) as late, OpenAIServer(lambda _: turn) as server:  # noqa: PT012  (as above)
        status, body = post(server, '/responses', {'input': 'x'})
        assert status == 500
        assert json.loads(body)['error']['message'].startswith('The script failed, TypeError: The')

    assert str(early.value).startswith('Turn 2')
    assert message in str(early.value)
    assert str(late.value) == str(early.value).replace('Turn 2', 'The turn that the function made')


@pytest.mark.parametrize('script', ['hello', b'hello', None, 5, iter(['Done.']), {'Done.'}])
def test_a_script_that_cannot_be_is_refused(script: Any) -> None:
    with pytest.raises(TypeError, match=r'The script is .*\. A script is a list of turns, as in '):
        OpenAIServer(script)


def test_it_says_how_many_turns_nobody_took() -> None:
    with OpenAIServer(['One.', 'Two.']) as server:
        before = server.turns_left
        chat(server, USER)

    assert (before, server.turns_left) == (2, 1)
    assert OpenAIServer(lambda _: 'Done.').turns_left == 0


# Endings


def test_it_serves_one_block() -> None:
    with OpenAIServer(['Done.']) as server:
        for _ in range(2):
            with pytest.raises(RuntimeError, match='serves one `with` block'):
                server.__enter__()
        chat(server, USER)
    with pytest.raises(RuntimeError, match='make another'):
        server.__enter__()


def test_a_request_that_cannot_be_read_is_answered_and_fails_the_test() -> None:
    with pytest.raises(KeyError, match='tool_call_id'), OpenAIServer(['Done.']) as server:  # noqa: PT012  (as above)
        body = {'messages': [{'role': 'tool', 'content': 'of no call'}]}
        status, text = post(server, '/chat/completions', body)
        assert (status, 'KeyError' in text) == (500, True)


def test_a_client_may_go_away_at_any_time() -> None:
    asked, gone = threading.Event(), threading.Event()

    def turn(request: ModelRequest) -> str:
        asked.set()
        gone.wait(5)
        return request.prompt * 1_000_000  # more than the system keeps for a connection

    with OpenAIServer(turn) as server:
        url = urlsplit(server.base_url)
        with closing(http.client.HTTPConnection(str(url.hostname), url.port)) as connection:
            connection.request('POST', '/v1/responses', '{"input": "0123456789"}')
            assert asked.wait(5)
        gone.set()

    assert server.requests[0].prompt == '0123456789'


@pytest.mark.parametrize('stream', [False, True])
@pytest.mark.parametrize('path', ['/chat/completions', '/responses'])
def test_a_hanging_model_ends_when_the_client_goes(path: str, stream: bool) -> None:  # noqa: FBT001
    body = {'messages': [USER], 'input': [USER], 'stream': stream}
    with OpenAIServer([Hang('Well, '), 'Next.']) as server:
        url = urlsplit(server.base_url)
        with closing(http.client.HTTPConnection(str(url.hostname), url.port)) as connection:
            connection.request('POST', url.path + path, json.dumps(body))
            assert server.hung.wait(5)
            if stream:
                seen = connection.getresponse().read1().decode()
                assert 'finish_reason": "stop"' not in seen
                assert 'response.completed' not in seen
        for _ in range(500):
            if not server.hung.is_set():
                break
            threading.Event().wait(0.01)

        assert not server.hung.is_set()
        assert 'Next.' in post(server, path, body)[1]


def test_leaving_the_block_ends_everything() -> None:
    before = threading.active_count()
    with OpenAIServer([Hang()]) as server:
        url = urlsplit(server.base_url)
        silent = http.client.HTTPConnection(str(url.hostname), url.port)
        silent.connect()
        waiting = http.client.HTTPConnection(str(url.hostname), url.port)
        waiting.request('POST', '/v1/responses', '{"input": "x"}')
        assert server.hung.wait(5)

    assert threading.active_count() == before
    for connection in (silent, waiting):
        assert connection.sock.recv(1) == b''
        connection.close()
    with pytest.raises(OSError, match='refused'):
        silent.connect()
    silent.close()


def test_clients_at_once_each_get_an_answer() -> None:
    def turn(request: ModelRequest) -> str:
        meeting.wait(5)  # none is answered before all have asked
        return request.prompt

    answers: list[str] = []
    meeting = threading.Barrier(4)
    with OpenAIServer(turn) as server:
        clients = [
            threading.Thread(
                target=lambda number: answers.append(
                    respond(server, f'{number}')['output'][0]['content'][0]['text']
                ),
                args=(number,),
            )
            for number in range(4)
        ]
        for client in clients:
            client.start()
        for client in clients:
            client.join()

    assert sorted(answers) == ['0', '1', '2', '3']


# What the real server would refuse


def call(call_id: str) -> dict[str, Any]:
    return {'type': 'function_call', 'call_id': call_id, 'name': 'n', 'arguments': '{}'}


def result(call_id: str, output: str = '') -> dict[str, Any]:
    return {'type': 'function_call_output', 'call_id': call_id, 'output': output}


def tools(*names: str, schema: dict[str, Any] | None = None, **more: object) -> dict[str, Any]:
    schema = schema or {'type': 'object', 'properties': {'a': {}}, 'required': ['a']}
    return {
        'input': 'x',
        'tools': [{'type': 'function', 'name': n, 'parameters': schema, **more} for n in names],
    }


@pytest.mark.parametrize(
    ('body', 'reason'),
    [
        ('', 'The body is not JSON: Expecting value: line 1 column 1 (char 0).'),
        ('[]', 'The body is not a JSON object.'),
        ({'input': [call('a')]}, "No tool output found for function calls ['a']."),
        ({'input': [result('a')]}, "No tool call found for function call outputs ['a']."),
        ({'input': 'x', 'previous_response_id': 'r'}, "Previous response with id 'r' not found."),
        (tools('run command'), "Invalid tool name 'run command': expected [a-zA-Z0-9_-]{1,64}."),
        (tools('t', 't'), 'Tool names must be unique.'),
        (
            tools('t', schema={'type': 'string'}),
            'Invalid schema for function \'t\': its type must be "object".',
        ),
        (
            tools('t', strict=True),
            "Invalid schema for function 't': strict needs additionalProperties: false and every property in required.",
        ),
    ],
)
def test_refuses_what_the_real_server_refuses(body: object, reason: str) -> None:
    with OpenAIServer(['Done.']) as server:
        assert refusal(server, '/responses', body) == reason
        assert server.requests == ()


def test_a_tool_without_parameters_is_fine() -> None:
    with OpenAIServer(['Done.']) as server:
        respond(server, 'x', tools=[{'type': 'function', 'name': 't'}])

    assert server.requests[0].tools == {'t': {}}


def test_unknown_paths_are_not_found() -> None:
    with OpenAIServer([]) as server:
        url = urlsplit(server.base_url)
        with closing(http.client.HTTPConnection(str(url.hostname), url.port)) as connection:
            connection.request('GET', '/v1/models')
            assert connection.getresponse().status == 404
        assert post(server, '/embeddings', {})[0] == 404
