"""Strands: the contract, and what only this framework has."""

import asyncio
import copy
import os
import pickle
import time
from collections.abc import AsyncGenerator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from pathlib import Path
from typing import Any

import opentelemetry.trace
import psutil
import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from strands import Agent, tool
from strands.models.openai import OpenAIModel
from strands.models.openai_responses import OpenAIResponsesModel
from strands.session.file_session_manager import FileSessionManager

from anyshell import LocalSandbox, ShellOptions, ShellSession
from anyshell.testing import AdapterContract, Failure, OpenAIServer, Paused, Said
from strands_anyshell import ShellPlugin

NAP = f'sleep 43{os.getpid()}.5'


def running(command: str) -> bool:
    for process in psutil.process_iter():
        try:
            if command in ' '.join(process.cmdline()):
                return True
        except psutil.Error:  # it has gone meanwhile
            continue
    return False


def pickled(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))  # noqa: S301  (our own bytes)


def files(path: Path) -> list[str]:
    return sorted(found.name for found in path.iterdir())


def model(base_url: str, kind: Any = OpenAIModel) -> Any:
    client = {'base_url': base_url, 'api_key': 'any', 'max_retries': 0}
    return kind(client_args=client, model_id='any')


def agent_of(server: OpenAIServer, plugin: ShellPlugin, **settings: Any) -> Agent:
    settings = {'model': model(server.base_url), 'callback_handler': None, **settings}
    return Agent(plugins=[plugin], **settings)


def run(command: str, **arguments: object) -> tuple[str, dict[str, object]]:
    return 'run_command', {'command': command, **arguments}


def start(command: str = NAP) -> tuple[str, dict[str, object]]:
    return 'start_command', {'command': command}


@pytest.fixture(autouse=True)
def _nothing_is_left() -> Iterator[None]:
    yield

    assert not running(NAP)


class TestContract(AdapterContract):
    """An agent of Strands is one conversation and refuses a second run at the same time: one plugin, an agent a run."""

    def agent(self, base_url: str, **keywords: Any) -> Any:
        plugin = ShellPlugin(**keywords)
        return lambda: Agent(model=model(base_url), plugins=[plugin], callback_handler=None)

    async def run(self, agent: Any, prompt: str) -> str:
        return str(await agent().invoke_async(prompt)).strip()

    def run_sync(self, agent: Any, prompt: str) -> str:
        return str(agent()(prompt)).strip()

    async def stream(self, agent: Any, prompt: str) -> AsyncGenerator[object]:
        async with aclosing(agent().stream_async(prompt)) as events:
            async for event in events:
                yield event

    async def ask(self, agent: Any, prompt: str) -> Paused:
        one = agent()
        return self._paused(one, await one.invoke_async(prompt))

    async def answer(self, paused: Paused, said: Sequence[Said]) -> Paused:
        one, questions = paused.state
        answers = [
            answer_to(
                question,
                {'approved': what.yes, 'message': what.message, 'command': what.command},
            )
            for question, what in zip(questions, said, strict=True)
        ]
        return self._paused(one, await one.invoke_async(answers))

    def _paused(self, agent: Agent, result: Any) -> Paused:
        questions = result.interrupts or ()
        assert (result.stop_reason == 'interrupt') is bool(questions)
        assert {question.name for question in questions} <= {'anyshell'}
        return Paused((agent, questions), [question.reason for question in questions])


# -- OpenAI's two APIs; all ways to run


