"""The policy over tools that are not ours."""

from typing import Any

import pytest

from anyshell import ApprovalRequired, CommandDenied, Decision, Guard, Policy, judge_call

POLICY = Policy.from_lists(denied_commands=['rm'], ask_commands=['touch'])


@pytest.mark.parametrize(
    'arguments',
    [
        {'command': 'rm x'},
        {'cmd': 'ls; rm x', 'workdir': '/'},
        {'command': ['rm', 'x']},
        {'commands': ['ls', 'rm x']},
        {'command': 'ls', 'cmd': 'rm x'},
    ],
)
@pytest.mark.parametrize('approved', [False, True])
def test_a_denied_command_is_denied_wherever_it_stands_and_whoever_approved(
    arguments: Any, approved: Any
) -> None:
    with pytest.raises(CommandDenied, match="Command 'rm' is denied"):
        judge_call(POLICY, arguments, approved=approved)


@pytest.mark.parametrize(
    'arguments',
    [
        {'command': 'ls rm'},
        {'command': ['grep', 'rm', 'file']},
        {'text': 'rm x'},
        {},
        {'command': 3},
    ],
)
def test_what_is_no_denied_command_is_allowed(arguments: Any) -> None:
    assert judge_call(POLICY, arguments).decision is Decision.ALLOW


def test_ask_is_raised_until_it_is_approved() -> None:
    with pytest.raises(ApprovalRequired):
        judge_call(POLICY, {'command': 'touch x'})

    assert judge_call(POLICY, {'command': 'touch x'}, approved=True).decision is Decision.ASK


def test_nobody_to_ask_is_a_denial() -> None:
    with pytest.raises(CommandDenied, match='Nobody is there to approve it'):
        judge_call(POLICY, {'command': 'touch x'}, on_ask='deny')


def test_argument_may_have_another_name() -> None:
    with pytest.raises(CommandDenied):
        judge_call(POLICY, {'script': 'rm x'}, names=['script'])


def test_guard_is_about_the_tools_that_it_names() -> None:
    guard = Guard(POLICY, tools=['shell'])

    with pytest.raises(CommandDenied):
        guard.judge('shell', {'command': 'rm x'})
    assert guard.judge('other', {'command': 'rm x'}).decision is Decision.ALLOW


def test_guard_inherits_before_the_class_of_a_framework() -> None:
    class Theirs:
        made = False

        def __init__(self) -> None:
            self.made = True

    class Ours(Guard, Theirs):
        pass

    assert Ours(POLICY).made
