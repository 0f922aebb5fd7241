"""OpenAI Agents SDK: the contract, and what only this framework has."""

import asyncio
import copy
import dataclasses
import json
import os
import subprocess
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import Any

import agents
import pytest
from agents import (
    Agent,
    ModelBehaviorError,
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
    RunConfig,
    Runner,
    RunState,
    ToolCallOutputItem,
    UserError,
    function_tool,
)
from openai import AsyncOpenAI

from anyshell import OptionError, ShellSession
from anyshell.testing import AdapterContract, OpenAIServer, Paused, Said
from openai_agents_anyshell import CommandOutput, ShellTools

NAP = f'sleep 42{os.getpid()}.5'

agents.set_tracing_disabled(True)


def agent(base_url: str, shell: ShellTools, kind: Any = OpenAIResponsesModel) -> Agent:
    client = AsyncOpenAI(base_url=base_url, api_key='any')
    return Agent(name='Tester', model=kind('gpt-5.2', client), tools=shell.tools())


def running(command: str) -> bool:
    listed = subprocess.run(
        ['ps', '-A', '-o', 'args='], capture_output=True, text=True, check=True, timeout=30
    )
    return command in listed.stdout


async def is_gone(command: str) -> bool:
    """Whether it goes within a second: the SDK returns from a cancelled run before its tools have."""
    for _ in range(20):
        if not running(command):
            return True
        await asyncio.sleep(0.05)
    return False


async def exists(path: Path) -> None:
    while not os.path.exists(path):
        await asyncio.sleep(0.02)


class TestContract(AdapterContract):
    def agent(self, base_url: str, **keywords: Any) -> Any:
        agent(base_url, ShellTools(**keywords))  # what is not allowed is refused here
        return base_url, keywords

    async def run(self, agent_: Any, prompt: str) -> str:
        base_url, keywords = agent_
        async with ShellTools(**keywords) as shell:
            result = await Runner.run(agent(base_url, shell), prompt, max_turns=12)
            return result.final_output

    def run_sync(self, agent_: Any, prompt: str) -> str:
        base_url, keywords = agent_
        with ShellTools(**keywords) as shell:
            return Runner.run_sync(agent(base_url, shell), prompt, max_turns=12).final_output

    async def stream(self, agent_: Any, prompt: str) -> AsyncGenerator[object]:
        base_url, keywords = agent_
        async with ShellTools(**keywords) as shell:
            result = Runner.run_streamed(agent(base_url, shell), prompt, max_turns=12)
            try:
                async for event in result.stream_events():
                    yield event
            finally:
                result.cancel()

    async def ask(self, agent_: Any, prompt: str) -> Paused:
        base_url, keywords = agent_
        shell = ShellTools(**keywords)  # open while the run waits
        return await self._go(shell, agent(base_url, shell), prompt)

    async def answer(self, paused: Paused, said: Sequence[Said]) -> Paused:
        shell, helper, state = paused.state
        for item, one in zip(state.get_interruptions(), said, strict=True):
            if not one.yes:
                state.reject(item, rejection_message=one.message)
                continue
            if one.command is not None:
                shell.edit(item, one.command)
            state.approve(item)
        return await self._go(shell, helper, state)

    def test_answer_is_for_one_call_also_when_ids_repeat(self) -> None:
        """The SDK itself refuses an ID that was answered, and ends the run."""
        with pytest.raises(ModelBehaviorError, match='reused a completed tool call ID'):
            super().test_answer_is_for_one_call_also_when_ids_repeat()
        assert self.files() == []

    async def _go(self, shell: ShellTools, helper: Agent, what: Any) -> Paused:
        result = await Runner.run(helper, what, max_turns=12)
        if not result.interruptions:
            await shell.aclose()
            return Paused()
        state = await through_json(helper, result)
        requests = [shell.request(item) for item in state.get_interruptions()]
        return Paused((shell, helper, state), requests)


