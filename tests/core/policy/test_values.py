"""Variables that become words of a command: what the line itself gives them."""

import time

import pytest

from anyshell.policy import DEFAULT_DENIED_COMMANDS, Decision, Policy

POLICY = Policy.from_lists(denied_commands=DEFAULT_DENIED_COMMANDS, allow_interactive=True)

# The folder begins with an option, whose value it is: the words behind it are the command.
OPTIONS = (
    'read V <<< -uA; env "$V/x" rm y', 'printf -v V %s -uA; env "$V/x" rm y', 'for V in -uA; do env "$V/x" rm y; done', 'for V in {-uA,-uB}; do env "$V/x" rm y; done',
    'f() { env "$1/x" rm y; }; f -uA', 'set -- -uA; env "$1/x" rm y', 'set -e - -uA; env "$1/x" rm y', 'f() { for d; do env "$d/x" rm y; done; }; f -uA', ': ${V:=-uA}; env "$V/x" rm y', 'env "${V:--uA}/x" rm y', 'V=$(echo -uA); env "$V/x" rm y',
    'a=(-uA); env "$a/x" rm y', 'a=(-uA); env "${a[0]}/x" rm y', 'declare -a a=(-uA); env "$a/x" rm y', 'mapfile -t V <<< -uA; env "$V/x" rm y', 'select V in -uA; do env "$V/x" rm y; done <<< 1',
    ': -uA; env "$_/x" rm y', 'read <<< -uA; env "$REPLY/x" rm y', "declare x=$'\\x{2d}uA'; env \"$x/x\" rm y",
    "bash -c 'env \"$1/x\" rm y' _ -uA", "bash -c 'env \"$0/x\" rm y' -uA", "for V in '-Srm a'; do env \"$V/x\"; done", "set -- '-Srm a'; env \"$1/x\"", 'X=-uA; V=$X; env "$V/x" rm y', 'f() { V=$X; }; X=-uA; f; env "$V/x" rm y',
    'V=$(pwd; echo -uA); env "$V/x" rm y', 'pwd() { echo -uA; }; V=$(pwd); env "$V/x" rm y', 'V=$(dirname -- -uA/y); env "$V/x" rm y', 'V=$(echo -uA && pwd); env "$V/x" rm y', 'V=$({ echo -uA; }); env "$V/x" rm y', 'V=$(<f); env "$V/x" rm y', 'env "${V[i]}/x" ls; V=(-u); env "${V[0]}/x" rm y',
)  # fmt: skip

# One of the words that it splits into is the name of a command.
SPLITS = (
    'for V in "rm a"; do $V/x; done', 'V=("rm a"); $V/x', 'X="rm a"; V=$X; $V/x', 'V="${X:-rm a}"; $V/x', ': "${V:=rm a}"; $V/x', 'set -- "rm a"; V=$1; $V/x', 'read -r V <<< "rm a"; $V/x', 'printf -v V "rm a"; $V/x',
    'mapfile -t V <<< "rm a"; $V/x', 'V=$(echo "rm a"); $V/x', 'V=`echo "rm a"`; $V/x', 'declare -n V=W; W="rm a"; $V/x', 'V=a; V=${V/a/rm a}; $V/x', 'echo "rm a" | while read -r V; do $V/x; done', 'read -r V <<< "rm a"; nohup $V/x',
    'for V in "rm a"; do xargs -n1 $V/x < f; done', 'for V in "1 rm"; do env F=$V y; done', 'V=("1 rm"); env F=$V y', 'X="1 rm"; V=$X; env F=$V y', 'V=$(echo "1 rm"); env F=$V y', 'read -r V <<< "1 rm"; env F=$V y',
    ': "${V:=1 rm}"; env F=$V y', 'printf -v V "1 rm"; env F=$V y', 'f() { local d=$1; $d/x; }; f "rm a"', 'for i in 1 2; do $V/x; V="rm a"; done', 'V=$(dirname "rm a/b"); $V/x', 'X="rm a/b"; V=$(dirname "$X"); $V/x', 'V=$(dirname "$(echo "rm a/b")"); $V/x', 'f() { V=$(dirname "$1"); $V/x; }; f "rm a/b"', 'env V="rm a" bash -c \'$V/x\'', 'export V="rm a"; bash -c \'$V/x\'', 'bash -c \'V=$0; $V/x\' "rm a"', 'V[0]="rm a"; $V/x',
    # Variables that the shell sets by itself, and separators that are set in another way.
    "getopts 'a:' x -a 'rm y'; $OPTARG/x", "[[ 'rm y' =~ .* ]]; $BASH_REMATCH/x", "z=a; a='rm y'; x=${!z}; $x/y", "z='rm,y'; x=${z/,/$'\\t'}; $x/y", "read <<< 'rm y'; $REPLY/x", ": 'rm y'; $_/x", 'true "rm y" && ${_}/x', ": 'rm y'; nohup $_/x", "x=$'rm\\x{20}y'; $x/y",
    'declare I""FS=/; x=rm/y; $x/z', 'I\\\nFS=/; x=rm/y; $x/z', 'printf -v I""FS /; x=rm/y; $x/z', 'read I""FS <<< /; x=rm/y; $x/z', 'export "I"FS=/; x=rm/y; $x/z', 'declare I{F,G}S=/; x=rm/y; $x/z', 'n=I; declare ${n}FS=/; x=rm/y; $x/z', "declare $'\\x49FS=/'; x=rm/y; $x/z", "eval 'I''FS=/'; x=rm/y; $x/z",
    "f() { $x/z; }; x=rm/y; declare I''FS=/; f",
)  # fmt: skip

