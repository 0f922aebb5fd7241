"""What shells read: their input, wherever the line gives it to them."""

import pytest

from anyshell.policy import DEFAULT_DENIED_COMMANDS, Decision, Policy

POLICY = Policy.from_lists(denied_commands=DEFAULT_DENIED_COMMANDS, allow_interactive=True)

READ = (
    # The head of a compound command reads what it is redirected from
    'for i in $(sh); do :; done <<< "rm x"', 'case $(sh) in *) ;; esac <<< "rm x"', '[[ $(sh) ]] <<< "rm x"', '(( $(sh) )) <<< "rm x"', 'for i in $(sh); do :; done <<E\nrm x\nE', 'for ((i=$(sh);0;)); do :; done <<< "rm x"',
    'select i in $(sh); do break; done <<< "rm x"',
    # A trap reads what the commands read that it runs between
    '(trap sh EXIT) <<< "rm x"', '(trap sh EXIT; ls) <<E\nrm x\nE', 'bash -c "trap sh EXIT; ls" <<< "rm x"', 'echo "rm x" | (trap sh EXIT)', 'echo "rm x" | { trap sh EXIT; ls; }', 'f() { trap sh RETURN; ls; }; f <<< "rm x"',
    'trap sh DEBUG; { ls; } <<< "rm x"', 'trap "sh" EXIT; exec <<< "rm x"', 'trap "bash" EXIT; exec < <(echo rm x)', 'trap ". /dev/stdin" EXIT; exec <<< "rm x"', 'f() { sh; }; trap f EXIT; exec <<< "rm x"',
    # A function reads what it is called with
    'f() { sh; }; exec <<< "rm x"; f', 'f() { bash; }; exec < <(echo rm x); f', 'f() { sh; }; export -f f; bash -c f <<< "rm x"', 'command_not_found_handle() { sh; }; nosuch <<< "rm x"',
    # Standard input has many names
    'bash /dev/./stdin <<< "rm x"', 'bash /dev/../dev/stdin <<< "rm x"', 'bash //dev//stdin <<< "rm x"', 'bash /dev/std?n <<< "rm x"', 'bash "/dev/std${x:-in}" <<< "rm x"', 'a=/dev/stdin; bash "$a" <<< "rm x"', 'a=/dev/stdin; . $a <<< "rm x"', 'a=/dev; bash "$a/stdin" <<< "rm x"',
    'cd /dev; bash stdin <<< "rm x"', 'cd /dev; . ./stdin <<< "rm x"', 'bash /proc/self/../self/fd/0 <<< "rm x"', 'source /dev/std[i]n <<E\nrm x\nE', 'ls | bash /dev/./stdin', 'ls | . /dev/./fd/0', 'ls | (cd /dev; bash stdin)', 'ls | bash < /dev/./stdin',
    'bash -c \'. "$1"\' _ /dev/stdin <<< "rm x"', 'f() { . "$1"; }; f /dev/stdin <<< "rm x"', 'for s in /dev/stdin; do bash "$s" <<< "rm x"; done', 'a=/dev/stdin; b=$a; bash "$b" <<< "rm x"', 'a=-; bash "$a" <<< "rm x"',
    # A file that a shell reads by itself
    'BASH_ENV=/dev/stdin bash -c ls <<< "rm x"', 'env BASH_ENV=/dev/stdin bash -c ls <<< "rm x"', 'export BASH_ENV=/dev/stdin; bash -c ls <<< "rm x"', 'BASH_ENV=/dev/fd/3 bash -c ls 3<<< "rm x"', 'BASH_ENV=<(ls) bash -c ls', 'bash --rcfile /dev/stdin -ic ls <<< "rm x"', 'bash --rcfile <(ls) -ic ls',
    'bash --init-file /dev/fd/0 -ic ls <<< "rm x"', 'ls | ENV=/dev/stdin sh -i -c ls', 'PS1="\\$(rm x)" bash --norc -i <<< ls', 'PS0="\\$(rm x)" bash --norc -i <<< ls',
    # The first word may be none
    '. $x /dev/stdin <<< "rm x"',
)  # fmt: skip

HARMLESS = (
    "trap 'bash cleanup.sh' EXIT INT; exec > rm.log 2>&1", 'for f in $(cat); do ls "$f"; done < rm.txt', 'f() { bash; }; exec > rm; f', 'bash; exec 3< rm', 'exec < f; cat', 'f() { bash x.sh; }; export -f f; ls | xargs -n1 bash -c f', '. $x rm', 'bash <<< "ls"; exec 2>&1',
    'ls | bash ./stdin', 'cd /dev; ls stdin', 'ls | bash "$D/run.sh"', 'for s in a.sh b.sh; do ls | bash "$s"; done', 'ENV=dev ls', 'BASH_ENV=rm.sh bash x.sh', 'bash --rcfile rm.sh -ic ls', 'PS1="\\$(rm x) "; ls -i', 'PS1="(x) $PS1" bash -i x.sh', 'bash -i x.sh',
    'command_not_found_handle() { echo rm; }; nosuch <<< x', "trap 'rm=1' ERR; ls | cat",
)  # fmt: skip


@pytest.mark.parametrize('line', READ)
def test_a_shell_is_given_no_command_to_read(line: str) -> None:
    assert POLICY.check(line).decision is Decision.DENY


@pytest.mark.parametrize('line', HARMLESS)
def test_what_reads_no_commands_runs(line: str) -> None:
    verdict = POLICY.check(line)

    assert verdict.decision is Decision.ALLOW, verdict.reason


def test_the_body_of_a_function_calls_functions_whatever_it_is_called_by() -> None:
    policy = Policy.from_lists(allowed_commands=('ls', 'env', 'python'))

    verdict = policy.check('helper() { ls; }; python() { helper; }; ls | env python x.py')

    assert verdict.decision is Decision.ALLOW, verdict.reason
