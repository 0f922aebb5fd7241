"""Places where it is easy to read a line differently from bash: each row was tried in bash 5.2."""

import pytest

from anyshell.policy.calls import find
from anyshell.policy.syntax import NotUnderstood
from anyshell.policy.words import ansi_c

ROWS = [
    # Where bash looks for the end of an expansion
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
    # Words
    ('"r\\\nm" x', {'rm'}),
    ('$"rm" x', {'rm'}),
    ("$'\\162m' x", {'rm'}),
    ('a[b[1]]=2 rm x', {'rm'}),
    ('if<(ls) y', {'if<(ls) y', 'ls'}),
    ('{a{b,c} x', {'{ab'}),
    ('{{rm,a},b} x', {'rm'}),
    # What is empty without quotes is no word
    ('{,rm} x', {'rm'}),
    ('{,} rm x', {'rm'}),
    ('{"",rm} x', {''}),
    ('>f {,}; rm x', {'rm'}),
    ('{rm},b} x', {'rm}'}),
    ('{rm,{b} x', {'{rm,{b} x'}),
    ('{a..5} x', {'{a..5} x'}),
    ('{c..a} x', {'c'}),
    ('`echo \\\n a; rm x`', {'`echo \\\n a; rm x`', 'echo', 'rm'}),
    ('x=`echo \\a; rm x`', {'echo', 'rm'}),
    # Expansions
    ('echo ${$${x}; rm x', {'echo', 'rm'}),
    ('echo ${10} ${@} "${@}" ${?}; rm x', {'echo', 'rm'}),
    ("echo $(( $'1' )); rm x", {'echo', 'rm'}),
    # Quotes inside a quoted `${…}`: a pair is read where nothing in it matters
    ("""echo "${v//$'\\n'/ }"; rm x""", {'echo', 'rm'}),
    ("""l="${l%$'\\r'}"; rm x""", {'rm'}),
    ("""echo "${v#$'\\xef\\xbb'}"; rm x""", {'echo', 'rm'}),
    ("cat <<E\n${v//$'\\t'/ }\nE\nrm x", {'cat', 'rm'}),
    ("""echo "${v:+'$v'}"; rm x""", {'echo', 'rm'}),
    ("""echo "${v:+'${v}'}"; rm x""", {'echo', 'rm'}),
    ('echo ${x:-a\\\nb}; rm x', {'echo', 'rm'}),
    ('echo "${x:-\'a\'}"; rm x', {'echo', 'rm'}),
    ('echo "${x:-$\'a\'}"; rm x', {'echo', 'rm'}),
    # Here-documents
    ('cat <<-E\n\t$(rm x)\n\tE\n', {'cat', 'rm'}),
    ('cat <<$x\n$x\nrm x', {'cat', 'rm'}),
    ('cat <<${x}\n${x}\nrm x', {'cat', 'rm'}),
    ('cat <<"$x"\n$x\nrm x', {'cat', 'rm'}),
    # A pattern expands what stands in it
    ('[[ z =~ (<(rm x)|b) ]]', {'rm'}),
    ('[[ z =~ a(<(rm x)) ]]', {'rm'}),
    ('[[ z =~ ((<(rm x))) ]]', {'rm'}),
    ('[[ z =~ (a\\|<(rm x)) ]]', {'rm'}),
    ('[[ z == @(<(rm x)|b) ]]', {'rm'}),
    ('[[ z != !(<(rm x)) ]]', {'rm'}),
    ('[[ z = *(a|<(rm x)) ]]', {'rm'}),
    ('[[ z == @("<(rm x)"|b) ]]', set()),
    ('shopt -s extglob\necho @(<(rm x)|b)', {'shopt', 'echo', 'rm'}),
    ('shopt -s extglob\ncase z in @(<(rm x)|b)) ls;; esac', {'shopt', 'ls', 'rm'}),
    ('shopt -s extglob\ncase z in +(a|>(rm x))) ls;; esac', {'shopt', 'ls', 'rm'}),
    ('shopt -s extglob\nv=@(<(rm x))', {'shopt', 'rm'}),
    ('shopt -s extglob\nls > @(<(rm x))', {'shopt', 'ls', 'rm'}),
    ('shopt -s extglob\na=(@(<(rm x)))', {'shopt', 'rm'}),
    ('shopt -s extglob\nls ${v#@(<(rm x)|b)}', {'shopt', 'ls', 'rm'}),
    # Also in quotes, where it is a pattern or a subscript
    ('v=z; echo "${v%<(rm x)}"', {'echo', 'rm'}),
    ('v=z; echo "${v/>(rm x)}"', {'echo', 'rm'}),
    ('echo "${a[${v:-<(rm x)}]}"', {'echo', 'rm'}),
    ('cat <<E\n${v#<(rm x)}\nE', {'cat', 'rm'}),
    ('echo "<(rm x) ${v} >(rm x)"', {'echo'}),
    # Compound commands
    ('function f ( ) { rm x; }', {'rm'}),
    ('function f (\\\n) { rm x; }', {'rm'}),
    ('for x; do rm x; done', {'rm'}),
    ('for x in a\ndo rm x; done', {'rm'}),
    ('case x in (a) rm x;; esac', {'rm'}),
    ('coproc { rm x; }', {'rm'}),
    ('coproc A=1 rm x', {'rm'}),
    ('[[ a =~ b|c ]]; rm x', {'rm'}),
    ('[[ a &&\nb ]]; rm x', {'rm'}),
    ('[[ ! a ]]; rm x', {'rm'}),
    ('echo $(time [[ a ]])', {'echo'}),
    ('echo $(time [[ a ]]; rm x)', {'echo', 'rm'}),
    ('time &>f rm x', {'rm'}),
    # A keyword is one over continuations, too
    ('i\\\nf ls; th\\\nen rm x; f\\\ni', {'ls', 'rm'}),
    ('wh\\\n\\\nile a; do rm x; done', {'a', 'rm'}),
    ('[\\\n[ a =~ (b) ]]; rm x', {'rm'}),
    ('functionsx\\\ny a', {'functionsxy'}),
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
        'echo ${v[[}\nrm x\n#]]}',
        'echo "${v[[}"\nrm x\n#]]}"',
        "echo ${a[}'$(rm x)']}",
        "echo ${a[x}'`rm x`']}",
        "echo ${a[$\n{w:'$(rm x)'}]}",
        "echo ${!a[}'$(rm x)']}",
        "A=${a[}'$(rm x)']}",
        '((x${#))\nrm x',
        '(( ${x:-)) ; rm x\n} )); ls',
        'echo $(>f ! rm)',
        'echo $(time (rm))',
        'echo $(time coproc x { a; b)',
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
        'echo $(cat <<E)',
        'echo $((ls # \\\n); ls)',
        '((1)\\\n)',
        '(($[ls x))',
        'cat <<E | declare a=(b\nc)\nE',
        'a=(b',
        'cat <<E\n${\nE\n',
        'cat <<"${x}"\n${x}\n',
        "cat <<'a\nb'\n",
        '{ ls; } 2x',
        'shopt -s extglob\n!(ls)',
        'for i in a & do ls; done',
        'for ((a;b)); do ls; done',
        'for ((;;;)); do ls; done',
        'case x in a b) ls;; esac',
        """echo "${v:-$'\\x24(rm x)'}\"""",
        """echo "${v:-$'\\'}\"""",
        """echo "${v:+'$(rm x)'}\"""",
        '(ls',
        '[[ a',
        "echo $'a",
        ']] x',
        'case x in a) ls;;',
        'f() ls',
        'f(x) { ls; }',
        'coproc done',
        'coproc x done',
        '[[ ( a ]]',
        '[[ a == ]]',
    ],
)
def test_what_is_read_in_two_ways_or_in_none_is_refused(line: str) -> None:
    with pytest.raises(NotUnderstood):
        find(line, shell='bash')