# An -exec of find that the line spells out elsewhere.
ACTIONS = (
    'V=(-exec rm {} +); find . "${V[@]}"', 'V="-exec rm {} +"; find . $V', 'V="-exec rm {} ;"; find . -name f $V', 'set -- -exec rm {} +; find . "$@"', 'f() { find . "$@"; }; f -exec rm {} +', 'read -ra V <<< "-exec rm {} +"; find . "${V[@]}"',
    'echo "-exec rm x ;" | xargs find . -name f', 'echo "-exec rm x ;" | xargs find f', "printf '%s\\n' -exec rm x ';' | xargs find f", 'find . $(echo -exec rm {} +)', 'W=(-okdir rm {} +); V=("${W[@]}"); find . "${V[@]}"',
)  # fmt: skip
NO_ACTIONS = (
    'find "$dir" -type f', 'dirs=(a b); find "${dirs[@]}" -name x -exec ls {} \\;', 'find "$@" -name x', 'f() { find "$1" -name x -exec ls {} +; }; f src', 'while read -r d; do find "$d" -exec ls {} \\;; done < f', 'ls | xargs find -name x', 'find $(ls) -exec wc {} +',
    'echo a-exec b; ls | xargs find', 'find . "${args[@]}"', 'args=(-type f -name "*.py"); find . "${args[@]}" -exec wc {} +',
)  # fmt: skip

# A text with more than one command, pasted into code.
PASTED = (
    'A="x; rm y"; bash -c "ls $A"', 'A="x;rm y"; sh -c "ls $A"', "A='x; rm y'; eval \"ls $A\"", 'A="\n rm y"; trap "ls $A" EXIT', 'A="x;rm y"; bash <<E\nls $A\nE', 'A="x;rm y"; A="x;ls"; sh -c "ls $A"', 'for A in a "x;rm y"; do sh -c "ls ${A}"; done', 'A="x;rm y"; watch ls "$A"', "set -- 'x; rm y'; bash -c \"ls $1\"", "f() { bash -c \"ls $1\"; }; f 'x; rm y'", "A='x; rm y'; B=$A; bash -c \"ls $B\"", "A='$(rm y)'; eval echo $A",

    'for w in ";ls" ";ls -l" ";ls -a" ";pwd" ";rm y"; do sh -c "echo $w"; done', 'sh -c "ls ${x:-; rm y}"', 'sh -c "ls ${x-"; rm y"}"', 'sh -c "ls ${1:-; rm y}"', "x='; rm y'; y=\"a $x\"; sh -c \"ls $y\"", "x='; rm y'; y=a$x; sh -c \"ls $y\"", "f() { local x=$1; sh -c \"ls $x\"; }; f '; rm y'",
    "x='; rm y'; sh -c \"ls ${x:-b}\"", "x='; rm y'; sh -c \"ls ${x%z}\"", "x=';'; x+=' rm y'; eval \"ls $x\"", "x=';'; y='rm y'; eval \"ls $x $y\"", "x=';'; y=rm; eval \"ls $x$y\"", ": ${x:='; rm y'}; eval \"ls $x\"", ': "${x:=; rm y}"; eval "ls $x"', "a=('; rm y'); eval \"ls ${a[0]}\"", "a[3]='; rm y'; eval \"ls ${a[3]}\"",
    "read x <<< '; rm y'; eval \"ls $x\"", "read -r a x <<< 'q ; rm y'; eval \"ls $x\"", 'read x <<E\n; rm y\nE\neval "ls $x"', "read <<< '; rm y'; eval \"ls $REPLY\"", "mapfile -t x <<< '; rm y'; eval \"ls $x\"", "mapfile -t <<< '; rm y'; eval \"ls $MAPFILE\"", "printf -v x '; rm y'; eval \"ls $x\"", "printf -v x %s '; rm y'; eval \"ls $x\"", "a='; rm y'; declare -n b=a; eval \"ls $b\"",
    "z='rm y'; w='a; '; sh -c \"echo $w$z\"", ": '; rm y'; eval \"ls $_\"", "x=$';\\x{72}m y'; eval \"ls $x\"", "declare -A a=([k]='; rm y'); eval \"ls ${a[k]}\"", "z=rm; w=\"a; $z y\"; sh -c \"echo $w\"", "x='; rm y'; y=(a \"$x\"); eval \"ls ${y[1]}\"",
)  # fmt: skip
PASTED_TEXT = (
    'A="x; rm y"; bash -c "ls \'$A\'"', 'A="x; ls y"; bash -c "ls $A"', 'A="rm y"; bash -c "ls $A"', 'A="x;rm"; B=1; bash -c "ls $(ls $A) $B"', 'A="(rm)"; bash -c "ls $A"', 'sh -c "ls ${x:-rm y}"', "x=';'; y=\"'rm y'\"; eval \"ls $y\"", "x='a;b'; bash -c \"grep '$x' f\"", 'A="1;"; A="2;"; A="3;"; A="4;"; A="5;"; sh -c "ls $A $B"',
)  # fmt: skip