@pytest.mark.parametrize('way', ['call', 'invoke_async', 'stream_async'])
@pytest.mark.parametrize(
    ('kind', 'api'), [(OpenAIModel, 'chat'), (OpenAIResponsesModel, 'responses')]
)
async def test_main_job_works_over_real_http(tmp_path: Path, kind: Any, api: str, way: str) -> None:
    script = [
        [run('rm x')],
        [run('echo out; exit 3')],
        [start()],
        [('check_command', {'command_id': 'j1'})],
        'Done.',
    ]
    with OpenAIServer(script) as server:
        agent = agent_of(server, ShellPlugin(cwd=tmp_path), model=model(server.base_url, kind))
        match way:
            case 'call':  # blocks the loop that runs here, as it does in a notebook
                agent('Go.')
            case 'invoke_async':
                await agent.invoke_async('Go.')
            case _:
                assert [event async for event in agent.stream_async('Go.')]

    denied, failed, started, checked = server.tool_results()
    assert {request.api for request in server.requests} == {api}
    assert denied.startswith("Command 'rm' is denied.")
    assert failed == '[stdout]\nout\n\n[exit code: 3]'
    assert started == f"Started background command: '{NAP}'\nID: j1"
    assert checked == '[status: running]\n(no output yet)'


def results(agent: Agent) -> list[Any]:
    """What the conversation has as results of tools."""
    return [
        block['toolResult']
        for message in agent.messages
        for block in message['content']
        if 'toolResult' in block
    ]


def test_status_and_text_say_what_is_denied() -> None:
    script = [[run('touch x')], [run('cat x > y')], [run('cat no-such-file')], 'Done.']
    with OpenAIServer(script) as server:
        agent = agent_of(server, ShellPlugin(allowed_commands=['cat'], denied_operators=['>']))
        agent('Go.')

    first, second, third = results(agent)
    assert [result['status'] for result in (first, second, third)] == ['error', 'error', 'success']
    assert first['content'][0]['text'].startswith("Denied. Command 'touch' is not in the allowed")
    assert 'denied' in second['content'][0]['text'].lower()


def test_wrong_arguments_are_explained_in_our_words() -> None:
    script = [
        [('run_command', {'line': 'ls'})],
        [('check_command', {'wait_seconds': 'x'})],
        'Done.',
    ]
    with OpenAIServer(script) as server:
        agent_of(server, ShellPlugin())('Go.')

    first, second = server.tool_results()
    assert first.startswith('[Error: invalid arguments for run_command: command: ')
    assert second.startswith('[Error: invalid arguments for check_command: wait_seconds: ')


def test_agent_that_is_used_again_starts_afresh(tmp_path: Path) -> None:
    script = [[run('mkdir a; cd a')], [start()], 'Done.', [run('pwd')], [run('true')], 'Done.']
    with OpenAIServer(script) as server:
        agent = agent_of(server, ShellPlugin(cwd=tmp_path, persist_cwd=True))
        agent('First.')
        alive = running(NAP)
        agent('Second.')

    assert not alive
    assert server.tool_results()[2] == f'[stdout]\n{tmp_path}\n'


def test_calls_with_the_same_id_in_two_turns_are_two_calls(tmp_path: Path) -> None:
    script = [
        [('start_command', {'command': f'echo {n}; {NAP}'}, 'call_0')] for n in ('one', 'two')
    ]
    with OpenAIServer([*script, 'Done.']) as server:
        agent = agent_of(server, ShellPlugin(cwd=tmp_path))
        agent('Go.')

    assert [result['content'][0]['text'][-2:] for result in results(agent)] == ['j1', 'j2']


def test_direct_call_needs_no_run(tmp_path: Path) -> None:
    with OpenAIServer([]) as server:
        agent = agent_of(server, ShellPlugin(cwd=tmp_path))
        answer = agent.tool.run_command(command='echo direct')

    assert answer['content'] == [{'text': '[stdout]\ndirect\n'}]


def test_several_agents_in_several_threads_share_a_plugin_and_a_sandbox(tmp_path: Path) -> None:
    plugin = ShellPlugin(sandbox=LocalSandbox(cwd=str(tmp_path)), persist_cwd=True)

    def one(name: str) -> str:
        script = [[run(f'mkdir {name}; cd {name}')], [start()], [run('pwd')], 'Done.']
        with OpenAIServer(script) as server:
            agent_of(server, plugin)('Go.')
        return server.tool_results()[2]

    with ThreadPoolExecutor(3) as threads:
        answers = list(threads.map(one, 'abc'))

    assert answers == [f'[stdout]\n{tmp_path}/{name}\n' for name in 'abc']


