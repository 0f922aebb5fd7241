"""The command `anyshell` as a whole: what it lists, what it completes, and what importing the package costs."""

import re
import shlex
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import anyshell as package
from anyshell.command_line.doctor.command import own_version

COMMANDS = {'check', 'demo', 'doctor', 'explain', 'run', 'schema', 'test'}


def test_help_lists_every_command_with_a_sentence(anyshell):
    done = anyshell('--help', COLUMNS='200')

    listed = dict(
        line.split(maxsplit=1) for line in done.stdout.partition('Commands:\n')[2].splitlines()
    )
    assert set(listed) == COMMANDS
    assert all(sentence[0].isupper() for sentence in listed.values())


@pytest.mark.parametrize('command', sorted(COMMANDS))
def test_every_command_has_help(anyshell, command):
    done = anyshell(command, '--help')

    assert done.returncode == 0
    assert f'Usage: anyshell {command}' in done.stdout


@pytest.mark.parametrize('command', sorted(COMMANDS))
def test_help_of_every_command_has_examples(invoke, command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    help_text = invoke(command, '--help').stdout

    examples = re.findall(
        rf'^  +(anyshell {command}\b.*)', help_text.partition('Examples:\n')[2], re.MULTILINE
    )
    assert examples
    if command in {'check', 'explain'}:  # these run nothing
        Path('policy.yaml').write_text('allowed_commands: [ls]')
        for example in examples:
            assert invoke(*shlex.split(example)[1:]).exit_code in {0, 1, 2}


def test_file_in_the_help_of_test_is_one(invoke, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    help_text = invoke('test', '--help').stdout
    shown = help_text.partition('that it must not:\n')[2].partition('  Examples:')[0]
    Path('policy.yaml').write_text(textwrap.dedent(shown))

    done = invoke('test', 'policy.yaml')

    assert (done.exit_code, done.stdout) == (0, '3 entries, 2 examples, 0 failed, 0 unreachable\n')


def test_version_is_that_of_the_distribution(anyshell):
    done = anyshell('--version')

    assert done.returncode == 0
    assert done.stdout == f'anyshell, version {own_version()}\n'


def test_unknown_command_is_an_error_of_its_own(anyshell):
    done = anyshell('nonesuch')

    assert done.returncode == 3
    assert "No such command 'nonesuch'" in done.stderr


@pytest.mark.parametrize('shell', ['bash', 'zsh', 'fish'])
def test_completion_is_what_the_help_says(anyshell, shell):
    assert '_ANYSHELL_COMPLETE=bash_source' in anyshell('--help').stdout

    script = anyshell(_ANYSHELL_COMPLETE=f'{shell}_source').stdout
    found = anyshell(
        _ANYSHELL_COMPLETE='zsh_complete', COMP_WORDS='anyshell do', COMP_CWORD='1'
    ).stdout

    assert 'anyshell' in script
    assert 'plain\ndoctor\n' in found


def test_importing_the_package_imports_no_command_line():
    program = f'import sys, {package.__name__}; print({{"click", "yaml", "anyshell.cli", "anyshell.command_line"}} & set(sys.modules))'
    done = subprocess.run(
        [sys.executable, '-c', program], capture_output=True, text=True, check=True, timeout=60
    )

    assert done.stdout == 'set()\n'


def test_python_finds_it_where_its_scripts_are_not_on_path():
    done = subprocess.run(
        [sys.executable, '-m', 'anyshell', 'check', 'rm x'],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert (done.returncode, done.stdout[:5]) == (2, 'deny ')
