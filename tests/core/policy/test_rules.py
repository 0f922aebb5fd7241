"""What the lists of a policy mean, in one row per claim."""

# ruff: noqa: RUF001, S108  # look-alike letters and paths are what the rows are about

import pytest

from anyshell.errors import PolicyError
from anyshell.policy import (
    DEFAULT_DENIED_COMMANDS,
    INTERACTIVE_COMMANDS,
    AskCommands,
    Decision,
    DeniedCommands,
    Policy,
    Verdict,
)

ALLOW, ASK, DENY = Decision.ALLOW, Decision.ASK, Decision.DENY
DEFAULT = {'denied_commands': DEFAULT_DENIED_COMMANDS}

ROWS = [
    # The default list, and approval
    (DEFAULT, 'rm x', DENY, 'denied_commands'),
    ({**DEFAULT, 'ask_commands': ('rm',)}, 'rm x', ASK, 'ask_commands'),
    ({**DEFAULT, 'ask_commands': ('rm',)}, 'rmdir x', DENY, 'denied_commands'),
    ({**DEFAULT, 'ask_commands': ('rm -r',)}, 'rm -r x', ASK, 'ask_commands'),
    ({**DEFAULT, 'ask_commands': ('rm -r',)}, 'rm x', DENY, 'denied_commands'),
    ({'denied_commands': ('rm',), 'ask_commands': ('rm',)}, 'rm x', DENY, 'denied_commands'),
    ({'denied_commands': (*DEFAULT_DENIED_COMMANDS, 'x'), 'ask_commands': ('rm',)}, 'rm x', DENY, 'denied_commands'),
    ({**DEFAULT, 'ask_commands': ('git',)}, 'ls; git push; rm x', DENY, 'denied_commands'),
    ({**DEFAULT, 'ask_commands': ('git',)}, 'ls; git push', ASK, 'ask_commands'),
    ({**DEFAULT, 'ask_commands': ('git push',)}, 'git pull', ALLOW, None),
    ({**DEFAULT, 'allowed_commands': ('rm', 'ls')}, 'rm x', ALLOW, None),
    ({**DEFAULT, 'allowed_commands': ('ls',), 'ask_commands': ('rm',)}, 'ls; rm x', ASK, 'ask_commands'),
    ({**DEFAULT, 'allowed_commands': ('ls',), 'ask_commands': ('rm',)}, 'ls; zap', DENY, 'allowed_commands'),
    ({'denied_commands': ()}, 'rm x; $y', ALLOW, None),
    ({}, 'rm x', ALLOW, None),
    ({}, 'vim', DENY, 'allow_interactive'),
    # Entries with arguments
    ({'denied_commands': ('git push',)}, 'git push', DENY, 'denied_commands'),
    ({'denied_commands': ('git push',)}, 'git -C x push', DENY, 'denied_commands'),
    ({'denied_commands': ('git push',)}, 'git -C x --no-pager -c a=b push origin', DENY, 'denied_commands'),
    ({'denied_commands': ('git push',)}, 'git --git-dir=x push', DENY, 'denied_commands'),
    ({'denied_commands': ('git push',)}, 'git --no-such-option y push', DENY, 'denied_commands'),
    ({'denied_commands': ('git push',)}, 'git stash push', ALLOW, None),
    ({'denied_commands': ('git push',)}, 'git commit -m push', ALLOW, None),
    ({'denied_commands': ('git push',)}, 'git pushx', ALLOW, None),
    ({'denied_commands': ('git push',)}, 'git "push"', DENY, 'denied_commands'),
    ({'denied_commands': ('git push',)}, 'git {push,origin}', DENY, 'denied_commands'),
    ({'denied_commands': ('git push',)}, 'git $x', DENY, 'denied_commands'),
    ({'denied_commands': ('git push',)}, 'git log "$x"', ALLOW, None),
    ({'denied_commands': ('git push',)}, 'echo push | xargs git', DENY, 'denied_commands'),
    ({'denied_commands': ('git push --force',)}, 'git push --force', DENY, 'denied_commands'),
    ({'denied_commands': ('git push --force',)}, 'git push', ALLOW, None),
    ({'denied_commands': ('git push',)}, 'env A=1 /usr/bin/git -C x push', DENY, 'denied_commands'),
    ({'allowed_commands': ('git status',)}, 'git status -s', ALLOW, None),
    ({'allowed_commands': ('git status',)}, 'git -C x status', ALLOW, None),
    ({'allowed_commands': ('git status',)}, 'git push', DENY, 'allowed_commands'),
    ({'allowed_commands': ('git status',)}, 'git', DENY, 'allowed_commands'),
    ({'allowed_commands': ('git status',)}, 'git -c core.pager=zap status', DENY, 'allowed_commands'),
    ({'allowed_commands': ('git status',)}, 'git $x', DENY, 'allowed_commands'),
    ({'allowed_commands': ('npm run test',)}, 'npm run test -- x', ALLOW, None),
    ({'allowed_commands': ('npm run test',)}, 'npm run build', DENY, 'allowed_commands'),
    # Paths
    ({'denied_commands': ('/opt/x/rm',)}, '/opt/x/rm', DENY, 'denied_commands'),
    ({'denied_commands': ('/opt/x/rm',)}, 'rm', DENY, 'denied_commands'),
    ({'denied_commands': ('/opt/x/rm',)}, '/bin/rm', ALLOW, None),
    ({'allowed_commands': ('/opt/x/tool',)}, '/opt/x/tool a', ALLOW, None),
    ({'allowed_commands': ('/opt/x/tool',)}, 'tool a', DENY, 'allowed_commands'),
    ({'allowed_commands': ('ls',)}, '/usr/bin/ls', ALLOW, None),
    ({'allowed_commands': ('ls',)}, '/usr/bin/../x/ls', DENY, 'allowed_commands'),
    ({'allowed_commands': ('ls',)}, './ls', DENY, 'allowed_commands'),
    ({'allowed_commands': ('python',)}, '"$VENV/bin/python"', DENY, 'allowed_commands'),
    # What needs no entry
    *(({'allowed_commands': ('ls',)}, line, ALLOW, None) for line in (
        'cd x && pwd; :; true || false', 'command ls', 'exec ls', 'eval ls', 'builtin command ls', 'while ls; do break; done', 'ls || exit 1',
        'f() { ls; }; f', 'time ls', '! ls', '[[ a ]] && ls', '((1)) && ls', 'x=1 ls', 'f() { return 1; }; f && ls', 'x=(a b); ls', 'exec 2>&1; ls',
    )),
    *(({'allowed_commands': ('ls',)}, line, DENY, 'allowed_commands') for line in (
        'export A=1', 'f; f() { ls; }', '(f() { ls; }); f', 'ls && f() { ls; }; f', 'f() { ls; } & f', 'f() { ls; } | ls; f', 'f() { ls; }; unset -f f; f',
        'f() { ls; }; env f', 'f() { ls; }; command f', 'if ls; then f() { ls; }; fi; f', '[ a ] && ls', 'echo x', './cd x', 'exec zap', 'eval zap',
    )),
    # Variables that decide what runs
    *(({'allowed_commands': ('ls', 'git', 'env', 'export', 'read', 'declare', 'printf')}, line, DENY, 'allowed_commands') for line in (
        'PATH=. ls', 'PATH=.; ls', 'PATH+=:. ls', 'export PATH=.', 'declare -x PATH=.', 'env PATH=. ls', 'read PATH <<< .', 'printf -v PATH .', 'for PATH in .; do ls; done',
        ': ${PATH:=.}', 'LD_PRELOAD=x ls', 'DYLD_INSERT_LIBRARIES=x ls', 'BASH_ENV=x ls', 'ENV=x ls', 'PS4=x ls', 'PROMPT_COMMAND=ls', 'SHELLOPTS=x ls', 'GIT_SSH=x git fetch', 'GIT_SSH_COMMAND=x git fetch',
        'GIT_EXTERNAL_DIFF=x git diff', 'GIT_EXEC_PATH=x git log', 'GIT_ASKPASS=x git fetch', 'SSH_ASKPASS=x git fetch', 'PAGER=zap git log', 'GIT_PAGER="ls | zap" git log', 'EDITOR="$x" git commit', 'export "$x"',
        'VISUAL=zap git commit', 'PATH=(.)',
    )),
    *(({'allowed_commands': ('ls', 'git', 'env', 'export')}, line, ALLOW, None) for line in (
        'A=1 ls', 'LC_ALL=C ls', 'PAGER=ls git log', 'GIT_PAGER=cat git log', 'PAGER= git log', 'env A=1 ls', 'export A=1', 'PATHS=x ls', 'PYTHONPATH=x ls', 'export EDITOR',
    )),
    *((DEFAULT, line, ALLOW, None) for line in ('PATH=. ls', 'EDITOR=vim git commit', 'PAGER=rm git log', 'LD_PRELOAD=x ls')),
    # Project runners answer for what they run
    ({'allowed_commands': ('uv',)}, 'uv run pytest', ALLOW, None),
    # Text that is evaluated
    *((DEFAULT, line, DENY, 'unresolved') for line in (
        "test -v 'a[$(ls)]'", "[ -v 'a[`ls`]' ]", "[[ -v 'a[$(ls)]' ]]", "[[ 'a[$(ls)]' -eq 0 ]]", "[[ 0 -lt 'a[$(ls)]' ]]", "printf -v 'a[$(ls)]' x", "read 'a[$(ls)]'", "unset 'a[$(ls)]'", "declare 'a[$(ls)]=1'",
        "typeset -i x='a[$(ls)]'", "local 'a[$(ls)]=1'", "export 'a[$(ls)]=1'", "let 'a[$(ls)]=1'", "let 'x=a[`ls`]'", "(( a['$(ls)'] ))", 'echo $(( a[\\$(ls)] ))', "echo ${a['$(ls)']}", "a['$(ls)']=1", "echo ${v:a['$(ls)']}",
        "declare -a a='($(ls))'", "wait -p 'a[$(ls)]'", "declare -n r='a[$(ls)]'", "mapfile 'a[$(ls)]'", "declare -i n; n='a[$(ls)]'", "getopts x 'a[$(ls)]'", "compgen -W '$(ls)'", "readonly 'a[$(ls)]=1'",
    )),
    *((DEFAULT, line, ALLOW, None) for line in (
        "[ \"$a\" = '$(rm)' ]", "printf '%s' '$(rm)'", "printf -v x '$(rm)'", "declare x='$(rm)'", "export PS1='$(rm) $ '", "[[ $x == '$(rm)' ]]", 'let x=1', 'let "x = y[0]"', '[[ a -eq b ]]', 'test -v x', "x='$(rm)'", "echo ${x:-'$(rm)'}",
    )),
    # Names
    *((DEFAULT, line, DENY, 'unresolved') for line in (
        '$x', '"$x" ls', '$(ls)', '`ls`', 'l?', './l*', '"$x"y', '$x/ls/$y', '$x$y/ls', '$(pwd)/ls', 'ls\u200b', 'l\u00ads', '\u202els', 'ls\u00a0', 'ls\u3164', '${x:-ls}', '"$@"', '"${a[@]}"', 'coproc $x', "v='ls x '; $v/y", 'IFS=/; $v/ls',
    )),
    *((DEFAULT, line, ALLOW, None) for line in ('"$x/ls"', '"$x"/ls', '$x/ls', 'V=.venv; $V/bin/python', 'V=$(pwd)/.venv; $V/bin/python', '"$(pwd)/ls"', '~/bin/ls', '{ls,-la}', 'ｒｍ x', 'café', "'l s'", '"l*"', 'l\\?')),
    # Operators
    *(({'denied_operators': (operator,)}, line, DENY, 'denied_operators') for operator, line in (
        ('>', 'ls >f'), ('>', 'ls 2>&1'), ('>', 'ls <>f'), ('>', 'tee >(ls)'), ('>', '[ 3 > 2 ]'), ('>', 'eval "ls >f"'), ('>', '{fd}>f ls'), ('>>', 'ls &>>f'), ('|', 'ls |& wc'), ('<', 'ls <>f'), ('<<', 'cat <<-E\nE'),
        ('$(', 'echo `ls`'), ('`', 'echo "`ls`"'), ('&', 'ls &'), (';', 'ls; ls'), ('\n', 'ls\nls'), ('(', '(ls)'), ('{', '{ ls; }'), ('!', '! ls'), ('<<<', 'cat <<< x'), ('||', 'sh -c "ls || ls"'), ('&&', 'echo $(ls && ls)'),
        ('<(', 'cat <(ls)'), ('>(', 'tee >(ls)'), ('>&', 'ls 2>&1'), ('&>', 'ls &>f'), ('>|', 'ls >|f'), ('<&', 'ls <&3'), ('|&', 'ls |& wc'), ('&>>', 'ls &>>f'), ('<>', 'ls <>f'), ('<<-', 'cat <<-E\nE'),
    )),
    *(({'denied_operators': (operator,)}, line, ALLOW, None) for operator, line in (
        ('>', "echo '>'"), ('>', '[[ a > b ]]'), ('>', '(( 2 > 1 ))'), ('>', 'echo $((2>1))'), ('>', '[[ a =~ (a|>) ]]'), ('>>', 'ls >f'), ('|', 'ls || ls'), ('|', 'case a in a|b) ls;; esac'), ('&', 'ls && ls'), ('&', 'ls 2>&1'), ('&', 'ls &>f'),
        (';', 'case a in a) ls;; esac'), (';', 'ls\nls'), ('<', 'cat <<E\nE'), ('<', 'cat <<< x'), ('<', 'cat <(ls)'), ('$(', 'echo $((1))'), ('`', 'echo $(ls)'), ('|', 'ls >|f'), ('<<', 'cat <<< x'),
    )),
    ({'denied_operators': ('>',)}, 'eval "$x"', DENY, 'unresolved'),
    ({'denied_operators': ('>',)}, '$x', ALLOW, None),
    # Interactive programs
    *(({}, f'nohup {name} x', DENY, 'allow_interactive') for name in INTERACTIVE_COMMANDS),
    *(({}, line, ALLOW, None) for line in ('ssh-keygen', 'lessc x', 'vimdiff a b', 'git rebase -i HEAD~2', 'topgrade')),
    ({'allow_interactive': True}, 'vim f', ALLOW, None),
]  # fmt: skip


