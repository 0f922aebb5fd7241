"""`anyshell run`: the engine by hand. A command under a policy in a sandbox, with its output as it comes."""

from __future__ import annotations

import asyncio
import os
import shlex
import signal
import sys
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import click

from anyshell.command_line import sandboxes
from anyshell.command_line.options import policy_options, seconds, settings
from anyshell.command_line.terminal import say
from anyshell.errors import (
    AnyshellError,
    ApprovalRequired,
    CommandDenied,
    OptionError,
    WorkingDirectoryGone,
)
from anyshell.options import ShellOptions
from anyshell.policy import Policy
from anyshell.policy.file import PolicyFile, load
from anyshell.session import ShellSession
from anyshell.tools import Call, RunCommandArguments

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from anyshell.result import CommandResult
    from anyshell.sandbox.base import Sandbox, StreamChunk
    from anyshell.tools import Reply

    OnSignal: TypeAlias = Callable[[int], None]

TIMED_OUT, FAILED, DENIED = 124, 125, 126
"""Exit codes of our own, as `timeout`, `docker run` and shells have them."""

UNBOUNDED = 1 << 50
"""Bytes of output that wait on disk for a slow reader: all of them, since here the output is what is wanted."""


class _Run(click.Command):
    """A wrong command line is an error of ours too, so that no exit code of the command is mistaken for it."""

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,
    ) -> click.Context:
        try:
            return super().make_context(info_name, args, parent, **extra)
        except click.UsageError as error:
            error.show()
            sys.exit(FAILED)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except click.UsageError as error:
            error.show()
            sys.exit(FAILED)


@dataclass(kw_only=True)
class _Options(ShellOptions):
    """Options whose policy may be that of a file."""

    file: PolicyFile | None = None

    def policy(self, shell: Literal['bash', 'sh'] | None = None) -> Policy:
        return super().policy(shell) if self.file is None else self.file.policy(shell=shell)


@click.command(
    cls=_Run,
    context_settings={'allow_interspersed_args': False},
    short_help='Run a command as an agent would: policy, sandbox, limit.',
)
@click.option(
    '--sandbox',
    'place',
    metavar='PLACE',
    default='local',
    show_default=True,
    help=f'Where it runs: {sandboxes.FORMS}.',
)
@click.option(
    '--network', is_flag=True, help='Let a sandbox that is made for this reach the network.'
)
@click.option(
    '--cwd', metavar='DIRECTORY', default='.', help='Where it starts, seen from inside the sandbox.'
)
@click.option(
    '--timeout',
    metavar='SECONDS',
    type=str,
    callback=seconds(),
    default='30',
    show_default=True,
    help='When this has passed, the command is ended with everything that it started.',
)
@policy_options
@click.option(
    '--yes', is_flag=True, help='Approve what would be asked. What is denied stays denied.'
)
@click.option('--no-policy', is_flag=True, help='Allow everything.')
@click.option(
    '--env',
    metavar='NAME[=VALUE]',
    multiple=True,
    help='Give it exactly these variables (repeat). NAME alone takes the value from here, where no list of processes shows it.',
)
@click.option(
    '--hide-env',
    metavar='GLOB',
    multiple=True,
    help='Hide the variables that match (repeat), such as "*_API_KEY".',
)
@click.option(
    '--shell',
    type=click.Choice(['bash', 'sh']),
    help='What reads the command; by default bash where there is one.',
)
@click.option(
    '--as-model',
    is_flag=True,
    help='Print at the end what a model would read, instead of the output as it comes.',
)
@click.argument('command', nargs=-1, required=True)
def run(
    *,
    command: tuple[str, ...],
    place: str,
    network: bool,
    cwd: str,
    timeout: float,
    path: str | None,
    yes: bool,
    no_policy: bool,
    env: tuple[str, ...],
    hide_env: tuple[str, ...],
    shell: Literal['bash', 'sh'] | None,
    as_model: bool,
    **given: Any,
) -> int:
    """Run a COMMAND as an agent's shell would: under a policy, in a sandbox, with a time limit.

    One argument is a line for the shell; several are the words of one command. Output comes as it is written, standard
    input is empty, there is no terminal. Ctrl+C ends the command. Whatever it leaves running is ended too.

    \b
    Exit codes:
      the command's own; 128+N when signal N ended it, 127 when there is no such program
      124  the time limit has passed
      125  an error of anyshell: a wrong option, a sandbox that does not start, a directory that is not there
      126  the policy denied it, or asked and nobody approved
      130  Ctrl+C; 143 SIGTERM, 129 SIGHUP; 141 nobody reads the output any more

    \b
    Examples:
      anyshell run -- 'for i in 1 2 3; do echo $i; sleep 1; done'
      anyshell run --allow git --allow ls -- git status
      anyshell run --sandbox bubblewrap --timeout 600 -- 'make test'
      anyshell run --sandbox image:debian:12 --network -- 'apt-get update'
      anyshell run --sandbox ssh:build.example --cwd /srv/app -- git log -1
      anyshell run --as-model -- 'rm -rf build'
    """  # noqa: D301 - a backspace is how click is told not to wrap
    rules = settings(**given)
    if (path is not None) + bool(rules) + no_policy > 1:
        raise click.UsageError(
            'give only one of --policy, --no-policy and rules such as --allow and --deny'
        )
    if no_policy:
        rules.update(denied_commands=(), allow_interactive=True, unresolved='allow')
    try:
        file = None if path is None else load(path)
        sandbox = sandboxes.named(place, cwd=cwd, network=network)
        options = _Options(
            cwd='.' if place in sandboxes.HERE else cwd,
            default_timeout=timeout,
            env=_variables(env) if env else None,
            denied_env_patterns=hide_env,
            tool_set='spec',
            max_log_bytes=UNBOUNDED,
            shell=shell or (file and file.settings.get('shell')),
            file=file,
            **rules,
        )
        line = command[0] if len(command) == 1 else shlex.join(command)
        code = asyncio.run(
            _signalled(partial(_run, line, options, sandbox, as_model=as_model, yes=yes))
        )
    except (AnyshellError, OSError, ValueError) as error:
        _complain(str(error))
        code = FAILED
    return code


