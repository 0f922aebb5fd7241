"""Builtins of the shell that run commands or evaluate text, in the ways that are easily missed."""

import subprocess
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anyshell.policy import DEFAULT_DENIED_COMMANDS, Decision, Policy
from anyshell.policy.words import ansi_c

DENIED = Policy.from_lists(denied_commands=DEFAULT_DENIED_COMMANDS, allow_interactive=True)
LISTED = Policy.from_lists(allowed_commands=('ls', 'git', 'cat', 'less', 'set', 'unset', 'trap', 'bash', 'env', 'wc'), ask_commands=('make',), denied_operators=('>',))  # fmt: skip

RUNS_RM = (
    # $'…' as bash reads it
    "$'\\x{72}m' x", "$'\\x{72m' x", "$'\\x{172}m' x", "$'\\x{0072}\\x{6d}' x", "$'/bin/r\\x{6d}' x", "r$'\\x{}'m x", "$'rm\\x{00}zz' x", "$'rm\\x{100}zz' x", "eval $'\\x{72}m x'", "bash -c $': \\c\\\\x27; rm x; : \\c\\\\x27'", "trap $': \\c\\\\x22; rm x; : \\c\\\\x22' EXIT", "test -v $'a[\\x{24}(rm x)]'",
    # jobs -x
    'jobs -x rm x', 'true & jobs -x rm %1', 'jobs -x -- rm x', 'command jobs -x rm x', 'builtin jobs -x rm x', 'jobs -x env rm x', 'jobs -x "$cmd"', 'jobs $o rm x', 'jobs -x sh -c "rm x"',
    # The history
    "history -s 'rm x'; fc -s", 'fc -s x=rm', 'fc -e rm', 'fc', 'fc -ls', 'fc $x', 'set -o history -o histexpand\nhistory -s rm\n!rm', 'set -o history -H\necho x\n^echo^rm', 'set -eH; history -s rm', "bash -Hc 'set -o history\nhistory -s rm x\n!!'", 'shopt -so history; history -s x', 'shopt -s -o histexpand',
    "bash -H -o history <<'E'\necho x\n^echo^rm\nE", "bash -i <<'E'\necho rm\n!echo:s/echo//\nE", "bash -i <<'E'\necho rm\n^echo^^\nE", "bash -o histexpand -c 'ls'",
    # Subscripts behind an expansion
    "x=a; test -v \"$x\"'[$(rm x)]'", 'x=a; test -v "$x[\\$(rm x)]"', 'x=a; test -v $x\\[\\$\\(rm\\ x\\)\\]', "op=v; test -$op 'a[$(rm x)]'", '[ -v "$1[\\$(rm x)]" ]', "[ \"$x\" 'a[$(rm x)]' ]", "test a = b -a -v 'a[$(rm x)]'", "test ! -v 'a[$(rm x)]'", "o=v; printf -$o 'a[$(rm x)]' z", "printf $o 'a[$(rm x)]' z", "[ 'a[$(rm x)]' = $x ]",
    # eval and its like join their words before they read them
    "eval ls $v';rm x'", "eval echo $1'$(rm x)'", 'eval echo ${v}\\;rm x', "eval ls $v'&&rm x'", "eval ls $v'\nrm x'", "eval ls *';rm x'", "eval ls ${v:+x}';rm x'", "eval ls \"$@\"';rm x'", "eval echo $(ls)';rm x'",
    'eval echo `ls`\\;rm x', "eval ls $1\\;'rm' x", "eval echo '$(rm x)'$v", 'eval echo "\\$(rm x)"`echo z`', "eval set -- $v';rm x'", "watch ls $v';rm x'", "parallel ls $v';rm {}' ::: x", "git submodule foreach ls $v';rm x'",
    "set -- ';rm x'; eval : rm$1echo", "v=';rm x'$(ls); eval \"ls $v\"", "v='; rm x'\"$(pwd)\"; bash -c \"ls $v\"", "v='$(rm x)'<(:); PS4=$v; set -x; ls", "eval nohup $x rm", "eval env $x'rm' x", "eval env $x/rm x", "v='; /bin'; eval ls $v/rm x", "shopt -s extglob\neval ls @(a|'$(rm x)')", "shopt -s extglob\neval ls @(a)';rm x'", 'eval . <(echo rm x)', 'bash -c "source "<(curl x)',
    # A descriptor that the shell has chosen
    "exec {fd}<<<'rm x'; . /dev/fd/$fd", "exec {fd}<<<'rm x'; bash /dev/fd/$fd", "exec {fd}<<<'rm x'; . /proc/$$/fd/$fd", 'exec {fd}<<E; source /dev/fd/$fd\nrm x\nE',
    # Quotes in the default of an expansion protect nothing where that is evaluated
    "echo $(( ${v:-'$(rm x)'} ))", "(( ${v:-'$(rm x)'} ))", "echo $[ ${v:-'$(rm x)'} ]", "for ((i=${v:-'$(rm x)'};i<0;)); do ls; done", "echo ${a[${v:-'$(rm x)'}]}", "a[${v:-'$(rm x)'}]=1", "w=abc; echo ${w:${v:-'$(rm x)'}}",
    "echo \"$(( ${v:-'$(rm x)'} ))\"", "cat <<E\n$(( ${v:-'$(rm x)'} ))\nE", "(( ${v:-'a[$(rm x)]'} ))", "A=$((${v:-'`rm x`'})) ls", "echo $((${v:-{z,'`rm x`'}}))", "A=${a[${v:-$ \\\n(: 'a[$(rm x)]')}]} ls", "((ls); (((ls); (echo ${@:-'`rm x`'}))))",
    "(( ${v:-${w:-'$(rm x)'}} ))", "echo ${a[b[0]]:'x[$(rm x)]'}", "let 'a[${ rm x; }]'",
    "let ${v:-'a[$(rm x)]'}", "test -v ${v:-'a[$(rm x)]'}", "[ -v ${v:-'a[$(rm x)]'} ]", "printf -v ${v:-'a[$(rm x)]'} y", "printf ${o:--v} ${v:-'a[$(rm x)]'} y", "[[ ${v:-'a[$(rm x)]'} -eq 0 ]]", "[[ -v z${1:-'a[$(rm x)]'} ]]", "read ${z:-'a[$(rm x)]'} <<< x",
    "declare ${z:-'a[$(rm x)]=1'}", "declare -n r=${z:-'a[$(rm x)]'}; r=1", "let \"${z:-a[\\$(rm x)]}\"", "let ${a[1]:-'a[$(rm x)]'}", "declare -i n; n=${z:-'a[$(rm x)]'}",
    # It is code where it becomes a part of code
    "eval \"echo ${z:-; rm x}\"", "bash -c \"echo ${z:-; rm x}\"", 'bash -c "echo ${z:-\\$(rm x)}"', "eval echo ${z:-'; rm x'}", 'eval "echo ${v:-${w:-\\$(rm x)}}"', 'eval "echo ${a[0]:-; rm x}"', 'eval "ls ${v/a/;rm x}"', 'eval "ls ${v//a/;rm x}"',
    "x=${z:-'; rm y'}; eval \"ls $x\"",
    "let 'a[$'${z:-'(rm x)]'}", "echo ${a['$'${z:-'(rm x)'}]}", 'xargs -I{} sh -c "ls ${z:-;rm x} {}"', "v=';rm x'; xargs -I{} sh -c \"ls $v {}\"", 'xargs -I{} bash "$v{}"',
    ": ${v:='$(rm x)'}; eval \"ls $v\"", ": ${v:=';rm x'$w}; eval \"ls $v\"", "x=1; : \"${v:=$(rm x)}\"",
    # A value as a prompt, behind any subscript
    "a=('$(rm x)'); b=(0); echo ${a[b[0]]@P}", "a='$(rm x)'; echo ${a[z[0]]@P}", "declare -A a=([\"]\"]='$(rm x)'); echo ${a[\"]\"]@P}", "x='$(rm y)'; [[ 'a[${x@P}]' -eq 0 ]]", "x='$(rm y)'; let 'a[${x@P}]=1'",
    # What prints a number is another program
    "nproc() { echo 5 rm x; }; eval 'timeout $(nproc) ls'", "nproc() { echo 5 rm x; }; trap 'timeout $(nproc) ls' EXIT", 'nproc() { echo 5 rm x; }; echo `timeout \\$(nproc) ls`', 'nproc(\\\n) { echo 5 rm x; }; timeout $(nproc) ls',
    'functi\\\non nproc { echo 5 rm x; }; timeout $(nproc) ls', "trap 'nproc(''){ echo 5 rm x; }' DEBUG; timeout $(nproc) ls", "nproc() { echo 5 rm x; }; bash -c 'timeout $(nproc) ls'",
    # extglob is switched on in a way that the reader does not see
    'builtin shopt -s extglob\n!(ls)', "eval 'shopt -s extglob'\n!(ls)", '\\shopt -s extglob\n!(ls)', 'o=extglob; shopt -s $o\n!(ls)', "sho''pt -s ext\\glob\n!(ls)", "shopt -s extglob\neval '!(ls)'", 'o=extglob; bash -O "$o" -c \'!(ls)\'',
    "env BASHOPTS=extglob bash -c '!(ls)'", 'builtin shopt -s extglob\nls `!(ls)`',
    # PS4 is given its text in pieces
    "PS4=('$(rm x)'); set -x; ls", "PS4='$'; PS4+='(rm x)'; set -x; ls", "v='$(rm x)'; PS4='${v@P}'; set -x; ls", "set -- '$(rm x)'; PS4=$1; set -x; ls", "a=('$(rm x)'); PS4=${a[0]}; set -x; ls", "PS4=${z:-'$(rm x)'}; set -x; ls",
    "PS4=('$''\\]''(rm x)'); set -x; ls", "PS4='$\\D{%p}(rm x)'; set -x; ls", "g() { v=+'\\044'${v:-$1}${z:-'(rm x)'}; }; g; PS4=$v; set -x; ls", "w='(rm x)'; v='$'; PS4=$v$w; set -x; ls",
    ": ${v:='$(rm x)'}; PS4=$v; set -x; ls", ": ${v:=${z:-'$'}${z:-'(rm x)'}}; PS4=$v; set -x; ls",
    "f() { PS4=$v; }; v='$(rm x)'; f; set -x; ls", "v='(rm x)'; PS4='$'; PS4+=$v; set -x; ls",
    # Each redirection reads what those in front of it give
    "ls <<< 'rm x' > \"f$(bash)\"", ": <<< 'rm x' <<< $(bash)", "{ ls; } <<< 'rm x' > f$(bash)", "ls <<< 'rm x' 2> `sh`", ": <<< 'rm x' <<E\n$(bash)\nE",
    # Other names of the standard input and of descriptors
    "bash ../../../../../dev/stdin <<< 'rm x'", "cd /; bash dev/stdin <<< 'rm x'", "bash /proc/self/root/dev/stdin <<< 'rm x'", "cd / && cd dev && bash stdin <<< 'rm x'", "cd /d''ev; bash stdin <<< 'rm x'", "env -C /dev bash stdin <<< 'rm x'", "cd /dev; bash fd/3 3<<< 'rm x'", "bash ../../../dev/fd/3 3<<< 'rm x'", "BASH_ENV=../../../dev/stdin bash -c ls <<< 'rm x'",
    "echo 'rm x' | xargs -a f -I{} sh", "xargs -a f -I{} sh <<< 'rm x'",
    # Lines in front of one that is not understood run
    "x=$'; rm y\\n)'; eval \"ls $x\"", 'eval "ls ${x:-; rm y\n)}"', "npx -c $'rm x\\n)'",
    # What pasted code spells out
    "x='; echo rm z|sh'; eval \"ls $x\"", "x='; y=rm; $y z'; eval \"ls $x\"", "x='; bash <(echo rm z)'; eval \"ls $x\"", f"x='; {'nice ' * 30}rm y'; eval \"ls $x\"", "o='-exec rm {} +'; eval \"find . $o\"",
    # Arguments and values that stand together, or are handed on
    "f() { sh -c \"ls $*\"; }; f ';' 'rm y'", "f() { eval ls \"$@\"; }; f ';' rm y", "set -- ';' 'rm y'; eval \"ls $*\"", "x=(';' 'rm y'); eval \"ls ${x[*]}\"", "set -- {ls,'; rm x'}; eval \"echo $2\"", "bash -c 'eval \"ls $2\"' _ {a,'; rm y'}", "printf -v x '%s%s' ';' 'rm y'; eval \"ls $x\"",
    "for i in 1 2 3; do c=$b; b=$a; a='; rm x'; eval \"ls $c\"; done", f"for x in {' '.join(map(str, range(40)))} '; rm y'; do z=$x; eval \"echo $z\"; done",
    # Aliases
    "shopt -s expand_aliases\nalias a='nice '\nalias b='-n 5 rm'\na b x", "shopt -s expand_aliases\nalias a=nice\nfalse && alias a=ls\na rm x", "trap 'a rm x' EXIT; alias a=nice", "for i in 1 2; do eval 'a rm x'; alias a=nice; done",
    # find, where what is not known may end a command
    "x=';'; find . -exec ls {} $x -exec rm {} \\;", "find . -exec ls {} \"${x:-;}\" -exec rm {} \\;", "x=+; find . -exec ls {} $x -exec rm {} \\;", "find . -exec ls {} [\\;] -exec rm {} \\;",
    'memusage rm x', 'sotruss rm x', 'luit rm x', 'debconf rm x', 'prove -e "rm x"', 'dpkg-architecture -c "rm x"', "split --filt='rm x'",
    # PS4 is read as a prompt
    "PS4='\\044(rm x) '; set -x; :", "PS4='\\140rm x\\140 '; set -x; :", "PS4=$'\\\\044(rm x)'; set -x; :", "set -x; PS4='+${x:=\\140rm x\\140}'; :", "x='\\44(rm x)'; PS4=$x; set -x; :", "PS4='$\\050rm x)'; set -x; :",
)  # fmt: skip

