"""Pydantic AI: the contract, and what only this framework has."""

import asyncio
import copy
import inspect
import json
import os
import pickle
import subprocess
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import Any

import pytest
from openai import AsyncOpenAI
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from pydantic_ai import (
    Agent,
    AgentSpec,
    DeferredToolRequests,
    DeferredToolResults,
    ModelMessagesTypeAdapter,
    RunContext,
    ToolApproved,
    ToolDenied,
)
from pydantic_ai.capabilities import HandleDeferredToolCalls, Instrumentation
from pydantic_ai.messages import ToolReturnPart
from pydantic_ai.models.instrumented import InstrumentationSettings
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.models.test import TestModel
from pydantic_ai.providers.openai import OpenAIProvider

from anyshell import OptionError, Policy, ShellSession
from anyshell.testing import AdapterContract, OpenAIServer, Paused, Said
from pydantic_ai_anyshell import LLM_API_KEY_ENV_PATTERNS, CommandOutput, Shell

NAP = f'sleep 41{os.getpid()}.5'


def running(command: str) -> bool:
    listed = subprocess.run(
        ['ps', '-A', '-o', 'args='], capture_output=True, text=True, check=True, timeout=30
    )
    return command in listed.stdout


def pickled(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))  # noqa: S301  (our own bytes)


def model(base_url: str, kind: Any = OpenAIChatModel) -> Any:
    return kind(
        'gpt-5.2',
        provider=OpenAIProvider(openai_client=AsyncOpenAI(base_url=base_url, api_key='any')),
    )


class TestContract(AdapterContract):
    def agent(self, base_url: str, **keywords: Any) -> Agent:
        shell = Shell(**keywords)
        return Agent(model(base_url), output_type=[str, DeferredToolRequests], capabilities=[shell])

    async def run(self, agent: Agent, prompt: str) -> str:
        return (await agent.run(prompt)).output

    def run_sync(self, agent: Agent, prompt: str) -> str:
        return agent.run_sync(prompt).output

    async def stream(self, agent: Agent, prompt: str) -> AsyncGenerator[object]:
        async with agent.run_stream_events(prompt) as events:
            async for event in events:
                yield event

    async def ask(self, agent: Agent, prompt: str) -> Paused:
        return paused(agent, await agent.run(prompt))

    async def answer(self, paused_: Paused, said: Sequence[Said]) -> Paused:
        agent, result = paused_.state
        answers = {
            call.tool_call_id: ToolDenied(one.message)
            if not one.yes
            else one.command is None or ToolApproved(override_args={'command': one.command})
            for call, one in zip(result.output.approvals, said, strict=True)
        }
        return paused(agent, await resume(agent, result, answers))


def paused(agent: Agent, result: Any) -> Paused:
    """Where a run is; the metadata of a deferred call is what is asked."""
    if not isinstance(result.output, DeferredToolRequests):
        return Paused()
    calls = result.output.approvals
    return Paused((agent, result), [result.output.metadata[call.tool_call_id] for call in calls])


async def resume(agent: Any, result: Any, answers: dict[str, Any]) -> Any:
    """Go on after a pause, with a history that went through JSON."""
    history = ModelMessagesTypeAdapter.validate_json(
        ModelMessagesTypeAdapter.dump_json(result.all_messages())
    )
    return await agent.run(
        message_history=history, deferred_tool_results=DeferredToolResults(approvals=answers)
    )


# -- the wire


@pytest.mark.parametrize('kind', [OpenAIChatModel, OpenAIResponsesModel])
@pytest.mark.parametrize('streamed', [False, True])
async def test_both_apis_of_openai_plain_and_streamed(
    kind: Any, streamed: Any, tmp_path: Path
) -> None:
    with OpenAIServer([[('run_command', {'command': 'echo hi'})], 'It said hi.']) as server:
        agent = Agent(model(server.base_url, kind), capabilities=[Shell(cwd=tmp_path)])
        if streamed:
            async with agent.run_stream('Go.') as result:
                answer = await result.get_output()
        else:
            answer = (await agent.run('Go.')).output

    assert answer == 'It said hi.'
    assert server.tool_results() == ('[stdout]\nhi\n',)
    assert [request.stream for request in server.requests] == [streamed, streamed]


