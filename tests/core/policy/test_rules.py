"""What the lists of a policy mean, in one row per claim."""

# ruff: noqa: RUF001, S108  # look-alike letters and paths are what the rows are about

import time

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
    ({'denied_commands': ('/opt/x/tool',)}, 'd=/opt/x; "$d/tool"', DENY, 'denied_commands'),
    ({'denied_commands': ('/opt/x/tool',)}, '"$d/other"', ALLOW, None),
    ({'allowed_commands': ('/opt/x/tool',)}, '"$d/tool"', DENY, 'allowed_commands'),
    *(({'denied_commands': ('/opt/x/rm', './b.sh')}, line, DENY, 'denied_commands') for line in ('/opt//x/rm', '//opt/x/rm', '/opt/x/./rm', '/opt/y/../x/rm', './/b.sh', './x/../b.sh', 'b.sh')),
    *(({'denied_commands': ('/opt/./x//rm',)}, line, DENY, 'denied_commands') for line in ('/opt/x/rm', '/opt/./x//rm')),
    ({'denied_commands': ('/opt/x/rm',)}, '/opt/x/../rm', ALLOW, None),
    *(({'allowed_commands': ('/opt/x/tool',)}, line, DENY, 'allowed_commands') for line in ('/opt//x/tool', '/opt/y/../x/tool')),
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
        'f() { ls; }; f', 'ls a; f() { ls; }; f', 'time ls', '! ls', '[[ a ]] && ls', '((1)) && ls', 'x=1 ls', 'f() { return 1; }; f && ls', 'x=(a b); ls', 'exec 2>&1; ls',
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
    # Some programs start a shell when they are given no command
    ({'allowed_commands': ('linux64',)}, 'linux64', DENY, 'allowed_commands'),
    ({'allowed_commands': ('linux64', 'sh')}, 'linux64', ALLOW, None),
    ({'denied_commands': ('sh',)}, 'chroot /', DENY, 'denied_commands'),
    ({'allowed_commands': ('linux64', 'ls')}, 'linux64 ls', ALLOW, None),
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
    *((DEFAULT, line, ALLOW, None) for line in ('"$x/ls"', '"$x"/ls', '$x/ls', 'read x; v=1; $v/ls', 'V=.venv; $V/bin/python', 'V=$(pwd)/.venv; $V/bin/python', '"$(pwd)/ls"', '~/bin/ls', '{ls,-la}', 'ｒｍ x', 'café', "'l s'", '"l*"', 'l\\?')),
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
    # A newline is an operator where it separates two commands
    *(({'denied_operators': ('\n',)}, line, DENY, 'denied_operators') for line in (
        'ls\nls', 'ls\n\n# c\nls\n', 'cat <<E\nE\nls', 'if ls\nthen ls; fi', 'while ls\ndo ls; done', 'if ls; then ls\nelse ls; fi', 'echo $(ls\nls)', 'echo `ls\nls`', 'f() {\nls\nls\n}', "sh -c 'ls\nls'", '(ls\nls)', 'ls |\nwc\nls', 'time\nls', 'ls\n{ ls; }', 'ls\n(ls)', 'ls\n! ls',
    )),
    *(({'denied_operators': ('\n',)}, line, ALLOW, None) for line in (
        'ls\n', '\nls', '\n\nls\n\n', 'ls # c\n', 'ls\n# c\n', 'cat <<E\nx\nE', 'cat <<E\nx\nE\n', 'cat <<E; ls\nx\nE\n', '(ls\n)', '(\nls)', '{ ls\n}', 'if ls; then ls\nfi\n', 'for i in a; do ls\ndone', 'case x in a) ls\nesac', 'case x in a) ls\n;; esac', 'echo $(ls\n)', 'f() {\nls\n}', "sh -c 'ls\n'",
        'ls;\nls', 'ls &&\nls', 'ls |\nwc', 'ls \\\n x', 'x=(b\nc)', "echo 'a\nb'",
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


# Entries with arguments, line by line: (entries, lines). What an option may hide is followed both ways to deny and to ask.
CAUGHT = [
    # Several options in front of the sub-command, with and without a value
    ('git push', (
        "git -C '' push",
        'git -c a=b -c c=d push', 'git -c a=b --no-pager push', 'git -c a=b -C d push', 'git --no-pager -c a=b push', 'git --config-env a=B -c c=d push', 'git --config-env=a=B push', 'git -x -y push',
        'git -x a -y b push', 'git -x a -y -z b push', 'git -P push', 'git -C d -C e --git-dir f --work-tree=g push', 'git -- push', 'git --git-dir "$x" push', 'git --git-dir="$x" push', 'git -"$x" push', 'git --"$x" a push',
    )),
    ('kubectl delete', ('kubectl --client-key f -n x delete po', 'kubectl -nx delete po', 'kubectl --new-option f --other g -n x delete po', 'kubectl --grace-period 0 --now delete po')),
    ('npm publish', (
        'npm --userconfig f --prefix d publish', 'npm --silent publish', 'npm -w a -w b publish', 'npm --new a --prefix d publish',
        'npm --prefix --userconfig f publish',  # some readers take no option as a value
        'npm --json true publish', 'npm --no-color always publish',  # and a flag takes these words
        'npm -- publish',
    )),
    ('aws s3 rm', ('aws --query x --no-paginate s3 rm s3://b', 'aws s3 --profile p rm s3://x', 'aws --new a s3 --other b rm s3://x', 'aws s3 --debug rm s3://x')),
    ('systemctl stop', ('systemctl -n 5 -q stop x', 'systemctl -qn 5 stop x', 'systemctl --job-mode fail --no-block stop x', 'systemctl --no-pag stop x')),
    ('make deploy', ('make -C d -j 4 deploy', 'make -j 4 deploy', 'make -j deploy', 'make -kj4 deploy', 'make -f x -C d deploy', 'make CC=x deploy', 'make -s A=1 B:=2 deploy')),
    # Options between the words
    ('gh pr merge', ('gh pr -R o/r merge 1', 'gh pr --repo o/r merge 1', 'gh pr --repo=o/r merge 1', 'gh -R o/r pr --new merge 1')),
    ('terraform apply', ('terraform -chdir=x apply', 'terraform -chdir=x -new y apply')),
    ('python -m http.server', ('python -u -m http.server', 'python -X dev -m -q http.server', 'python -W ignore -B -m http.server 80')),
    ('./gradlew publish', ('./gradlew --no-daemon -x test publish', './/gradlew -q publish')),
    ('apt-get remove', ('apt-get -y remove x', 'apt-get -o a=b -qq remove x')),
    ('docker compose down', (
        'docker compose --profile dev down', 'docker compose -f x.yml down', 'docker compose -p p down', 'docker compose -f a -f b --profile c --ansi never down', 'docker -D compose --dry-run down', 'docker -Dl debug compose down',
    )),
    ('kubectl rollout restart', ('kubectl rollout -n x restart d/a', 'kubectl -n x rollout -n y restart d/a')),
    ('npm run deploy', ('npm run --silent deploy', 'npm run -w a deploy', 'npm -s run -w a --if-present deploy', 'npm run -- deploy')),
    ('gcloud compute instances delete', ('gcloud compute --project p instances delete x', 'gcloud compute instances --new delete x', 'gcloud -q compute --zone z instances --format json delete x')),
    ('cargo publish', ('cargo +nightly publish', 'cargo +nightly -q publish', 'cargo "+$x" publish', 'cargo -Z a --config b publish')),
    ('git push --force', ('git push -v --force', 'git push -o a --force', 'git push origin main --force', 'git -C x push origin --force', 'git push "$remote" --force')),
    # Options wherever they stand, in one word or with their value attached
    ('git push -f', ('git push origin -f', 'git push -uf origin main', 'git push origin "$branch" -vf')),
    ('rm -rf', ('rm -fr x', 'rm -r -f x', 'rm -rfv x', 'rm x -f -r', 'rm -f "$x" -r', 'rm *.o -rf', 'rm "$d/x" -rf')),
    ('rm -r', ('rm -rf x', 'rm -v x -fr')),
    ('bash -c', ('bash -lc x', 'bash -e -xc x')),
    ('python -m http.server', ('python -mhttp.server', 'python -Bm http.server 80', 'python -Bmhttp.server')),
    ('curl -X DELETE', ('curl u -X DELETE', 'curl -XDELETE u', 'curl -s u -X DELETE')),
    ('curl --request DELETE', ('curl u --request=DELETE', 'curl u --request DELETE')),
    ('find -delete', ('find . -name x -delete', 'find -delete')),
    ('docker run --privileged', ('docker run -it --privileged x', 'docker -D run --name a --privileged=true x')),
    ('npm install -g', ('npm install x -g', 'npm -s install x -g')),
    ('podman rm', ('podman --new a --other rm x',)),  # a program of which nothing is known
]  # fmt: skip
# Nothing tells what these run: they are not allowed.
UNSURE = [
    ('git push', (
        'git -c a=b -c c=d "$x"', 'git -c a=b -c c=d $x', 'git --no-pager "$x"', 'git -x "$x"', 'git -x a "$x"', 'git -C $x', 'git -C $x status', 'git --git-dir=$x status', 'git pus?', 'git *', 'git p[u]sh',
        'git "$x" push', 'echo d push | xargs git -C', 'echo push | xargs git -C d',
    )),
    ('npm run deploy', ('npm run "$x"', 'npm run -s "$x"', 'npm run -w "$w" "$x"', 'npm "$x" deploy')),
    # A word of which something is known
    ('rm -rf', ('rm *', 'rm -f * x', 'rm -f $x y', 'rm -*', 'rm -?f x', 'rm -[r]f', 'rm -[r"]"]f', 'shopt -s extglob\nrm -+(r)f x', 'rm $f*.o', 'rm "$x" -- "$f"', 'rm "$f"', 'rm "-$x"', 'rm -"$x"f y', 'rm "$x"f', 'rm -r"$x"', 'rm $d/x', 'rm -v "$f"')),
    ('make install', ('make "A$x" install', 'make "A:$x" install', 'make "$D/x" install', 'make ~/x install', 'make ~', 'make in"$x"ll', 'make "$a"ns"$b"a"$c"')),
    ('curl -X DELETE', ('curl "$x" DELETE', 'curl "$x" "$y"', 'curl -s "$x" -v "$y"', 'curl -X "$m" u', 'curl $x', 'curl "$x" $y', 'curl "-X" D*')),
    ('make deploy', ('make "$x"', 'make -j "$x" "$y"', 'make -j$x all', 'make A=$x all')),
]  # fmt: skip
# A word that is neither an option nor its value, and another one than the entry's, ends the search.
MISSED = [
    ('git push', (
        'git commit -m push', 'git log --grep push', 'git -C push status', 'git -c push status', 'git -c a=b commit push', 'git --no-pager stash push', 'git -P log push', 'git --git-dir=push status', 'git --new=a stash push',
        'git -C "$x" status', 'git -C ~/x status', 'git log "$x"', 'git stash "$x"', 'git add *', 'git x"$y" push', 'git - push', 'git -c a=b -c c=d log push',
    )),
    ('kubectl delete', ('kubectl -nx get delete', 'kubectl -n delete get po', 'kubectl get -n delete po', 'kubectl --context=a get delete')),
    ('docker compose down', ('docker compose up down-service', 'docker compose -f x up down', 'docker -D ps compose down', 'docker compose logs down')),
    ('npm run deploy', ('npm run test deploy', 'npm run -w deploy test', 'npm run --silent test deploy', 'npm test -- deploy', 'npm --prefix deploy run test')),
    ('aws s3 rm', ('aws s3 ls rm', 'aws --profile rm s3 ls', 'aws s3 --profile rm ls', 'aws s3api rm')),
    ('gh pr merge', ('gh pr list -S merge', 'gh pr -R merge list', 'gh pr view merge')),
    ('systemctl stop', ('systemctl --user status stop', 'systemctl -n 5 status stop', 'systemctl --no-pager -l status stop')),
    ('make deploy', ('make -C deploy test', 'make -j4 test', 'make -s test', 'make -f deploy test', 'make A=deploy test')),
    # A word that can't be the wanted one, or too few of them
    ('python3 -c', ('python3 "$ROOT/manage.py" test', 'python3 ~/x.py', 'python3 "$D"/x.py', 'python3 "$x"y')),
    ('bash -c', ('bash "$D/x.sh"', 'bash ~/x.sh a')),
    ('node -e', ('node "$D/x.js"', 'node "${D}/x.js" -p')),
    ('python -m http.server', ('python "$D/x.py"', 'python ~/x.py', 'python "$x"', 'python "$x" -m')),
    ('curl -X DELETE', ('curl "$url"', 'curl -s "$url"', 'curl -s "$url" -o f', 'curl "$base/x" -d DELETED')),
    ('chmod 777', ('chmod -R u+x ~/x', 'chmod u+x "$f"', 'chmod "$m"x f')),
    ('rm -rf', ('rm *.o', 'rm -f *.o y', 'rm "$d"/*.o', 'rm ~/*.o', 'rm -- "$f"', 'rm -f -- "$f"', 'rm -v -- $f *', 'rm x[r]f', 'rm ?.[o] "$d/x"', 'rm ~/x', 'rm "$d/x"', 'rm "$d/x" "$e/y"', 'rm ~me/x', 'rm x"$d"', 'rm "$d"/', 'rm "${d}f/"')),
    ('make install', ('make "x/$y" install', 'make "A$x" all', 'make "$D/out"', 'make "$a"ll"$b"in', 'make "$a"nst"$b"nst"$c"', 'make "$x"installed', 'make "inst$x"stall')),
    ('find -delete', ('find ~/src -name x', 'find "$D/x" -name y', 'find "$D/x" -name "y$z"')),
    ('git push --force', ('git "$x"', 'git push "o$x"', 'git push "$x/y"')),
    ('git push --force', ('git push --force-with-lease', 'git log --force', 'git push origin x -- --force', 'git stash push --force')),
    ('rm -rf', ('rm -r x', 'rm -f x', 'rm --rf x')),
    ('bash -c', ('bash x.sh -c', 'bash -- x -c')),
    ('find -delete', ('find . -depth -name delete', 'find . -d -e -l -t')),
    ('curl -X DELETE', ('curl -X POST -d DELETE', 'curl DELETE -X GET', 'curl u -X')),
    ('tar --to-command x', ('tar --to-command y x',)),
    ('cargo publish', ('cargo +nightly test publish', 'cargo test +nightly publish', 'cargo -q test publish')),
]  # fmt: skip


@pytest.mark.parametrize(
    ('entry', 'line'), [(entry, line) for entry, lines in CAUGHT for line in lines]
)
def test_no_option_escapes_an_entry(entry: str, line: str) -> None:
    assert Policy.from_lists(denied_commands=(entry,)).check(line).rule == 'denied_commands'
    assert Policy.from_lists(ask_commands=(entry,)).check(line).rule == 'ask_commands'
    assert (
        Policy.from_lists(ask_commands=(entry,), allowed_commands=('x',)).check(line).decision
        is ASK
    )


@pytest.mark.parametrize(
    ('entry', 'line'), [(entry, line) for entry, lines in UNSURE for line in lines]
)
def test_arguments_that_are_not_known_do_not_escape_an_entry(entry: str, line: str) -> None:
    denied = Policy.from_lists(denied_commands=(entry,)).check(line)

    assert (denied.decision, denied.rule) == (DENY, 'denied_commands')
    assert 'not known before it runs' in denied.reason
    assert Policy.from_lists(ask_commands=(entry,)).check(line).decision is ASK
    assert Policy.from_lists(allowed_commands=(entry, 'xargs', 'echo')).check(line).decision is DENY


@pytest.mark.parametrize(
    ('entry', 'line'), [(entry, line) for entry, lines in MISSED for line in lines]
)
def test_another_sub_command_is_not_matched(entry: str, line: str) -> None:
    assert Policy.from_lists(denied_commands=(entry,)).check(line).decision is ALLOW
    assert Policy.from_lists(ask_commands=(entry,)).check(line).decision is ALLOW
    assert Policy.from_lists(allowed_commands=(entry,)).check(line).decision is DENY


LISTED = (
    'git log', 'git diff', 'git status', 'npm test', 'npm run build', 'docker ps', 'systemctl status', 'cargo test', 'pip list', 'kubectl get', 'make test', 'aws s3 ls', 'uv run',
    'docker compose ps', 'python -m pytest', 'python3 -m pytest', 'terraform plan', 'mvn test', './gradlew test', 'gradle test', 'poetry run', 'ruff check', 'apt-get install', 'apt install make', 'docker-compose ps', 'gcloud compute instances list', 'gh pr list', 'helm list', 'go test', 'yarn test', 'pnpm test',
)  # fmt: skip


@pytest.mark.parametrize(
    'line',
    [
        'git --no-pager log', 'git -P diff', 'git --no-optional-locks status', 'git -C d --no-pager log', 'git -C "$d" log', 'git --git-dir="$d" log', 'git -C ~/x status', 'npm --silent test', 'npm -s test',
        'npm --silent run build', 'npm run -s build', 'npm --prefix d test', 'npm -w a -w b test', 'docker -D ps', 'docker --context x ps', 'docker -Dl debug ps', 'systemctl --no-pager status x', 'systemctl --user status x',
        'systemctl --user --no-pager -n 5 status x', 'systemctl --user -qn5 status x', 'cargo -q test', 'cargo +nightly test', 'cargo +nightly -q test', 'cargo -qv test', 'pip -q list', 'pip3 list', 'pip -qq list', 'kubectl -nx get pods',
        'kubectl -n x get pods', 'kubectl --namespace=x get pods', 'aws --no-cli-pager s3 ls', 'aws s3 --profile p ls', 'aws --profile=p --region r s3 ls', 'uv --quiet run pytest', 'uv --directory d run pytest', 'make -C d test',
        'make -j4 test', 'make -j 4 test', 'make -j test', 'make -sj4 -C d test', 'make --no-print-directory test', 'gcloud compute --project p instances list', 'gh -R o/r pr list', 'gh pr -R o/r list', 'helm -n x list',
        'go -C d test ./...', 'yarn --cwd d test', 'pnpm --filter a test', 'pnpm -C d test', 'python -u -m pytest', 'python3 -B -X dev -m pytest', 'python -uBXdev -W error -m pytest', 'terraform -chdir=x plan', 'mvn -q -B test', 'mvn -T 1C -ntp -pl a -am test',
        './gradlew --no-daemon test', 'gradle -q --console plain -x lint test', 'docker compose --profile dev ps', 'docker -D compose -p x ps', 'docker-compose --ansi never ps', 'poetry -C d run pytest', 'poetry -qn run pytest', 'ruff --quiet check', 'apt-get -y install x', 'apt-get -qq -y install x',
        'apt -y install -q make', 'kubectl --context c -n ns get po', 'helm --kube-context c list', 'pip --no-input list', 'gcloud --project p compute instances list',
    ],
)  # fmt: skip
def test_harmless_options_are_passed_over_to_allow(line: str) -> None:
    verdict = Policy.from_lists(allowed_commands=(*LISTED, 'pip3 list', 'pytest')).check(line)

    assert verdict.decision is ALLOW, verdict.reason


@pytest.mark.parametrize(
    'line',
    [
        # What runs code, or runs elsewhere
        'git -c core.pager=zap log', 'git -ca=b log', 'git --exec-path=. log', 'git --exec-path . log', 'git --config-env a=B log', 'git --config-env=a=B log', 'git --no-pager -c a=b log', 'git -p log', 'docker -H x ps', 'docker -Hx ps',
        'docker --host=x ps', 'docker -DH x ps', 'docker --config d ps', 'kubectl --kubeconfig f get po', 'kubectl -s x get po', 'npm --script-shell x test', 'npm --script-shell=x test', 'npm --userconfig f test',
        'cargo --config f test', 'cargo -Z x test', 'cargo +/tmp/x test', 'cargo "+$x" test', 'pip --python x list', 'make -f x test', 'make -fx test', 'make --eval x test', 'make -sf x test', 'make SHELL=x test', 'make A=1 test',
        'systemctl -H x status', 'systemctl -Mx status', 'aws --endpoint-url x s3 ls', 'uv --config-file x run pytest',
        'python -m zap -m pytest', 'python -c x -m pytest', 'python -i -m pytest', 'python3 -cx -m pytest', 'terraform -chdir x apply', 'mvn -f x test', 'mvn -fx test', 'mvn -Dx=y test', 'mvn -P p test', 'gradle -I f test', 'gradle -Dx=y test', './gradlew -c f test', 'docker compose -f x ps', 'docker compose --env-file x ps',
        'ruff --config f check', 'apt-get -o x=y install', 'apt-get -c f install', 'poetry --new run',
        # What is not known
        'git --new log', 'git --no-pager=x log', 'git -Cx log', 'git -C $x log', 'git --git-dir=$x log', 'git "-$x" log', 'git -C --new log', 'git -C x', 'git -C', 'npm -sx test', 'npm --json true publish',
        'docker -Dx ps', 'make -j 4x test', 'make -j all test', 'make -j"$x" test', 'npm --prefix --userconfig test publish', 'git -- log', 'git --no-pager push', 'make -j4 deploy', 'podman -D ps', 'docker - ps', 'make -j \u00b2 test', 'make -j\u00b2 test',
    ],
)  # fmt: skip
def test_other_options_are_not_passed_over_to_allow(line: str) -> None:
    verdict = Policy.from_lists(allowed_commands=LISTED).check(line)

    assert (verdict.decision, verdict.rule) == (DENY, 'allowed_commands')


def test_a_line_of_many_options_is_read_once() -> None:
    policy = Policy.from_lists(denied_commands=('git a b c d e',))

    begin = time.process_time()
    assert policy.check('git ' + '-x a ' * 20_000).decision is ALLOW
    assert time.process_time() - begin < 5


SENTENCES = [
    ({'denied_commands': ('rm',)}, '/bin/rm x', "Command 'rm' is denied. '/bin/rm x' matches the entry 'rm' of denied_commands. All commands are allowed but 'rm'."),
    ({'denied_commands': ('git push',)}, 'git -C $d log', "Command 'git' is denied. 'git -C $d log', whose arguments are not known before it runs, matches the entry 'git push' of denied_commands. All commands are allowed but 'git push'. Write its arguments plainly, and variables in quotes."),
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


def test_a_reason_names_twenty_entries_of_a_long_list() -> None:
    entries = [f'tool{number}' for number in range(25)]

    reason = Policy.from_lists(allowed_commands=entries).check('ls').reason

    assert reason.endswith("'tool18', 'tool19', 5 more.")


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
        *(
            ({'denied_commands': (entry,)}, f'denied_commands holds {entry!r}')
            for entry in (
                'git push; rm',
                'git push;rm',
                'git push;',
                'git | rm',
                'git push|rm',
                'git push && rm',
                'git push&',
                'git push>f',
                'git push 2>&1',
                'git $(x)',
            )
        ),
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


@pytest.mark.parametrize(
    ('entry', 'line'),
    [
        ('git "a;b"', "git 'a;b'"),
        ("git log '--format=%(x)'", "git log '--format=%(x)'"),
        ('git a\\;b', "git 'a;b'"),
        ('git #x', "git '#x'"),
        ('git log --a=b,c:d', 'git log --a=b,c:d'),
    ],
)
def test_quoted_operators_are_text_of_an_entry(entry: str, line: str) -> None:
    assert Policy.from_lists(denied_commands=(entry,)).check(line).rule == 'denied_commands'


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