async def through_json(helper: Agent, result: Any) -> RunState:
    """The state of a run that waits, as another process gets it."""
    return await RunState.from_json(helper, json.loads(json.dumps(result.to_state().to_json())))


# -- the wire


@pytest.mark.parametrize('kind', [OpenAIChatCompletionsModel, OpenAIResponsesModel])
@pytest.mark.parametrize('streamed', [False, True])
async def test_both_apis_of_openai_plain_and_streamed(
    kind: Any, streamed: Any, tmp_path: Path
) -> None:
    with OpenAIServer([[('run_command', {'command': 'echo hi'})], 'It said hi.']) as server:
        async with ShellTools(cwd=tmp_path) as shell:
            if streamed:
                result: Any = Runner.run_streamed(agent(server.base_url, shell, kind), 'Go.')
                async for _ in result.stream_events():
                    pass
            else:
                result = await Runner.run(agent(server.base_url, shell, kind), 'Go.')

    assert result.final_output == 'It said hi.'
    assert server.tool_results() == ('[stdout]\nhi\n',)
    assert [request.stream for request in server.requests] == [streamed, streamed]


# -- the tools


async def test_block_is_what_bounds_directory_and_jobs(tmp_path: Path) -> None:
    (tmp_path / 'below').mkdir()
    turns = [
        [('run_command', {'command': 'cd below'})],
        [('start_command', {'command': NAP})],
        'Done.',
        [('run_command', {'command': 'pwd'}), ('check_command', {'command_id': 'j1'})],
        'Done.',
    ]
    with OpenAIServer(turns) as server:
        async with ShellTools(cwd=tmp_path, persist_cwd=True) as shell:
            await Runner.run(agent(server.base_url, shell), 'First.')
            alive = running(NAP)
            await Runner.run(agent(server.base_url, shell), 'Second.')

    directory, job = server.tool_results()
    assert alive
    assert directory == f'[stdout]\n{tmp_path}/below\n'
    assert job.startswith('[status: running]')
    assert not running(NAP)


def test_session_takes_no_settings_beside_it() -> None:
    with ShellSession() as session, pytest.raises(OptionError, match='without persist_cwd'):
        ShellTools(session=session, persist_cwd=True)


async def test_copy_of_an_agent_is_in_the_same_block(tmp_path: Path) -> None:
    with OpenAIServer([[('run_command', {'command': 'exit 3'})], 'Done.']) as server:
        async with ShellTools(cwd=tmp_path) as shell:
            one = agent(server.base_url, shell)
            again = dataclasses.replace(one, tools=copy.deepcopy(one.tools))
            result = await Runner.run(again, 'Go.')

    (item,) = (item for item in result.new_items if isinstance(item, ToolCallOutputItem))
    assert item.custom_data is not None
    assert item.custom_data['exit_code'] == 3


@pytest.mark.parametrize('turns', [[['same', 'same'], 'Done.'], [['same'], ['same'], 'Done.']])
async def test_call_that_a_run_repeats_is_carried_out_once_by_the_sdk(
    tmp_path: Path, turns: list[Any]
) -> None:
    call = ('run_command', {'command': 'echo ran >> log'}, 'call_0')
    script = [turn if isinstance(turn, str) else [call for _ in turn] for turn in turns]
    with OpenAIServer(script) as server:
        async with ShellTools(cwd=tmp_path) as shell:
            await Runner.run(agent(server.base_url, shell), 'Go.')

    assert (tmp_path / 'log').read_text() == 'ran\n'


async def test_broken_json_is_explained_and_does_not_end_the_run(tmp_path: Path) -> None:
    turns = [
        [('run_command', '{"command": ')],
        [('run_command', '')],
        [('run_command', {'command': 'echo hi'})],
        'Done.',
    ]
    with OpenAIServer(turns) as server:
        async with ShellTools(cwd=tmp_path) as shell:
            await Runner.run(agent(server.base_url, shell), 'Go.')

    broken, empty, good = server.tool_results()
    assert broken.startswith('[Error: invalid arguments for run_command: ')
    assert empty.startswith('[Error: invalid arguments for run_command: ')
    assert good == '[stdout]\nhi\n'


