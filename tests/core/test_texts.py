"""Every error, and every text that a model reads about one: each is provoked, and says three things.

What happened, what was expected, and what to do next. A developer's text names the setting and the value. No text holds a path of
this host or the value of a variable that the caller did not name.
"""

from __future__ import annotations

import os
import sys
import tempfile
import threading
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import anyshell
from anyshell import (
    ApprovalRequired,
    CommandDenied,
    CommandError,
    InvalidCommand,
    JobsRefused,
    LocalSandbox,
    OptionError,
    Policy,
    PolicyError,
    Sandbox,
    SandboxClosed,
    SandboxError,
    SandboxPathNotFoundError,
    SandboxTimeoutError,
    SandboxUnavailable,
    SessionClosed,
    Sessions,
    ShellOptions,
    ShellSession,
    UnknownCommandID,
    WorkingDirectoryGone,
    errors,
    interruptible,
)
from anyshell.policy.file import load
from anyshell.sandbox import BubblewrapSandbox, DockerSandbox, SshSandbox, watch

SECRET = 'hunter2-of-this-test'  # noqa: S105 - nobody's
Provoke = Callable[[Path, pytest.MonkeyPatch], Awaitable[str]]


@dataclass(frozen=True)
class Row:
    """A text, and where in it the three things are said; ('' where it says one of them in the words of another)."""

    name: str
    error: type[Exception] | None
    provoke: Provoke
    happened: str
    expected: str
    next: str


# -- how the texts that a model reads are provoked: by calls of the tools


def told(
    tool: str,
    arguments: Mapping[str, Any],
    *,
    after: Mapping[str, Mapping[str, Any]] | None = None,
    spoil: Callable[[Path, pytest.MonkeyPatch, ShellSession], Awaitable[None]] | None = None,
    **options: Any,
) -> Provoke:
    """What the model is told about a call: the reply's text, or the sentence of the exception that an adapter shows it.

    Args:
        tool: What is called.
        arguments: With what.
        after: A call before it.
        spoil: What goes wrong before it.
        options: Settings of the session.
    """

    async def provoke(home: Path, monkeypatch: pytest.MonkeyPatch) -> str:
        async with ShellSession(ShellOptions(cwd=home, **options)) as session:
            tools = {tool.name: tool for tool in session.tools}
            for name, given in (after or {}).items():
                await tools[name].call(given)
            if spoil is not None:
                await spoil(home, monkeypatch, session)
            try:
                reply = await tools[tool].call(arguments)
            except (CommandDenied, ApprovalRequired) as error:
                return str(error)
            return reply.text

    return provoke


def run(command: str, **options: Any) -> Provoke:
    return told('run_command', {'command': command}, **options)


async def move_away(home: Path, monkeypatch: pytest.MonkeyPatch, session: ShellSession) -> None:
    del monkeypatch, session
    home.rmdir()


async def step_into_a_directory_that_goes(
    home: Path, monkeypatch: pytest.MonkeyPatch, session: ShellSession
) -> None:
    del monkeypatch
    (home / 'sub').mkdir()
    await session.run('cd sub')
    (home / 'sub').rmdir()


async def close(home: Path, monkeypatch: pytest.MonkeyPatch, session: ShellSession) -> None:
    del home, monkeypatch
    await session.aclose()


async def no_more_processes(
    home: Path, monkeypatch: pytest.MonkeyPatch, session: ShellSession
) -> None:
    del home
    await session.run('true')  # the watcher runs

    def refuse(*arguments: object, **settings: object) -> None:
        del arguments, settings
        raise BlockingIOError(11, 'Resource temporarily unavailable')

    monkeypatch.setattr('anyshell.sandbox.process.Popen', refuse)


async def no_temporary_files(
    home: Path, monkeypatch: pytest.MonkeyPatch, session: ShellSession
) -> None:
    del home, session

    def refuse(*arguments: object, **settings: object) -> str:
        del arguments, settings
        raise OSError(28, 'No space left on device', f'{tempfile.gettempdir()}/anyshell-abc')

    monkeypatch.setattr(tempfile, 'mkdtemp', refuse)


async def no_bash(home: Path, monkeypatch: pytest.MonkeyPatch, session: ShellSession) -> None:
    del home, session
    monkeypatch.setattr('anyshell.sandbox.process.local_shell', lambda: 'sh')


