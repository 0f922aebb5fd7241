"""`anyshell demo`: the transcript, and that it fails when it is not as it should be."""

import re
import time

from anyshell.command_line import demo


def test_shows_a_denial_a_server_in_the_background_and_its_end(anyshell):
    started = time.monotonic()
    done = anyshell('demo')

    assert done.returncode == 0, done.stderr
    assert done.stderr == ''
    shown = [
        'Task: See what is in this folder',
        "Command 'rm' is denied.",
        'Started background command:',
        '[ready: port:',
        '[status: running]',
        '<h1>Hello from anyshell</h1>',
        '[ready: output:GET /]',
        '[stopped:',
        'Answer: The page is served.',
    ]
    places = [done.stdout.find(text) for text in shown]
    assert places == sorted(places)
    assert -1 not in places
    assert time.monotonic() - started < 40  # without the pauses that a person at a terminal gets


def test_is_plain_text_without_a_terminal(anyshell):
    assert '\x1b' not in anyshell('demo', FORCE_COLOR='').stdout
    assert '\x1b[' in anyshell('demo', FORCE_COLOR='1', NO_COLOR='', TERM='xterm').stdout


def test_needs_only_ascii(anyshell):
    done = anyshell('demo', PYTHONIOENCODING='ascii', PYTHONUTF8='0')

    assert done.returncode == 0, done.stderr
    assert '  > run_command  ls\n  | [stdout]\n' in done.stdout


def test_pauses_as_long_as_it_is_told(anyshell):
    done = anyshell('demo', '--pause', '0.1')

    (seconds,) = re.findall(
        r'^  ([0-9.]+) seconds, and nothing is left running', done.stdout, re.MULTILINE
    )
    assert float(seconds) >= 1.4  # two pauses for each of seven turns


def test_fails_when_an_answer_is_not_as_it_should_be(invoke, monkeypatch):
    turn = demo.Turn('I try.', 'run_command', {'command': 'echo hi'}, 'something else')
    monkeypatch.setattr(demo, 'TURNS', (turn,))

    done = invoke('demo')

    assert done.exit_code == 1
    assert done.stderr == (
        'Not as it should be: run_command should have given \'something else\'; "anyshell doctor" says more\n'
    )


def test_says_what_this_machine_could_not_do(invoke, monkeypatch):
    def refuse(*_, **__):
        raise OSError(28, 'No space left on device', 'index.html')

    monkeypatch.setattr(demo.Path, 'write_text', refuse)

    done = invoke('demo')

    assert done.exit_code == 1
    assert done.stderr == (
        'Not as it should be: [Errno 28] No space left on device: \'index.html\'; "anyshell doctor" says more\n'
    )