async def _signalled(work: Callable[[OnSignal], Coroutine[Any, Any, int]]) -> int:
    """Do the work, which gets what handles signals: one ends it, and so the command, with the exit code of shells."""
    loop = asyncio.get_running_loop()
    task = asyncio.current_task()
    caught: list[int] = []

    def on_signal(number: int) -> None:
        if caught or task is None:
            # Not again in order, but at once: the watcher ends what is left, as after a SIGKILL.
            os._exit(128 + number)
        caught.append(number)
        task.cancel()

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # as after `nohup`
            loop.add_signal_handler(number, on_signal, number)
    try:
        return await work(on_signal)
    except asyncio.CancelledError:
        if not caught:
            raise
        return 128 + caught[0]


async def _run(
    line: str,
    options: ShellOptions,
    sandbox: Sandbox,
    on_signal: OnSignal,
    *,
    as_model: bool,
    yes: bool,
) -> int:
    async with sandbox, ShellSession(options, sandbox=sandbox) as session:

        async def once(*, approved: bool) -> int:
            if as_model:
                reply = await session.call_run(
                    RunCommandArguments(command=line), Call(approved=approved)
                )
                return _told(reply)
            return _ended(await session.run(line, approved=approved, on_output=_show))

        try:
            try:
                return await once(approved=yes)
            except ApprovalRequired as request:
                if not _approved(request, line, on_signal):
                    return DENIED
                return await once(approved=True)
        except CommandDenied as denial:
            if as_model:
                click.echo(str(denial))
            else:
                _complain(str(denial))
            return DENIED
        except WorkingDirectoryGone as gone:
            raise OptionError('--cwd', str(options.cwd), 'a directory that is there') from gone
        except BrokenPipeError:
            # As a program that ignores nothing: `anyshell run -- yes | head -1` says no more than `yes | head -1`.
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            return 128 + signal.SIGPIPE


def _told(reply: Reply) -> int:
    click.echo(reply.text)
    if reply.is_error:
        return FAILED
    return TIMED_OUT if reply.facts['timed_out'] else reply.facts['exit_code']


def _ended(result: CommandResult) -> int:
    if result.timed_out is None:
        return result.exit_code or 0
    _complain(
        f'the time limit of {result.timed_out:g} seconds has passed, so the command was ended; --timeout sets another'
    )
    return TIMED_OUT


def _show(chunk: StreamChunk) -> None:
    stream = sys.stderr if chunk.stream_type == 'stderr' else sys.stdout
    stream.buffer.write(chunk.data.encode())
    stream.buffer.flush()


def _approved(request: ApprovalRequired, line: str, on_signal: OnSignal) -> bool:
    """Whether a person at the terminal says yes; nobody is there when standard input is no terminal."""
    _complain(str(request))
    if not sys.stdin.isatty():
        _complain('there is no terminal to ask on; --yes approves it')
        return False
    # `input` is deaf to the loop's handler: Ctrl+C has to reach it as in any program.
    loop = asyncio.get_running_loop()
    handled = loop.remove_signal_handler(signal.SIGINT)
    try:
        return click.confirm(f'Run {line!r}?', err=True)
    except click.Abort:
        return False
    finally:
        if handled:
            loop.add_signal_handler(signal.SIGINT, on_signal, signal.SIGINT)


def _variables(given: tuple[str, ...]) -> dict[str, str]:
    found: dict[str, str] = {}
    for text in given:
        name, equals, value = text.partition('=')
        if not name or (not equals and name not in os.environ):
            raise OptionError(
                '--env', name, 'NAME=VALUE, or the NAME of a variable that is set here'
            )
        found[name] = value if equals else os.environ[name]
    return found


def _complain(text: str) -> None:
    say(('anyshell: ', 'bad'), text, err=True)
