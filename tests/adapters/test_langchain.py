"""LangChain: the contract, and what only this framework has."""

import asyncio
import copy
import os
import pickle
import subprocess
import sys
import uuid
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest
from langchain.agents import AgentState, create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware, wrap_tool_call
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.runnables import RunnableConfig, RunnableLambda
from langchain_core.tools import BaseTool, tool
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import GraphRecursionError
from langgraph.graph import END, START, StateGraph
from langgraph.prebuilt import ToolNode, ToolRuntime
from langgraph.types import Command
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from anyshell import OptionError, ShellSession
from anyshell.testing import AdapterContract, ModelRequest, OpenAIServer, Paused, Said
from langchain_anyshell import ShellToolkit, runs

TURNS: RunnableConfig = {'recursion_limit': 99}
NAP = f'sleep 42{os.getpid()}.5'


def at_least(package: str, wanted: str) -> bool:
    return [int(part) for part in version(package).split('.')[:3]] >= [
        int(part) for part in wanted.split('.')
    ]


HAS_WHEN = pytest.mark.skipif(not at_least('langchain', '1.3.4'), reason='`when` came with 1.3.4')
HAS_DELTAS = pytest.mark.skipif(
    not hasattr(ToolRuntime, 'emit_output_delta'), reason='needs langgraph 1.2.11'
)


def running(command: str) -> bool:
    for process in psutil.process_iter():
        try:
            if command in ' '.join(process.cmdline()):
                return True
        except psutil.Error:  # it has gone meanwhile
            continue
    return False


def model(base_url: str, **settings: Any) -> ChatOpenAI:
    if 'stream_chunk_timeout' in ChatOpenAI.model_fields:
        # With its own limit it waits for a chunk in a task that closing the stream does not reach.
        settings = {'stream_chunk_timeout': None, **settings}
    return ChatOpenAI(model='any', base_url=base_url, api_key='any', max_retries=0, **settings)  # pyright: ignore[reportArgumentType]


def asked(prompt: str) -> dict[str, Any]:
    return {'messages': [('user', prompt)]}


def run(command: str, **arguments: object) -> tuple[str, dict[str, object]]:
    return 'run_command', {'command': command, **arguments}


def start(command: str = NAP) -> tuple[str, dict[str, object]]:
    return 'start_command', {'command': command}


def calls(*made: tuple[str, dict[str, Any]]) -> AIMessage:
    """The message of a model that calls tools."""
    return AIMessage(
        '',
        tool_calls=[
            {'name': name, 'args': arguments, 'id': f'call_{number}', 'type': 'tool_call'}
            for number, (name, arguments) in enumerate(made)
        ],
    )


def results(answer: dict[str, Any]) -> list[ToolMessage]:
    return [message for message in answer['messages'] if isinstance(message, ToolMessage)]


def texts(answer: dict[str, Any]) -> list[str]:
    return [str(message.content) for message in results(answer)]


def files(path: Path) -> list[str]:
    return sorted(found.name for found in path.iterdir())


async def answer_of(agent: Any, way: str, config: RunnableConfig = TURNS) -> Any:
    """Run an agent; `invoke` blocks the loop that runs here, as it does in a notebook."""
    if way == 'invoke':
        return agent.invoke(asked('Go.'), config)
    return await agent.ainvoke(asked('Go.'), config)


def thread() -> RunnableConfig:
    return {'configurable': {'thread_id': str(uuid.uuid4())}}


@pytest.fixture(autouse=True)
def _nothing_is_left() -> Iterator[None]:
    yield

    assert not runs._runs
    assert not runs._fresh
    assert not runs._closing
    assert not running(NAP)


