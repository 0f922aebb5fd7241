"""A verdict on any text, soon: the policy never raises, never hangs and reads in linear time.

How work grows is told by a count of calls. Times are those of the processor, so that a busy machine fails no test.
"""

import sys
import threading
import time
from types import FrameType

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


@pytest.mark.parametrize(
    ('text', 'decision'),
    [
        ('echo {a,\U000f0005"x"}', Decision.ALLOW),
        ('{\U000f0001,"ls"} x', Decision.DENY),
        ('{"ls",\U000f0000"rm"} x', Decision.DENY),
        ('{\U000f0000,rm} x', Decision.DENY),
    ],
)
def test_a_character_that_stands_for_others_inside_stands_for_itself_in_a_line(
    text: str, decision: Decision
) -> None:
    assert POLICIES['bash'].check(text).decision is decision


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


# What is repeated, and what stands around it: each construct of the grammar, closed and open.
REPEATED: dict[str, tuple[str, str, str]] = {
    'commands': ('', 'a; ', ''),
    'operators': ('', 'a;b&&c||d|e&', ''),
    'words': ('echo ', 'abc ', ''),
    'single quotes': ('', "'a' ", ''),
    'double quotes': ('', '"$a"', ''),
    'open double quotes': ('', '"$(', ''),
    'ANSI-C quotes': ("$'", "\\'", "'"),
    'backslashes': ('', '\\a', ''),
    'here-documents': ('', 'cat <<E\n$x\nE\n', ''),
    'here-documents of a line': ('cat', ' <<E', '\n'),
    'an open here-document': ('cat <<E\n', '`a`\n', ''),
    'arithmetic': ('', '$((1+2)) ', ''),
    'arithmetic that is commands': ('', '((a) ); ', ''),
    'open arithmetic': ('', '$((1) ', ''),
    'old arithmetic': ('', '$[1] ', ''),
    'expansions': ('', '${a:-b} ', ''),
    'open expansions': ('', '${a[', ''),
    'tests': ('', '[[ a = b* ]]; ', ''),
    'a long test': ('[[ a', ' && b', ' ]]'),
    'a pattern': ('[[ a == ', '(a|b)*', ' ]]'),
    'cases': ('', 'case x in a|b) c;; esac; ', ''),
    'a long case': ('case x in ', 'a) b;; ', 'esac'),
    'loops': ('', 'for i in a b; do $i; done; ', ''),
    'arithmetic loops': ('', 'for ((;;)); do a; done; ', ''),
    'conditions': ('', 'if a; then b; fi; ', ''),
    'a long condition': ('if a; then b; ', 'elif c; then d; ', 'fi'),
    'functions': ('', 'f(){ g;};', ''),
    'functions that are called': ('', 'f(){ g;};f;', ''),
    'functions that read': ('', 'f(){ g;};a|f;', ''),
    'functions with a keyword': ('', 'function f { g;};', ''),
    'aliases': ('', "alias a='b c';a x;", ''),
    'arrays': ('', 'a=(b c);', ''),
    'a long array': ('a=(', '[1]=$x ', ')'),
    'subscripts': ('', 'a[1]=2 ', ''),
    'open subscripts': ('', 'a[', ''),
    'brackets': ('echo ', '[', ''),
    'braces': ('', 'echo {a,b}; ', ''),
    'braces that grow': ('', 'echo {1..900}; ', ''),
    'open braces': ('echo ', '{a,', ''),
    'redirections': ('a', ' 2>&1 >b', ''),
    'comments': ('', 'a # b\n', ''),
    'continuations': ('', 'a\\\n b;', ''),
    'coprocesses': ('', 'coproc a <(b);', ''),
    'process substitutions': ('', 'a <(b) >(c);', ''),
    'substitutions': ('', 'echo $(a);', ''),
    'open substitutions': ('', '$(a ', ''),
    'back-ticks': ('', '`a` ', ''),
    'empty back-ticks': ('', '`', ''),
    'back-ticks with backslashes': ('`', '\\\\', '`'),
    'back-ticks in a comment': ('', '# `\n', ''),
    'substitutions that are timed': ('', '$(time ! a);', ''),
    'assignments': ('', 'a=b;', ''),
    'folders in variables': ('', 'X=1;$X/a;', ''),
    'folders in variables of one command': ('', 'X=1 $X/a;', ''),
    'code': ('', "eval 'a;b';", ''),
    'groups': ('', '{ a;};', ''),
    'pipes into shells': ('', 'echo a|sh;', ''),
    'continued names': ('$', 'a\\\n', ''),
}


def _calls(shell: str, text: str) -> int:
    count = 0

    def called(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal count
        count += event in {'call', 'c_call'}

    before = sys.getprofile()
    sys.setprofile(called)
    try:
        POLICIES[shell].check(text)
    finally:
        sys.setprofile(before)
    return count


@pytest.mark.parametrize('shell', ['bash', 'sh'])
@pytest.mark.parametrize(('before', 'unit', 'after'), REPEATED.values(), ids=REPEATED.keys())
def test_twice_the_length_is_twice_the_work(before: str, unit: str, after: str, shell: str) -> None:
    short, long = (
        _calls(shell, before + unit * (size // len(unit)) + after) for size in (4_000, 8_000)
    )

    assert long <= 2.6 * short + 100


@pytest.mark.parametrize(
    ('opening', 'closing'),
    [
        ('$[', ']'),
        ('coproc <(', ')'),
        ('coproc ${x:-<(', ')}'),
        ('cat <(time ! cat ', ')'),
        ('$[ "${x:-', '}" ]'),
        ('((', ') ; )'),
    ],
)
def test_a_level_more_does_not_double_the_work(opening: str, closing: str) -> None:
    few, more = (_calls('bash', opening * n + 'a' + closing * n) for n in (6, 12))

    assert more <= 5 * few


def test_many_braces_are_expanded_up_to_a_limit() -> None:
    policy = POLICIES['bash']

    assert policy.check('{echo,-n}; ' * 100 + '{rm,x}').rule == 'denied_commands'
    assert policy.check('echo {1..4000}; ' * 100 + '{rm,x}').decision is Decision.DENY
    assert policy.check('echo {1..4000}; ' * 100 + 'rm x').rule == 'denied_commands'
    assert _calls('bash', 'echo ' + '{1..4000} ' * 1000) < 3_000_000


def test_twice_as_many_functions_with_twice_as_many_texts_to_read_are_twice_the_work() -> None:
    few, more = (
        _calls(
            'bash',
            ''.join(f'f{number}(){{ f{number + 1}; }};' for number in range(count))
            + 'f0 <<< x;' * count,
        )
        for count in (200, 400)
    )

    assert more <= 2.6 * few


def test_functions_are_walked_for_what_they_read_up_to_a_limit() -> None:
    body = 'f(){ ' + 'ls;' * 5000 + '};'

    assert POLICIES['bash'].check(body + 'f <<< x;' * 5).decision is Decision.ALLOW
    assert POLICIES['bash'].check(body + 'f <<< x;' * 10).rule == 'unresolved'


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