# -- the capability


@pytest.mark.parametrize('given', ['capability', 'toolset'])
async def test_setting_that_is_assigned_holds_from_the_next_run_on(
    tmp_path: Path, given: str
) -> None:
    shell = Shell(cwd=tmp_path)
    turns: list[Any] = [[('run_command', {'command': 'ls'})], 'Done.']
    with OpenAIServer(turns * 3) as server:
        agent = (
            Agent(model(server.base_url), capabilities=[shell])
            if given == 'capability'
            else Agent(model(server.base_url), toolsets=[shell.get_toolset()])
        )
        await agent.run('Go.')
        shell.allowed_commands = ['cat']
        shell.tool_set = 'spec'
        await agent.run('Go.')
        shell.policy = Policy.from_lists(denied_commands=['ls'])
        await agent.run('Go.')
        shell.max_jobs = 0
        with pytest.raises(OptionError, match='max_jobs=0 is not allowed'):
            await agent.run('Go.')

    ran, not_listed, denied = (
        text for request in server.requests[1::2] for text in request.tool_results.values()
    )
    assert ran == '(no output)'
    assert "'ls' is not in the allowed list" in not_listed
    assert "'ls' is denied" in denied
    first, second, third = (request.tools for request in server.requests[::2])
    assert set(first) - set(second) == {'send_input'}
    listed = 'Only these commands are allowed: cat.'
    assert listed in second['run_command']['description']
    assert listed not in third['run_command']['description']


async def test_bare_toolset_ends_its_jobs_too(tmp_path: Path) -> None:
    shell = Shell(cwd=tmp_path)
    with OpenAIServer([[('start_command', {'command': NAP})], 'Done.']) as server:
        agent = Agent(model(server.base_url), toolsets=[shell.get_toolset()])
        await agent.run('Go.')

    assert 'ID: j1' in server.tool_results()[0]
    assert not running(NAP)


async def test_code_that_was_written_for_the_origin_works_with_only_the_import_changed(
    tmp_path: Path,
) -> None:
    shell = Shell(
        cwd=str(tmp_path),
        allowed_commands=[],
        denied_commands=['rm', 'rmdir'],
        denied_operators=['|'],
        default_timeout=30.0,
        max_output_chars=50_000,
        persist_cwd=False,
        allow_interactive=False,
        env=None,
        denied_env_patterns=LLM_API_KEY_ENV_PATTERNS,
    )
    turns = [
        [('run_command', {'command': 'echo out; echo err >&2; exit 3', 'timeout_seconds': 5})],
        [('run_command', {'command': 'true'})],
        [('run_command', {'command': 'echo x | cat'})],
        [('run_command', {'command': 'vi'})],
        [('start_command', {'command': 'exec sleep 60'})],
        [('check_command', {'command_id': 'j1'})],
        [('stop_command', {'command_id': 'j1'})],
        'Done.',
    ]
    with OpenAIServer(turns) as server:
        await Agent(model(server.base_url), capabilities=[shell]).run('Go.')

    ran, silent, operator, interactive, started, checked, stopped = server.tool_results()
    assert ran == '[stdout]\nout\n\n[stderr]\nerr\n\n[exit code: 3]'
    assert silent == '(no output)'
    assert "Shell operator '|' is not allowed." in operator
    assert 'Interactive commands are not allowed.' in interactive
    assert started == "Started background command: 'exec sleep 60'\nID: j1"
    assert checked == '[status: running]\n(no output yet)'
    assert stopped == "[stopped: 'exec sleep 60']\n[exit code: 143]\n(no output)"


async def test_two_shells_in_one_agent_have_names_of_their_own(tmp_path: Path) -> None:
    (tmp_path / 'a').mkdir()
    (tmp_path / 'b').mkdir()
    calls = [('a_run_command', {'command': 'pwd'}), ('b_run_command', {'command': 'pwd'})]
    with OpenAIServer([calls, 'Done.']) as server:
        shells = [Shell(cwd=tmp_path / name, id=name).prefix_tools(name) for name in ('a', 'b')]
        await Agent(model(server.base_url), capabilities=shells).run('Go.')

    assert server.tool_results() == (f'[stdout]\n{tmp_path}/a\n', f'[stdout]\n{tmp_path}/b\n')


