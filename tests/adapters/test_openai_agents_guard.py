"""OpenAI Agents SDK: the policy over function tools that are not ours."""

from typing import Any

import agents
from agents import Agent, OpenAIResponsesModel, Runner, function_tool
from openai import AsyncOpenAI

from anyshell import Policy
from anyshell.testing import OpenAIServer
from openai_agents_anyshell import asks, shell_guardrail

POLICY = Policy.from_lists(denied_commands=['rm'], ask_commands=['touch'])

agents.set_tracing_disabled(True)


def agent(
    base_url: str, *, on_ask: Any = 'ask', needs_approval: Any = False
) -> tuple[Any, list[str]]:
    """An agent with a shell of its own that only notes what it would run."""
    ran: list[str] = []

    @function_tool(needs_approval=needs_approval)
    def exec_command(cmd: str) -> str:
        ran.append(cmd)
        return 'ran'

    exec_command.tool_input_guardrails = [shell_guardrail(POLICY, on_ask=on_ask)]
    client = AsyncOpenAI(base_url=base_url, api_key='any')
    model = OpenAIResponsesModel('gpt-5.2', client)
    return Agent(name='Tester', model=model, tools=[exec_command]), ran


async def test_denials_reach_the_model_and_are_on_record() -> None:
    turns: list[Any] = [[('exec_command', {'cmd': 'rm x'})] for _ in range(10)]
    with OpenAIServer([*turns, [('exec_command', {'cmd': 'ls'})], 'Done.']) as server:
        helper, ran = agent(server.base_url)
        result = await Runner.run(helper, 'Go.', max_turns=12)

    assert result.final_output == 'Done.'
    assert ran == ['ls']
    assert all("Command 'rm' is denied." in text for text in server.tool_results()[:10])
    records = [record.output.output_info for record in result.tool_input_guardrail_results]
    assert [record['decision'] for record in records] == ['deny'] * 10 + ['allow']
    assert records[0]['rule'] == 'denied_commands'


async def test_ask_pauses_and_the_approved_command_runs() -> None:
    with OpenAIServer([[('exec_command', {'cmd': 'touch x'})], 'Done.']) as server:
        helper, ran = agent(server.base_url, needs_approval=asks(POLICY))
        paused = await Runner.run(helper, 'Go.')
        before = list(ran)
        state = paused.to_state()
        state.approve(paused.interruptions[0])
        await Runner.run(helper, state)

    assert before == []
    assert ran == ['touch x']


async def test_ask_without_needs_approval_does_not_run() -> None:
    with OpenAIServer([[('exec_command', {'cmd': 'touch x'})], 'Done.']) as server:
        helper, ran = agent(server.base_url)
        await Runner.run(helper, 'Go.')

    assert ran == []
    assert 'Nobody is there to approve it' in server.tool_results()[0]


async def test_denied_command_asks_nobody() -> None:
    with OpenAIServer([[('exec_command', {'cmd': 'touch x; rm x'})], 'Done.']) as server:
        helper, ran = agent(server.base_url, needs_approval=asks(POLICY))
        result = await Runner.run(helper, 'Go.')

    assert (result.final_output, ran) == ('Done.', [])
    assert "Command 'rm' is denied." in server.tool_results()[0]


async def test_always_approved_tool_still_denies() -> None:
    turns = [
        [('exec_command', {'cmd': 'touch x'})],
        [('exec_command', {'cmd': 'rm x'})],
        'Done.',
    ]
    with OpenAIServer(turns) as server:
        helper, ran = agent(server.base_url, needs_approval=asks(POLICY))
        paused = await Runner.run(helper, 'Go.')
        state = paused.to_state()
        state.approve(paused.interruptions[0], always_approve=True)
        await Runner.run(helper, state)

    assert ran == ['touch x']
    assert "Command 'rm' is denied." in server.tool_results()[1]
