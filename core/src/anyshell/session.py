"""A session: policy, then run, then words. It owns a working directory and the background commands, and their end."""

from __future__ import annotations

import copy
import logging
import math
import os
import posixpath
import re
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, NoReturn

from anyshell import output, waiting
from anyshell.cwd import Directory
from anyshell.environment import NONINTERACTIVE_ENV, visible
from anyshell.errors import (
    ApprovalRequired,
    CommandDenied,
    CommandError,
    InvalidCommand,
    OptionError,
    SandboxError,
    SandboxUnavailable,
    SessionClosed,
    UnknownCommandID,
    WorkingDirectoryGone,
)
from anyshell.interrupt import watched
from anyshell.jobs import Jobs, Turns
from anyshell.keywords import Keywords
from anyshell.options import ShellOptions, option_names
from anyshell.policy import Decision, Policy, Verdict
from anyshell.replies import Replies
from anyshell.result import CommandResult
from anyshell.sandbox.base import Sandbox, Spawn
from anyshell.sandbox.local import LocalSandbox
from anyshell.synchronous import Closing, run_sync
from anyshell.tools import (
    Call,
    CheckCommandArguments,
    CheckCommandArgumentsFull,
    Reply,
    RunCommandArguments,
    RunCommandArgumentsFull,
    SendInputArguments,
    StartCommandArguments,
    StartCommandArgumentsFull,
    StopCommandArguments,
    Tool,
    tools,
)

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Generator

    from anyshell.sandbox.base import Shell, StreamChunk

logger = logging.getLogger('anyshell')


_SETTINGS = {
    name: f'settings go into ShellOptions, as in ShellSession(ShellOptions({name}=…))'
    for name in option_names()
}