@pytest.mark.parametrize('copied', [copy.deepcopy, pickled])
def test_copy_of_a_plugin_ends_what_its_own_agents_started(tmp_path: Path, copied: Any) -> None:
    with OpenAIServer([[start()], 'Done.']) as server:
        agent_of(server, copied(ShellPlugin(cwd=tmp_path)))('Go.')

    assert server.tool_results()[0].endswith('ID: j1')
    assert not running(NAP)


def test_plugin_may_be_subclassed_with_tools_of_its_own() -> None:
    class More(ShellPlugin):
        @tool
        def more(self) -> str:
            """Do more."""
            return 'more'

    with OpenAIServer([[('more', {}), run('echo ours')], 'Done.']) as server:
        agent_of(server, More())('Go.')

    assert set(server.tool_results()) == {'more', '[stdout]\nours\n'}


def test_agent_that_is_dropped_takes_its_commands_along(tmp_path: Path) -> None:
    with OpenAIServer([]) as server:
        agent = agent_of(server, ShellPlugin(cwd=tmp_path))
        agent.tool.start_command(command=NAP)
        assert running(NAP)
        del agent

    deadline = time.monotonic() + 10
    while running(NAP) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not running(NAP)


# -- a person is asked


def asking(server: OpenAIServer, cwd: Path, **settings: Any) -> Agent:
    plugin = ShellPlugin(cwd=cwd, ask_commands=['touch', 'mv'], persist_cwd=True)
    return agent_of(server, plugin, **settings)


def answer_to(question: Any, response: Any) -> Any:
    return {'interruptResponse': {'interruptId': question.id, 'response': response}}


@pytest.mark.parametrize(
    ('answer', 'text', 'made'),
    [
        (True, '(no output)', ['it']),
        ({'approved': True}, '(no output)', ['it']),
        ({'approved': True, 'command': 'touch it'}, '(no output)', ['it']),
        (
            {'approved': True, 'command': 'touch other'},
            "[A person changed the command; this ran: 'touch other']\n(no output)",
            ['other'],
        ),
        ({'approved': True, 'command': 'rm it'}, "Command 'rm' is denied.", []),
        ({'approved': True, 'command': 7}, '[Error: invalid arguments for run_command', []),
        (
            {'approved': False, 'message': 'Not today.'},
            'A person denied this command: Not today.\nIt has not run; ask before you try it another way.',
            [],
        ),
        (
            'Not today.',
            'A person denied this command: Not today.\nIt has not run; ask before you try it another way.',
            [],
        ),
        (
            False,
            'A person denied this command.\nIt has not run; ask before you try it another way.',
            [],
        ),
        # A yes is not guessed.
        ('yes', 'A person denied this command: yes', []),
        (1, 'A person denied this command.', []),
        ({'approved': 'yes'}, 'A person denied this command.', []),
        ({'approved': 1}, 'A person denied this command.', []),
        ([True], 'A person denied this command.', []),
    ],
)
def test_answer_of_a_person_decides(
    tmp_path: Path, answer: Any, text: str, made: list[str]
) -> None:
    with OpenAIServer([[run('touch it')], 'Done.']) as server:
        agent = asking(server, tmp_path)
        (question,) = agent('Go.').interrupts or ()
        agent([answer_to(question, answer)])

    assert server.tool_results()[0].startswith(text)
    assert files(tmp_path) == made


def test_several_questions_of_one_turn_are_answered_one_by_one(tmp_path: Path) -> None:
    turn = [run('touch a'), run('touch b'), run('touched=$(ls | wc -l); mkdir free-$touched')]
    with OpenAIServer([turn, 'Done.']) as server:
        agent = asking(server, tmp_path)
        asked = agent('Go.').interrupts or ()
        first, second = sorted(asked, key=lambda question: question.reason['command'])
        still = agent([answer_to(second, response=True)])
        assert [question.id for question in still.interrupts or ()] == [first.id]
        agent([answer_to(first, 'No.')])

    made, touched, denied = sorted(server.tool_results())
    assert (made, touched) == ('(no output)', '(no output)')
    assert denied.startswith('A person denied this command: No.')
    assert files(tmp_path) == ['b', 'free-0']  # what was free to run has run once


