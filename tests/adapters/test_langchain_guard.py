"""LangChain: the policy over shell tools that are not ours."""

import subprocess
import uuid
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware, ShellToolMiddleware
from langchain_core.messages import ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from anyshell import Policy, ShellOptions
from anyshell.testing import OpenAIServer
from langchain_anyshell.guard import ShellPolicy

ASKS = ShellOptions(ask_commands=['touch']).policy()
OLD = [int(part) for part in version('langchain').split('.')[:3]] < [1, 3, 4]


@tool
def other_shell(cmd: list[str]) -> str:
    """Run a command."""
    done = subprocess.run(cmd, capture_output=True, text=True, check=False, timeout=30)
    return f'{done.returncode} {done.stdout}'


def call(*words: str) -> tuple[str, dict[str, Any]]:
    return 'other_shell', {'cmd': list(words)}


def agent_of(
    server: OpenAIServer, *middleware: Any, tools: Any = (other_shell,), saver: Any = InMemorySaver
) -> Any:
    model = ChatOpenAI(model='any', base_url=server.base_url, api_key='any')  # pyright: ignore[reportArgumentType]
    return create_agent(model, tools, middleware=middleware, checkpointer=saver())


def thread() -> Any:
    return {'configurable': {'thread_id': str(uuid.uuid4())}}


ASKED = {'messages': [('user', 'Go.')]}


@pytest.mark.parametrize('asynchronous', ['no', 'yes'])
async def test_other_shell_is_judged_with_the_same_words(asynchronous: str) -> None:
    policy = Policy.from_lists(denied_commands=['rm'])
    script = [[call('rm', 'x')] for _ in range(10)]
    with OpenAIServer([*script, [call('echo', 'fine')], 'Done.']) as server:
        agent = agent_of(server, ShellPolicy(policy))
        config = {**thread(), 'recursion_limit': 99}
        answer = (
            await agent.ainvoke(ASKED, config)
            if asynchronous == 'yes'
            else agent.invoke(ASKED, config)
        )

    *denied, fine = server.tool_results()
    assert set(denied) == {policy.check('rm x').reason}
    assert fine == '0 fine\n'
    statuses = [
        message.status for message in answer['messages'] if isinstance(message, ToolMessage)
    ]
    assert statuses == ['error'] * 10 + ['success']


@pytest.mark.filterwarnings(  # it leaves its shell's pipes open
    'ignore::pytest.PytestUnraisableExceptionWarning', 'ignore::ResourceWarning'
)
def test_langchains_own_shell_is_judged(tmp_path: Path) -> None:
    script = [[('shell', {'command': 'rm x'})], [('shell', {'command': 'echo fine'})], 'Done.']
    guard = ShellPolicy(Policy.from_lists(denied_commands=['rm']), tools=['shell'])
    with OpenAIServer(script) as server:
        shell = ShellToolMiddleware(str(tmp_path))
        agent = agent_of(server, shell, guard, tools=[], saver=lambda: None)
        agent.invoke(ASKED)

    denied, fine = server.tool_results()
    assert denied.startswith("Command 'rm' is denied.")
    assert 'fine' in fine


def test_tools_that_it_is_not_about_are_left_alone() -> None:
    policy = Policy.from_lists(denied_commands=['echo'])
    with OpenAIServer([[call('echo', 'fine')], 'Done.']) as server:
        agent_of(server, ShellPolicy(policy, tools=['shell'])).invoke(ASKED, thread())

    assert server.tool_results() == ('0 fine\n',)


def test_other_arguments_hold_no_command() -> None:
    policy = Policy.from_lists(denied_commands=['echo'])
    with OpenAIServer([[call('echo', 'fine')], 'Done.']) as server:
        agent_of(server, ShellPolicy(policy, arguments=['script'])).invoke(ASKED, thread())

    assert server.tool_results() == ('0 fine\n',)


@pytest.mark.parametrize(
    ('decision', 'text', 'made'),
    [
        ({'type': 'approve'}, '0 ', ['it']),
        ({'type': 'reject', 'message': 'No.'}, 'A person denied this command: No.', []),
        (
            ['touch', 'other'],
            "[A person changed the command; this ran: ['touch', 'other']]\n0 ",
            ['other'],
        ),
        (['rm', 'x'], "Command 'rm' is denied.", []),
    ],
)
def test_person_decides(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, decision: Any, text: str, made: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    if isinstance(decision, list):
        action = {'name': 'other_shell', 'args': {'cmd': decision}}
        decision = {'type': 'edit', 'edited_action': action}
    config = thread()
    with OpenAIServer([[call('touch', 'it')], 'Done.']) as server:
        agent = agent_of(server, ShellPolicy(ASKS))
        paused = agent.invoke(ASKED, config)
        agent.invoke(Command(resume={'decisions': [decision]}), config)

    assert paused['__interrupt__'][0].value['rule'] == 'ask_commands'
    assert server.tool_results()[0].startswith(text)
    assert sorted(path.name for path in tmp_path.iterdir()) == made


def test_nobody_is_there_to_ask() -> None:
    with OpenAIServer([[call('touch', 'it')], 'Done.']) as server:
        agent_of(server, ShellPolicy(ASKS, on_ask='deny')).invoke(ASKED, thread())

    assert 'Nobody is there to approve it' in server.tool_results()[0]


@pytest.mark.skipif(OLD, reason='`when` came with langchain 1.3.4')
def test_langchains_own_middleware_asks_instead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    guard, config = ShellPolicy(ASKS), thread()
    asks = {'allowed_decisions': ['approve', 'reject'], 'when': guard.needs_approval}
    human = HumanInTheLoopMiddleware({'other_shell': asks})  # pyright: ignore[reportArgumentType]
    turn = [call('touch', 'it'), call('echo', 'free'), call('rm', 'x')]
    with OpenAIServer([turn, 'Done.']) as server:
        agent = agent_of(server, guard, human)
        agent.invoke(ASKED, config)
        final = agent.invoke(Command(resume={'decisions': [{'type': 'approve'}]}), config)

    assert '__interrupt__' not in final
    touched, free, denied = server.tool_results()
    assert (touched, free) == ('0 ', '0 free\n')
    assert "'rm' is denied" in denied
    assert [path.name for path in tmp_path.iterdir()] == ['it']