@pytest.mark.parametrize(
    'line',
    [
        'A+=1 ls',
        'echo $"a"',
        'echo ${!x}',
        'echo ${x/a/b}',
        'ls |& wc',
        'ls >&f',
        'case x in a) ls;;& b) ls;; esac',
        '>f function f',
        'a[0]=1',
        'a[0]=/../../../usr/bin/rm x',
        'echo ${a[0]}',
        'echo "${a[@]}"',
        'echo ${#a[@]}',
        '{ ls; } &> f',
        '(ls) &>> f',
        'f() { ls; } &> x',
    ],
)
def test_what_only_bash_reads_is_refused_for_sh_by_name(line: str) -> None:
    with pytest.raises(NotUnderstood, match='is bash syntax'):
        find(line, shell='sh')

    assert find(line, shell='bash')


@pytest.mark.parametrize(
    'line',
    [
        'cat <<E\nE\\\n\n',
        'echo $(cat <<E\nhi\nE) ; ls',
        'cat <<E\n`echo \\"a\\"`\nE\n',
        'ls >&-x',
        'nice -n 52>&1 timeout 5 ls',
        'a-b() { ls; }',
    ],
)
def test_what_posix_shells_read_in_different_ways_is_refused_for_sh(line: str) -> None:
    with pytest.raises(NotUnderstood):
        find(line, shell='sh')


@pytest.mark.parametrize(
    'line',
    [
        'fd=1; echo x >&$fd',
        'fd=2; echo x 1>&"$fd"',
        'echo x >&$((1))',
        'exec 3>&1; n=3; ls >&${n}',
        'ls & ls && ls',
        'echo a[0]=1 ${a#[}',
    ],
)
def test_what_any_shell_may_read_is_read_for_sh(line: str) -> None:
    assert find(line, shell='sh').calls


@pytest.mark.parametrize(
    ('text', 'value'),
    [
        ('\\x72\\155', 'rm'),
        ('\\u0072\\U0000006d', 'rm'),
        ('r\\x0x', 'r'),
        ('r\\u0x', 'r'),
        ('r\\c@x', 'r'),
        ('\\ca\\t', '\x01\t'),
        ('\\z', '\\z'),
        ('\\c\uf8ff', '\uf8ff'),
        ('\\U00110000', '\ufffd'),
    ],
)
def test_ansi_c_quotes_mean_what_they_mean_in_bash(text: str, value: str) -> None:
    assert ansi_c(text) == value