class TestContract(AdapterContract):
    def agent(self, base_url: str, **keywords: Any) -> Any:
        # Questions need a checkpointer, and that a thread: all other rules do without.
        saver = InMemorySaver() if keywords.get('ask_commands') else None
        tools = ShellToolkit(**keywords).get_tools()
        return create_agent(model(base_url), tools, checkpointer=saver)

    async def run(self, agent: Any, prompt: str) -> str:
        config = {**TURNS, **thread()} if agent.checkpointer else TURNS
        answer = await agent.ainvoke(asked(prompt), config)
        return answer['messages'][-1].text

    def run_sync(self, agent: Any, prompt: str) -> str:
        return agent.invoke(asked(prompt), TURNS)['messages'][-1].text

    async def ask(self, agent: Any, prompt: str) -> Paused:
        config = thread()
        return self._paused(agent, config, await agent.ainvoke(asked(prompt), config))

    async def answer(self, paused: Paused, said: Sequence[Said]) -> Paused:
        agent, config, questions = paused.state
        resume = {
            question.id: answers(
                {'type': 'reject', 'message': one.message}
                if not one.yes
                else APPROVE
                if one.command is None
                else edit(one.command)
            )
            for question, one in zip(questions, said, strict=True)
        }
        return self._paused(agent, config, await agent.ainvoke(Command(resume=resume), config))

    def _paused(self, agent: Any, config: RunnableConfig, answer: dict[str, Any]) -> Paused:
        questions = answer.get('__interrupt__', ())
        return Paused((agent, config, questions), [question.value for question in questions])

    async def stream(self, agent: Any, prompt: str) -> AsyncGenerator[object]:
        async with aclosing(agent.astream(asked(prompt), TURNS, stream_mode='messages')) as events:
            async for event in events:
                yield event


# -- OpenAI's two APIs, plain and streamed; both ways to run


@pytest.mark.parametrize('way', ['invoke', 'ainvoke', 'stream', 'astream'])
@pytest.mark.parametrize('api', ['chat', 'responses'])
async def test_main_job_works_over_real_http(tmp_path: Path, api: str, way: str) -> None:
    script = [
        [run('rm x')],
        [run('echo out; exit 3')],
        [start()],
        [('check_command', {'command_id': 'j1'})],
        'Done.',
    ]
    with OpenAIServer(script) as server:
        agent = create_agent(
            model(server.base_url, use_responses_api=api == 'responses'),
            ShellToolkit(cwd=tmp_path).get_tools(),
        )
        match way:
            case 'invoke' | 'ainvoke':
                await answer_of(agent, way)
            case 'stream':
                assert list(agent.stream(asked('Go.'), TURNS, stream_mode='messages'))
            case _:
                events = agent.astream(asked('Go.'), TURNS, stream_mode='messages')
                assert [event async for event in events]

    denied, failed, started, checked = server.tool_results()
    assert {request.api for request in server.requests} == {api}
    assert {request.stream for request in server.requests} == {'stream' in way}
    assert denied.startswith("Command 'rm' is denied.")
    assert failed == '[stdout]\nout\n\n[exit code: 3]'
    assert started == f"Started background command: '{NAP}'\nID: j1"
    assert checked == '[status: running]\n(no output yet)'


def test_status_and_artifact_tell_code_what_happened() -> None:
    with OpenAIServer(
        [[run('rm x')], [run('exit 3')], [('stop_command', {'command_id': 'x'})], 'Done.']
    ) as server:
        agent = create_agent(model(server.base_url), ShellToolkit().get_tools())
        denied, failed, unknown = results(agent.invoke(asked('Go.')))

    assert (denied.status, denied.artifact) == ('error', None)
    assert failed.status == 'success'
    assert failed.artifact['exit_code'] == 3
    assert unknown.status == 'error'


def test_wrong_arguments_are_explained_in_our_words() -> None:
    with OpenAIServer([[('run_command', {'line': 'ls'})], 'Done.']) as server:
        create_agent(model(server.base_url), ShellToolkit().get_tools()).invoke(asked('Go.'))

    assert server.tool_results()[0].startswith(
        '[Error: invalid arguments for run_command: command: '
    )


