"""The sessions of an adapter."""

import copy
import pickle
from typing import Any

import pytest

from anyshell import Decision, LocalSandbox, OptionError, Policy, Sessions, ShellSession, Verdict


def pickled(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))  # noqa: S301  (our own bytes)


def test_each_run_has_one_session() -> None:
    sessions = Sessions({'cwd': '/'})

    assert sessions.of('a') is sessions.of('a')
    assert sessions.of('a') is not sessions.of('b')
    assert sessions.of(None) is sessions.own
    assert sessions.of('a').options.cwd == '/'


def test_end_gives_the_session_to_close_once() -> None:
    sessions = Sessions({})
    session = sessions.of('a', thread='t')

    assert sessions.knows('a')
    assert sessions.end('a') is session
    assert sessions.end('a') is None
    assert not sessions.knows('a')
    assert sessions.of('b', thread='t') is not session


def test_session_waits_for_the_run_that_goes_on() -> None:
    sessions = Sessions({})
    session = sessions.of('a', thread='t')

    assert sessions.end('a', paused=True) is None
    assert sessions.of('b', thread='u') is not session
    assert sessions.of('c', thread='t') is session
    assert sessions.of('d', thread='t') is not session


def test_pause_without_a_thread_is_an_end() -> None:
    sessions = Sessions({})
    session = sessions.of('a')

    assert sessions.end('a', paused=True) is session


def test_second_pause_of_a_thread_ends_the_first() -> None:
    sessions = Sessions({})
    first, second = sessions.of('a', thread='t'), sessions.of('b', thread='t')

    assert sessions.end('a', paused=True) is None
    assert sessions.end('b', paused=True) is first
    assert sessions.of('c', thread='t') is second


def test_session_that_is_handed_in_serves_all_runs_and_stays_open() -> None:
    with ShellSession() as session:
        sessions = Sessions({}, session=session)

        assert sessions.of('a') is sessions.of('b') is sessions.own is session
        assert sessions.end('a') is None


def test_session_is_a_session() -> None:
    with pytest.raises(OptionError) as caught:
        Sessions({}, session='mine')  # type: ignore[arg-type] - that is the mistake

    assert str(caught.value) == (
        "session='mine' is not allowed: it must be None or a ShellSession that is open"
    )


@pytest.mark.parametrize(
    ('tool', 'arguments', 'decision'),
    [
        ('run_command', {'command': 'ls'}, Decision.ALLOW),
        ('run_command', {'command': 'git push'}, Decision.ASK),
        ('run_command', {'command': 'rm x'}, Decision.DENY),
        ('start_command', {'command': 'sh'}, Decision.ALLOW),
        ('start_command', {'command': 'sh', 'stdin': True}, Decision.ASK),
        (
            'run_command',
            {'command': 'sh', 'stdin': True},
            Decision.ALLOW,
        ),  # it knows no such argument
        ('run_command', {'command': ['git', 'push']}, Decision.ALLOW),  # it never runs
        ('check_command', {'command_id': 'j1'}, Decision.ALLOW),
        ('another_tool', {'command': 'git push'}, Decision.ALLOW),
    ],
)
def test_verdict_on_a_call_is_there_before_it_is_made(
    tool: str, arguments: dict[str, Any], decision: Decision
) -> None:
    sessions = Sessions({'ask_commands': ['git push'], 'unresolved': 'ask'})

    assert sessions.verdict(tool, arguments).decision is decision


def test_verdict_is_no_question_where_nobody_is_there() -> None:
    sessions = Sessions({'ask_commands': ['git push'], 'on_ask': 'deny'})

    assert sessions.verdict('run_command', {'command': 'git push'}).decision is Decision.ALLOW


def test_verdict_is_that_of_a_policy_that_is_handed_in() -> None:
    class Never:
        def check(self, command: str) -> Verdict:
            return Verdict(Decision.DENY, command)

    sessions = Sessions({}, policy=Never())  # type: ignore[arg-type] - a `check` of one argument is enough

    found = sessions.verdict('start_command', {'command': 'sh', 'stdin': True})
    assert found == Verdict(Decision.DENY, 'sh')


async def test_change_is_for_the_sessions_that_come() -> None:
    sessions = Sessions({'cwd': '/'})
    own, running = sessions.own, sessions.of('a')

    sessions.change({'cwd': '/usr'})
    sessions.change({'cwd': '/usr'})

    assert sessions.of('a') is running
    assert sessions.of('b').options.cwd == '/usr'
    assert sessions.own.options.cwd == '/usr'
    await sessions.aclose()
    assert own.closed
    assert running.closed


def test_change_that_is_not_allowed_changes_nothing() -> None:
    sessions = Sessions({'cwd': '/'})

    with pytest.raises(OptionError, match='max_jobs=0 is not allowed'):
        sessions.change({'max_jobs': 0})

    assert sessions.of('a').options.cwd == '/'


async def test_change_leaves_a_session_that_was_handed_in() -> None:
    async with ShellSession() as session:
        sessions = Sessions({}, session=session)

        sessions.change({'cwd': '/'})

        assert sessions.of('a').options.cwd == '/'
        await sessions.aclose()
        assert not session.closed


async def test_change_opens_nothing_that_was_closed() -> None:
    sessions = Sessions({'cwd': '/'})
    await sessions.aclose()

    sessions.change({'cwd': '/usr'})

    assert sessions.of('a').closed


async def test_closing_closes_what_runs_what_waits_and_what_comes() -> None:
    sessions = Sessions({})
    running, waiting = sessions.of('a'), sessions.of('b', thread='t')
    sessions.end('b', paused=True)

    await sessions.aclose()
    await sessions.aclose()

    assert running.closed
    assert waiting.closed
    assert sessions.of('c').closed


async def test_closing_leaves_a_session_that_was_handed_in() -> None:
    async with ShellSession() as session:
        await Sessions({}, session=session).aclose()

        assert not session.closed


def test_session_takes_no_settings_beside_it() -> None:
    with ShellSession() as session, pytest.raises(OptionError) as caught:
        Sessions({'cwd': '/', 'env': {'TOKEN': 'secret'}}, session=session, policy=Policy(()))

    assert str(caught.value) == (
        'session=<ShellSession in a LocalSandbox> is not allowed: '
        'it must be given without cwd and env and policy, since it has settings of its own'
    )


@pytest.mark.parametrize('copied', [copy.deepcopy, pickled])
def test_copy_has_the_settings_and_no_runs(copied) -> None:
    sessions = Sessions({'cwd': '/', 'env': {'A': 'a'}}, policy=Policy.from_lists())
    sessions.of('a')

    again = copied(sessions)

    assert again.of(None).options == sessions.own.options
    assert again.own.options.env is not sessions.own.options.env
    assert again.own is not sessions.own
    assert not again.knows('a')


def test_copy_shares_what_was_handed_in() -> None:
    with ShellSession(sandbox=LocalSandbox()) as session:
        assert copy.deepcopy(Sessions({}, session=session)).own is session

    assert copy.deepcopy(Sessions({}, sandbox=(sandbox := LocalSandbox())))._sandbox is sandbox