RUNS_NONE = (
    ': "${v:=$HOME/out}"; find "$v" -name x', ": ${a[0]:=5}; echo ${a[0]}",
    'xargs -I{} sh -c "ls $v {}"', 'xargs -I{} cp {} $d/{}', "PS4='\\[\\e[1m\\]+ $LINENO \\[\\e[0m\\]'; set -x; ls", "c='(debug) '; PS4=\"$c+ \"; set -x; ls", "PS4='$ '; set -x; ls",
    'v="done (see $(ls))"; bash -c "echo $v"',
    "let x=${v:-$(ls)}", '[[ ${x:-0} -eq 0 ]]', '[ "${x:-a[0]}" = "$(ls)" ]', '(( ${x:-0} == 1 ))', 'echo ${x:${y:-0}:1}', 'echo ${a[${i:-0}]}', 'echo ${a[b[0]]} ${a["k]"]:-x} "${a[$i]}" "${!a[@]}" "${#a[@]}" "${a[@]:1:2}" "${a[-1]}" ${a[0]@Q}',
    'bash -c "ls ${x//;/ }"', 'bash -c "ls ${f%;*}"', 'declare "$k=${v:-$(ls)}"', 'test -v ${v:-a}', '[ -n "${v:-$(ls)}" ]', "timeout $(nproc) ls", "bash -c 'timeout $(nproc) ls'", "f() { ls; }; bash -c 'ls'", '!(ls)', 'shopt -s nullglob\n!(ls)',
    "PS4='+(${BASH_SOURCE}:${LINENO}): ${FUNCNAME[0]:+${FUNCNAME[0]}(): }'; set -x; ls", "v='a b'; PS4=$v; set -x; ls", "v='$(ls)'; PS4='+ '; set -x; ls",
    "eval ls $(echo)' -l'", 'eval ls *.txt', 'eval ls "$@"', 'shopt -s extglob\neval ls @(a|b)', "shopt -s extglob\neval ls @(a|';rm x')", 'eval x[1]=5', 'eval "cd $d && ls" *', 'eval cat <(ls)', 'watch ls $f', 'cat /dev/fd/$fd',
    "$'r\\x6dx' y", "echo $'\\x{72}m' x", "$'\\x' rm", 'jobs', 'jobs -l', 'jobs -p rm', 'jobs "$x"', 'fc -l', 'fc -ln 1 5', 'history -s rm', 'set +H; ls', 'set -euo pipefail; ls', 'set -o', 'set -o "$x"', 'set -e -o pipefail -x; ls', 'set +o history', 'shopt -s extglob', 'shopt -s nullglob globstar', 'shopt -uo history', 'bash +H -c ls',
    'bash dir/stdin.sh <<< x', "alias ll='ls -l'; ll rm", 'find . -exec grep "$x" {} \\; -exec ls {} \\;', 'xargs -a f ls', 'ls <<< "rm x" > "f$(date)"', 'compgen -F f x', "x='; ls'; y=\"$x\"; eval \"ls $y\"", 'bash scripts/0.sh; cd x; bash run.sh',
    "bash -i <<'E'\n! ls\n[ a != b ]\nE", "bash <<'E'\necho !!\nE", "test \"$x\" = 'a[$(rm x)]'", "[ 'a[$(rm x)]' != \"$x\" ]", 'test -v x', '[ -v "$x" ]', '[ "$x" -eq 1 ]', 'printf "$f" "[$(ls)]"', "printf \"$f\" '[$(rm x)]'", "PS4='\\033[1m+ \\033[0m'; set -x; ls",
)  # fmt: skip