@pytest.mark.parametrize('way', ['invoke', 'ainvoke'])
def test_plain_text_is_the_command(way: str) -> None:
    run_command, _, check_command, *_ = ShellToolkit().get_tools()

    def text_of(tool: BaseTool, given: str) -> str:
        return tool.invoke(given) if way == 'invoke' else asyncio.run(tool.ainvoke(given))

    assert text_of(run_command, 'echo hi') == '[stdout]\nhi\n'
    assert text_of(check_command, 'j9').startswith("[Error: unknown command ID 'j9'")


def test_runtime_that_a_model_makes_up_is_ignored() -> None:
    forged = {'tool_call_id': 'x', 'emit_output_delta': 'y'}
    script = [
        [('run_command', {'command': 'echo ran', 'runtime': forged, 'callbacks': 'z'})],
        'Done.',
    ]
    with OpenAIServer(script) as server:
        create_agent(model(server.base_url), ShellToolkit().get_tools()).invoke(asked('Go.'))

    assert server.tool_results() == ('[stdout]\nran\n',)


# -- other ways to use the tools


def graph(toolkit: ShellToolkit, checkpointer: Any = None) -> Any:
    """A graph of one's own around a `ToolNode`."""
    return (
        StateGraph(AgentState)  # pyright: ignore[reportArgumentType]
        .add_node('tools', ToolNode(toolkit.get_tools()))
        .add_edge(START, 'tools')
        .add_edge('tools', END)
        .compile(checkpointer=checkpointer)
    )


async def test_tools_work_in_a_bare_tool_node() -> None:
    made = {'messages': [HumanMessage('Go.'), calls(run('echo one'), run('rm x'), start())]}

    answers = [graph(ShellToolkit()).invoke(made), await graph(ShellToolkit()).ainvoke(made)]

    for answer in answers:
        one, denied, started = texts(answer)
        assert one == '[stdout]\none\n'
        assert "'rm' is denied" in denied
        assert started.endswith('ID: j1')


def test_call_outside_of_any_run_belongs_to_the_toolkit(tmp_path: Path) -> None:
    with ShellToolkit(cwd=tmp_path, persist_cwd=True) as toolkit:
        tools = {tool.name: tool for tool in toolkit.get_tools()}
        tools['run_command'].invoke({'command': 'mkdir below; cd below'})
        tools['start_command'].invoke({'command': NAP})
        here = tools['run_command'].invoke({'command': 'pwd'})
        status = asyncio.run(tools['check_command'].ainvoke({'command_id': 'j1'}))
        assert running(NAP)
    late = tools['run_command'].invoke({'command': 'echo late'})

    assert here == f'[stdout]\n{tmp_path}/below\n'
    assert status == '[status: running]\n(no output yet)'
    assert 'closed' in late


def test_langchain_core_alone_is_enough() -> None:
    program = """
import sys
class Nothing:
    def find_spec(self, name, path=None, target=None):
        if name.split('.')[0] in {'langchain', 'langgraph', 'langchain_openai'}:
            raise ImportError(name)
sys.meta_path.insert(0, Nothing())
from langchain_anyshell import ShellToolkit
with ShellToolkit(ask_commands=['touch']) as toolkit:
    run_command = toolkit.get_tools()[0]
    print(run_command.invoke({'command': 'echo ran'}))
    print(run_command.invoke({'command': 'touch x'}))
"""
    done = subprocess.run(
        [sys.executable, '-c', program], capture_output=True, text=True, check=True, timeout=60
    )

    assert done.stdout.startswith('[stdout]\nran\n')
    assert 'Nobody is there to approve it' in done.stdout


def test_all_of_one_outermost_run_share_a_session(tmp_path: Path) -> None:
    toolkit = ShellToolkit(cwd=tmp_path, persist_cwd=True)
    first, second = ({'messages': [calls(call)]} for call in (run('mkdir a; cd a'), run('pwd')))
    node = graph(toolkit)

    def both(_: object) -> list[str]:
        return [*texts(node.invoke(first)), *texts(node.invoke(second))]

    assert RunnableLambda(both).invoke(None)[1] == f'[stdout]\n{tmp_path}/a\n'
    assert texts(node.invoke(second)) == [f'[stdout]\n{tmp_path}\n']