SLEEP = {'start_command': {'command': 'sleep 60'}}
ENDED = {'start_command': {'command': 'true', 'stdin': True, 'ready_when': 'exit'}}

MODEL = [
    Row('denied', CommandDenied, run('rm x'), "Command 'rm' is denied.", "'rm x' matches the entry 'rm' of denied_commands", "All commands are allowed but 'rm'"),
    Row('not allowed', CommandDenied, run('ls', allowed_commands=['git', 'cat']), "Command 'ls' is not in the allowed list.", 'allowed_commands', "'git', 'cat'"),
    Row('operator', CommandDenied, run('echo hi > x', denied_operators=['>']), "Shell operator '>' is not allowed.", 'at character 8', 'All operators are allowed but'),
    Row('interactive', CommandDenied, run('vi x'), 'Interactive commands are not allowed.', 'allow_interactive is off', 'Use a command that needs none'),
    Row('unresolved', CommandDenied, run('$PROGRAM x'), '$PROGRAM', 'not known before it runs', 'Write the name itself'),
    Row('syntax', CommandDenied, run('echo "x'), 'The command is not understood', 'at character', 'Write it in plain shell syntax'),
    Row('bash in sh', CommandDenied, run('[[ a == b ]]', shell='sh'), 'The command is not understood', 'sh', 'Write it in plain shell syntax'),
    Row('no bash', SandboxUnavailable, run('[[ a == b ]]', shell='bash', spoil=no_bash), 'there is no bash where commands run, and the setting `shell` asks for it', 'nothing was run', 'install bash there, or leave `shell` out'),
    Row('too long', CommandDenied, run('echo ' + 'x' * 2_000_000), 'The command is too long', 'are allowed', 'Write its text to a file in parts'),
    Row('approval', ApprovalRequired, run('ls', ask_commands=['ls']), "Command 'ls' needs approval.", 'ask_commands', 'a person decides'),
    Row('nobody to ask', CommandDenied, run('ls', ask_commands=['ls'], on_ask='deny'), 'Nobody is there to approve it', 'needs approval', 'do it another way'),
    Row('NUL', InvalidCommand, run('a\0b'), 'contains a NUL character', 'can not be passed on', 'send it again without'),
    Row('half a character', InvalidCommand, run('a\ud800b'), 'contains half a character', "'\\ud800'", 'send it again with whole Unicode characters'),
    Row('timeout of nothing', InvalidCommand, told('run_command', {'command': 'ls', 'timeout_seconds': -1}), 'not -1', 'timeout_seconds must be a number of seconds above 0', 'leave it out for the default'),
    Row('timeout without end', InvalidCommand, told('run_command', {'command': 'ls', 'timeout_seconds': float('inf')}), 'not inf', 'timeout_seconds must be a number of seconds above 0', 'leave it out for the default'),
    Row('claim for a number', None, told('run_command', {'command': 'ls', 'timeout_seconds': True}), 'invalid arguments for run_command', 'timeout_seconds: Input should be a number of seconds, not true or false', 'Call it again with: command, timeout_seconds (optional)'),
    Row('listed with conditions', None, told('check_command', {'wait_seconds': 3}), 'wait_seconds had no effect', 'without command_id', 'all commands are listed'),
    Row('missing argument', None, told('run_command', {'cmd': 'ls'}), 'invalid arguments for run_command', 'command: Field required', 'Call it again with: command, timeout_seconds (optional)'),
    Row('wrong type', None, told('run_command', {'command': ['ls', SECRET]}), 'invalid arguments for run_command', 'should be a valid string', 'Call it again with: command'),
    Row('workdir', InvalidCommand, told('run_command', {'command': 'ls', 'workdir': 'nonesuch'}), "workdir 'nonesuch' is no directory", 'nothing was run', 'Name one that is there, or leave it out'),
    Row('directory gone', WorkingDirectoryGone, run('ls', spoil=move_away), 'does not exist', 'nothing was run', 'That has to be put right first'),
    Row('left directory gone', WorkingDirectoryGone, run('ls', spoil=step_into_a_directory_that_goes, persist_cwd=True), "/sub' does not exist", 'nothing was run', 'The next command starts in'),
    Row('unknown ID', UnknownCommandID, told('check_command', {'command_id': 'j9'}, after=SLEEP), "unknown command ID 'j9'", '', 'Known IDs: j1.'),
    Row('no ID at all', UnknownCommandID, told('stop_command', {'command_id': 'j9'}), "unknown command ID 'j9'", 'there are none', 'start_command'),
    Row('too many jobs', JobsRefused, told('start_command', {'command': 'sleep 60'}, after=SLEEP, max_jobs=1), '1 background commands are running', 'the limit (max_jobs=1)', 'stop one with stop_command first. Running: j1'),
    Row('no condition', InvalidCommand, told('start_command', {'command': 'true', 'ready_when': 'soon'}), "not 'soon'", "ready_when must be 'exit', 'output:REGEX', 'port:NUMBER' or 'quiet:SECONDS'", ''),
    Row('no expression', InvalidCommand, told('check_command', {'command_id': 'j1', 'until': 'output:(', 'wait_seconds': 1}, after=SLEEP), "'(' is not a regular expression", 'unclosed group', 'not supported'),
    Row('no waiting time', InvalidCommand, told('check_command', {'command_id': 'j1', 'wait_seconds': -2}, after=SLEEP), 'not -2', 'wait_seconds must be a number of seconds, 0 or more', '0 looks at once'),
    Row('no lines', InvalidCommand, told('check_command', {'command_id': 'j1', 'lines': 'all'}, after=SLEEP), "not 'all'", 'lines must be a range', "'1-200'"),
    Row('no input', InvalidCommand, told('send_input', {'command_id': 'j1', 'text': 'x'}, after=SLEEP), 'no open standard input', 'stdin=true', 'start_command'),
    Row('input after the end', InvalidCommand, told('send_input', {'command_id': 'j1', 'text': 'x'}, after=ENDED), 'has ended', 'nothing was sent', 'check_command'),
    Row('timed out', None, told('run_command', {'command': 'echo so far; sleep 60', 'timeout_seconds': 0.3}), 'so far', '[Command timed out after 0.3s]', ''),
    Row('goes on', None, told('run_command', {'command': 'sleep 60', 'timeout_seconds': 0.2}, on_timeout='background'), 'still running after 0.2s', 'it has not failed', "check_command(command_id='j1')"),
    Row('cut', None, run('seq 1000', max_output_chars=20), '[... output truncated, showing last 20 chars]', '', ''),
    Row('missing program', None, run('nonesuch-program'), 'nonesuch-program', '[exit code: 127]', ''),
    Row('closed', SessionClosed, run('ls', spoil=close), 'this session is closed', 'nothing was run', 'a new one'),
    Row('closed, looked at', SessionClosed, told('check_command', {'command_id': 'j1'}, spoil=close), 'this session is closed', '', 'a new one'),
    Row('no process', SandboxError, run('ls', spoil=no_more_processes), 'can not start another process', 'Resource temporarily unavailable', 'stop background commands, or wait'),
    Row('full disk', SandboxError, run('ls', spoil=no_temporary_files, persist_cwd=True), 'no temporary directory can be made', 'No space left on device', 'free some space or set TMPDIR'),
    Row('big environment', InvalidCommand, run('ls', env={'PATH': os.defpath, 'BIG': SECRET * 100_000}), 'the environment is too big', 'E2BIG', 'pass fewer or shorter variables'),
]  # fmt: skip