@pytest.mark.parametrize('name', ['agent.yaml', 'agent.json'])
async def test_agent_spec_makes_a_shell_with_its_settings(name: str, tmp_path: Path) -> None:
    spec = {
        'capabilities': [{'Shell': {'cwd': str(tmp_path), 'allowed_commands': ['ls', 'cat']}}],
    }
    path = tmp_path / name
    path.write_text(json.dumps(spec))  # which is YAML too
    calls = [('run_command', {'command': 'ls'}), ('run_command', {'command': 'echo'})]
    with OpenAIServer([calls, 'Done.']) as server:
        agent = Agent.from_file(path, model=model(server.base_url), custom_capability_types=[Shell])
        await agent.run('Go.')

    listed, denied = server.tool_results()
    assert listed == f'[stdout]\n{name}\n'
    assert "Command 'echo' is not in the allowed list." in denied


async def test_directory_may_come_by_position_as_in_the_origin(tmp_path: Path) -> None:
    spec = {'capabilities': [{'Shell': str(tmp_path)}]}
    with OpenAIServer([[('run_command', {'command': 'pwd'})], 'Done.']) as server:
        agent = Agent.from_spec(spec, model=model(server.base_url), custom_capability_types=[Shell])
        await agent.run('Go.')

    assert server.tool_results() == (f'[stdout]\n{tmp_path}\n',)
    assert Shell('a', allowed_commands=['ls']) == Shell(cwd='a', allowed_commands=['ls'])
    with pytest.raises(TypeError):
        Shell('a', None)  # pyright: ignore[reportCallIssue]


def test_agent_spec_schema_holds_the_settings() -> None:
    schema = AgentSpec.model_json_schema_with_capabilities([Shell])
    settings = schema['$defs']['spec_params_Shell']['properties']

    assert {'cwd', 'allowed_commands', 'denied_commands', 'default_timeout'} <= set(settings)
    live = {name for name, value in settings.items() if value.get('type') == 'null'}
    assert live == {'on_command', 'policy', 'sandbox', 'session'}


def test_agent_spec_with_a_wrong_setting_is_an_error_that_names_it() -> None:
    with pytest.raises(ValueError, match='max_jobs=0'):
        Agent.from_spec(
            {'capabilities': [{'Shell': {'max_jobs': 0}}]}, custom_capability_types=[Shell]
        )


@pytest.mark.parametrize('copied', [copy.copy, copy.deepcopy, pickled])
async def test_copy_is_a_fresh_capability_with_the_same_settings(
    copied: Any, tmp_path: Path
) -> None:
    shell = Shell(cwd=tmp_path, env={'PATH': os.environ['PATH']}, id='mine')

    again = copied(shell)

    assert again == shell
    await shell.aclose()
    with OpenAIServer([[('start_command', {'command': NAP})], 'Done.']) as server:
        await Agent(model(server.base_url), capabilities=[again]).run('Go.')
    assert server.tool_results()[0].endswith('ID: j1')
    assert not running(NAP)


async def test_copy_of_a_toolset_ends_what_it_started(tmp_path: Path) -> None:
    toolset = copy.deepcopy(Shell(cwd=tmp_path).get_toolset())
    with OpenAIServer([[('start_command', {'command': NAP})], 'Done.']) as server:
        await Agent(model(server.base_url), toolsets=[toolset]).run('Go.')

    assert not running(NAP)


def test_session_takes_no_settings_beside_it() -> None:
    with ShellSession() as session, pytest.raises(OptionError, match='without persist_cwd'):
        Shell(session=session, persist_cwd=True)


async def test_facts_travel_beside_the_text(tmp_path: Path) -> None:
    with OpenAIServer([[('run_command', {'command': 'exit 3'})], 'Done.']) as server:
        agent = Agent(model(server.base_url), capabilities=[Shell(cwd=tmp_path)])
        result = await agent.run('Go.')

    (part,) = (
        part
        for message in result.all_messages()
        for part in message.parts
        if isinstance(part, ToolReturnPart)
    )
    facts = json.loads(json.dumps(part.metadata))
    assert facts['exit_code'] == 3
    assert facts['cwd'] == str(tmp_path)
    assert facts['decision'] == 'allow'


