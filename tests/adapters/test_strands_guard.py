"""Strands: the policy over shell tools that are not ours."""

from pathlib import Path
from typing import Any

import pytest
from strands import Agent, tool
from strands.models.openai import OpenAIModel
from strands.vended_tools.shell import shell

from anyshell import Policy, ShellOptions
from anyshell.testing import OpenAIServer
from strands_anyshell import ShellPolicy

DENIES = Policy.from_lists(denied_commands=['rm'])
ASKS = ShellOptions(ask_commands=['touch']).policy()


def agent_of(server: OpenAIServer, guard: ShellPolicy, *tools: Any) -> Agent:
    client = {'base_url': server.base_url, 'api_key': 'any'}
    return Agent(
        model=OpenAIModel(client_args=client, model_id='any'),
        tools=list(tools) or [shell],
        interventions=[guard],
        callback_handler=None,
    )


def call(command: str) -> tuple[str, dict[str, Any]]:
    return 'shell', {'command': command}


def test_vended_shell_is_judged_with_the_same_words() -> None:
    script = [*([call('rm x')] for _ in range(10)), [call('echo fine')], 'Done.']
    with OpenAIServer(script) as server:
        agent_of(server, ShellPolicy(DENIES))('Go.')

    *denied, fine = server.tool_results()
    assert set(denied) == {f'DENIED: {DENIES.check("rm x").reason}'}
    assert 'fine' in fine


def test_list_of_words_is_judged_too() -> None:
    @tool
    def other(cmd: list[str]) -> str:
        """Run a command."""
        return ' '.join(cmd)

    script = [[('other', {'cmd': ['rm', 'x']}), ('other', {'cmd': ['ls']})], 'Done.']
    with OpenAIServer(script) as server:
        agent_of(server, ShellPolicy(DENIES), other)('Go.')

    assert sorted(server.tool_results()) == [f'DENIED: {DENIES.check("rm x").reason}', 'ls']


@pytest.mark.parametrize('about', [{'tools': ['other']}, {'arguments': ['script']}])
def test_what_it_is_not_about_is_left_alone(about: Any) -> None:
    with OpenAIServer([[call('rm -f no-such-file; echo fine')], 'Done.']) as server:
        agent_of(server, ShellPolicy(DENIES, **about))('Go.')

    assert 'fine' in server.tool_results()[0]


@pytest.mark.parametrize(
    ('answer', 'text', 'made'),
    [
        (True, '', ['it']),
        ({'approved': True, 'command': 'touch other'}, '', ['other']),
        ({'approved': True, 'command': 'rm it'}, "Command 'rm' is denied.", []),
        ('Not today.', 'A person denied this command: Not today.', []),
        (1, 'A person denied this command.', []),
    ],
)
def test_person_decides(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: Any, text: str, made: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with OpenAIServer([[call('touch it')], 'Done.']) as server:
        agent = agent_of(server, ShellPolicy(ASKS))
        paused = agent('Go.')
        (question,) = paused.interrupts or ()
        response = {'interruptId': question.id, 'response': answer}
        agent([{'interruptResponse': response}])

    assert question.reason['command'] == 'touch it'
    assert question.reason['rule'] == 'ask_commands'
    assert server.tool_results()[0].startswith(text)
    assert sorted(path.name for path in tmp_path.iterdir()) == made
    (written,) = [block['toolUse'] for block in agent.messages[1]['content'] if 'toolUse' in block]
    assert written['input'] == {'command': 'touch it'}


def test_nobody_is_there_to_ask() -> None:
    with OpenAIServer([[call('touch it')], 'Done.']) as server:
        agent_of(server, ShellPolicy(ASKS, on_ask='deny'))('Go.')

    assert 'Nobody is there to approve it' in server.tool_results()[0]


def test_what_cannot_be_judged_does_not_run() -> None:
    class Broken(Policy):
        def check(self, command: str) -> Any:
            raise ZeroDivisionError(command)

    with OpenAIServer([[call('echo ran')], 'Done.']) as server:
        agent_of(server, ShellPolicy(Broken(())))('Go.')

    assert server.tool_results()[0].startswith('DENIED: ')