# -- how the texts that a developer reads are provoked


def raised(make: Callable[[Path], object], **patches: object) -> Provoke:
    """What is raised when something is made or called.

    Args:
        make: Does it, in a directory of its own; an awaitable is awaited.
        patches: Attributes of `sys` that are other than they are.
    """

    async def provoke(home: Path, monkeypatch: pytest.MonkeyPatch) -> str:
        for name, value in patches.items():
            monkeypatch.setattr(sys, name, value)
        with pytest.raises(Exception) as caught:  # noqa: PT011, PT012 - the table says which, and what it says
            made = make(home)
            if isinstance(made, Awaitable):
                await made
        return str(caught.value)

    return provoke


def option(**settings: Any) -> Provoke:
    return raised(lambda _: ShellOptions(**settings))


def policy_file(text: str) -> Provoke:
    def read(home: Path) -> object:
        file = home / 'policy.yaml'
        file.write_text(text)
        return load(file)

    return raised(read)


async def in_a_sandbox(sandbox: Sandbox, command: str, **arguments: Any) -> None:
    async with sandbox:
        await sandbox.execute(command, **arguments)


async def in_a_closed_sandbox(home: Path) -> None:
    sandbox = LocalSandbox(cwd=home)
    await sandbox.aclose()
    await sandbox.execute('true')