def test_copies_of_tools_and_of_a_toolkit_work_like_the_first(tmp_path: Path) -> None:
    toolkit = ShellToolkit(cwd=tmp_path, persist_cwd=True)
    pickled = pickle.loads(pickle.dumps(toolkit))  # noqa: S301  (our own bytes)
    tools = [
        copy.deepcopy(toolkit.get_tools()),
        copy.deepcopy(toolkit).get_tools(),
        pickled.get_tools(),
    ]
    with OpenAIServer([[start()], [run('pwd')], 'Done.'] * 3) as server:
        for copied in tools:
            create_agent(model(server.base_url), copied).invoke(asked('Go.'))

    started, here = f"Started background command: '{NAP}'\nID: j1", f'[stdout]\n{tmp_path}\n'
    assert [tuple(request.tool_results.values()) for request in server.requests[2::3]] == [
        (started, here)
    ] * 3


def test_setting_that_is_assigned_is_refused() -> None:
    with pytest.raises(ValueError, match='denied_commands'):
        ShellToolkit().denied_commands = ['ls']  # type: ignore[attr-defined] - that is the mistake


def test_session_takes_no_settings_beside_it() -> None:
    with ShellSession() as session, pytest.raises(OptionError, match='without persist_cwd'):
        ShellToolkit(session=session, persist_cwd=True)


# -- a person is asked


def answers(*decisions: dict[str, Any]) -> dict[str, Any]:
    """What LangChain's own human-in-the-loop takes."""
    return {'decisions': list(decisions)}


APPROVE = {'type': 'approve'}


def edit(command: str, name: str = 'run_command') -> dict[str, Any]:
    return {'type': 'edit', 'edited_action': {'name': name, 'args': {'command': command}}}


def asking(base_url: str, cwd: Path, saver: Any = None, **options: Any) -> Any:
    toolkit = ShellToolkit(cwd=cwd, ask_commands=['touch', 'mv'], **options)
    return create_agent(model(base_url), toolkit.get_tools(), checkpointer=saver or InMemorySaver())


def test_question_has_the_shape_of_langchains_own(tmp_path: Path) -> None:
    with OpenAIServer([[run('touch it')]]) as server:
        paused = asking(server.base_url, tmp_path).invoke(asked('Go.'), thread())

    (question,) = paused['__interrupt__']
    assert question.value['action_requests'] == [
        {
            'name': 'run_command',
            'args': {'command': 'touch it'},
            'description': question.value['reason'],
        }
    ]
    assert question.value['review_configs'] == [
        {'action_name': 'run_command', 'allowed_decisions': ['approve', 'edit', 'reject']}
    ]


@pytest.mark.parametrize(
    ('answer', 'text', 'made'),
    [
        (True, '(no output)', ['it']),
        (answers(APPROVE), '(no output)', ['it']),
        (
            answers({'type': 'reject', 'message': 'Not today.'}),
            'A person denied this command: Not today.\nIt has not run; ask before you try it another way.',
            [],
        ),
        (
            answers({'type': 'reject'}),
            'A person denied this command.\nIt has not run; ask before you try it another way.',
            [],
        ),
        (
            answers(edit('touch other')),
            "[A person changed the command; this ran: 'touch other']\n(no output)",
            ['other'],
        ),
        (answers(edit('rm it')), "Command 'rm' is denied.", []),
        (answers(edit('touch it', 'start_command')), 'A person denied this command.', []),
        (APPROVE, '(no output)', ['it']),  # as LangChain's `per_call` takes it
        # A yes is not guessed.
        ('yes', 'A person denied this command.', []),
        (1, 'A person denied this command.', []),
        ({'approved': True}, 'A person denied this command.', []),
        (answers(APPROVE, APPROVE), 'A person denied this command.', []),
    ],
)
def test_answer_of_a_person_decides(
    tmp_path: Path, answer: Any, text: str, made: list[str]
) -> None:
    config = thread()
    with OpenAIServer([[run('touch it')], 'Done.']) as server:
        agent = asking(server.base_url, tmp_path)
        agent.invoke(asked('Go.'), config)
        agent.invoke(Command(resume=answer), config)

    assert server.tool_results()[0].startswith(text)
    assert files(tmp_path) == made


