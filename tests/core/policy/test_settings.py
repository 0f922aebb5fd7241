"""Variables that change what runs, and every way to set one: each is judged like a plain assignment."""

import pytest

from anyshell.policy import DEFAULT_DENIED_COMMANDS, Decision, Policy

ALLOWED = Policy.from_lists(
    allowed_commands=(
        'ls', 'wait', 'echo', 'let', 'read', 'printf', 'declare', 'local', 'unset', 'mapfile', 'test', 'export', 'git', 'wc',
    ),
)  # fmt: skip
DENIED = Policy.from_lists(denied_commands=DEFAULT_DENIED_COMMANDS, allow_interactive=True)

# With a list of allowed commands, PATH is not set.
CHANGES_WHAT_RUNS = (
    # Arithmetic assigns, wherever it stands
    '((PATH=1)); ls', '((PATH+=1)); ls', '((PATH<<=1)); ls', '((PATH |= 1)); ls', '((PATH++)); ls', '((a ++PATH)); ls', 'wait -n -p PATH; ls', '((++PATH)); ls', '((--PATH)); ls', '((PATH --)); ls', '(( a = PATH = 1 )); ls', '((x, PATH=1)); ls',
    '(("PATH"=1)); ls', '((P\\ATH=1)); ls', '((PATH[0]=1)); ls', '((PATH[x[1]]=1)); ls', '((y[PATH=1])); ls', '(( x ? (PATH=1) : 0 )); ls', '((x=$((PATH=1)))); ls', '(($x=1)); ls', '((${p}ATH=1)); ls', '((PA$x=1)); ls', '((++$x)); ls',
    ': $((PATH=1)); ls', 'echo "$((PATH=1))"; ls', 'echo $[PATH=1]; ls', 'echo $[PATH++]; ls', 'x[PATH=1]=2; ls', 'x[PATH=1]+=2; ls', 'x=([PATH=1]=2); ls', 'echo ${x[PATH=1]}; ls', 'echo "${x[PATH=1]:-y}"; ls', 'echo ${x:PATH=1}; ls',
    'echo ${x:1:PATH=1}; ls', 'echo ${x:PATH++}; ls', '[[ PATH=1 -eq 1 ]]; ls', '[[ 1 -lt PATH=1 ]]; ls', "[[ 1 -eq 'x[PATH=1]' ]]; ls", "[[ -v 'x[PATH=1]' ]]; ls", "test -v 'x[PATH=1]'; ls", 'for ((PATH=1;;)); do ls; break; done',
    'for ((;;PATH++)); do ls; break; done', 'let PATH=1; ls', 'let PATH++; ls', "let 'x = y[PATH=1]'; ls", 'let --PATH; ls', 'declare -i x=PATH=1; ls', 'declare -i x; x=PATH=1; ls', "read 'x[PATH=1]' <<< 1; ls", "printf -v 'x[PATH=1]' 1; ls",
    "unset 'x[PATH=1]'; ls", "declare 'x[PATH=1]=2'; ls", 'cat() { ls; }; ls {x[PATH=1]}>f',
    # Others
    'coproc PATH { ls; }; ls', 'coproc PATH (ls); ls', 'ls {PATH}>f', ': ${PATH[x[0]]:=y}; ls', ': ${!x:=y}; ls', 'declare -n q=PATH; q=.; ls', 'declare -n q=$x; q=.; ls', 'local -n q; q=.; ls', 'x=PATH; printf -v "$x" .; ls',
    'declare PATH$x; ls', 'declare -n "$x"; ls', 'read -r PAGER; ls', "PAGER='ls |' git log",
    'f() { local PATH; ls; }; f', 'f() { declare PATH; ls; }; f', 'f() { local a PATH b; ls; }; f', 'f() { local PA"TH"; ls; }; f', 'f() { local -r PATH; ls; }; f', 'f() { local {A,PATH}; ls; }; f', 'n=PATH; unset $n; ls', 'n=PATH; unset "$n"; ls', 'RANDOM=PATH=1; ls', 'OPTIND="PATH=1"; ls',
    'n=PATH; declare ${n}=.; ls', 'declare ${n}TH=.; ls',
    'x=PATH; read "$x" <<< .; ls', 'read -r -p x -t 1 PATH; ls', 'read -a PATH; ls', 'mapfile -t PATH; ls', '((LD_PRELOAD=1)); ls', ': $((BASH_ENV=1)); ls',
)  # fmt: skip