# What is not listed runs, or a variable decides what does.
RUNS_MORE = (
    "GIT_EDITOR='PATH=./evil ls' git commit", "PAGER='LD_PRELOAD=./x.so cat' git log", "EDITOR='env PATH=. ls' git commit", "EDITOR='EDITOR=nl git commit' git commit", "EDITOR='bash -c \"PATH=. ls\"' git commit", 'PAGER=less git log', "PAGER='less -R' git log", "GIT_EDITOR='ls > f; true' git commit", 'EDITOR=make git commit', "f='; nl'; PAGER=\"cat $f\" git log",
    "PAGER='ls |' git log", 'PAGER="$x" git log', 'set -k; ls PATH=./evil', "bash -kc 'ls PATH=.'", 'set -o keyword; ls PATH=.',
    # A function that is gone when it is called again
    'f() { ls; }; for i in 1 2; do f; unset -f f; done', 'g() { ls; }; h() { g; }; trap h EXIT; unset -f g', 'f() { ls; }; trap f EXIT; unset f', 'f() { ls; }; f; unset $x; f', 'g() { ls; }; for i in 1 2; do eval g; unset -f g; done',
    # One that is not there yet
    'f() { g; }; f; g() { ls; }', 'f() { g; }; f | cat; g() { ls; }', 'f() { g; }; trap f EXIT; g() { ls; }', 'f() { h; }; h() { g; }; set -e; f; g() { ls; }; f', 'f() { g; }; ls $(f); g() { ls; }', 'command_not_found_handle() { g; }; ls; g() { ls; }', 'f() { g() { ls; }; h; }; h() { g; }; f', 'f() { g; }; f & g() { ls; }',
    # In arithmetic
    'unset x; ((ls = ${v:-PATH=1})); ls',
    # Text that the line itself puts in code
    "x='; nl y'; bash -c \"ls $x\"", "x='; nl y'; eval \"ls $x\"", "x='$(nl y)'; eval \"ls $x\"", "x='; nl y'; trap \"ls $x\" EXIT", "f() { eval \"ls $1\"; }; f '; nl y'", "o=-c; bash \"$o\" 'nl y'",
)  # fmt: skip