# Values that are one word and no option, as far as the line says.
PLAIN = (
    'DIR=$(cd "$(dirname "$0")" && pwd); nohup "$DIR/run.sh" &', 'DIR=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd); $DIR/run.sh', 'DIR="$(cd "$(dirname "$0")"; pwd -P)"; exec "$DIR/bin/terraform" init',
    'ROOT=$(git rev-parse --show-toplevel); env A="$ROOT" "$ROOT/venv/bin/python" -m pytest', 'V=$(dirname "$(readlink -f "$0")"); $V/x', 'V=$(mktemp -d); $V/bin/pip install x', 'V=$(cat f); nohup "$V/bin/python" x.py', 'V=$(cat f); env "$V/bin/python" rm.py', 'V=$(pwd); env F=$V y',
    'for d in a b; do env "$d/bin/python" rm; $d/run.sh; done', 'for d in packages/*; do (cd $d && npm test); timeout 5 $d/run.sh; done', 'f() { nohup "$1/bin/run" x; }; f -v /opt', 'f() { local d=$1; $d/run.sh; }; f /opt/x', ': ${V:=/opt/venv}; $V/bin/python x',
    'DIR=${DIR%/}; $DIR/x', 'V=${1:-build}; $V/run.sh', 'set -euo pipefail; V=/x; nohup "$V/y" a', 'set +x; for d in "$@"; do nohup "$d/run" z; done', 'T=$X; timeout "$T" ls', 'unset V; $V/x', 'n=$((1+2)); $n/x; timeout "$n" ls',
    'a=""; V=$a/x; nohup "$V/y" z', 'V=""; nohup "$V/y" z', 'V=""$((1)); nohup "$V/y" z', 'opts=-v; nohup "$D/x" $opts', 'set', 'set -e', 'set -- rm', 'A="x;ls"; PROMPT_COMMAND="ls $A; \\"\\$V/y\\""; ls', 'declare -n "$x"; ls',
)  # fmt: skip


@pytest.mark.parametrize('line', OPTIONS)
def test_a_folder_that_may_be_an_option_hides_no_command(line: str) -> None:
    assert POLICY.check(line).decision is Decision.DENY


@pytest.mark.parametrize('line', SPLITS)
def test_a_variable_that_may_become_several_words_is_to_be_quoted(line: str) -> None:
    verdict = POLICY.check(line)

    assert (verdict.decision, verdict.rule) == (Decision.DENY, 'unresolved'), verdict.reason
    assert 'in quotes' in verdict.reason or 'plain words' in verdict.reason


@pytest.mark.parametrize('line', ACTIONS)
def test_find_is_given_no_command_in_a_variable(line: str) -> None:
    assert POLICY.check(line).decision is Decision.DENY


@pytest.mark.parametrize('line', PASTED)
def test_commands_that_a_variable_puts_in_code_are_denied(line: str) -> None:
    verdict = POLICY.check(line)

    assert (verdict.decision, verdict.rule) == (Decision.DENY, 'denied_commands'), verdict.reason


@pytest.mark.parametrize('line', [*PLAIN, *NO_ACTIONS, *PASTED_TEXT])
def test_what_the_line_gives_as_one_word_runs(line: str) -> None:
    verdict = POLICY.check(line)

    assert verdict.decision is Decision.ALLOW, verdict.reason


def test_folders_behind_each_other_are_judged_in_time_that_grows_with_them() -> None:
    began = time.process_time()
    POLICY.check('V=$(x); ' + 'env "$V/env" ' * 3_000 + 'ls')
    for start, unit in (
        ('', 'bash 0; '),
        ('', 'PS1=a; '),
        ('declare -i n; ', 'read n; '),
        ('declare -i n; read n; ', '['),
        ("PS1='$(x)'; ", 'sh '),
        ('bash 0; ', 'cd '),
        ('find $x; ', 'echo '),
    ):
        POLICY.check(start + unit * (20_000 // len(unit)))
    POLICY.check('A=\'x; eval "ls $A"\'; ' * 4 + 'eval "ls $A"')
    POLICY.check('V0="rm a"; ' + ''.join(f'V{n}=$V{n - 1}; $V{n}/x; ' for n in range(1, 1000)))

    assert time.process_time() - began < 5
