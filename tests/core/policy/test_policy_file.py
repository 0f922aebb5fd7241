"""Policy files: what they hold, what is refused with a place, and what `anyshell test` says about them."""

import json
from pathlib import Path

import pytest

from anyshell.errors import PolicyError
from anyshell.policy import Decision, Policy
from anyshell.policy.file import json_schema, load, parse

FILE = """
shell: bash
unresolved: ask
allow_interactive: true
allowed_commands:
  - ls
  - command: git push
    match: [git push origin, 'ls; git -C x push']
    not_match: [git pull]
ask_commands: [rm]
denied_operators:
  - '>'
  - operator: '|'
    match: ['a | b', 'a |& b']
    not_match: ['a || b']
"""


def test_a_file_holds_what_the_options_hold(tmp_path: Path) -> None:
    path = tmp_path / 'policy.yaml'
    path.write_text(FILE, encoding='utf-8')

    policy = Policy.from_file(path)

    assert [policy.check(line).decision for line in ('ls', 'git push', 'rm x', '$x', 'zap', 'ls > f', 'ls | ls')] == [
        Decision.ALLOW, Decision.ALLOW, Decision.ASK, Decision.ASK, Decision.DENY, Decision.DENY, Decision.DENY,
    ]  # fmt: skip
    assert Policy.from_file(path, shell='sh').shell == 'sh'


def test_an_empty_file_is_the_default() -> None:
    policy = parse('').policy()

    assert policy.check('rm x').rule == 'denied_commands'
    assert policy.check('vim').rule == 'allow_interactive'


def test_a_file_may_deny_nothing() -> None:
    assert parse('denied_commands: []').policy().check('rm x').decision is Decision.ALLOW


@pytest.mark.parametrize(
    ('text', 'message'),
    [
        (
            'allowed_comands: [ls]',
            "p.yaml, line 1: the key 'allowed_comands' is not known; did you mean 'allowed_commands'?",
        ),
        ('\nzzz: 1', "p.yaml, line 2: the key 'zzz' is not known; known are"),
        ('shell: zsh', "p.yaml, line 1: shell is 'zsh': it must be one of bash, sh"),
        (
            'allow_interactive: maybe',
            "p.yaml, line 1: allow_interactive is 'maybe': it must be one of true, false",
        ),
        ('allow_interactive: 1', 'p.yaml, line 1: allow_interactive is 1'),
        ('allowed_commands: ls', 'p.yaml, line 1: allowed_commands must be a list'),
        ('allowed_commands:\n  - [ls]', 'p.yaml, line 2: allowed_commands: a text belongs here'),
        ('allowed_commands:\n  - ls\n  - git *', "p.yaml, line 3: allowed_commands holds 'git *'"),
        ('denied_operators: [x]', "p.yaml, line 1: denied_operators holds 'x'"),
        ('ask_commands:\n  - match: [x]', "p.yaml, line 2: the key 'command' is missing"),
        (
            'ask_commands:\n  - command: x\n    matches: [x]',
            "p.yaml, line 3: the key 'matches' is not known; did you mean 'match'?",
        ),
        (
            'ask_commands:\n  - {command: x, match: x}',
            'p.yaml, line 2: match must be a list of command lines',
        ),
        ('shell: sh\nshell: bash', 'p.yaml, line 2: shell stands twice'),
        ('[a]', 'p.yaml, line 1: a mapping of'),
        ('a: [', 'p.yaml: not valid YAML'),
    ],
)
def test_what_is_wrong_is_named_with_its_place(text: str, message: str) -> None:
    with pytest.raises(PolicyError) as caught:
        parse(text, 'p.yaml')

    assert str(caught.value).startswith(message)


def test_an_example_that_does_not_hold_is_an_error_when_the_file_is_loaded(tmp_path: Path) -> None:
    path = tmp_path / 'p.yaml'
    path.write_text(
        "ask_commands:\n  - {command: rm, match: [ls, 'ls |'], not_match: ['ls; rm']}",
        encoding='utf-8',
    )

    with pytest.raises(PolicyError) as caught:
        load(path)

    assert "line 2, ask_commands: 'rm' does not match its example 'ls'" in str(caught.value)
    assert "the example 'ls |' is not understood" in str(caught.value)
    assert "'rm' matches its example 'ls; rm'" in str(caught.value)


def test_a_file_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match='can not be read'):
        load(tmp_path / 'no.yaml')


def test_a_file_that_is_no_text_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / 'p.yaml'
    path.write_bytes(b'denied_commands: [\xff]')
    with pytest.raises(PolicyError, match='is not UTF-8'):
        load(path)


@pytest.mark.parametrize(
    ('text', 'entries'),
    [
        ('ask_commands: [git, git push]', ['git push']),
        ('ask_commands: [git push, git]', ['git push']),
        ('ask_commands: [git, git]', ['git']),
        ('denied_commands: [git]\nask_commands: [git push, ls]', ['git push']),
        ('denied_commands: [git push]\nask_commands: [git]', []),
        ("denied_operators: ['>', '>>', '|']", ['>>']),
        ("denied_operators: ['>>', '>']", ['>>']),
        ("denied_operators: ['>', '>']", ['>']),
        ('allowed_commands: [vim, ls]', ['vim']),
        ('allow_interactive: true\nallowed_commands: [vim, ls]', []),
    ],
)
def test_entries_that_can_never_match_are_named(text: str, entries: list[str]) -> None:
    found = parse(text).unreachable()

    assert len(found) == len(entries)
    for sentence, entry in zip(found, entries, strict=True):
        assert f'{entry!r} can never match' in sentence


def test_the_schema_knows_every_key() -> None:
    schema = json_schema()

    assert json.loads(json.dumps(schema)) == schema
    assert set(schema['properties']) == {
        'allowed_commands', 'denied_commands', 'ask_commands', 'denied_operators', 'allow_interactive', 'unresolved', 'shell',
    }  # fmt: skip