RUNS_LISTED = (
    '((x = ${v:-0})); ls', '((x = ${v:=5})); ls', '((${x=5})); ls', '[[ ${x:=5} -eq 5 ]]; ls', '((n += ${x//a=b/})); ls', 'bash -c "ls ${x//;/ }"', 'bash -c "ls ${x%%|*}"',
    "PAGER='cat -n' git log", "EDITOR='ls -l' git commit", 'PAGER=cat git log', 'PAGER= git log', "GIT_PAGER='cat | wc' git log", 'f() { ls; }; unset x; f', 'f() { ls; }; unset -v f; f', 'f() { ls; }; unset "a[1]"; f', 'f() { ls; }; g() { ls; }; unset -f g; f', 'set +k; ls',
    # Functions that are defined behind those that call them
    'set -e\nf() { g; }\ng() { ls; }\nf', 'f() { g; }; g() { ls; }; [[ -d x ]] && f', 'f() { g; }; g() { ls; }; f | cat', 'f() { g; }; g() { ls; }; f & ls', 'cd x || exit\nf() { g; }\ng() { ls; }\nf', 'A=1; f() { [[ $1 ]] || g 1; }; g() { f; }; f && ls', 'x() { ls; }; x; f() { g; }; g() { x; }; f', 'f() { g; }; g() { ls; }', 'set -e; f() { eval g; }; g() { ls; }; trap f EXIT',
    'f() { for i in 1 2; do g | cat; done; }; f2() { f; }; git log; g() { ls; }; f2', "x='a;b'; bash -c \"ls '$x'\"", "o=-c; bash \"$o\" 'ls'", 'bash "$x" f',
)  # fmt: skip