@pytest.mark.parametrize('name', ['denied_commands', 'policy'])
def test_setting_that_is_assigned_is_refused(name: str) -> None:
    with pytest.raises(AttributeError, match=f'{name} holds from construction on'):
        setattr(ShellPlugin(), name, ['ls'])


@pytest.mark.parametrize(
    'other',
    [
        ('run_command', {'command': 'touch it; touch other'}),
        ('run_command', {'command': 'touch it', 'workdir': '/'}),
        ('start_command', {'command': 'touch it'}),
        ('start_command', {'command': 'touch it', 'stdin': True}),
    ],
)
def test_always_holds_for_this_very_call(tmp_path: Path, other: Any) -> None:
    script = [
        [run('touch it')],
        [run('touch it')],
        [run('touch it; rm it')],
        [other],
    ]
    with OpenAIServer(script) as server:
        agent = asking(server, tmp_path)
        (question,) = agent('Go.').interrupts or ()
        (asked,) = agent([answer_to(question, {'approved': True, 'always': True})]).interrupts or ()

    assert (asked.reason['tool'], asked.reason['arguments']) == other
    assert server.tool_results()[:2] == ('(no output)', '(no output)')
    assert "'rm' is denied" in server.tool_results()[2]


def test_question_outlives_the_process_that_asked(tmp_path: Path) -> None:
    def agent() -> (
        Agent
    ):  # another plugin and another agent, as in another process; the state is JSON
        kept = FileSessionManager(session_id='one', storage_dir=str(tmp_path / 'kept'))
        return asking(server, tmp_path, session_manager=kept)

    script = [[run('touch it')], [run('touch it')], [run('ls')], 'Done.']
    with OpenAIServer(script) as server:
        (question,) = agent()('Go.').interrupts or ()
        agent()([answer_to(question, {'approved': True, 'always': True})])

    assert server.tool_results()[:2] == ('(no output)', '(no output)')
    assert files(tmp_path) == ['it', 'kept']


def test_direct_call_cannot_ask(tmp_path: Path) -> None:
    with OpenAIServer([]) as server:
        agent = asking(server, tmp_path)
        with pytest.raises(RuntimeError, match='interrupt'):
            agent.tool.run_command(command='touch it')

    assert files(tmp_path) == []


async def test_session_outlives_the_agent_that_asked(tmp_path: Path) -> None:
    options = ShellOptions(cwd=tmp_path, ask_commands=['touch'])
    with OpenAIServer([[start()], [run('touch it')]]) as server:
        async with ShellSession(options) as session:
            agent = agent_of(server, ShellPlugin(session=session))
            paused = await agent.invoke_async('Go.')
            del agent
            assert running(NAP)
            assert (await session.run('pwd')).stdout == f'{tmp_path}\n'

    assert paused.stop_reason == 'interrupt'
    assert not running(NAP)


# -- output while a command runs

COUNT = 'for n in $(seq 300); do echo $n; done; echo last >&2; sleep 0.3; echo end; exit 4'


async def test_output_is_streamed_in_order_while_the_command_runs() -> None:
    with OpenAIServer([[run(COUNT)], 'Done.']) as server:
        agent = agent_of(server, ShellPlugin())
        events = [
            event['tool_stream_event']
            async for event in agent.stream_async('Go.')
            if 'tool_stream_event' in event
        ]

    assert {event['tool_use']['toolUseId'] for event in events} == {'call_1'}
    *pieces, facts, result = [event['data'] for event in events]
    written = {
        stream: ''.join(piece['text'] for piece in pieces if piece['stream'] == stream)
        for stream in ('stdout', 'stderr')
    }
    assert written['stdout'] == ''.join(f'{n}\n' for n in range(1, 301)) + 'end\n'
    assert written['stderr'] == 'last\n'
    assert 2 <= len(pieces) < 50
    assert facts['facts']['exit_code'] == 4
    assert result['status'] == 'success'