async def test_facts_travel_beside_the_text_and_through_a_state(tmp_path: Path) -> None:
    calls = [('run_command', {'command': 'exit 3'}), ('run_command', {'command': 'touch x'})]
    with OpenAIServer([calls]) as server:
        async with ShellTools(cwd=tmp_path, ask_commands=['touch']) as shell:
            helper = agent(server.base_url, shell)
            result = await Runner.run(helper, 'Go.')
            text = json.dumps(result.to_state().to_json())
            state = await RunState.from_json(helper, json.loads(text))

    (item,) = (item for item in result.new_items if isinstance(item, ToolCallOutputItem))
    assert item.custom_data is not None
    assert item.custom_data['exit_code'] == 3
    assert item.custom_data['cwd'] == str(tmp_path)
    assert '"exit_code": 3' in text
    assert state.get_interruptions()


# -- approvals


async def paused(server: OpenAIServer, shell: ShellTools) -> tuple[Agent, Any, RunState]:
    """Run until the pause, then send the state through JSON."""
    helper = agent(server.base_url, shell)
    result = await Runner.run(helper, 'Go.')
    return helper, result, await through_json(helper, result)


async def test_question_is_the_same_before_and_after_json(tmp_path: Path) -> None:
    with OpenAIServer([[('run_command', {'command': 'touch x'})]]) as server:
        async with ShellTools(cwd=tmp_path, ask_commands=['touch']) as shell:
            _, result, state = await paused(server, shell)
            (before,) = (shell.request(item) for item in result.interruptions)
            (after,) = (shell.request(item) for item in state.get_interruptions())

    assert before == after


async def test_edit_is_for_that_very_call_only(tmp_path: Path) -> None:
    # Some providers count the IDs of calls from 0 in every answer.
    turns = [
        [('run_command', {'command': 'touch x'}, 'c0')],
        'Then not.',
        [('run_command', {'command': 'ls'}, 'c0')],
        'Done.',
    ]
    with OpenAIServer(turns) as server:
        async with ShellTools(cwd=tmp_path, ask_commands=['touch']) as shell:
            helper, _, state = await paused(server, shell)
            (item,) = state.get_interruptions()
            shell.edit(item, 'touch y')
            state.reject(item)
            await Runner.run(helper, state)
            await Runner.run(helper, 'Again.')

    assert server.tool_results()[-1] == '(no output)'
    assert os.listdir(tmp_path) == []


async def test_command_that_was_changed_in_the_state_is_refused_by_the_sdk(tmp_path: Path) -> None:
    with OpenAIServer([[('run_command', {'command': 'touch x'})]]) as server:
        async with ShellTools(cwd=tmp_path, ask_commands=['touch']) as shell:
            helper = agent(server.base_url, shell)
            result = await Runner.run(helper, 'Go.')
            text = json.dumps(result.to_state().to_json()).replace('touch x', 'rm x')
            state = await RunState.from_json(helper, json.loads(text))
            (item,) = state.get_interruptions()
            with pytest.raises(ModelBehaviorError):
                state.approve(item)

    assert os.listdir(tmp_path) == []


async def test_request_is_there_for_a_call_with_broken_json_too(tmp_path: Path) -> None:
    # Where something can be asked, the SDK pauses for such a call without asking the tool.
    with OpenAIServer([[('run_command', '{"command": ')], 'Done.']) as server:
        async with ShellTools(cwd=tmp_path, ask_commands=['touch']) as shell:
            helper, _, state = await paused(server, shell)
            (item,) = state.get_interruptions()
            asked = shell.request(item)
            state.approve(item)
            await Runner.run(helper, state)

    assert (asked['tool'], asked['command']) == ('run_command', '')
    assert server.tool_results()[0].startswith('[Error: invalid arguments for run_command: ')


