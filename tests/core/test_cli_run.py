"""`anyshell run`: exit codes, output, and that nothing stays behind."""

import contextlib
import os
import pty
import signal
import subprocess

import pytest

from anyshell.command_line import sandboxes
from anyshell.testing import FakeSandbox

DENIED_RM = "anyshell: Command 'rm' is denied."


def test_output_and_exit_code_are_the_command_s(anyshell):
    done = anyshell('run', '--', 'echo out; echo err >&2; exit 7')

    assert (done.returncode, done.stdout, done.stderr) == (7, 'out\n', 'err\n')


def test_several_arguments_are_the_words_of_one_command(anyshell):
    done = anyshell('run', 'printf', '%s|', 'a b', '$HOME', ';')

    assert (done.returncode, done.stdout) == (0, 'a b|$HOME|;|')


def test_large_output_is_complete(anyshell):
    done = anyshell('run', '--', 'seq 200000')

    assert done.stdout == ''.join(f'{number}\n' for number in range(1, 200001))


def test_output_comes_while_the_command_runs(start_anyshell, next_line, tmp_path):
    go = tmp_path / 'go'
    process = start_anyshell(
        'run',
        '--no-policy',
        '--',
        f'echo first; until test -e {go}; do sleep 0.02; done; echo second',
    )

    assert next_line(process) == 'first\n'

    go.touch()
    assert process.communicate(timeout=20)[0] == 'second\n'
    assert process.returncode == 0


@pytest.mark.parametrize(
    ('arguments', 'code', 'complaint'),
    [
        (['rm', 'x'], 126, DENIED_RM),
        (['--ask', 'ls', 'ls'], 126, "anyshell: Command 'ls' needs approval."),
        (['--allow', 'git', '--', 'ls'], 126, "anyshell: Command 'ls' is not in the allowed list."),
        (['--deny-operator', '>', '--', 'echo hi > x'], 126, "anyshell: Shell operator '>' is not allowed."),
        (['vi'], 126, 'anyshell: Interactive commands are not allowed.'),
        (['--', '$UNKNOWN'], 126, 'anyshell: '),
        (['--timeout', '0.2', '--', 'sleep 60'], 124, 'anyshell: the time limit of 0.2 seconds has passed'),
        (['nonesuch-program'], 127, 'nonesuch-program'),
        (['--no-policy', '--', 'kill -9 $$'], 137, ''),
        (['--nonesuch'], 125, 'No such option'),
        ([], 125, 'Missing argument'),
        (['--timeout', '-1', 'ls'], 125, '--timeout'),
        (['--sandbox', 'moon', 'ls'], 125, "anyshell: --sandbox='moon' is not allowed: it must be local, "),
        (['--sandbox', 'docker:', 'ls'], 125, "anyshell: --sandbox='docker:' is not allowed"),
        (['--network', 'ls'], 125, '--network has no place beside --sandbox local'),
        (['--cwd', '/nonesuch', 'ls'], 125, "anyshell: --cwd='/nonesuch' is not allowed: it must be a directory that is there"),
        (['--allow', 'a', '--deny', 'b', 'ls'], 125, '--deny has no place beside --allow'),
        (['--no-policy', '--deny', 'b', 'ls'], 125, 'give only one of --policy, --no-policy and rules'),
        (['--policy', '/nonesuch.yaml', 'ls'], 125, 'anyshell: /nonesuch.yaml'),
        (['--env', 'NONESUCH_VARIABLE', 'ls'], 125, "anyshell: --env='NONESUCH_VARIABLE' is not allowed"),
        (['--', 'a\ufffdb" unclosed'], 126, 'anyshell: The command is not understood'),
    ],
)  # fmt: skip
def test_exit_code_says_whose_failure_it_was(invoke, arguments, code, complaint):
    done = invoke('run', *arguments)

    assert done.exit_code == code, done.stderr
    assert complaint in done.stderr
    assert done.stdout == ''


@pytest.mark.parametrize(
    'place', ['local', pytest.param('bubblewrap', marks=pytest.mark.needs('bubblewrap'))]
)
def test_relative_directory_is_one_of_here(anyshell, tmp_path, place):
    (tmp_path / 'sub').mkdir()
    done = anyshell('run', '--sandbox', place, '--cwd', os.path.relpath(tmp_path / 'sub'), 'pwd')

    assert (done.stdout, done.stderr) == (f'{tmp_path}/sub\n', '')