@pytest.mark.parametrize(('options', 'command', 'decision', 'rule'), ROWS)
def test_the_strictest_rule_decides(
    options: dict, command: str, decision: Decision, rule: str | None
) -> None:
    verdict = Policy.from_lists(**options).check(command)

    assert (verdict.decision, verdict.rule) == (decision, rule), verdict.reason


SENTENCES = [
    ({'denied_commands': ('rm',)}, '/bin/rm x', "Command 'rm' is denied. '/bin/rm x' matches the entry 'rm' of denied_commands. All commands are allowed but 'rm'."),
    ({'allowed_commands': ('ls', 'git push')}, 'env x', "Command 'env' is not in the allowed list. 'env x' is not covered by allowed_commands. Allowed commands: 'ls', 'git push'."),
    ({'ask_commands': ('git push',)}, 'git push', "Command 'git' needs approval. 'git push' matches the entry 'git push' of ask_commands; a person decides whether it runs."),
]  # fmt: skip


@pytest.mark.parametrize(('options', 'command', 'reason'), SENTENCES)
def test_a_reason_is_a_sentence_that_says_what_is_allowed(
    options: dict, command: str, reason: str
) -> None:
    assert Policy.from_lists(**options).check(command).reason == reason


@pytest.mark.parametrize(
    ('options', 'command', 'start'),
    [
        (
            {'denied_operators': ('>',)},
            'ls >> f',
            "Shell operator '>' is not allowed. '>>' is a form of it.",
        ),
        ({}, 'vim f', 'Interactive commands are not allowed. '),
        (
            DEFAULT,
            'ls |',
            'The command is not understood: a command is missing, at character 4 (line 1)',
        ),
        (DEFAULT, '$x y', "'$x y' is not known before it runs. "),
    ],
)
def test_a_reason_begins_with_its_fixed_words(options: dict, command: str, start: str) -> None:
    assert Policy.from_lists(**options).check(command).reason.startswith(start)