async def test_test_model_can_call_every_tool() -> None:
    # Users' smoke tests call tools with made-up arguments: nothing may abort.
    result = await Agent(TestModel(), capabilities=[Shell(allowed_commands=['a'])]).run('Go.')

    assert 'unknown command ID' in result.output


async def test_broken_json_is_explained_and_does_not_end_the_run(tmp_path: Path) -> None:
    with OpenAIServer(
        [[('run_command', '{"command": ')], [('run_command', {'command': 'echo hi'})], 'Done.']
    ) as server:
        await Agent(model(server.base_url), capabilities=[Shell(cwd=tmp_path)]).run('Go.')

    assert server.tool_results()[1] == '[stdout]\nhi\n'


# -- approvals


def asking(base_url: str, cwd: Path, **settings: Any) -> Agent[None, str | DeferredToolRequests]:
    shell = Shell(cwd=cwd, ask_commands=['touch'], **settings)
    return Agent(model(base_url), output_type=[str, DeferredToolRequests], capabilities=[shell])


async def test_always_approve_is_a_handler_and_deny_still_wins(tmp_path: Path) -> None:
    async def yes(_: RunContext, requests: DeferredToolRequests) -> DeferredToolResults:
        return DeferredToolResults(
            approvals={call.tool_call_id: True for call in requests.approvals}
        )

    calls = [('run_command', {'command': 'touch a'}), ('run_command', {'command': 'touch b; rm a'})]
    with OpenAIServer([[calls[0]], [calls[1]], 'Done.']) as server:
        shell = Shell(cwd=tmp_path, ask_commands=['touch'], denied_commands=['rm'])
        agent = Agent(model(server.base_url), capabilities=[HandleDeferredToolCalls(yes), shell])
        await agent.run('Go.')

    assert os.listdir(tmp_path) == ['a']
    assert "Command 'rm' is denied." in server.tool_results()[1]


async def test_bare_toolset_keeps_its_session_over_a_pause(tmp_path: Path) -> None:
    turns = [
        [('start_command', {'command': NAP})],
        [('run_command', {'command': 'touch x'}, 'c1')],
        [('check_command', {'command_id': 'j1'})],
        'Done.',
    ]
    with OpenAIServer(turns) as server:
        shell = Shell(cwd=tmp_path, ask_commands=['touch'])
        agent = Agent(
            model(server.base_url),
            output_type=[str, DeferredToolRequests],
            toolsets=[shell.get_toolset()],
        )
        paused = await agent.run('Go.')
        await resume(agent, paused, {'c1': True})

    assert server.tool_results()[-1].startswith('[status: running]')
    assert not running(NAP)


async def test_question_outlives_the_process_that_asked(tmp_path: Path) -> None:
    (tmp_path / 'sub').mkdir()
    turns = [
        [('run_command', {'command': 'cd sub'})],
        [('run_command', {'command': 'touch it'}, 'c1')],
        'Done.',
    ]
    with OpenAIServer(turns) as server:
        paused = await asking(server.base_url, tmp_path, persist_cwd=True).run('Go.')
        # Another shell and another agent, as in another process; the history is JSON.
        elsewhere = asking(server.base_url, tmp_path, persist_cwd=True)
        await resume(elsewhere, paused, {'c1': True})

    assert server.tool_results() == ('(no output)', '(no output)')
    assert sorted(os.listdir(tmp_path)) == ['it', 'sub']  # the `cd` stayed behind


async def test_run_that_is_never_resumed_can_be_closed(tmp_path: Path) -> None:
    shell = Shell(cwd=tmp_path, ask_commands=['touch'])
    turns = [[('start_command', {'command': NAP})], [('run_command', {'command': 'touch x'})]]
    with OpenAIServer(turns) as server:
        agent = Agent(
            model(server.base_url), output_type=[str, DeferredToolRequests], capabilities=[shell]
        )
        await agent.run('Go.')
        alive = running(NAP)
        await shell.aclose()

    assert alive
    assert not running(NAP)