def test_directory_that_is_not_there_inside_is_said_in_the_words_of_the_command_line(
    invoke, monkeypatch
):
    inside = FakeSandbox()
    monkeypatch.setattr(sandboxes, 'named', lambda *_, **__: inside)

    done = invoke('run', '--sandbox', 'docker:web', '--cwd', '/nonesuch', 'ls')
    told = invoke('run', '--sandbox', 'docker:web', '--cwd', '/nonesuch', '--as-model', 'ls')

    said = "anyshell: --cwd='/nonesuch' is not allowed: it must be a directory that is there\n"
    assert (done.exit_code, done.stdout, done.stderr) == (125, '', said)
    assert told.exit_code == 125
    assert told.stdout.startswith("[Error: the working directory '/nonesuch' does not exist")


def test_yes_approves_what_is_asked_and_nothing_that_is_denied(anyshell):
    asked = anyshell('run', '--yes', '--ask', 'echo', '--deny', 'rm', '--', 'echo hi')
    denied = anyshell('run', '--yes', '--ask', 'echo', '--deny', 'rm', '--', 'echo hi; rm x')

    assert (asked.returncode, asked.stdout) == (0, 'hi\n')
    assert (denied.returncode, denied.stdout) == (126, '')


def test_policy_file_judges(anyshell, tmp_path):
    file = tmp_path / 'policy.yaml'
    file.write_text('denied_commands: [uname]\n')

    assert anyshell('run', '--policy', str(file), 'uname').returncode == 126
    assert anyshell('run', '--policy', str(file), 'true').returncode == 0


def test_no_policy_allows_everything(anyshell, tmp_path):
    victim = tmp_path / 'victim'
    victim.touch()

    done = anyshell('run', '--no-policy', '--', f'rm {victim}; $NOTHING echo done')

    assert (done.returncode, done.stdout) == (0, 'done\n')
    assert not victim.exists()


def test_env_gives_exactly_these_variables(anyshell):
    done = anyshell(
        'run',
        '--env',
        'GIVEN=here',
        '--env',
        'TAKEN',
        '--',
        'echo "$GIVEN,$TAKEN,$OTHER"',
        TAKEN='from here',
        OTHER='hidden',
    )

    assert done.stdout == 'here,from here,\n'


def test_hidden_variables_are_not_seen(anyshell):
    done = anyshell('run', '--hide-env', 'MY_*', '--', 'echo "[$MY_KEY]"', MY_KEY='secret')

    assert done.stdout == '[]\n'


def test_command_has_no_input(start_anyshell):
    process = start_anyshell('run', 'cat', stdin=subprocess.PIPE)

    assert process.communicate('a line\n', timeout=20)[0] == ''
    assert process.returncode == 0


def test_as_model_prints_what_a_model_reads(anyshell):
    done = anyshell('run', '--as-model', '--', 'echo hi; exit 3')
    denied = anyshell('run', '--as-model', '--', 'rm x')

    assert (done.returncode, done.stdout) == (3, '[stdout]\nhi\n\n[exit code: 3]\n')
    assert denied.returncode == 126
    assert denied.stdout.startswith("Command 'rm' is denied.")


def test_reader_that_goes_away_ends_the_command(start_anyshell, next_line, sleeper):
    process = start_anyshell('run', '--timeout', '60', '--', f'yes; {sleeper.command}')
    next_line(process)
    process.stdout.close()

    assert process.wait(20) == 141
    assert process.stderr.read() == ''


@pytest.mark.parametrize(('number', 'code'), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])  # fmt: skip
async def test_signal_ends_the_command_and_all_that_it_started(
    start_anyshell, next_line, sleeper, number, code
):
    line = f'trap "" INT TERM HUP; {sleeper.command} & echo started; {sleeper.command}'
    process = start_anyshell('run', '--no-policy', '--timeout', '60', '--', line)
    assert next_line(process) == 'started\n'
    await sleeper.started(2)

    process.send_signal(number)

    assert process.wait(20) == code
    await sleeper.gone()