async def test_facts_of_a_denial_name_its_rule() -> None:
    with OpenAIServer([[run('rm x')], 'Done.']) as server:
        agent = agent_of(server, ShellPlugin())
        events = [event async for event in agent.stream_async('Go.')]

    data = [event['tool_stream_event']['data'] for event in events if 'tool_stream_event' in event]
    assert data[0]['facts']['rule'] == 'denied_commands'
    assert data[1]['status'] == 'error'


# -- endings


@tool
def explode() -> str:
    """Fail."""
    raise ZeroDivisionError


async def test_agent_that_is_cancelled_ends_its_command_at_once(tmp_path: Path) -> None:
    with OpenAIServer([[start()], [run(f'echo on; touch begun; exec {NAP}')], 'Done.']) as server:
        agent = agent_of(server, ShellPlugin(cwd=tmp_path))
        task = asyncio.create_task(agent.invoke_async('Go.'))
        while 'begun' not in files(tmp_path):
            await asyncio.sleep(0.02)
        before = time.monotonic()
        agent.cancel()
        result = await task

    assert result.stop_reason == 'cancelled'
    assert time.monotonic() - before < 5
    assert not running(NAP)


def test_synchronous_agent_is_cancelled_from_another_thread(tmp_path: Path) -> None:
    with OpenAIServer([[run(f'touch begun; exec {NAP}')], 'Done.']) as server:
        agent = agent_of(server, ShellPlugin(cwd=tmp_path))

        def cancel() -> None:
            while 'begun' not in files(tmp_path):
                time.sleep(0.02)
            agent.cancel()

        with ThreadPoolExecutor(1) as threads:
            threads.submit(cancel)
            result = agent('Go.')

    assert result.stop_reason == 'cancelled'


def test_sibling_that_fails_does_not_matter(tmp_path: Path) -> None:
    with OpenAIServer([[start()], [run('echo fine'), ('explode', {})], 'Done.']) as server:
        agent = agent_of(server, ShellPlugin(cwd=tmp_path), tools=[explode])
        agent('Go.')

    assert server.tool_results()[1] == '[stdout]\nfine\n'


async def test_time_limit_around_a_run_ends_its_command() -> None:
    with OpenAIServer([[run(f'exec {NAP}')], 'Done.']) as server:
        agent = agent_of(server, ShellPlugin())
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1.5):
                await agent.invoke_async('Go.')
        alive = running(NAP)

    assert not alive


def test_model_that_fails_ends_the_jobs_of_a_synchronous_run() -> None:
    with (
        OpenAIServer([[start()], Failure(500)]) as server,
        pytest.raises(Exception, match='failed'),
    ):
        agent_of(server, ShellPlugin())('Go.')

    assert not running(NAP)


# -- traces


@pytest.fixture(scope='module')
def exporter() -> InMemorySpanExporter:
    found = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(found))
    opentelemetry.trace.set_tracer_provider(provider)  # a process has one
    return found


def test_span_of_the_tool_shows_facts_and_no_command(exporter: InMemorySpanExporter) -> None:
    with OpenAIServer([[run('echo secret; exit 3')], [run('rm secret')], 'Done.']) as server:
        agent_of(server, ShellPlugin())('Go.')

    ran, denied = (
        span.attributes or {}
        for span in exporter.get_finished_spans()
        if span.name == 'execute_tool run_command'
    )
    assert ran['anyshell.exit_code'] == 3
    assert ran['anyshell.timed_out'] is False
    assert denied['anyshell.rule'] == 'denied_commands'
    ours = [str(value) for name, value in (*ran.items(), *denied.items()) if 'anyshell' in name]
    assert 'secret' not in ' '.join(ours)