def test_question_outlives_the_process_that_asked(tmp_path: Path) -> None:
    config, saver = thread(), InMemorySaver()
    with OpenAIServer([[run('touch it')], [run('ls')], 'Done.']) as server:
        asking(server.base_url, tmp_path, saver).invoke(asked('Go.'), config)
        # Another toolkit and another agent, as in another process; the saver keeps bytes, not objects.
        answer = asking(server.base_url, tmp_path, saver).invoke(Command(resume=True), config)

    assert server.tool_results() == ('(no output)', '[stdout]\nit\n')
    artifacts = [message.artifact for message in results(answer)]
    assert [artifact['exit_code'] for artifact in artifacts] == [0, 0]
    assert {type(artifact) for artifact in artifacts} == {dict}


def test_outside_of_a_graph_nobody_is_there_to_ask(tmp_path: Path) -> None:
    with ShellToolkit(cwd=tmp_path, ask_commands=['touch']) as toolkit:
        text = toolkit.get_tools()[0].invoke({'command': 'touch it'})

    assert text.endswith('Nobody is there to approve it, so it is denied; do it another way.')
    assert files(tmp_path) == []


def test_pause_that_nobody_ends_ends_with_the_toolkit(tmp_path: Path) -> None:
    with OpenAIServer([[start()], [run('touch it')]]) as server:
        toolkit = ShellToolkit(cwd=tmp_path, ask_commands=['touch'])
        agent = create_agent(
            model(server.base_url), toolkit.get_tools(), checkpointer=InMemorySaver()
        )
        with toolkit:
            agent.invoke(asked('Go.'), thread())
            assert running(NAP)

    assert not running(NAP)


def test_pause_without_a_thread_is_an_end(tmp_path: Path) -> None:
    with OpenAIServer([[start()], [run('touch it')]]) as server:
        toolkit = ShellToolkit(cwd=tmp_path, ask_commands=['touch'])
        paused = create_agent(model(server.base_url), toolkit.get_tools()).invoke(asked('Go.'))

    assert '__interrupt__' in paused
    assert not running(NAP)


async def test_stream_that_is_closed_at_the_question_is_a_pause(tmp_path: Path) -> None:
    config = thread()
    with OpenAIServer([[start()], [run('touch it')], [run('ls')], 'Done.']) as server:
        agent = asking(server.base_url, tmp_path)
        async with aclosing(agent.astream(asked('Go.'), config)) as events:
            async for event in events:
                if '__interrupt__' in event:
                    break
        assert running(NAP)
        await agent.ainvoke(Command(resume=True), config)

    assert server.tool_results()[2] == '[stdout]\nit\n'


@HAS_WHEN
@pytest.mark.parametrize('mode', ['batched', 'per_call'])
async def test_langchains_own_middleware_asks_instead(tmp_path: Path, mode: str) -> None:
    if mode == 'per_call' and not at_least('langchain', '1.4.10'):
        pytest.skip('per_call came with langchain 1.4.10')
    config = thread()
    toolkit = ShellToolkit(cwd=tmp_path, ask_commands=['touch', 'mv'])
    when = {'allowed_decisions': ['approve', 'edit', 'reject'], 'when': toolkit.needs_approval}
    modes = {} if mode == 'batched' else {'interrupt_mode': mode}
    middleware = HumanInTheLoopMiddleware({'run_command': when}, **modes)  # pyright: ignore[reportArgumentType]
    script = [[start()], [run('touch a'), run('echo free'), run('touch b'), run('rm a')], 'Done.']
    with OpenAIServer(script) as server:
        agent = create_agent(
            model(server.base_url),
            toolkit.get_tools(),
            middleware=[middleware],
            checkpointer=InMemorySaver(),
        )
        paused = await agent.ainvoke(asked('Go.'), config)
        assert running(NAP)
        if mode == 'batched':
            resume: Any = answers(APPROVE, edit('rm -f a'))
        else:
            first, second = paused['__interrupt__']
            resume = {first.id: APPROVE, second.id: edit('rm -f a')}
        final = await agent.ainvoke(Command(resume=resume), config)

    assert '__interrupt__' not in final  # nothing is asked twice
    _, touched, free, edited, denied = texts(final)
    assert touched == '(no output)'
    assert free == '[stdout]\nfree\n'
    assert "Command 'rm' is denied." in edited  # also what a reviewer writes
    assert "Command 'rm' is denied." in denied
    assert files(tmp_path) == ['a']


