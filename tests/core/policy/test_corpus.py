"""The public corpus: 900 command lines with their right verdicts. `corpus.jsonl` says why each is right, and whence."""

import json
from pathlib import Path
from typing import Any

import pytest

from anyshell.policy import DEFAULT_DENIED_COMMANDS, Decision, Policy

ROWS = [
    json.loads(row)
    for row in Path(__file__).with_name('corpus.jsonl').read_text(encoding='utf-8').splitlines()
]

# Contested rows that are decided otherwise than the corpus suggests. SECURITY.md gives the reasons to users.
DECIDED_OTHERWISE = {
    'operator-044': '`&` denies the token `&`; `&&` is another token and starts nothing in the background',
    'shell_code-040': 'a file that a shell reads is not read by the policy',
    'subscript-014': 'the value of a variable is not followed into arithmetic',
    'undecidable-052': 'a name from a variable is refused, also where a reader could follow it',
    'undecidable-056': 'a name from a variable is refused, also where a reader could follow it',
}


def _policy(row: dict[str, Any], shell: str) -> Policy:
    return Policy.from_lists(
        shell=shell, **{'denied_commands': DEFAULT_DENIED_COMMANDS, **row['policy']}
    )


@pytest.mark.parametrize('row', ROWS, ids=lambda row: row['id'])
def test_the_verdict_is_right(row: dict[str, Any]) -> None:
    verdict = _policy(row, 'sh' if row['shell'] == 'sh' else 'bash').check(row['command'])

    right = row['verdict'] == 'allow'
    if row['id'] in DECIDED_OTHERWISE:
        assert row['contested']
        right = not right
    assert (verdict.decision is Decision.ALLOW) == right, f'{row["why"]}: {verdict.reason}'


@pytest.mark.parametrize(
    'row',
    [row for row in ROWS if row['shell'] == 'any' and row['verdict'] == 'allow'],
    ids=lambda row: row['id'],
)
def test_what_is_allowed_for_any_shell_is_allowed_for_sh_unless_it_is_bash_syntax(
    row: dict[str, Any],
) -> None:
    verdict = _policy(row, 'sh').check(row['command'])

    if row['command'] == 'a[1>0]=x':
        # In a POSIX sh this is a command called `a[1` and a redirection.
        assert verdict.rule == 'denied_operators'
    elif 'is bash syntax' in verdict.reason:
        assert verdict.rule == 'syntax'
    else:
        assert verdict.decision is Decision.ALLOW, verdict.reason


@pytest.mark.parametrize('row', ROWS, ids=lambda row: row['id'])
def test_a_refusal_has_a_rule_a_sentence_and_a_place(row: dict[str, Any]) -> None:
    verdict = _policy(row, 'bash').check(row['command'])

    if verdict.decision is Decision.ALLOW:
        assert verdict.reason == ''
        assert verdict.rule is None
    else:
        assert verdict.rule
        assert verdict.reason.rstrip().endswith('.')
        assert verdict.span is not None
        start, end = verdict.span
        assert 0 <= start <= end <= len(row['command'])
