"""Pydantic AI: the policy over tools that are not ours."""

from typing import Any

from openai import AsyncOpenAI
from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults, ToolApproved
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from anyshell import Policy
from anyshell.testing import OpenAIServer
from pydantic_ai_anyshell import ShellPolicy

POLICY = Policy.from_lists(denied_commands=['rm'], ask_commands=['touch'])


def agent(base_url: str, *guards: ShellPolicy) -> tuple[Any, list[str]]:
    """An agent with a shell of its own that only notes what it would run."""
    client = AsyncOpenAI(base_url=base_url, api_key='any')
    model = OpenAIChatModel('gpt-5.2', provider=OpenAIProvider(openai_client=client))
    made = Agent(model, output_type=[str, DeferredToolRequests], capabilities=guards)
    ran: list[str] = []

    @made.tool_plain
    def execute(command: str) -> str:
        ran.append(command)
        return 'ran'

    @made.tool_plain
    def say(text: str) -> str:
        return text

    return made, ran


async def test_denials_reach_the_model_and_ten_in_a_row_do_not_end_the_run() -> None:
    turns: list[Any] = [[('execute', {'command': 'rm x'})] for _ in range(10)]
    with OpenAIServer([*turns, [('execute', {'command': 'ls'})], 'Done.']) as server:
        made, ran = agent(server.base_url, ShellPolicy(POLICY))
        result = await made.run('Go.')

    assert result.output == 'Done.'
    assert ran == ['ls']
    assert all("Command 'rm' is denied." in text for text in server.tool_results()[:10])


async def test_ask_defers_and_an_edited_command_is_judged_again() -> None:
    with OpenAIServer([[('execute', {'command': 'touch x'}, 'c1')], 'Done.']) as server:
        made, ran = agent(server.base_url, ShellPolicy(POLICY))
        paused = await made.run('Go.')
        asked = paused.output.metadata['c1']
        answer = ToolApproved(override_args={'command': 'rm x'})
        await made.run(
            message_history=paused.all_messages(),
            deferred_tool_results=DeferredToolResults(approvals={'c1': answer}),
        )

    assert (asked['tool'], asked['command'], asked['rule']) == (
        'execute',
        'touch x',
        'ask_commands',
    )
    assert ran == []
    assert "Command 'rm' is denied." in server.tool_results()[0]


async def test_approved_command_runs() -> None:
    with OpenAIServer([[('execute', {'command': 'touch x'}, 'c1')], 'Done.']) as server:
        made, ran = agent(server.base_url, ShellPolicy(POLICY))
        paused = await made.run('Go.')
        await made.run(
            message_history=paused.all_messages(),
            deferred_tool_results=DeferredToolResults(approvals={'c1': True}),
        )

    assert ran == ['touch x']


async def test_nobody_to_ask_is_a_denial() -> None:
    with OpenAIServer([[('execute', {'command': 'touch x'})], 'Done.']) as server:
        made, ran = agent(server.base_url, ShellPolicy(POLICY, on_ask='deny'))
        await made.run('Go.')

    assert ran == []
    assert 'Nobody is there to approve it' in server.tool_results()[0]


async def test_only_the_tools_that_are_named_are_judged() -> None:
    calls = [('execute', {'command': 'rm x'}), ('say', {'text': 'rm x'})]
    with OpenAIServer([calls, 'Done.']) as server:
        made, ran = agent(server.base_url, ShellPolicy(POLICY, tools=['say'], arguments=['text']))
        await made.run('Go.')

    assert ran == ['rm x']
    assert "Command 'rm' is denied." in server.tool_results()[1]