@HAS_WHEN
def test_what_a_person_refused_in_one_thread_is_asked_again_in_another(tmp_path: Path) -> None:
    toolkit = ShellToolkit(cwd=tmp_path, ask_commands=['touch'])
    when = {'allowed_decisions': ['approve', 'reject'], 'when': toolkit.needs_approval}
    call = (
        'run_command',
        {'command': 'touch it'},
        'call_0',
    )  # some providers count from 0 in every answer
    with OpenAIServer([[call], 'Done.', [call]]) as server:
        reviewed, plain = (
            create_agent(
                model(server.base_url),
                toolkit.get_tools(),
                middleware=middleware,
                checkpointer=InMemorySaver(),
            )
            for middleware in ([HumanInTheLoopMiddleware({'run_command': when})], [])  # pyright: ignore[reportArgumentType]
        )
        config = thread()
        reviewed.invoke(asked('Go.'), config)
        reviewed.invoke(Command(resume=answers({'type': 'reject'})), config)
        paused = plain.invoke(asked('Go.'), thread())

    assert '__interrupt__' in paused
    assert files(tmp_path) == []


@HAS_WHEN
@pytest.mark.parametrize('name', ['run_command', 'start_command'])
@pytest.mark.parametrize('reviewed', ['run_command', 'start_command'])
def test_call_that_a_person_refused_approves_no_later_one(
    tmp_path: Path, reviewed: str, name: str
) -> None:
    toolkit = ShellToolkit(cwd=tmp_path, ask_commands=['touch'])
    when = {'allowed_decisions': ['approve', 'reject'], 'when': toolkit.needs_approval}
    first, second = (reviewed, {'command': 'touch one'}), (name, {'command': 'touch two'})
    script = [[(*first, 'call_0')], [(*second, 'call_0')], 'Done.']
    with OpenAIServer(script) as server:
        agent = create_agent(
            model(server.base_url),
            toolkit.get_tools(),
            middleware=[HumanInTheLoopMiddleware({reviewed: when})],  # pyright: ignore[reportArgumentType]
            checkpointer=InMemorySaver(),
        )
        config = thread()
        agent.invoke(asked('Go.'), config)
        again = agent.invoke(Command(resume=answers({'type': 'reject'})), config)

    assert '__interrupt__' in again
    assert files(tmp_path) == []


@HAS_WHEN
def test_what_a_person_writes_in_the_middleware_is_not_asked_about_again(tmp_path: Path) -> None:
    toolkit = ShellToolkit(cwd=tmp_path, ask_commands=['touch'])
    when = {'allowed_decisions': ['edit'], 'when': toolkit.needs_approval}
    with OpenAIServer([[run('touch it')], 'Done.']) as server:
        agent = create_agent(
            model(server.base_url),
            toolkit.get_tools(),
            middleware=[HumanInTheLoopMiddleware({'run_command': when})],  # pyright: ignore[reportArgumentType]
            checkpointer=InMemorySaver(),
        )
        config = thread()
        agent.invoke(asked('Go.'), config)
        final = agent.invoke(Command(resume=answers(edit('touch other'))), config)

    assert '__interrupt__' not in final
    assert files(tmp_path) == ['other']


