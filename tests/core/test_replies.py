"""From facts to replies: what the session's options change in the words."""

import pytest

from anyshell import CommandResult, ShellOptions
from anyshell.replies import Replies

HINT = '[hint: to wait for a background command, do not sleep: '


def slept(command: str, seconds: float = 2.5, **facts: float) -> CommandResult:
    return CommandResult(command=command, exit_code=0, duration=seconds, **facts)


@pytest.mark.parametrize(
    ('command', 'jobs'),
    [('sleep 2', True), ('make & sleep 5; cat log', False), ('for i in 1 2; do sleep 1; done', True)],
)  # fmt: skip
def test_who_sleeps_in_the_foreground_is_told_of_the_better_call(
    command: str, *, jobs: bool
) -> None:
    text = Replies(ShellOptions()).run(slept(command), jobs=jobs).text

    assert text.startswith(f'(no output)\n{HINT}')


def test_the_advice_comes_once_in_a_session() -> None:
    replies = Replies(ShellOptions())

    texts = [replies.run(slept('sleep 2'), jobs=True).text for _ in range(3)]

    assert [HINT in text for text in texts] == [True, False, False]


@pytest.mark.parametrize(
    'result',
    [
        slept('sleep 0.2', 0.3),
        slept('grep -r sleep src'),
        slept('echo sleep 5'),
        slept('./sleepy 5'),
        slept('sleep 60', timed_out=2.5),
    ],
    ids=lambda result: result.command,
)
def test_who_does_not_wait_for_something_gets_no_advice(result: CommandResult) -> None:
    assert HINT not in Replies(ShellOptions()).run(result, jobs=True).text


@pytest.mark.parametrize('command', ['sleep 2', 'ls 2>&1 && sleep 2', 'make &> log; sleep 3'])
def test_who_has_nothing_to_wait_for_gets_no_advice(command: str) -> None:
    assert Replies(ShellOptions()).run(slept(command)).text == '(no output)'


def test_the_origins_tools_give_no_advice_about_arguments_that_they_lack() -> None:
    spec = Replies(ShellOptions(tool_set='spec'))

    assert HINT not in spec.run(slept('sleep 2'), jobs=True).text


@pytest.mark.parametrize(('clean', 'shown'), [(True, 'red'), (False, '\x1b[31mred\x1b[0m')])
def test_terminal_codes_are_taken_out_of_lines_where_that_is_wanted(
    clean: bool,  # noqa: FBT001 - a column of the table
    shown: str,
) -> None:
    replies = Replies(ShellOptions(clean_output=clean))

    reply = replies.lines('j1', {'stdout': ['\x1b[31mred\x1b[0m'], 'stderr': []}, 0)

    assert reply.text == f'[stdout]\n{shown}'
