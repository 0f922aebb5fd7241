"""`anyshell check`, `explain`, `test` and `schema`: exit codes, JSON, and words for a person."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from anyshell.cli import main


def run(*arguments: str, stdin: bytes | str | None = None) -> Result:
    return CliRunner().invoke(main, list(arguments), input=stdin)


@pytest.mark.parametrize(
    ('arguments', 'code'),
    [
        (('check', 'ls'), 0),
        (('check', 'git push', '--ask', 'git push'), 1),
        (('check', 'rm x'), 2),
        (('check', 'rm x', '--deny', 'git'), 0),
        (('check', 'zap', '--allow', 'ls'), 2),
        (('check', 'ls > f', '--deny-operator', '>'), 2),
        (('check', 'vim'), 2),
        (('check', 'vim', '--allow-interactive'), 0),
        (('check', '$x', '--unresolved', 'ask'), 1),
        (('check', '[[ a ]]', '--shell', 'sh'), 2),
        (('explain', 'rm x'), 2),
        (('check',), 3),
        (('check', 'ls', '--deny', 'a|b'), 3),
        (('check', 'ls', '--policy', 'no-such-file.yaml'), 3),
        (('no-such-command',), 3),
        (('check', '--help'), 0),
    ],
)
def test_the_exit_code_is_the_verdict_and_3_is_an_error(
    arguments: tuple[str, ...], code: int
) -> None:
    result = run(*arguments)

    assert result.exit_code == code, result.output


def test_check_reads_a_line_with_any_bytes_from_its_input() -> None:
    assert run('check', '-', stdin='ls\nrm x\n').exit_code == 2
    assert run('check', '-', stdin=b'ls \xff').exit_code == 2


def test_check_prints_a_verdict_as_json() -> None:
    printed = json.loads(run('check', 'ls; rm x', '--json').stdout)

    assert printed.pop('reason').startswith("Command 'rm' is denied.")
    assert printed == {
        'decision': 'deny',
        'rule': 'denied_commands',
        'command': 'rm x',
        'span': [4, 8],
    }


def test_explain_shows_commands_rules_and_the_winner() -> None:
    shown = run('explain', 'A=1 env xargs sh -c "ls; $x y" > f').stdout

    assert 'env  A=1 env xargs' in shown
    assert 'ls  ls  through env > xargs > sh' in shown
    assert 'unresolved: deny' in shown
    assert shown.rstrip().endswith('deny  by unresolved')


def test_explain_prints_everything_as_json() -> None:
    printed = json.loads(run('explain', 'A=1 env rm x | $y', '--json').stdout)

    assert [(call['name'], call['through']) for call in printed['calls']] == [
        ('env', []),
        ('rm', ['env']),
    ]
    assert [item['what'] for item in printed['unresolved']] == ['name']
    assert [item['name'] for item in printed['variables']] == ['A']
    assert [item['operator'] for item in printed['operators']] == ['|']
    assert printed['verdict']['decision'] == 'deny'


def test_explain_says_when_there_is_nothing() -> None:
    assert run('explain', '# rm').stdout.split() == [
        'commands',
        'none',
        'rules',
        'none',
        'objects',
        'verdict',
        'allow',
    ]


def test_a_policy_file_takes_the_place_of_the_options(tmp_path: Path) -> None:
    path = tmp_path / 'p.yaml'
    path.write_text('ask_commands: [ls]')

    assert run('check', 'ls', '--policy', str(path)).exit_code == 1
    assert run('check', 'ls', '--policy', str(path), '--deny', 'ls').exit_code == 3


def test_test_reports_examples_and_entries_that_can_never_match(tmp_path: Path) -> None:
    path = tmp_path / 'p.yaml'
    path.write_text('ask_commands: [{command: ls, match: [ls, rm]}, ls x]')

    result = run('test', str(path))

    assert result.exit_code == 1
    assert "'ls' does not match its example 'rm'" in result.output
    assert "'ls x' can never match" in result.output
    assert result.output.rstrip().endswith('2 entries, 2 examples, 1 failed, 1 unreachable')
    assert run('test', str(tmp_path / 'no.yaml')).exit_code == 3


def test_test_is_content_with_a_good_file(tmp_path: Path) -> None:
    path = tmp_path / 'p.yaml'
    path.write_text('ask_commands: [{command: ls, match: [ls], not_match: [rm]}]')

    assert run('test', str(path)).exit_code == 0


def test_schema_prints_json() -> None:
    assert json.loads(run('schema').stdout)['title'] == 'anyshell policy'