def test_middleware_has_nothing_to_ask_when_nobody_is_there() -> None:
    class Request:
        runtime = SimpleNamespace(config={})
        state = {'messages': []}  # noqa: RUF012
        tool_call = {'name': 'run_command', 'args': {'command': 'touch it'}, 'id': 'call_1'}  # noqa: RUF012

    assert ShellToolkit(ask_commands=['touch']).needs_approval(Request())
    assert not ShellToolkit(ask_commands=['touch'], on_ask='deny').needs_approval(Request())
    assert not ShellToolkit(ask_commands=['mv']).needs_approval(Request())
    Request.tool_call['args'] = {'command': 'sh', 'stdin': True}
    Request.tool_call['name'] = 'start_command'
    assert ShellToolkit(unresolved='ask').needs_approval(Request())
    Request.tool_call = {'name': 'check_command', 'args': {'command_id': 'j1'}, 'id': 'call_1'}
    assert not ShellToolkit(ask_commands=['touch']).needs_approval(Request())


# -- output while a command runs

COUNT = 'for n in $(seq 300); do echo $n; done; echo last >&2; sleep 0.3; echo end'


@HAS_DELTAS
@pytest.mark.parametrize('way', ['stream', 'astream'])
async def test_output_is_streamed_in_order_while_the_command_runs(way: str) -> None:
    with OpenAIServer([[run(COUNT)], 'Done.']) as server:
        agent = create_agent(model(server.base_url), ShellToolkit().get_tools())
        if way == 'stream':
            events: list[Any] = list(agent.stream(asked('Go.'), stream_mode='tools'))
        else:
            events = [event async for event in agent.astream(asked('Go.'), stream_mode='tools')]

    began, *deltas, ended = events
    assert (began['event'], ended['event']) == ('tool-started', 'tool-finished')
    assert {event['tool_call_id'] for event in events} == {'call_1'}
    pieces = [event['delta'] for event in deltas]
    written = {
        stream: ''.join(piece['text'] for piece in pieces if piece['stream'] == stream)
        for stream in ('stdout', 'stderr')
    }
    assert written['stdout'] == ''.join(f'{n}\n' for n in range(1, 301)) + 'end\n'
    assert written['stderr'] == 'last\n'
    assert 2 <= len(pieces) < 50


# -- endings


@tool
def explode() -> str:
    """Fail."""
    raise ZeroDivisionError


@pytest.mark.parametrize('way', ['invoke', 'ainvoke'])
async def test_recursion_limit_leaves_nothing(way: str) -> None:
    def script(request: ModelRequest) -> Any:
        return [run('true')] if request.calls else [start()]

    with OpenAIServer(script) as server:
        agent = create_agent(model(server.base_url), ShellToolkit().get_tools())
        with pytest.raises(GraphRecursionError):
            await answer_of(agent, way, {'recursion_limit': 6})

    assert not running(NAP)


@pytest.mark.parametrize('way', ['invoke', 'ainvoke'])
async def test_error_of_a_sibling_ends_running_commands(way: str, tmp_path: Path) -> None:
    script = [[start()], [run(f'exec {NAP}', timeout_seconds=2), ('explode', {})], 'Done.']
    with OpenAIServer(script) as server:
        agent = create_agent(
            model(server.base_url), [*ShellToolkit(cwd=tmp_path).get_tools(), explode]
        )
        with pytest.raises(ZeroDivisionError):
            await answer_of(agent, way)

    assert not running(NAP)


def test_synchronous_stream_that_is_closed_early_leaves_nothing() -> None:
    with OpenAIServer([[start()], [run('true')], 'Done.']) as server:
        agent = create_agent(model(server.base_url), ShellToolkit().get_tools())
        events = agent.stream(asked('Go.'), stream_mode='updates')
        for event in events:
            if 'tools' in event:
                break
        assert running(NAP)
        events.close()

    assert not running(NAP)