async def test_always_approve_asks_no_more_and_deny_still_wins(tmp_path: Path) -> None:
    turns = [
        [('run_command', {'command': 'touch a'})],
        [('run_command', {'command': 'touch b'})],
        [('run_command', {'command': 'touch c; rm a'})],
        'Done.',
    ]
    with OpenAIServer(turns) as server:
        async with ShellTools(
            cwd=tmp_path, ask_commands=['touch'], denied_commands=['rm']
        ) as shell:
            helper, _, state = await paused(server, shell)
            state.approve(state.get_interruptions()[0], always_approve=True)
            result = await Runner.run(helper, state)

    assert result.final_output == 'Done.'
    assert sorted(os.listdir(tmp_path)) == ['a', 'b']
    assert "Command 'rm' is denied." in server.tool_results()[-1]


async def test_tool_without_its_needs_approval_does_not_run_what_has_to_be_asked(
    tmp_path: Path,
) -> None:
    with OpenAIServer([[('run_command', {'command': 'touch x'})], 'Done.']) as server:
        async with ShellTools(cwd=tmp_path, ask_commands=['touch']) as shell:
            tools = [dataclasses.replace(tool, needs_approval=False) for tool in shell.tools()]
            helper = agent(server.base_url, shell)
            helper.tools = list(tools)
            await Runner.run(helper, 'Go.')

    assert 'Nobody is there to approve it' in server.tool_results()[0]
    assert os.listdir(tmp_path) == []


# -- live output


async def test_output_comes_by_callback_and_iterator_while_the_command_runs(tmp_path: Path) -> None:
    command = 'echo one; echo two; until test -e go; do sleep 0.02; done; echo three'
    called: list[CommandOutput] = []

    def on_output(piece: CommandOutput) -> None:
        called.append(piece)
        (tmp_path / 'go').touch()  # so it goes on only when this was seen

    with OpenAIServer([[('run_command', {'command': command}, 'c1')], 'Done.']) as server:
        async with ShellTools(cwd=tmp_path, on_output=on_output) as shell:

            async def listen() -> list[CommandOutput]:
                return [piece async for piece in shell.output()]

            listening = asyncio.create_task(listen())
            await asyncio.sleep(0)
            await Runner.run(agent(server.base_url, shell), 'Go.')
        iterated = await listening

    assert ''.join(piece.text for piece in called) == 'one\ntwo\nthree\n'
    assert {(piece.call_id, piece.stream) for piece in called} == {('c1', 'stdout')}
    assert 2 <= len(called) <= 3
    assert iterated == called


async def test_iterator_has_what_came_since_it_was_made(tmp_path: Path) -> None:
    with OpenAIServer([[('run_command', {'command': 'echo hi'}, 'c1')], 'Done.']) as server:
        async with ShellTools(cwd=tmp_path) as shell:
            output, unread = shell.output(), shell.output()
            del unread
            await Runner.run(agent(server.base_url, shell), 'Go.')
            first = await anext(output)
        rest = [piece async for piece in output]
        late = [piece async for piece in shell.output()]

    assert first == CommandOutput('c1', 'hi\n', 'stdout')
    assert (rest, late) == ([], [])
    assert not shell._listeners._waiting


@pytest.mark.parametrize('name', ['denied_commands', 'policy'])
def test_setting_that_is_assigned_is_refused(name: str) -> None:
    with pytest.raises(AttributeError, match=f'{name} holds from construction on'):
        setattr(ShellTools(), name, ['ls'])


def test_callback_that_can_not_be_called_is_refused_at_once() -> None:
    with pytest.raises(OptionError, match='on_output=5 is not allowed'):
        ShellTools(on_output=5)  # type: ignore[arg-type] - that is the mistake


async def test_async_callback_is_awaited(tmp_path: Path) -> None:
    seen: list[str] = []

    async def on_output(piece: CommandOutput) -> None:
        await asyncio.sleep(0)
        seen.append(piece.text)

    with OpenAIServer([[('run_command', {'command': 'seq 3'})], 'Done.']) as server:
        async with ShellTools(cwd=tmp_path, on_output=on_output) as shell:
            await Runner.run(agent(server.base_url, shell), 'Go.')

    assert ''.join(seen) == '1\n2\n3\n'