class ShellSession(Closing, Keywords):
    """One agent's shell: runs commands under a policy in a sandbox, and keeps its directory and jobs between calls.

    Use it with `async with` or `with`, or call `aclose`. It may be used from several event loops and threads, also at
    the same time: no asyncio object outlives a call.

    Args:
        options: The settings; `None` for the defaults. The session has a copy.
        sandbox: Where commands run; it stays the caller's to close. `None` for this machine.
        policy: Judges commands instead of the policy that the options describe.

    Attributes:
        options: The settings, which are those of the time when the session was opened.
    """

    _elsewhere = _SETTINGS

    def __init__(
        self,
        options: ShellOptions | None = None,
        *,
        sandbox: Sandbox | None = None,
        policy: Policy | None = None,
    ) -> None:
        _check_parts(options, sandbox, policy)
        # A copy, checked again: what is changed in the options later has no effect on a session that is open.
        self.options = options = ShellOptions() if options is None else copy.copy(options)
        ShellOptions.__post_init__(options)
        self._sandbox = LocalSandbox(cwd=options.cwd) if sandbox is None else sandbox
        cwd = '.' if sandbox is None else os.fspath(options.cwd)
        self._processes = self._sandbox.processes(max_log_bytes=options.max_log_bytes)
        self._begin()
        self._directory = Directory(self._processes, cwd, persist=options.persist_cwd)
        if isinstance(self._sandbox, LocalSandbox):
            self._directory.path = os.path.normpath(os.path.join(self._sandbox.cwd, cwd))
        self._replies = Replies(options)
        self._given_policy = policy
        self._policies: dict[Shell, Policy] = {}
        self._closed = False

    def __repr__(self) -> str:
        closed = ', closed' if self._closed else ''
        return f'<{type(self).__name__} in a {type(self._sandbox).__name__}{closed}>'

    def __reduce__(self) -> NoReturn:
        msg = 'a ShellSession lives in one process and can not be pickled; pickle its `options` and open a session there'
        raise TypeError(msg)

    def _begin(self) -> None:
        options = self.options
        self._pid = os.getpid()
        self._turns = Turns()
        self._jobs = Jobs(
            self._processes,
            max_jobs=options.max_jobs,
            max_output_chars=options.max_output_chars,
            max_log_bytes=options.max_log_bytes,
            kill_grace=options.kill_grace,
        )

    # -- for code

    @property
    def cwd(self) -> str:
        """The directory that the next command starts in, inside the sandbox."""
        return self._directory.path

    @property
    def closed(self) -> bool:
        """Whether `aclose` was called."""
        return self._closed

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The tools for a model."""
        shell = self.options.shell or self._sandbox.known_shell()
        return tools(self, self.options, shell, listed=self._given_policy is None)

    def policy(self, shell: Shell | None = None) -> Policy:
        """The policy that judges commands for a shell; by default for the one that will read them."""
        shell = shell or self.options.shell or self._sandbox.known_shell() or 'bash'
        if self._given_policy is not None:
            return self._given_policy
        if shell not in self._policies:
            self._policies[shell] = self.options.policy(shell)
        return self._policies[shell]

    async def run(
        self,
        command: str,
        *,
        timeout: float | None = None,
        on_output: Callable[[StreamChunk], Awaitable[None] | None] | None = None,
        approved: bool = False,
    ) -> CommandResult:
        """Run a command under the policy and return the facts.

        Args:
            command: The command.
            timeout: Seconds; `None` for `default_timeout`. When it has passed the result says so: that is no error.
            on_output: Gets each piece of output in this task, as it comes.
            approved: Whether a person has approved it; what the policy denies does not run all the same.

        Raises:
            CommandDenied: If the policy denies the command.
            ApprovalRequired: If the policy asks for an approval.
            CommandError: If the command can't be run as it is, such as one with a NUL character.
            SandboxError: If the sandbox fails.
            SessionClosed: If the session is closed.
        """
        if timeout is not None:
            timeout = self._seconds('timeout', timeout)
        return await self._run(command, timeout, Call(on_output=on_output, approved=approved))

    def run_sync(
        self,
        command: str,
        *,
        timeout: float | None = None,
        on_output: Callable[[StreamChunk], Awaitable[None] | None] | None = None,
        approved: bool = False,
    ) -> CommandResult:
        """`run` for synchronous code; works inside a running event loop too, which it blocks meanwhile."""
        return run_sync(self.run(command, timeout=timeout, on_output=on_output, approved=approved))

    # -- for models

    async def run_command(
        self, command: str, *, timeout_seconds: float | None = None, workdir: str | None = None
    ) -> str:
        """Run a command and return the words for a model; raises `CommandDenied` and `ApprovalRequired` only.

        Args:
            command: The command.
            timeout_seconds: Seconds to wait; `None` for `default_timeout`.
            workdir: The directory for this command only, relative to `cwd`.
        """
        arguments = RunCommandArgumentsFull(
            command=command, timeout_seconds=timeout_seconds, workdir=workdir
        )
        return (await self.call_run(arguments, Call())).text

    async def start_command(
        self,
        command: str,
        *,
        workdir: str | None = None,
        ready_when: str | None = None,
        ready_timeout: float = 30.0,
        stdin: bool = False,
    ) -> str:
        """Start a background command and return the words for a model; raises as `run_command`.

        Args:
            command: The command.
            workdir: The directory for this command only, relative to `cwd`.
            ready_when: Return only when this is so: 'port:8000', 'output:REGEX' or 'quiet:2'.
            ready_timeout: Seconds to wait for that at most.
            stdin: Keep its standard input open for `send_input`.
        """
        arguments = StartCommandArgumentsFull(
            command=command,
            workdir=workdir,
            ready_when=ready_when,
            ready_timeout=ready_timeout,
            stdin=stdin,
        )
        return (await self.call_start(arguments, Call())).text

    async def check_command(
        self,
        command_id: str | None = None,
        *,
        wait_seconds: float = 0.0,
        until: str | None = None,
        since: Literal['start', 'last'] = 'start',
        lines: str | None = None,
    ) -> str:
        """Report on a background command in words for a model.

        Args:
            command_id: The ID that `start_command` returned; `None` lists all commands.
            wait_seconds: Seconds to wait at most; 0 looks at once.
            until: What to wait for: 'exit' (the default), 'output:REGEX', 'port:8000' or 'quiet:2'.
            since: 'last' shows only what is new since the last check with 'last'.
            lines: Only these lines of the whole output, such as '1-200' or '-50' for the last 50.
        """
        arguments = CheckCommandArgumentsFull(
            command_id=command_id,
            wait_seconds=wait_seconds,
            until=until,
            since=since,
            lines=lines,
        )
        return (await self.call_check(arguments, Call())).text

    async def send_input(self, command_id: str, text: str) -> str:
        """Write to a background command that was started with `stdin`, and report on it in words for a model."""
        arguments = SendInputArguments(command_id=command_id, text=text)
        return (await self.call_send(arguments, Call())).text

    async def stop_command(self, command_id: str) -> str:
        """End a background command and report on it in words for a model."""
        return (await self.call_stop(StopCommandArguments(command_id=command_id), Call())).text

    async def call_run(self, arguments: RunCommandArguments, call: Call) -> Reply:
        """`run_command` as a tool call."""
        async with _worded() as failed:
            workdir = arguments.workdir if isinstance(arguments, RunCommandArgumentsFull) else None
            seconds = arguments.timeout_seconds
            result = await self._run(arguments.command, seconds, call, workdir=workdir)
            return self._replies.run(result, jobs=bool(self._jobs.ids))
        return failed.reply

    async def call_start(self, arguments: StartCommandArguments, call: Call) -> Reply:
        """`start_command` as a tool call."""
        async with _worded() as failed:
            if not isinstance(arguments, StartCommandArgumentsFull):
                verdict, spawn = await self._prepare(arguments.command, call, None)
                with self._failing(verdict, spawn):
                    result = await self._jobs.start(spawn, call_id=call.call_id)
            else:
                ready = (
                    waiting.parse(arguments.ready_when, 'ready_when')
                    if arguments.ready_when
                    else None
                )
                seconds = self._seconds('ready_timeout', arguments.ready_timeout)
                verdict, spawn = await self._prepare(
                    arguments.command, call, arguments.workdir, open_input=arguments.stdin
                )
                spawn = replace(spawn, stdin=arguments.stdin)
                with self._failing(verdict, spawn):
                    result = await self._jobs.start(
                        spawn, call_id=call.call_id, ready=ready, ready_timeout=seconds
                    )
            return self._replies.started(self._audit(verdict, result))
        return failed.reply

    async def call_check(
        self,
        arguments: CheckCommandArguments | CheckCommandArgumentsFull,
        call: Call,  # noqa: ARG002 - the tools' common signature
    ) -> Reply:
        """`check_command` as a tool call."""
        async with _worded() as failed:
            self._open()
            if not isinstance(arguments, CheckCommandArgumentsFull):
                return self._replies.status(await self._jobs.check(arguments.command_id))
            if arguments.command_id is None:
                listing = self._replies.listing([job for job, _ in await self._jobs.states()])
                why = 'without command_id all commands are listed'
                return _on_top(_without_effect(arguments, (), why), listing)
            if arguments.lines is not None:
                first, last = _line_range(arguments.lines)
                found, dropped = await self._jobs.lines(arguments.command_id, first, last)
                shown = self._replies.lines(arguments.command_id, found, dropped)
                why = 'lines shows what is there now'
                return _on_top(_without_effect(arguments, ('command_id', 'lines'), why), shown)
            return await self._check(arguments, arguments.command_id)
        return failed.reply

    async def _check(self, arguments: CheckCommandArgumentsFull, command_id: str) -> Reply:
        seconds = 0.0
        if arguments.wait_seconds:  # 0 is the default, and looks at once
            seconds = self._seconds(
                'wait_seconds', arguments.wait_seconds, ', 0 or more', '0 looks at once'
            )
        elif arguments.until is not None:
            seconds = self._timeout(None)
        until = waiting.parse(arguments.until or 'exit', 'until') if seconds else None
        since_last = arguments.since == 'last'
        result = await self._jobs.check(
            command_id, until=until, wait=seconds, since_last=since_last
        )
        return self._replies.status(result, since_last=since_last)

    async def call_stop(
        self,
        arguments: StopCommandArguments,
        call: Call,  # noqa: ARG002 - the tools' common signature
    ) -> Reply:
        """`stop_command` as a tool call."""
        async with _worded() as failed:
            self._open()
            return self._replies.stopped(await self._jobs.stop(arguments.command_id))
        return failed.reply

    async def call_send(
        self,
        arguments: SendInputArguments,
        call: Call,  # noqa: ARG002 - the tools' common signature
    ) -> Reply:
        """`send_input` as a tool call."""
        async with _worded() as failed:
            self._open()
            _check_text(arguments.text, 'text')
            return self._replies.status(await self._jobs.send(arguments.command_id, arguments.text))
        return failed.reply

    # -- the flow of a call

    async def _run(
        self, command: str, timeout: float | None, call: Call, *, workdir: str | None = None
    ) -> CommandResult:
        seconds = self._timeout(timeout)
        call = replace(call, cancelled=watched(call.cancelled))
        verdict, spawn = await self._prepare(command, call, workdir)
        if self.options.persist_cwd and workdir is None:
            async with self._turns.turn(call.cancelled) as come:
                if not come:
                    return self._audit(verdict, await self._execute(verdict, spawn, seconds, call))
                spawn = replace(spawn, cwd=await self._directory.start())
                name, preamble = await self._directory.recorder(spawn.shell)
                spawn = replace(spawn, preamble=preamble)
                result = await self._execute(verdict, spawn, seconds, call)
                if note := await self._directory.follow(name, succeeded=result.exit_code == 0):
                    result = replace(result, stderr=result.stderr + note)
        else:
            result = await self._execute(verdict, spawn, seconds, call)
        return self._audit(verdict, result)

    async def _execute(
        self, verdict: Verdict, spawn: Spawn, seconds: float, call: Call
    ) -> CommandResult:
        with self._failing(verdict, spawn):
            return await self._jobs.run(
                spawn,
                timeout=seconds,
                background=self.options.on_timeout == 'background',
                keep_cut=self.options.tool_set == 'full',
                on_output=call.on_output,
                cancelled=call.cancelled,
            )

    async def _prepare(
        self, command: str, call: Call, workdir: str | None, *, open_input: bool = False
    ) -> tuple[Verdict, Spawn]:
        self._open()
        _check_text(command, 'command')
        shell = await self._shell()
        verdict = self._authorize(command, shell, call, open_input=open_input)
        try:
            cwd = await self._start_in(workdir)
            return verdict, Spawn(line=command, shell=shell, cwd=cwd, env=await self._environment())
        except (CommandError, SandboxError):
            self._hear(verdict, None)
            raise

    async def _start_in(self, workdir: str | None) -> str:
        cwd = await self._directory.start()
        if workdir is None:
            return cwd
        _check_text(workdir, 'workdir')
        cwd = posixpath.normpath(posixpath.join(cwd, workdir))
        if not await self._processes.is_directory(cwd):
            raise InvalidCommand(
                f'workdir {workdir!r} is no directory (seen from {self.cwd!r}); nothing was run. Name one that is there, or leave it out'
            )
        return cwd

    async def _shell(self) -> Shell:
        found = await self._processes.shell()
        if self.options.shell == 'bash' and found == 'sh':
            # A line that was read for bash may mean something else to another shell.
            raise SandboxUnavailable(
                'there is no bash where commands run, and the setting `shell` asks for it; nothing was run. '
                'That has to be put right first, outside this tool: install bash there, or leave `shell` out'
            )
        return self.options.shell or found

    def _authorize(self, command: str, shell: Shell, call: Call, *, open_input: bool) -> Verdict:
        verdict = replace(judge(self.policy(shell), command, open_input=open_input), line=command)
        if verdict.decision is Decision.ASK and not call.approved:
            if self.options.on_ask == 'deny':
                nobody = ApprovalRequired(verdict).unanswered()
                verdict = replace(verdict, decision=Decision.DENY, reason=nobody)
            else:
                logger.info('a command needs an approval (rule %s)', verdict.rule)
                self._hear(verdict, None)
                raise ApprovalRequired(verdict)
        if verdict.decision is Decision.DENY:
            logger.info('a command was denied (rule %s)', verdict.rule)
            self._hear(verdict, None)
            raise CommandDenied(verdict)
        return verdict

    async def _environment(self) -> dict[str, str] | None:
        options = self.options
        if (
            options.env is None
            and not options.denied_env_patterns
            and not options.noninteractive_env
        ):
            return None
        return visible(
            await self._processes.environment() if options.env is None else options.env,
            denied_patterns=options.denied_env_patterns,
            defaults=NONINTERACTIVE_ENV if options.noninteractive_env else None,
        )

    def _timeout(self, seconds: float | None) -> float:
        if seconds is None:
            most = self.options.max_timeout
            return float(
                self.options.default_timeout
                if most is None
                else min(self.options.default_timeout, most)
            )
        return self._seconds('timeout_seconds', seconds)

    def _seconds(
        self,
        name: str,
        seconds: float,
        allowed: str = ' above 0',
        advice: str = 'leave it out for the default',
    ) -> float:
        if (
            isinstance(seconds, bool)
            or not isinstance(seconds, int | float)  # pyright: ignore[reportUnnecessaryIsInstance]  # code is not checked as models are
            or not math.isfinite(seconds)
            or seconds <= 0
        ):
            raise InvalidCommand(
                f'{name} must be a number of seconds{allowed}, not {seconds}; {advice}'
            )
        most = self.options.max_timeout
        return float(seconds if most is None else min(seconds, most))

    @contextmanager
    def _failing(self, verdict: Verdict, spawn: Spawn) -> Generator[None]:
        """Look after a command that comes back without a result: the audit hears of it.

        When its directory has gone, the next command starts in the first one, and the error says so.
        """
        try:
            yield
        except (CommandError, SandboxError, SessionClosed) as error:
            self._hear(verdict, None)
            if not isinstance(error, WorkingDirectoryGone):
                raise
            if self._directory.reset():
                after = f'The next command starts in {self.cwd!r}'
            else:
                after = 'That has to be put right first, outside this tool'
            raise WorkingDirectoryGone(f'{error}. {after}') from error
        except BaseException:  # cancelled, or an error in `on_output`: it ran all the same
            ran = CommandResult(
                command=spawn.line,
                exit_code=None,
                cancelled=True,
                cwd=spawn.cwd,
                decision=verdict.decision.name.lower(),
                rule=verdict.rule,
            )
            self._hear(verdict, ran)
            raise

    def _audit(self, verdict: Verdict, result: CommandResult) -> CommandResult:
        result = replace(result, decision=verdict.decision.name.lower(), rule=verdict.rule)
        logger.debug(
            'a command ended: exit code %s, %.3f s, timed out: %s, job: %s',
            result.exit_code,
            result.duration,
            result.timed_out is not None,
            result.job_id,
        )
        self._hear(verdict, result)
        return result

    def _hear(self, verdict: Verdict, result: CommandResult | None) -> None:
        if self.options.on_command is not None:
            self.options.on_command(verdict, result)

    def _open(self) -> None:
        if self._pid != os.getpid():
            self._begin()  # a forked child: the jobs are the parent's
        if self._closed:
            msg = 'this session is closed and nothing was run; open a new one to run commands'
            raise SessionClosed(msg)

    # -- the end

    async def aclose(self) -> None:
        """End every command of this session with all that it started, and remove its files. Idempotent.

        Later starts are refused. A sandbox that was handed in stays open.
        """
        self._closed = True
        await self._jobs.close()


def judge(policy: Policy, command: str, *, open_input: bool) -> Verdict:
    """What a policy says about a command whose standard input may stay open."""
    if open_input and isinstance(policy, Policy):  # pyright: ignore[reportUnnecessaryIsInstance]  # anything with a `check` of one argument serves
        # What is written to a shell later would be judged by nobody.
        return policy.check(command, open_input=True)
    return policy.check(command)


class _Failed:
    reply: Reply


@asynccontextmanager
async def _worded() -> AsyncGenerator[_Failed]:
    """Turn everything that a model can cause into a reply; what a person has to decide goes on as an exception."""
    failed = _Failed()
    try:
        yield failed
    except (CommandDenied, ApprovalRequired):
        raise
    except UnknownCommandID as error:
        failed.reply = Reply(
            output.unknown_command_id(error.command_id, error.known), is_error=True
        )
    except (CommandError, SandboxError, SessionClosed) as error:
        if isinstance(error, (SandboxUnavailable, SessionClosed)):
            # No model can mend it, and the run goes on: who runs the agent would never know.
            logger.warning('no command can run: %s', error)
        failed.reply = Reply(output.error(str(error)), is_error=True)


def _check_parts(options: object, sandbox: object, policy: object) -> None:
    """Refuse at once what would fail in the middle of an agent's run."""
    if options is not None and not isinstance(options, ShellOptions):
        raise OptionError('options', options, 'None or a ShellOptions, such as ShellOptions(cwd=…)')
    if sandbox is not None and not isinstance(sandbox, Sandbox):
        allowed = 'None or an instance of a Sandbox, such as BubblewrapSandbox()'
        raise OptionError('sandbox', sandbox, allowed)
    if isinstance(policy, type) or (
        policy is not None and not callable(getattr(policy, 'check', None))
    ):
        allowed = (
            'None or a Policy, such as Policy.from_file("policy.yaml") or ShellOptions(…).policy()'
        )
        raise OptionError('policy', policy, allowed)