LEFT_OPEN = """
import sys
from langchain.agents import create_agent
from langchain_openai import ChatOpenAI
from anyshell.testing import OpenAIServer
from langchain_anyshell import ShellToolkit

with OpenAIServer([[('start_command', {'command': sys.argv[1]})], 'Done.']) as server:
    model = ChatOpenAI(model='any', base_url=server.base_url, api_key='any')
    agent = create_agent(model, ShellToolkit().get_tools())
    events = agent.stream({'messages': [('user', 'Go.')]}, stream_mode='updates')
    for event in events:
        if 'tools' in event:
            break
print('end')
"""


def test_synchronous_stream_that_is_still_open_does_not_keep_the_program() -> None:
    ran = subprocess.run(
        [sys.executable, '-c', LEFT_OPEN, NAP],
        capture_output=True,
        text=True,
        timeout=55,
        check=True,
    )

    assert ran.stdout == 'end\n'
    assert not running(NAP)


async def test_time_limit_around_a_run_ends_its_command() -> None:
    with OpenAIServer([[run(f'exec {NAP}')], 'Done.']) as server:
        agent = create_agent(model(server.base_url), ShellToolkit().get_tools())
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1.5):
                await agent.ainvoke(asked('Go.'))
        alive = running(NAP)

    assert not alive


async def test_stubborn_job_does_not_stop_the_loop_when_its_run_ends() -> None:
    script = [[start(f"trap '' TERM; {NAP} & wait; wait")], [run('sleep 0.3')], 'Done.']
    longest = 0.0

    async def beat() -> None:
        nonlocal longest
        loop = asyncio.get_running_loop()
        while True:
            before = loop.time()
            await asyncio.sleep(0.01)
            longest = max(longest, loop.time() - before)

    with OpenAIServer(script) as server:
        agent = create_agent(model(server.base_url), ShellToolkit(kill_grace=3.0).get_tools())
        beating = asyncio.create_task(beat())
        await agent.ainvoke(asked('Go.'))
        beating.cancel()

    assert longest < 2


def test_runs_of_others_are_left_alone(capfd: pytest.CaptureFixture[str]) -> None:
    nested = RunnableLambda(lambda number: number + 1) | RunnableLambda(lambda number: number * 2)

    def fail(_: object) -> None:
        raise ZeroDivisionError

    assert nested.batch([1, 2]) == [4, 6]
    with pytest.raises(ZeroDivisionError):
        (nested | RunnableLambda(fail)).invoke(1)

    assert not runs._runs
    assert not runs._fresh
    assert capfd.readouterr() == ('', '')


async def test_streams_of_events_that_are_closed_at_their_first_leave_little(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(runs, 'FRESH', 3)
    with OpenAIServer([]) as server:
        agent = create_agent(model(server.base_url), ShellToolkit().get_tools())
        for _ in range(9):
            events = agent.astream_events(asked('Go.'), TURNS, version='v2')
            await anext(events)
            await events.aclose()

    assert not runs._runs
    assert len(runs._fresh) <= 3
    runs._fresh.clear()


# -- traces


async def test_span_of_the_tool_shows_facts_and_no_command() -> None:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracer = provider.get_tracer('test')

    @wrap_tool_call  # pyright: ignore[reportArgumentType, reportUntypedFunctionDecorator]
    async def traced(
        request: Any, handler: Any
    ) -> Any:  # what an instrumentation of LangChain does
        with tracer.start_as_current_span('execute_tool'):
            return await handler(request)

    with OpenAIServer([[run('echo secret; exit 3')], [run('rm secret')], 'Done.']) as server:
        agent = create_agent(
            model(server.base_url), ShellToolkit().get_tools(), middleware=[traced]
        )
        await agent.ainvoke(asked('Go.'))

    ran, denied = exporter.get_finished_spans()
    assert ran.attributes is not None
    assert ran.attributes['anyshell.exit_code'] == 3
    assert ran.attributes['anyshell.timed_out'] is False
    assert denied.attributes is not None
    assert denied.attributes['anyshell.rule'] == 'denied_commands'
    assert 'secret' not in ran.to_json() + denied.to_json()