# What is set there is not one of those variables, or nothing is set.
CHANGES_NOTHING = (
    '((x=1)); ls', '((PATHS=1)); ls', '((PATH==1)); ls', '((PATH<=1)); ls', '((PATH!=1)); ls', '((i++)); ls', 'for ((i=0;i<3;i++)); do ls; done', '((x[$i]=1)); ls', '((n[$i]++)); ls', 'echo $((x + PATH)); ls', 'echo ${x:PATH}; ls',
    'echo "${x:1}"; ls', '(( $i == 1 )); ls', '(( $i <= $j )); ls', '((x += $i)); ls', '((x = a[$i] - 1)); ls', '((x -= -1)); ls', 'x[i]=PATH=1; ls', 'echo "${x[@]}"; ls', 'echo PATH=1; ls', '[[ PATH=1 == x ]]; ls', '[[ $x -eq 1 ]]; ls',
    '[[ $x = PATH=1 ]]; ls', 'read -p PATH= x; ls', 'while IFS= read -r line; do ls; done', 'printf "PATH=%s" 1; ls', 'declare -i n=0; n+=1; ls', 'coproc N { ls; }; ls', 'declare -n q=r; ls', ': ${x:=1}; ls', 'let i++; ls', 'ls | wc; ls',
    'declare 1x; ls', 'f() { local x; ls; }; f', 'export PATH; ls', 'declare -p PATH; ls', 'declare -g PATH; ls', 'n=x; unset "$n"; ls', 'unset -f "$f"; ls', 'RANDOM=42; ls', 'OPTIND=1; ls',
    'git log --format=%H; ls', 'unset "$x"; ls', 'unset x; ls', 'export PAGER=cat; ls', 'declare -A m; m[a]=1; ls', 'm["$k"]=1; ls', '((1 - -1)); ls', 'read -r -t "$T" x; ls', 'read -ra words <<< "$x"; ls',
)  # fmt: skip