def _check_text(text: str, name: str) -> None:
    if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]  # code is not checked as models are
        msg = f'the {name} must be a str, as a shell reads it, not {type(text).__name__}'
        raise TypeError(msg)
    if '\0' in text:
        raise InvalidCommand(
            f'the {name} contains a NUL character, which can not be passed on; send it again without'
        )
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InvalidCommand(
            f'the {name} contains half a character (a lone surrogate, {text[error.start]!a}) at position {error.start}; '
            'send it again with whole Unicode characters'
        ) from None


def _without_effect(arguments: CheckCommandArgumentsFull, used: tuple[str, ...], why: str) -> str:
    """The line about arguments that were given and not used; '' when there are none."""
    names = [
        name
        for name, field in CheckCommandArgumentsFull.model_fields.items()
        if name not in used and getattr(arguments, name) != field.default
    ]
    return output.without_effect(names, why) if names else ''


def _on_top(line: str, reply: Reply) -> Reply:
    return replace(reply, text=f'{line}\n{reply.text}') if line else reply


def _line_range(text: str) -> tuple[int, int | None]:
    if (match := re.fullmatch(r'\s*([1-9][0-9]*)\s*-\s*([1-9][0-9]*)?\s*', text)) is not None:
        return int(match[1]), int(match[2]) if match[2] else None
    if (match := re.fullmatch(r'\s*(-[1-9][0-9]*)\s*', text)) is not None:
        return int(match[1]), None
    raise InvalidCommand(
        f"lines must be a range such as '1-200', '200-' or '-50' for the last 50, not {text!r}"
    )
