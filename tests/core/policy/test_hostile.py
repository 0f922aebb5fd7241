"""A verdict on any text, soon: the policy never raises, never hangs and reads in linear time.

Times are those of the processor, so that a busy machine fails no test.
"""

import sys
import threading
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anyshell.policy import DEFAULT_DENIED_COMMANDS, Decision, Policy

POLICIES = {
    shell: Policy.from_lists(denied_commands=DEFAULT_DENIED_COMMANDS, shell=shell)
    for shell in ('bash', 'sh')
}
DEEP = 10_000

NESTED = {
        'open parentheses': '(' * DEEP,
        'closed parentheses': '(' * DEEP + 'ls' + ')' * DEEP,
        'spaced parentheses': '( ' * DEEP + 'ls' + ' )' * DEEP,
        'substitutions': '$(' * DEEP + 'ls' + ')' * DEEP,
        'quoted substitutions': '"$(' * DEEP,
        'expansions': '${x:-' * DEEP,
        'back-ticks': '`' * DEEP,
        'arithmetic': '$((' * DEEP,
        'arithmetic that is commands': '((' * 40 + '$(' * 5 + 'ls' + ')' * 5 + ')' * 40,
        'arithmetic that might be commands': '$((' * 45 + 'ls' + ')' * 45 + '; x' + ')' * 45,
        'groups': '{ ' * DEEP,
        'conditions': 'if ' * DEEP,
        'tests': '[[ ' + '( ' * DEEP,
        'negated tests': '[[ ' + '! ' * DEEP,
        'functions': 'f() { ' * DEEP,
        'process substitutions': '<(' * DEEP,
        'braces': '{a,' * DEEP + '}' * DEEP,
        'many braces': 'echo ' + '{1..9}' * 50,
        'open braces': '{' * DEEP,
        'programs': 'nice ' * DEEP + 'ls',
        'programs of programs': 'xargs ' * DEEP,
        'evals': 'eval ' * DEEP,
        'aliases that meet': "alias a='b x'; alias b='a y'; a",
        'functions that meet': 'f(){ g; }; g(){ f; }; ls | f',
        'a row of functions': ''.join(f'f{i}(){{ f{i + 1}; f{i + 1}; }};' for i in range(60)) + 'ls|f0',
        'subscripts': 'a[' * DEEP,
}  # fmt: skip


@pytest.mark.parametrize('shell', ['bash', 'sh'])
@pytest.mark.parametrize('text', NESTED.values(), ids=NESTED.keys())
def test_deep_nesting_gets_a_verdict_within_a_second(text: str, shell: str) -> None:
    start = time.process_time()

    POLICIES[shell].check(text)

    assert time.process_time() - start < 1


@pytest.mark.parametrize(
    ('text', 'words'),
    [
        ('a' * 1_000_000, 'too long'),
        ('ls;' * 400_000, 'too long'),
        ('é' * 200_000, 'too long'),
        ('ls \0 rm', 'NUL'),
        ('ls \ud800', 'encoded'),
        (b'ls \xff'.decode('utf-8', 'surrogateescape'), 'encoded'),
        ('( ' * DEEP, 'too deeply'),
    ],
)
def test_what_no_shell_can_run_is_refused_at_once(text: str, words: str) -> None:
    start = time.process_time()

    verdict = POLICIES['bash'].check(text)

    assert time.process_time() - start < 1
    assert verdict.decision is Decision.DENY
    assert verdict.rule == 'syntax'
    assert words in verdict.reason


def test_the_longest_line_that_is_read_is_262_144_bytes() -> None:
    policy = Policy.from_lists(denied_commands=('rm',))

    assert policy.check('#' * 262_144).decision is Decision.ALLOW
    assert policy.check('#' * 262_145).decision is Decision.DENY
    assert policy.check('# ' + 'é' * 131_071).decision is Decision.ALLOW
    assert policy.check('# ' + 'é' * 131_072).decision is Decision.DENY


@pytest.mark.parametrize('text', ['', ' ', '\n\n', '\t', '# rm x', ' # rm\n# x', '\\\n'])
def test_nothing_to_run_is_allowed(text: str) -> None:
    assert POLICIES['bash'].check(text).decision is Decision.ALLOW


def test_the_number_of_commands_is_not_capped() -> None:
    assert POLICIES['bash'].check('ls; ' * 20_000 + 'rm x').rule == 'denied_commands'


def test_time_grows_with_the_length_and_no_faster() -> None:
    line = 'for f in $(git ls-files | grep x); do echo "== $f" && wc -l "$f" > out.txt || exit 1; done\n'
    times: list[float] = []
    for count in (100, 1000):
        best = 10.0
        for _ in range(3):
            start = time.process_time()
            assert POLICIES['bash'].check(line * count).decision is Decision.ALLOW
            best = min(best, time.process_time() - start)
        times.append(best)

    assert times[1] < 25 * times[0]


def test_a_caller_deep_in_its_stack_gets_a_verdict() -> None:
    def deeper(levels: int) -> Decision:
        return (
            deeper(levels - 1)
            if levels
            else POLICIES['bash'].check('( ' * 45 + 'ls' + ' )' * 45).decision
        )

    assert deeper(10) is Decision.ALLOW
    assert deeper(sys.getrecursionlimit() - 250) is Decision.DENY


def test_one_policy_serves_many_threads() -> None:
    lines = ['rm x', 'ls', 'echo $(rm x)', 'cat <<E\nrm\nE\n', '$x'] * 50
    wanted = [POLICIES['bash'].check(line) for line in lines]
    found: list[list[object]] = []

    def check() -> None:
        found.append([POLICIES['bash'].check(line) for line in lines])

    threads = [threading.Thread(target=check) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)

    assert found == [wanted] * 4


ALPHABET = st.sampled_from([*' \t\n;&|<>(){}[]$`"\'\\#=!*?~,.-+:@%^/0aA1\r\x00\ud800é', 'rm ', 'if ', 'then ', 'fi ', 'do ', 'done ', '$(', '${', '$((', '<<E\n', '\nE\n', "$'", '[[ ', ' ]]', 'case x in ', 'esac ', 'env ', 'sh -c ', 'eval '])  # fmt: skip


@settings(max_examples=500, deadline=None)
@given(st.lists(ALPHABET, max_size=60).map(''.join), st.sampled_from(['bash', 'sh']))
def test_any_text_gets_a_verdict_that_does_not_change(text: str, shell: str) -> None:
    verdict = POLICIES[shell].check(text)

    assert verdict == POLICIES[shell].check(text)
    assert (verdict.decision is Decision.ALLOW) == (verdict.reason == '')
    assert verdict.span is None or 0 <= verdict.span[0] <= verdict.span[1] <= len(text)