# With a list of denied commands, these run a denied one: how a name is set here is not read.
RUNS_WHAT_IS_NOT_READ = (
    "printf -v 'BASH_CMDS[ls]' %s /bin/rm; ls x", 'declare BASH_CMDS[$k]; ls x', 'declare BASH_CMDS[ls]=/bin/rm; ls x', "declare 'BASH_CMDS[ls]=/bin/rm'; ls x", "declare -A BASH_CMDS='([ls]=/bin/rm)'; ls x", "read 'BASH_CMDS[ls]' <<< /bin/rm; ls x",
    "read -r 'BASH_CMDS[ls]' <<< /bin/rm; ls x", ': ${BASH_CMDS[ls]:=/bin/rm}; ls x', ': ${BASH_CMDS[ls]=/bin/rm}; ls x', ': "${BASH_CMDS[ls]:=/bin/rm}"; ls x', ': ${BASH_CMDS[l[s]]:=/bin/rm}; ls x', 'declare -n q=BASH_CMDS; q[ls]=/bin/rm; ls x',
    "declare -n q='BASH_CMDS[ls]'; q=/bin/rm; ls x", 'f() { local -n q=BASH_CMDS; q[ls]=/bin/rm; }; f; ls x', 'n=BASH_CMDS; declare -n q=$n; q[ls]=/bin/rm; ls x', "n='BASH_CMDS[ls]'; printf -v \"$n\" /bin/rm; ls x",
    "n=BASH_CMDS; printf -v \"$n[ls]\" /bin/rm; ls x", "n='BASH_CMDS[ls]'; : ${!n:=/bin/rm}; ls x", "shopt -s expand_aliases; printf -v 'BASH_ALIASES[ls]' %s rm\nls x", "shopt -s expand_aliases; read 'BASH_ALIASES[ls]' <<< rm\nls x",
    'shopt -s expand_aliases; : ${BASH_ALIASES[ls]:=rm}\nls x', 'shopt -s expand_aliases; declare -n q=BASH_ALIASES; q[ls]=rm\nls x', 'mapfile BASH_CMDS <<< /bin/rm; ls x', 'readarray -t BASH_ALIASES <<< rm; ls x', "read PS4 <<< '$(rm x)'; set -x; :",
    'read -a BASH_ALIASES <<< rm; ls x', 'for BASH_CMDS[ls] in /bin/rm; do ls x; done', "for PS4 in '$(rm x)'; do set -x; :; done", "printf -v PS4 %s '$(rm x)'; set -x; :", "printf -v PS4 '$(rm x)'; set -x; :", "mapfile PS4 <<< '$(rm x)'; set -x; :",
    "declare -n q=PS4; q='$(rm x)'; set -x; :", ": ${PS4:='$(rm x)'}; set -x; :", '((BASH_CMDS[ls]=1)); ls x', "wait -n -p 'BASH_CMDS[ls]'; ls", "PS4=$(echo '$(rm x)'); set -x; :", "printf -v BASH_ENV f; export BASH_ENV; bash -c :", "x='$(rm x)'; PS4=$x; set -x; :", "x='$(rm x)'; export PS4=\"$x\"; set -x; :",
)  # fmt: skip

# None of these sets one of them, or it holds no code.
RUNS_NOTHING_ELSE = (
    "PS4='+ '; set -x; ls", "export PS4='+ $LINENO '; set -x; ls", 'PS4="+ $0: "; set -x; ls', 'unset PS4; ls', "unset 'BASH_CMDS[ls]'; ls", 'echo "${BASH_CMDS[@]}"', 'for i in "${!BASH_CMDS[@]}"; do echo "$i"; done', 'declare -p BASH_ALIASES', 'BASH_CMDS[ls]=/bin/ls; ls',
    'for ENV in dev prod; do echo "$ENV"; done', 'read -r ENV; ls', ': "${ENV:=dev}"', 'f() { local -n out=$1; out=1; }; f x', 'read "$x"; ls', 'printf -v "$x" 1; ls', ': ${!x:=y}; ls', 'printf -v x "%s" "$y"; ls', '((x[$i]=1)); ls', 'echo PS4', 'export -n PS4; ls',
)  # fmt: skip