# -- endings


async def test_cancelled_command_is_ended_while_the_block_is_still_open(tmp_path: Path) -> None:
    with OpenAIServer([[('run_command', {'command': f'touch begun; {NAP}'})]]) as server:
        async with ShellTools(cwd=tmp_path) as shell:
            task = asyncio.create_task(Runner.run(agent(server.base_url, shell), 'Go.'))
            await exists(tmp_path / 'begun')
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            gone = await is_gone(NAP)

    assert gone


async def test_cancelled_stream_ends_the_command_while_the_block_is_still_open(
    tmp_path: Path,
) -> None:
    with OpenAIServer([[('run_command', {'command': f'touch begun; {NAP}'})]]) as server:
        async with ShellTools(cwd=tmp_path) as shell:
            result = Runner.run_streamed(agent(server.base_url, shell), 'Go.')

            async def read() -> None:
                async for _ in result.stream_events():
                    pass

            reading = asyncio.create_task(read())
            await exists(tmp_path / 'begun')
            result.cancel()
            await reading
            gone = await is_gone(NAP)

    assert gone


async def test_sibling_tool_that_raises_ends_the_command(tmp_path: Path) -> None:
    @function_tool(failure_error_function=None)
    async def fail() -> None:
        await exists(tmp_path / 'begun')
        raise ZeroDivisionError

    calls = [('run_command', {'command': f'touch begun; {NAP}'}), ('fail', {})]
    with OpenAIServer([calls]) as server:
        async with ShellTools(cwd=tmp_path) as shell:
            helper = agent(server.base_url, shell)
            helper.tools.append(fail)
            with pytest.raises(UserError):
                await Runner.run(helper, 'Go.')
            gone = await is_gone(NAP)

    assert gone


# -- traces


class Spans(agents.TracingProcessor):
    """Keeps what is exported."""

    def __init__(self) -> None:
        self.exported: list[dict[str, Any]] = []

    def on_trace_start(self, trace: Any) -> None: ...
    def on_trace_end(self, trace: Any) -> None: ...
    def on_span_start(self, span: Any) -> None: ...
    def shutdown(self) -> None: ...
    def force_flush(self) -> None: ...

    def on_span_end(self, span: Any) -> None:
        self.exported.append(span.export())


@pytest.mark.parametrize('content', [False, True])
async def test_span_shows_facts_and_the_command_only_with_content(
    content: Any, tmp_path: Path
) -> None:
    spans = Spans()
    agents.set_trace_processors([spans])
    agents.set_tracing_disabled(False)
    calls = [
        ('run_command', {'command': 'echo secret-word; exit 3'}),
        ('run_command', {'command': 'rm x'}),
    ]
    try:
        with OpenAIServer([calls, 'Done.']) as server:
            async with ShellTools(
                cwd=tmp_path, env={'PATH': os.environ['PATH'], 'TOKEN': 'hush'}
            ) as shell:
                config = RunConfig(trace_include_sensitive_data=content)
                await Runner.run(agent(server.base_url, shell), 'Go.', run_config=config)
    finally:
        agents.set_tracing_disabled(True)
        agents.set_trace_processors([])

    found = [
        span['span_data'] for span in spans.exported if span['span_data'].get('name') == 'anyshell'
    ]
    ran, denied = sorted((data['data'] for data in found), key=lambda facts: facts['decision'])
    assert (ran['exit_code'], ran['timed_out'], ran['truncated']) == (3, False, False)
    assert ran['duration_seconds'] > 0
    assert ran['output_bytes'] == len('secret-word\n')
    assert (denied['decision'], denied['rule']) == ('deny', 'denied_commands')
    assert ('secret-word' in json.dumps(spans.exported)) is content
    assert 'hush' not in json.dumps(spans.exported)