@pytest.mark.parametrize('line', RUNS_RM)
def test_a_denied_program_is_found_behind_a_builtin(line: str) -> None:
    assert DENIED.check(line).decision is Decision.DENY


@pytest.mark.parametrize('line', RUNS_NONE)
def test_builtins_that_run_nothing_else_are_allowed(line: str) -> None:
    verdict = DENIED.check(line)

    assert verdict.decision is Decision.ALLOW, verdict.reason


@pytest.mark.parametrize('line', RUNS_MORE)
def test_a_list_of_allowed_commands_is_not_left_in_a_roundabout_way(line: str) -> None:
    assert LISTED.check(line).decision is not Decision.ALLOW


@pytest.mark.parametrize('line', RUNS_LISTED)
def test_what_only_calls_listed_commands_is_allowed(line: str) -> None:
    verdict = LISTED.check(line)

    assert verdict.decision is Decision.ALLOW, verdict.reason


def test_variables_with_very_many_values_are_not_put_into_code() -> None:
    padding = ' '.join(f'";ls {"x" * 200}{n}"' for n in range(600))
    line = f'for w in {padding} ";rm y"; do sh -c "echo $w $w $w $w"; done'

    verdict = DENIED.check(line)

    assert (verdict.decision, verdict.rule) == (Decision.DENY, 'unresolved')
    assert 'too' in verdict.reason


def test_a_value_that_is_put_together_again_and_again_is_soon_looked_at() -> None:
    line = 'x=";ls"; ' + 'x="$x$x"; ' * 2_000 + 'sh -c "ls $x"'
    began = time.process_time()

    DENIED.check(line)

    assert time.process_time() - began < 5


_TEXT = st.text(alphabet='\\\\\\xx{}cuU0147aFe\u00e9?"nz@_M`$( \n', max_size=9)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(_TEXT.filter(lambda text: (len(text) - len(text.rstrip('\\'))) % 2 == 0), max_size=40)
)
def test_quoted_escapes_mean_what_they_mean_to_bash(texts: list[str]) -> None:
    code = '\n'.join(f"printf '%s\\0' $'{text}'" for text in texts)

    found = subprocess.run(
        ['bash', '--norc', '-c', code], capture_output=True, env={'LC_ALL': 'C.UTF-8'}, check=True, timeout=30
    )  # fmt: skip

    said = found.stdout.decode('utf-8', 'replace').split('\0')[:-1]
    assert [ansi_c(text) for text in texts] == said
