"""OpenAI Agents SDK: our shell behind the SDK's own `ShellTool`."""

import os
from pathlib import Path
from typing import Any

import agents
import pytest
from agents import Agent, Runner, ToolCallOutputItem
from agents.testing import ScriptedModel, assistant_message
from openai.types.responses import ResponseFunctionShellToolCall

from anyshell import ShellOptions, ShellSession
from openai_agents_anyshell import shell_tool

agents.set_tracing_disabled(True)


def call(*commands: str, timeout_ms: int | None = None) -> Any:
    item: dict[str, Any] = {
        'id': 'sh_1',
        'call_id': 'c1',
        'type': 'shell_call',
        'status': 'completed',
        'action': {'commands': list(commands), 'timeout_ms': timeout_ms, 'max_output_length': None},
    }
    return ResponseFunctionShellToolCall.model_validate(item)


def scripted(shell: Any, session: ShellSession) -> Agent:
    model = ScriptedModel([[shell], [assistant_message('Done.')]])
    return Agent(name='Tester', model=model, tools=[shell_tool(session)])


def outputs(result: Any) -> list[dict[str, Any]]:
    (item,) = (item for item in result.new_items if isinstance(item, ToolCallOutputItem))
    return item.raw_item['output']  # type: ignore[index]  (a dict here)


async def test_commands_run_one_after_the_other(tmp_path: Path) -> None:
    async with ShellSession(ShellOptions(cwd=tmp_path, persist_cwd=True)) as session:
        agent = scripted(call('mkdir below; cd below', 'pwd; echo err >&2; exit 3'), session)
        result = await Runner.run(agent, 'Go.')

    first, second = outputs(result)
    assert first['outcome'] == {'type': 'exit', 'exit_code': 0}
    assert second['outcome'] == {'type': 'exit', 'exit_code': 3}
    assert (second['stdout'], second['stderr']) == (f'{tmp_path}/below\n', 'err\n')


async def test_time_limit_keeps_partial_output(tmp_path: Path) -> None:
    async with ShellSession(ShellOptions(cwd=tmp_path)) as session:
        agent = scripted(call('echo before; sleep 60', timeout_ms=500), session)
        result = await Runner.run(agent, 'Go.')

    (output,) = outputs(result)
    assert output['outcome']['type'] == 'timeout'
    assert output['stdout'] == 'before\n'


async def test_after_a_denied_command_the_others_do_not_run(tmp_path: Path) -> None:
    async with ShellSession(ShellOptions(cwd=tmp_path)) as session:
        agent = scripted(call('touch a', 'rm a', 'touch b'), session)
        result = await Runner.run(agent, 'Go.')

    _, denied = outputs(result)
    assert "Command 'rm' is denied." in denied['stderr']
    assert os.listdir(tmp_path) == ['a']


@pytest.mark.parametrize('approve', [True, False])
async def test_ask_pauses_for_the_whole_call(approve: Any, tmp_path: Path) -> None:
    async with ShellSession(ShellOptions(cwd=tmp_path, ask_commands=['touch'])) as session:
        agent = scripted(call('ls', 'touch a'), session)
        paused = await Runner.run(agent, 'Go.')
        before = os.listdir(tmp_path)
        state = paused.to_state()
        if approve:
            state.approve(paused.interruptions[0])
        else:
            state.reject(paused.interruptions[0])
        result = await Runner.run(agent, state)

    assert result.final_output == 'Done.'
    assert before == []
    assert os.listdir(tmp_path) == (['a'] if approve else [])


async def test_denied_command_asks_nobody(tmp_path: Path) -> None:
    async with ShellSession(ShellOptions(cwd=tmp_path, ask_commands=['touch'])) as session:
        result = await Runner.run(scripted(call('rm x', 'touch a'), session), 'Go.')

    assert result.final_output == 'Done.'
    assert "Command 'rm' is denied." in outputs(result)[0]['stderr']
    assert os.listdir(tmp_path) == []