# A variable with the integer attribute evaluates its value, which runs the commands in it.
EVALUATES = (
    "declare -ai n=('a[$(rm x)]')", "declare -Ai n=([k]='a[$(rm x)]')", "declare -ai n; n+=('a[$(rm x)]')", "declare -i n=1; read n <<< 'a[$(rm x)]'", "declare -i n; printf -v n '%s' 'a[$(rm x)]'", "declare -i n; for n in 'a[$(rm x)]'; do ls; done",
    "RANDOM='b[$(rm x)]'", "SRANDOM='b[$(rm x)]'", "OPTIND='x=b[`rm x`]'", "HISTCMD='b[$(rm x)]'", "RANDOM+='b[$(rm x)]'", "RANDOM=('b[$(rm x)]')", "RANDOM[0]='b[$(rm x)]'", "export OPTIND='b[$(rm x)]'", "declare HISTCMD='b[$(rm x)]'", "readonly RANDOM='b[$(rm x)]'", "read RANDOM <<< 'b[$(rm x)]'",
    "printf -v RANDOM %s 'b[$(rm x)]'", "for RANDOM in 'b[$(rm x)]'; do :; done", "mapfile RANDOM <<< 'b[$(rm x)]'", "declare -n r=RANDOM; r='b[$(rm x)]'", "o=-i; declare $o n='b[$(rm x)]'", "o=i; declare -$o n='b[$(rm x)]'", "o=n; declare -$o r='a[$(rm x)]'; echo $r", "f() { local $o n='b[$(rm x)]'; }; o=-i; f",
    "typeset -n r; r='a[$(rm x)]'; echo $r", "declare -n r; for r in 'a[$(rm x)]'; do echo $r; done", "declare -n r; read r <<< 'a[$(rm x)]'; echo $r", "declare -i \"$v\"; n='a[$(rm x)]'",
    "declare -i n; mapfile -t n <<< 'a[$(rm x)]'", "typeset -i n; : ${n:='a[$(rm x)]'}", "f() { local -i x=$1; }; f 'a[$(rm x)]'", "declare -i n; n='a[$(rm x)]'", "declare -i n; n=('a[`rm x`]')", "v='a[$(rm x)]'; declare -i n; n=$v",
)  # fmt: skip
EVALUATES_NUMBERS = (
    'f() { local -n out=$1; out=$2; }; [ "$(ls)" = y ]', 'local -i n=$1; [ "$(ls)" ]', 'RANDOM=$1; echo "$(ls)"', "export \"$k=$v\"; ls", "SECONDS='b[$(rm x)]'; LINENO='b[$(rm x)]'",
    'declare -i n; read n; ls', 'f() { local -i x=$1; }; f 5', 'declare -i n=0; while read -r line; do ((n++)); done < f', "declare -i n=0; read -r v <<< 'a[$(rm x)]'; echo $n", 'declare -ai n=(1 2 3); n+=(4)', 'declare -i n=$((1+2)); n=${#x}; for n in 1 2; do ls; done',
)  # fmt: skip


@pytest.mark.parametrize('line', EVALUATES)
def test_every_way_to_set_an_integer_is_looked_at(line: str) -> None:
    verdict = DENIED.check(line)

    assert (verdict.decision, verdict.rule) == (Decision.DENY, 'unresolved'), verdict.reason


@pytest.mark.parametrize('line', EVALUATES_NUMBERS)
def test_an_integer_may_be_set_to_a_number(line: str) -> None:
    verdict = DENIED.check(line)

    assert verdict.decision is Decision.ALLOW, verdict.reason


@pytest.mark.parametrize('line', CHANGES_WHAT_RUNS)
def test_a_list_of_allowed_commands_sees_every_way_to_set_what_runs(line: str) -> None:
    verdict = ALLOWED.check(line)

    assert verdict.decision is Decision.DENY
    assert verdict.rule == 'allowed_commands', verdict.reason
    assert 'decides which program runs' in verdict.reason


@pytest.mark.parametrize('line', CHANGES_NOTHING)
def test_a_list_of_allowed_commands_lets_other_variables_be_set(line: str) -> None:
    verdict = ALLOWED.check(line)

    assert verdict.decision is Decision.ALLOW, verdict.reason


@pytest.mark.parametrize('line', RUNS_WHAT_IS_NOT_READ)
def test_names_of_commands_set_in_another_way_are_not_known(line: str) -> None:
    verdict = DENIED.check(line)

    assert verdict.decision is Decision.DENY
    assert verdict.rule in {'unresolved', 'syntax'}, verdict.reason


@pytest.mark.parametrize('line', RUNS_NOTHING_ELSE)
def test_lines_that_only_look_alike_run(line: str) -> None:
    verdict = DENIED.check(line)

    assert verdict.decision is Decision.ALLOW, verdict.reason


def test_long_arithmetic_is_read_in_time_that_grows_with_it() -> None:
    import time  # noqa: PLC0415  # for this test alone

    began = time.monotonic()
    ALLOWED.check('((' + 'a[' * 20_000 + '1' + ']' * 20_000 + '=1))')
    ALLOWED.check('((' + 'a=' * 60_000 + '1))')

    assert time.monotonic() - began < 5