async def test_second_signal_does_not_wait(start_anyshell, next_line, sleeper):
    process = start_anyshell(
        'run', '--no-policy', '--', f'trap "" TERM; echo started; {sleeper.command}'
    )
    assert next_line(process) == 'started\n'

    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGTERM)

    assert process.wait(20) in {130, 143}  # the second may come when the first has done all
    await sleeper.gone()


async def test_what_a_command_leaves_running_is_ended(anyshell, sleeper):
    done = anyshell('run', '--no-policy', '--', f'setsid {sleeper.command} >/dev/null & echo left')

    assert (done.returncode, done.stdout) == (0, 'left\n')
    await sleeper.gone()


def _on_a_terminal(start, *arguments, answer, until=''):
    """Run the command on a terminal of its own, type an answer, and return all that the terminal showed."""
    ours, theirs = pty.openpty()
    process = start(*arguments, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True)
    os.close(theirs)
    shown = b''
    with contextlib.suppress(OSError):  # the other end is closed: EIO, on Linux
        while until.encode() not in shown:
            shown += os.read(ours, 4096)
        os.write(ours, answer.encode())
        while piece := os.read(ours, 4096):
            shown += piece
    os.close(ours)
    return process.wait(20), shown.decode()


def test_person_at_a_terminal_is_asked(start_anyshell):
    yes = _on_a_terminal(
        start_anyshell, 'run', '--ask', 'echo', '--', 'echo ran', answer='y\n', until='[y/N]'
    )
    no = _on_a_terminal(
        start_anyshell, 'run', '--ask', 'echo', '--', 'echo ran', answer='n\n', until='[y/N]'
    )

    assert yes[0] == 0
    assert 'ran' in [line.strip() for line in yes[1].splitlines()]
    assert no[0] == 126
    assert 'ran' not in [line.strip() for line in no[1].splitlines()]


def test_ctrl_c_after_an_approval_ends_the_command_as_without_one(start_anyshell):
    ours, theirs = pty.openpty()
    line = 'echo started; sleep 60'
    process = start_anyshell(
        'run', '--ask', 'sleep', '--', line, stdin=theirs, stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    shown = b''
    with contextlib.suppress(OSError):  # the other end is closed: EIO, on Linux
        while piece := os.read(ours, 4096):
            before, shown = shown, shown + piece
            if b'[y/N]' in shown and b'[y/N]' not in before:
                os.write(ours, b'y\n')
            if b'\nstarted' in shown and b'\nstarted' not in before:
                process.send_signal(signal.SIGINT)
    os.close(ours)

    assert process.wait(20) == 130
    assert b'Traceback' not in shown


def test_colour_only_on_a_terminal_and_without_no_color(start_anyshell, anyshell, monkeypatch):
    monkeypatch.setenv('TERM', 'xterm')
    monkeypatch.delenv('NO_COLOR', raising=False)
    monkeypatch.delenv('FORCE_COLOR', raising=False)
    coloured = _on_a_terminal(start_anyshell, 'run', 'rm', 'x', answer='')
    monkeypatch.setenv('NO_COLOR', '1')
    plain = _on_a_terminal(start_anyshell, 'run', 'rm', 'x', answer='')
    monkeypatch.delenv('NO_COLOR')

    assert '\x1b[31manyshell: \x1b[0m' in coloured[1]
    assert DENIED_RM in plain[1]
    assert '\x1b' not in anyshell('run', 'rm', 'x').stderr


def test_help_has_examples_and_exit_codes(anyshell):
    text = anyshell('run', '--help').stdout

    assert '  Examples:\n    anyshell run -- ' in text
    assert '  Exit codes:\n' in text


@pytest.mark.needs('bubblewrap')
async def test_runs_in_a_sandbox_and_a_signal_ends_what_runs_there(
    anyshell, start_anyshell, next_line, sleeper, tmp_path
):
    inside = ('--sandbox', 'bubblewrap', '--cwd', str(tmp_path), '--no-policy')

    done = anyshell('run', *inside, '--', 'pwd; touch here; touch /usr/there')

    assert (done.returncode, done.stdout) == (1, f'{tmp_path}\n')
    assert [path.name for path in tmp_path.iterdir()] == ['here']

    process = start_anyshell(
        'run', *inside, '--', f'trap "" INT TERM; echo started; {sleeper.command}'
    )
    assert next_line(process) == 'started\n'
    process.send_signal(signal.SIGINT)

    assert process.wait(30) == 130
    await sleeper.gone()