def test_a_verdict_names_the_place_of_the_command() -> None:
    verdict = Policy.from_lists(denied_commands=('rm',)).check('ls && rm x | wc')

    assert (verdict.command, verdict.span) == ('rm x', (6, 10))


def test_an_explanation_shows_every_command_and_what_runs_it() -> None:
    explanation = Policy.from_lists(denied_commands=('rm',)).explain(
        'A=1 env xargs -n1 sh -c "ls; rm"'
    )

    assert [(call.name, call.via) for call in explanation.findings.calls] == [
        ('env', ()),
        ('xargs', ('env',)),
        ('sh', ('env', 'xargs')),
        ('ls', ('env', 'xargs', 'sh')),
        ('rm', ('env', 'xargs', 'sh')),
    ]
    assert explanation.verdict.rule == 'denied_commands'
    assert [setting.name for setting in explanation.findings.settings] == ['A']


@pytest.mark.parametrize(
    ('options', 'named'),
    [
        ({'denied_commands': ('',)}, "denied_commands holds ''"),
        ({'denied_commands': ('ls | rm',)}, "denied_commands holds 'ls | rm'"),
        ({'allowed_commands': ('git *',)}, "allowed_commands holds 'git *'"),
        ({'allowed_commands': ('*',)}, "allowed_commands holds '*'"),
        ({'allowed_commands': ('A=1 ls',)}, "allowed_commands holds 'A=1 ls'"),
        ({'ask_commands': ('-x',)}, "ask_commands holds '-x'"),
        ({'ask_commands': ('rm;',)}, "ask_commands holds 'rm;'"),
        ({'ask_commands': ('"rm',)}, "ask_commands holds '\"rm'"),
        ({'denied_commands': ('r\0m',)}, 'denied_commands holds'),
        ({'denied_commands': 'rm'}, "denied_commands is the text 'rm'"),
        ({'denied_commands': (1,)}, 'denied_commands holds 1'),
        ({'denied_operators': ('foo',)}, "denied_operators holds 'foo'"),
        ({'denied_operators': '>'}, "denied_operators is the text '>'"),
        ({'shell': 'zsh'}, "shell is 'zsh'"),
        ({'unresolved': 'no'}, "unresolved is 'no'"),
    ],
)
def test_a_bad_entry_is_named(options: dict, named: str) -> None:
    with pytest.raises(PolicyError) as caught:
        Policy.from_lists(**options)

    assert str(caught.value).startswith(named)


def test_rules_can_be_put_together_by_hand() -> None:
    policy = Policy((DeniedCommands(('rm',)), AskCommands(('git',))), unresolved='allow')

    assert [policy.check(line).decision for line in ('rm', 'git', 'ls', '$x')] == [
        DENY,
        ASK,
        ALLOW,
        ALLOW,
    ]


def test_a_rule_of_ones_own_is_asked_and_counts() -> None:
    class NoTmp:
        name = 'no_tmp'

        def check(self, findings):
            for call in findings.calls:
                if any('/tmp' in word.literal for word in call.arguments):
                    yield Verdict(
                        DENY, 'Nothing in /tmp is touched.', self.name, call.text, call.span
                    )

    policy = Policy((NoTmp(),))

    assert policy.check('ls /tmp/x').rule == 'no_tmp'
    assert policy.check('ls').decision is ALLOW
    assert policy.check('$x').rule == 'unresolved'
