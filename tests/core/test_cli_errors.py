"""Every error of the command `anyshell` is said in the words of who typed it: its options, and the keys of the file."""

import re

import pytest

from anyshell.cli import main
from anyshell.options import option_names

FILES = {
    'yaml.yaml': 'denied_commands: [',
    'key.yaml': 'denied_comands: [rm]\n',
    'entry.yaml': 'ask_commands: ["git | rm"]\n',
    'example.yaml': 'ask_commands:\n- {command: git push, match: [git pull]}\n',
    'bytes.yaml': b'\xff',
    'both.yaml': 'allowed_commands: [ls]\ndenied_commands: [ls]\n',
}
ENTRY = (
    "an entry is a program such as 'git', or a program and its first arguments such as 'git push'"
)
RULES = [
    (['--allow', 'git | rm'], f"--allow holds 'git | rm', which is more than one command or a pattern: {ENTRY}"),
    (['--deny', ''], f"--deny holds '': {ENTRY}"),
    (['--ask', '*'], f"--ask holds '*', which is shell syntax or a pattern: {ENTRY}"),
    (['--deny-operator', '$'], "--deny-operator holds '$': an operator is one of ';' '&'"),
    (['--allow', 'ls', '--deny', 'rm'], '--deny has no place beside --allow, which lets nothing else run: give one of the two'),
    (['--unresolved', 'maybe'], "Invalid value for '--unresolved': 'maybe' is not one of 'deny', 'ask', 'allow'"),
    (['--shell', 'zsh'], "Invalid value for '--shell': 'zsh' is not one of 'bash', 'sh'"),
    (['--policy', 'no.yaml'], 'no.yaml: the policy file can not be read: No such file or directory\n'),
    (['--policy', '.'], '.: the policy file can not be read: Is a directory\n'),
    (['--policy', 'bytes.yaml'], 'bytes.yaml: the policy file is not UTF-8: invalid start byte\n'),
    (['--policy', 'yaml.yaml'], 'in yaml.yaml, line 1, column 19'),
    (['--policy', 'key.yaml'], "key.yaml, line 1: the key 'denied_comands' is not known; did you mean 'denied_commands'?\n"),
    (['--policy', 'entry.yaml'], f"entry.yaml, line 1: ask_commands holds 'git | rm', which is more than one command or a pattern: {ENTRY}"),
    (['--policy', 'example.yaml'], "example.yaml, line 2, ask_commands: 'git push' does not match its example 'git pull'\n"),
    (['--nonesuch'], '--nonesuch'),  # click's words differ from release to release
    (['--polcy', 'x'], '--policy'),
]  # fmt: skip
BOTH = ['--policy', 'both.yaml', '--deny', 'rm']
JUDGING = [
    *RULES,
    (BOTH, 'give either --policy or rules such as --allow and --deny, not both'),
]
FORMS = 'it must be local, bubblewrap, docker:CONTAINER (one that runs), image:IMAGE'
RUN = [
    *RULES,
    (BOTH, 'give only one of --policy, --no-policy and rules such as --allow and --deny'),
    (['--no-policy', '--ask', 'ls'], 'give only one of --policy, --no-policy and rules'),
    (['--timeout', '0'], "Invalid value for '--timeout': '0' is not a number of seconds, above 0"),
    (['--timeout', 'soon'], "Invalid value for '--timeout': 'soon' is not a number of seconds, above 0"),
    (['--timeout', 'nan'], "'nan' is not a number of seconds"),
    (['--timeout', '1e999'], "'1e999' is not a number of seconds"),
    (['--env', 'NONESUCH'], "--env='NONESUCH' is not allowed: it must be NAME=VALUE, or the NAME of a variable that is set here\n"),
    (['--env', '=x'], "--env='' is not allowed: it must be NAME=VALUE, or the NAME"),
    (['--cwd', 'nonesuch'], "--cwd='nonesuch' is not allowed: it must be a directory that is there\n"),
    (['--sandbox', 'docker:web', '--cwd', ''], "--cwd='' is not allowed: it must be a directory that is there\n"),
    (['--sandbox', 'moon'], f"--sandbox='moon' is not allowed: {FORMS}"),
    (['--sandbox', 'bubblewrap:x'], f"--sandbox='bubblewrap:x' is not allowed: {FORMS}"),
    (['--sandbox', 'ssh:'], f"--sandbox='ssh:' is not allowed: {FORMS}"),
    (['--sandbox', 'bubblewrap', '--cwd', '/'], "--cwd='/' is not allowed: it must be the directory to work in"),
    (['--network'], '--network has no place beside --sandbox local, whose network is as it is: leave it out'),
    (['--sandbox', 'docker:web', '--network'], '--network has no place beside --sandbox docker'),
    *(
        (['--sandbox', f'{kind}:x'], f'{program} is not on PATH, and --sandbox {kind} needs it: install it, or use another sandbox; "anyshell doctor" says which ones work here\n')
        for kind, program in (('docker', 'docker'), ('image', 'docker'), ('podman', 'podman'), ('podman-image', 'podman'))
    ),
    (['--sandbox', 'bubblewrap'], 'bwrap is not installed or not on PATH; install the package bubblewrap\n'),
    (['--sandbox', 'ssh:x'], 'ssh is not installed or not on PATH; install the OpenSSH client\n'),
]  # fmt: skip
OTHERS = [
    (['check'], "Missing argument 'COMMAND'"),
    (['check', 'ls', '-la'], "A line is one argument, so put it in quotes: main check 'ls -la'\n"),
    (['check', 'git', 'push', '--force'], "A line is one argument, so put it in quotes: main check 'git push --force'\n"),
    (['explain', 'ls', 'x'], "A line is one argument, so put it in quotes: main explain 'ls x'\n"),
    (['test'], "Missing argument 'FILE'"),
    (['test', 'no.yaml'], 'Error: no.yaml: the policy file can not be read: No such file or directory\n'),
    (['test', 'yaml.yaml'], 'in yaml.yaml, line 1, column 19'),
    (['test', 'both.yaml', 'key.yaml'], 'Got unexpected extra argument (key.yaml)'),
    (['schema', 'x'], 'Got unexpected extra argument (x)'),
    (['doctor', '--require', 'x'], "Invalid value for '--require': 'x' is not one of 'system', 'shell', "),
    (['doctor', 'x'], 'Got unexpected extra argument (x)'),
    (['demo', '--pause', '-1'], "Invalid value for '--pause': '-1' is not a number of seconds, 0 or more"),
    (['nonesuch'], "No such command 'nonesuch'"),
]  # fmt: skip
CASES = [
    *((['check', 'ls', *given], 3, said) for given, said in JUDGING),
    *((['explain', 'ls', *given], 3, said) for given, said in JUDGING),
    *((['run', *given, 'ls'], 125, said) for given, said in RUN),
    *((given, 3, said) for given, said in OTHERS),
]
PYTHON = re.compile(
    rf'(?<![-\w])({"|".join((*option_names(), "program", "container", "image", "network"))})='
)