# -- live output


async def test_output_is_in_the_event_stream_while_the_command_runs(tmp_path: Path) -> None:
    command = 'echo one; echo two; until test -e go; do sleep 0.02; done; echo three'
    seen: list[str] = []
    with OpenAIServer([[('run_command', {'command': command}, 'c1')], 'Done.']) as server:
        agent = Agent(model(server.base_url), capabilities=[Shell(cwd=tmp_path)])
        async with agent.run_stream_events('Go.') as events:
            async for event in events:
                if isinstance(event, CommandOutput):
                    seen.append(event.text)
                    (tmp_path / 'go').touch()  # so it goes on only when this was seen
                    assert (event.tool_call_id, event.tool_name) == ('c1', 'run_command')
                    assert event.kind == 'anyshell.output'

    assert ''.join(seen) == 'one\ntwo\nthree\n'
    assert 2 <= len(seen) <= 3


async def test_where_no_events_are_taken_the_command_runs_all_the_same(tmp_path: Path) -> None:
    with OpenAIServer([[('run_command', {'command': 'seq 3'})], 'Done.']) as server:
        agent = Agent(model(server.base_url), toolsets=[Shell(cwd=tmp_path).get_toolset()])
        async with agent.run_stream_events('Go.') as events:
            kinds = {type(event).__name__ async for event in events}

    assert 'CommandOutput' not in kinds
    assert server.tool_results() == ('[stdout]\n1\n2\n3\n',)


# -- endings


async def test_run_timeout_leaves_nothing(tmp_path: Path) -> None:
    if 'timeout' not in inspect.signature(Agent.run).parameters:
        pytest.skip('this release has no time limit of a run')
    with OpenAIServer(
        [[('start_command', {'command': NAP})], [('run_command', {'command': NAP})]]
    ) as server:
        agent = Agent(model(server.base_url), capabilities=[Shell(cwd=tmp_path)])
        with pytest.raises(Exception, match=r'(?i)time'):
            await agent.run('Go.', timeout=1)

    assert not running(NAP)


async def test_sibling_tool_that_raises_leaves_nothing(tmp_path: Path) -> None:
    calls = [('run_command', {'command': f'touch begun; {NAP}'}), ('fail', {})]
    with OpenAIServer([calls]) as server:
        agent = Agent(model(server.base_url), capabilities=[Shell(cwd=tmp_path)])

        @agent.tool_plain
        async def fail() -> None:
            while not (tmp_path / 'begun').exists():
                await asyncio.sleep(0.02)
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            await agent.run('Go.')

    assert not running(NAP)


# -- traces


@pytest.mark.parametrize('content', [False, True])
async def test_span_shows_facts_and_the_command_only_with_content(
    content: Any, tmp_path: Path
) -> None:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    settings = InstrumentationSettings(tracer_provider=provider, include_content=content)
    calls = [
        ('run_command', {'command': 'echo secret-word; exit 3'}),
        ('run_command', {'command': 'rm x'}),
    ]
    with OpenAIServer([calls, 'Done.']) as server:
        agent = Agent(
            model(server.base_url),
            capabilities=[
                Shell(cwd=tmp_path, env={'PATH': os.environ['PATH'], 'TOKEN': 'hush'}),
                Instrumentation(settings),
            ],
        )
        await agent.run('Go.')

    spans = [
        dict(span.attributes or {})
        for span in exporter.get_finished_spans()
        if 'run_command' in span.name
    ]
    ran, denied = sorted(spans, key=lambda span: str(span['anyshell.decision']))
    assert (ran['anyshell.exit_code'], ran['anyshell.timed_out'], ran['anyshell.truncated']) == (
        3,
        False,
        False,
    )
    assert float(str(ran['anyshell.duration_seconds'])) > 0
    assert ran['anyshell.output_bytes'] == len('secret-word\n')
    assert (denied['anyshell.decision'], denied['anyshell.rule']) == ('deny', 'denied_commands')
    everything = ' '.join(span.to_json() for span in exporter.get_finished_spans())
    assert ('secret-word' in everything) is content
    assert 'hush' not in everything