async def files_of(home: Path, path: str) -> None:
    async with LocalSandbox(cwd=home) as sandbox:
        await sandbox.list_files(path)


def without_python(home: Path) -> None:
    del home
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, 'executable', '')
        patch.setenv('PATH', '')
        watch._start_watcher(0)


async def without_bubblewrap(home: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv('PATH', str(home))
        await in_a_sandbox(BubblewrapSandbox(cwd=home), 'true')


async def refused(home: Path, program: str, said: str, code: int, sandbox: Sandbox) -> None:
    """Use a sandbox whose client does nothing but say why it can't."""
    client = home / program
    client.write_text(f'#!/bin/sh\ncat >&2 <<-.\n{said}\n.\nexit {code}\n')
    client.chmod(0o755)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv('PATH', f'{home}:{os.environ["PATH"]}')
        await in_a_sandbox(sandbox, 'true')


async def refused_by_ssh(home: Path) -> None:
    await refused(home, 'ssh', 'web: Permission denied (publickey).', 255, SshSandbox('web'))


async def no_engine_for_an_image(home: Path) -> None:
    said = "Cannot connect to the Docker daemon. Is it running?\n\nRun 'docker run --help' for more"
    await refused(home, 'docker', said, 125, DockerSandbox(image='web'))


async def no_image(home: Path) -> None:
    await refused(home, 'docker', 'Unable to find image.', 125, DockerSandbox(image='web'))


def in_another_thread(home: Path) -> None:
    del home
    found: list[BaseException] = []

    def enter() -> None:
        try:
            interruptible().__enter__()
        except RuntimeError as error:
            found.append(error)

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    raise found[0]


def a_session_and_settings(home: Path) -> None:
    with ShellSession(ShellOptions(cwd=home)) as session:
        Sessions({'max_jobs': 3}, session=session)


DEVELOPER = [
    Row('no directory', OptionError, option(cwd=''), "cwd='' is not allowed", 'it must be the path of a directory', ''),
    Row('text for a list', OptionError, option(allowed_commands='git'), "allowed_commands='git' is not allowed", 'it must be a list of strings', "such as ['git', 'ls']"),
    Row('no time', OptionError, option(default_timeout=0), 'default_timeout=0 is not allowed', 'it must be a number of seconds above 0', ''),
    Row('no choice', OptionError, option(unresolved='maybe'), "unresolved='maybe' is not allowed", "it must be 'deny', 'ask' or 'allow'", ''),
    Row('no number', OptionError, option(max_jobs=True), 'max_jobs=True is not allowed', 'it must be a whole number of jobs, 1 or more', ''),
    Row('both lists', OptionError, option(allowed_commands=['a'], denied_commands=['b']), "denied_commands=['b'] is not allowed", 'it must be empty, since allowed_commands is given', 'Specify allowed_commands or denied_commands, not both.'),
    Row('variables in a list', OptionError, option(env=[f'TOKEN={SECRET}']), "env=['TOKEN=…'] is not allowed", 'it must be None or a mapping', ''),
    Row('variable in its name', OptionError, option(env={f'TOKEN={SECRET}': 'x'}), "env='TOKEN=…' is not allowed", 'a name is not empty and has no "="', ''),
    Row('NUL in a variable', OptionError, option(env={'TOKEN': f'{SECRET}\0'}), "env['TOKEN']='…' is not allowed", 'it must be a str without NUL', ''),
    Row('a session and settings', OptionError, raised(a_session_and_settings), 'session=', 'it must be given without max_jobs', 'since it has settings of its own'),
    Row('entry that is syntax', PolicyError, option(denied_commands=['git | rm']), "denied_commands holds 'git | rm'", 'an entry is a program', "such as 'git push'"),
    Row('no operator', PolicyError, option(denied_operators=['$']), "denied_operators holds '$'", 'an operator is one of', "'&&'"),
    Row('no file', PolicyError, raised(lambda home: load(home / 'nonesuch.yaml')), 'nonesuch.yaml: the policy file can not be read', 'No such file', ''),
    Row('no YAML', PolicyError, policy_file('denied_commands: ['), 'policy.yaml: not valid YAML', 'expected the node content', 'line 1'),
    Row('unknown key', PolicyError, policy_file('\ndeny_commands: [rm]\n'), "line 2: the key 'deny_commands' is not known", '', "did you mean 'denied_commands'?"),
    Row('example that does not hold', PolicyError, policy_file('denied_commands:\n- {command: git push, match: [git pull]}\n'), "line 2, denied_commands: 'git push' does not match its example 'git pull'", '', ''),
    Row('Windows', SandboxUnavailable, raised(lambda _: LocalSandbox(), platform='win32'), 'LocalSandbox needs a POSIX system', 'on Windows', 'run the agent in WSL, or use DockerSandbox or SshSandbox'),
    Row('no Python', SandboxUnavailable, raised(without_python), 'anyshell needs a Python interpreter', 'sys.executable is empty', 'no python3 is on PATH; put one there'),
    Row('Python that does not start', SandboxUnavailable, raised(lambda _: watch._start_watcher(0), executable='/nonesuch/of/this/host'), 'the watcher process could not be started', 'No such file or directory', '"anyshell doctor"'),
    Row('no docker', SandboxUnavailable, raised(lambda _: in_a_sandbox(DockerSandbox('web', program='nonesuch-docker'), 'true')), 'nonesuch-docker is not installed', 'on PATH', 'install it, or name another client with program='),
    Row('no engine', SandboxUnavailable, raised(lambda _: in_a_sandbox(DockerSandbox('web', program='false'), 'true')), 'false does not answer', 'Start its engine', '"anyshell doctor" says more'),
    Row('no engine for an image', SandboxUnavailable, raised(no_engine_for_an_image), 'no container could be started (docker says: Cannot connect to the Docker daemon. Is it running?)', 'Start its engine, or see that this user may use it', '"anyshell doctor" says more'),
    Row('no image', SandboxUnavailable, raised(no_image), 'no container could be started (docker says: Unable to find image)', 'See that the image is there', 'or can be pulled'),
    Row('no docker for an image', SandboxUnavailable, raised(lambda _: in_a_sandbox(DockerSandbox(image='web', program='nonesuch-docker'), 'true')), 'nonesuch-docker is not installed', 'install it, or name another client with program=', '"anyshell doctor" says which sandboxes work here'),
    Row('host refuses', SandboxUnavailable, raised(refused_by_ssh), "the host 'web' can not be used", 'check', 'ssh says: web: Permission denied (publickey).'),
    Row('no bubblewrap', SandboxUnavailable, raised(without_bubblewrap), 'bwrap is not installed', 'on PATH', 'install the package bubblewrap'),
    Row('everything writable', ValueError, raised(lambda _: BubblewrapSandbox(cwd='/')), 'cwd="/"', 'would make the whole machine writable', 'name the directory to work in'),
    Row('no container', ValueError, raised(lambda _: DockerSandbox()), 'DockerSandbox needs either', 'container=', 'image='),
    Row('unsafe ssh option', ValueError, raised(lambda _: SshSandbox('host', ssh_options=['ProxyCommand=x'])), 'SSH option "ProxyCommand" is not allowed.', '', 'Set allow_unsafe_ssh_options=True to bypass.'),
    Row('time is up', SandboxTimeoutError, raised(lambda home: in_a_sandbox(LocalSandbox(cwd=home), 'sleep 60', timeout=0.2)), 'Execution timed out after 0.2 seconds', '', ''),
    Row('no path', SandboxPathNotFoundError, raised(lambda home: files_of(home, 'nonesuch')), 'Path not found: nonesuch', '', ''),
    Row('closed sandbox', SandboxClosed, raised(in_a_closed_sandbox), 'this sandbox is closed', 'to run commands', 'make a new one'),
    Row('no name of a variable', ValueError, raised(lambda _: anyshell.validate_env_keys({'A-B': SECRET})), 'Invalid environment variable name: A-B', '', ''),
    Row('NUL in a value', ValueError, raised(lambda _: anyshell.build_shell_env_prefix({'A': f'{SECRET}\0'})), 'variable A holds a NUL character', '', ''),
    Row('another thread', RuntimeError, raised(in_another_thread), 'interruptible() must be entered in the main thread', 'no other one can set a signal handler', ''),
    Row('no shell', PolicyError, raised(lambda _: Policy((), shell='zsh')), "shell is 'zsh'", "it must be 'bash' or 'sh'", ''),  # type: ignore[arg-type] - that is the mistake
]  # fmt: skip

# What says less than three things: the words are fixed by the interface that we keep to, or the next step is the value that is
# said to be right.
BRIEF = {
    'timed out': 'to the letter what prompts rely on; the description of the tool says what to do',
    'missing program': 'the words of the shell',
    'unknown ID': 'the known IDs are what is expected, and what to do',
    'cut': "the origin's, to the letter; the tool's description says how to read the rest",
    'no condition': 'what is right is what to do',
    'closed, looked at': 'nothing else can be done',
    'time is up': "the sandbox interface's words; the error has the output so far",
    'no path': "the sandbox interface's words",
    'no name of a variable': "the sandbox interface's words",
    'unsafe ssh option': "the sandbox interface's words",
    'NUL in a value': 'what is wrong is what to change',
    'example that does not hold': 'what is wrong is what to change',
    'unknown key': 'the key that was meant is what is expected',
    'no file': 'what the system says',
    'another thread': 'what is right is what to do',
    'no shell': 'what is right is what to do',
    **dict.fromkeys(
        ('no directory', 'no time', 'no choice', 'no number', 'variables in a list', 'variable in its name', 'NUL in a variable'),
        'what is right is what to do',
    ),
}  # fmt: skip


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[type[Exception]]:
    """The classes of our errors that were made, also of those that became a reply."""
    found: list[type[Exception]] = []

    def remember(self: errors.AnyshellError, *arguments: object) -> None:
        found.append(type(self))
        super(errors.AnyshellError, self).__init__(*arguments)

    monkeypatch.setattr(errors.AnyshellError, '__init__', remember)
    return found


@pytest.mark.parametrize('row', MODEL + DEVELOPER, ids=lambda row: row.name)
async def test_text_says_what_happened_what_was_expected_and_what_to_do_next(
    row, tmp_path, monkeypatch, made
):
    monkeypatch.setenv('A_TOKEN', SECRET)
    home = tmp_path / 'home'
    home.mkdir()

    text = await row.provoke(home, monkeypatch)

    parts = [row.happened, row.expected, row.next]
    assert [part for part in parts if part not in text] == [], text
    assert all(parts) or row.name in BRIEF
    assert '\n' in text or text[-1] not in ' ,;'
    if row.error is not None and issubclass(row.error, errors.AnyshellError):
        assert row.error in made
    # Nothing that the caller has not named: no variable's value, no path of this host, of this package or of its files.
    named = text.replace(str(home), '~')
    for hidden in (
        SECRET,
        str(tmp_path),
        str(Path.home()),
        os.getcwd(),
        sys.prefix,
        '/nonesuch/of',
    ):
        assert hidden not in named
    assert os.path.dirname(anyshell.__file__) not in named
    assert '/anyshell-' not in named  # the private directory


def test_table_has_every_error():
    roots = {errors.AnyshellError, CommandError}  # what is raised is always one of their kinds
    everything = {getattr(errors, name) for name in errors.__all__}

    assert everything - roots <= {row.error for row in MODEL + DEVELOPER}


def test_names_in_the_table_are_used_once():
    names = [row.name for row in MODEL + DEVELOPER]

    assert sorted(names) == sorted(set(names))
    assert set(names) >= set(BRIEF)


@pytest.mark.parametrize('name', ShellOptions.__dataclass_fields__)
def test_option_with_an_impossible_value_is_named_with_what_is_possible(name):
    with pytest.raises(OptionError) as caught:
        ShellOptions(**{name: object()})

    assert str(caught.value).startswith(f'{name}=')
    assert ' is not allowed: it must be ' in str(caught.value)
