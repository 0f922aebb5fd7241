"""Options and errors survive what process pools, task queues and `copy` do to them."""

import copy
import pickle
from functools import partial
from typing import Any

import pytest

from anyshell import (
    ApprovalRequired,
    BubblewrapSandbox,
    CommandDenied,
    Decision,
    DockerSandbox,
    LocalSandbox,
    OptionError,
    SandboxPathNotFoundError,
    SandboxTimeoutError,
    ShellOptions,
    ShellSession,
    SshSandbox,
    UnknownCommandID,
    Verdict,
)

VERDICT = Verdict(Decision.DENY, 'Because.', 'denied_commands', 'rm x', (0, 4))


def pickled(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))  # noqa: S301 - our own bytes


@pytest.mark.parametrize('copied', [copy.copy, copy.deepcopy, pickled])
@pytest.mark.parametrize(
    ('options', 'decision'),
    [
        ({'allowed_commands': ['rm', 'ls']}, Decision.ALLOW),
        ({'ask_commands': ['rm']}, Decision.ASK),
    ],
)
def test_a_copy_of_the_options_has_the_same_policy(copied, options, decision) -> None:
    """The default deny list steps back in the copy as well."""
    assert copied(ShellOptions(**options)).policy().check('rm x').decision is decision


@pytest.mark.parametrize(
    'error',
    [
        CommandDenied(VERDICT),
        ApprovalRequired(VERDICT),
        UnknownCommandID('j9', ('j1',)),
        OptionError('cwd', 3, 'a path'),
        SandboxTimeoutError(1.5, 'out', 'err'),
        SandboxPathNotFoundError('/x'),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_error_survives_pickle(error) -> None:
    again = pickled(error)

    assert (type(again), str(again), vars(again)) == (type(error), str(error), vars(error))


LIVE = [
    ShellSession,
    LocalSandbox,
    BubblewrapSandbox,
    partial(DockerSandbox, 'c'),
    partial(SshSandbox, 'h'),
]


@pytest.mark.parametrize('make', LIVE)
@pytest.mark.parametrize('copied', [copy.copy, copy.deepcopy])
def test_what_is_live_is_its_own_copy(copied, make) -> None:
    """Its owner closes it, and what holds it, such as an agent, can be copied."""
    live = make()

    assert copied(live) is live


@pytest.mark.parametrize('make', [ShellSession, partial(DockerSandbox, 'c')])
def test_what_is_live_says_why_it_can_not_be_pickled(make) -> None:
    with pytest.raises(TypeError, match=r'lives in one process .* there'):
        pickle.dumps(make())


async def test_local_sandbox_is_pickled_as_its_settings() -> None:
    """Also one that was used and is closed."""
    sandbox = LocalSandbox(cwd='/', env={'A': 'a'})
    await sandbox.execute('true')
    await sandbox.aclose()

    again = pickled(sandbox)

    assert (await again.execute('pwd; echo $A')).stdout == '/\na\n'
    await again.aclose()


def test_a_refusal_a_change_and_silence_have_words_for_the_model() -> None:
    """What adapters say to a model when a person has refused, or has changed the command."""
    asked = ApprovalRequired(VERDICT)

    assert (
        asked.refused()
        == 'A person denied this command.\nIt has not run; ask before you try it another way.'
    )
    assert asked.refused('no').startswith('A person denied this command: no\n')
    assert (
        asked.edited('ls -l', 'text') == "[A person changed the command; this ran: 'ls -l']\ntext"
    )
    assert (
        asked.unanswered()
        == 'Because. Nobody is there to approve it, so it is denied; do it another way.'
    )
    assert asked.request('run_command', {'command': 'ls; rm x'}) == {
        'tool': 'run_command',
        'arguments': {'command': 'ls; rm x'},
        'command': 'ls; rm x',
        'part': 'rm x',
        'reason': 'Because.',
        'rule': 'denied_commands',
    }
