"""Places where it is easy to read a line differently from bash: each row was tried in bash 5.2."""

import pytest

from anyshell.policy.calls import find
from anyshell.policy.syntax import NotUnderstood

ROWS = [
    # Where bash looks for the end of an expansion
    ('echo ${v[[}\nrm x\n#]]}', {'echo', 'rm'}),
    ('echo "${v[[}"\nrm x\n#]]}"', {'echo', 'rm'}),
    ('echo ${v:-}}; rm x', {'echo', 'rm'}),
    ('echo $(( $(rm x) + `zap` ))', {'echo', 'rm', 'zap'}),
    ('((rm 1); zap)', {'rm', 'zap'}),
    ('echo $((rm 1); zap)', {'echo', 'rm', 'zap'}),
    # `name[` at the place of a command reads on to its `]`
    ('v[ # ]; rm x', {'v[ # ]', 'rm'}),
    ('>f A=1 v[0]=x rm', {'rm'}),
    ('A=1 >f B=2 rm', {'rm'}),
    # Continuations vanish
    ('A\\\n= rm x', {'rm'}),
    ('A+\\\n= rm x', {'rm'}),
    ('{f\\\nd}>f rm x', {'rm'}),
    ('echo a\\\n# ; rm x', {'echo', 'rm'}),
    ('ls &\\\n& rm x', {'ls', 'rm'}),
    ('echo $\\\n(rm x)', {'echo', 'rm'}),
    ('cat <<E\\\nOF\nEOF\nrm x', {'cat', 'rm'}),
    ('cat <<E\na \\\nE\nE\nrm x', {'cat', 'rm'}),
    # A `-` behind `>&` is a token of its own
    ('>&-rm x', {'rm'}),
    # `time` and `coproc`
    ('ls | time rm x', {'ls', 'time', 'rm'}),
    ('time -p -- rm x', {'rm'}),
    ('coproc rm { ls; }', {'ls'}),
    ('echo $(coproc ls)', {'echo', 'COPROC', 'ls'}),
    # Inside `$(…)` a line that begins with the end of a here-document and holds a `)` ends it
    ('echo $(cat <<E\nhi\nE) ; rm x', {'echo', 'cat', 'rm'}),
    # A number before a redirection, and what is too large for one
    ('2>f rm x', {'rm'}),
    ('99999999999>f rm x', {'99999999999'}),
    ('a=(1)#; rm x', {'rm'}),
]


@pytest.mark.parametrize(('line', 'names'), ROWS)
def test_the_reader_finds_what_bash_runs(line: str, names: set[str]) -> None:
    findings = find(line, shell='bash')

    found = {call.name for call in findings.calls}
    found |= {item.text for item in findings.unresolved}
    assert found == names


@pytest.mark.parametrize(
    'line',
    [
        '((x${#))\nrm x',
        '(( ${x:-)) ; rm x\n} )); ls',
        'echo $(>f ! rm)',
        'echo $(time (rm))',
        'echo $(a=(x \\;))',
        'A=1 >f v[ ; rm ]',
        '${ rm x; }',
        '"${x:-\'}\'}"',
        'cat <<E',
        '[[ ]]',
        'for ((i=0;i<1;i++) ) do ls; done',
        'x >2>f',
        '! | ls',
        'in x',
    ],
)
def test_what_is_read_in_two_ways_or_in_none_is_refused(line: str) -> None:
    with pytest.raises(NotUnderstood):
        find(line, shell='bash')