@pytest.fixture
def mistaken(invoke, tmp_path, monkeypatch):
    """Runs the command with no program on PATH, in a directory with policy files."""
    for name, content in FILES.items():
        file = tmp_path / name
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv('PATH', str(tmp_path))
    return invoke


@pytest.mark.parametrize(('arguments', 'code', 'said'), CASES, ids=lambda value: str(value)[:60])
def test_error_names_options_and_keys_and_what_is_right(mistaken, arguments, code, said):
    done = mistaken(*arguments)

    assert done.exit_code == code, done.stderr
    assert said in done.stderr
    assert done.stdout == ''
    assert PYTHON.search(done.stderr) is None
    assert 'Traceback' not in done.stderr
    in_a_file = [name for name in FILES if name in done.stderr]
    names = [name for name in option_names() if '_' in name and name in done.stderr]
    assert not names or in_a_file


@pytest.mark.parametrize('command', ['check', 'run'])
def test_file_with_both_lists_is_judged_alike_by_all_commands(mistaken, command):
    done = mistaken(command, '--policy', 'both.yaml', 'ls')

    assert "'ls' matches the entry 'ls' of denied_commands" in done.stdout + done.stderr


def test_help_fits_on_a_terminal_and_cuts_no_sentence_off(invoke):
    listed = invoke('-h', terminal_width=80).stdout.partition('Commands:\n')[2]

    assert listed.count('\n') == len(main.commands)
    assert all(line.endswith('.') and not line.endswith('...') for line in listed.splitlines())
