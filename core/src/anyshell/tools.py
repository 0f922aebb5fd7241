"""The tools, defined once: name, description, arguments and call. An adapter is a loop over `session.tools`.

Every text here is read by a model. A description is made from the session's options, so that it promises nothing that
is not so; with equal options it is equal in every framework.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Literal, Protocol, cast

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    model_validator,
)
from pydantic_core import PydanticCustomError

from anyshell import output, trace
from anyshell.errors import ApprovalRequired, CommandDenied
from anyshell.live import live

if TYPE_CHECKING:
    from anyshell.options import ShellOptions
    from anyshell.sandbox.base import Flag, Shell, StreamChunk


@dataclass(frozen=True, slots=True)
class Reply:
    """What a tool call comes back with.

    Attributes:
        text: For the model.
        facts: For code, as plain data that survives JSON (exit code, duration, …); never output, never variables.
        is_error: Whether the call itself went wrong. A command that ends with a non-zero exit code has not.
    """

    text: str
    facts: dict[str, Any] = field(default_factory=dict[str, Any])
    is_error: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """What the framework says about a call.

    Attributes:
        call_id: The framework's ID of the tool call; a start that is repeated with it starts once.
        approved: Whether a person has approved this call. The policy is asked again all the same: deny still wins.
        on_output: Gets pieces of output in the caller's own task, as they come.
        cancelled: When it is set, the command is ended.
    """

    call_id: str | None = None
    approved: bool = False
    on_output: Callable[[StreamChunk], Awaitable[None] | None] | None = None
    cancelled: Flag | None = None


def _no_claim(value: Any) -> Any:
    if isinstance(value, bool):  # which pydantic would take for 1 or 0
        kind, text = 'no_number', 'Input should be a number of seconds, not true or false'
        raise PydanticCustomError(kind, text)
    return value


Seconds = Annotated[float, BeforeValidator(_no_claim)]


class Arguments(BaseModel):
    """Base of the argument models: types, defaults and descriptions only.

    Values are checked by the session, whose sentences are ours; unknown keys are let through, since some frameworks
    inject their own. Null stands for an argument that is left out, and what is no object for one without arguments: many
    models write it so.
    """

    model_config = ConfigDict(defer_build=True)

    @model_validator(mode='before')
    @classmethod
    def _without_nulls(cls, given: Any) -> Any:
        if not isinstance(given, Mapping):
            return {}
        arguments = cast('Mapping[str, Any]', given)
        return {name: value for name, value in arguments.items() if value is not None}


class RunCommandArguments(Arguments):
    """The arguments of `run_command`."""

    command: str = Field(description='The shell command to run.')
    timeout_seconds: Seconds | None = Field(
        default=None, description='Seconds to wait for this command; leave it out for the default.'
    )


class RunCommandArgumentsFull(RunCommandArguments):
    """The arguments of `run_command` in the full tool set."""

    workdir: str | None = Field(
        default=None,
        description='The directory for this command only; relative to the current one.',
    )


class StartCommandArguments(Arguments):
    """The arguments of `start_command`."""

    command: str = Field(description='The shell command to start in the background.')


class StartCommandArgumentsFull(StartCommandArguments):
    """The arguments of `start_command` in the full tool set."""

    workdir: str | None = Field(
        default=None,
        description='The directory for this command only; relative to the current one.',
    )
    ready_when: str | None = Field(
        default=None,
        description="Return only when the command is ready: 'port:8000' (that TCP port is open), "
        "'output:REGEX' (its output matches) or 'quiet:2' (no output for 2 seconds).",
    )
    ready_timeout: Seconds = Field(
        default=30.0, description='Seconds to wait for ready_when at most.'
    )
    stdin: bool = Field(default=False, description='Keep its standard input open for send_input.')


class CheckCommandArguments(Arguments):
    """The arguments of `check_command`."""

    command_id: str = Field(description='The ID that start_command returned.')


class CheckCommandArgumentsFull(Arguments):
    """The arguments of `check_command` in the full tool set."""

    command_id: str | None = Field(
        default=None,
        description='The ID that start_command returned; leave it out to list all commands.',
    )
    wait_seconds: Seconds = Field(
        default=0.0, description='Seconds to wait at most; 0 looks at once.'
    )
    until: str | None = Field(
        default=None,
        description="What to wait for: 'exit' (the default), 'output:REGEX', 'port:8000' "
        "or 'quiet:2' (no output for 2 seconds).",
    )
    since: Literal['start', 'last'] = Field(
        default='start',
        description="'last' shows only output that is new since the last check with 'last'.",
    )
    lines: str | None = Field(
        default=None,
        description="Show only these lines of the whole output, such as '1-200' or '-50' for the last 50.",
    )


class SendInputArguments(Arguments):
    """The arguments of `send_input`."""

    command_id: str = Field(description='The ID that start_command returned.')
    text: str = Field(description='The text to write, with its newline at the end.')


class StopCommandArguments(Arguments):
    """The arguments of `stop_command`."""

    command_id: str = Field(description='The ID that start_command returned.')


class Calls(Protocol):
    """What the tools need of a session."""

    async def call_run(self, arguments: RunCommandArguments, call: Call) -> Reply:
        """Run a command and wait for it."""
        ...

    async def call_start(self, arguments: StartCommandArguments, call: Call) -> Reply:
        """Start a command in the background."""
        ...

    async def call_check(
        self, arguments: CheckCommandArguments | CheckCommandArgumentsFull, call: Call
    ) -> Reply:
        """Report on a background command."""
        ...

    async def call_stop(self, arguments: StopCommandArguments, call: Call) -> Reply:
        """End a background command."""
        ...

    async def call_send(self, arguments: SendInputArguments, call: Call) -> Reply:
        """Write to a background command."""
        ...


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool for any framework.

    Attributes:
        name: The name that the model calls.
        description: What the model reads about it.
        arguments: The model of its arguments; `arguments.model_json_schema()` is the schema.
    """

    name: str
    description: str
    arguments: type[BaseModel]
    _run: Callable[[Any, Call], Awaitable[Reply]]

    async def call(
        self,
        arguments: Mapping[str, Any] | BaseModel,
        *,
        call_id: str | None = None,
        approved: bool = False,
        on_output: Callable[[StreamChunk], Awaitable[None] | None] | None = None,
        cancelled: Flag | None = None,
    ) -> Reply:
        """Call the tool.

        Whatever a model can cause comes back as a reply whose text says what to do next.

        Args:
            arguments: The model's arguments, as a mapping or as an instance of `arguments`.
            call_id: See `Call`.
            approved: See `Call`.
            on_output: Gets output while the command runs, in this task, in the pieces of `stream`.
            cancelled: See `Call`.

        Raises:
            CommandDenied: If the policy denies the command; `str(error)` is the text for the model.
            ApprovalRequired: If the policy asks and the call is not approved.
        """
        if on_output is None:
            call = Call(call_id=call_id, approved=approved, cancelled=cancelled)
            return await self._call(arguments, call)
        pieces = self.stream(arguments, call_id=call_id, approved=approved, cancelled=cancelled)
        async with aclosing(pieces):
            async for piece in pieces:
                if isinstance(piece, Reply):
                    return piece
                answer = on_output(piece)
                if inspect.isawaitable(answer):
                    await answer
        raise AssertionError  # pragma: no cover - the reply is the last piece

    async def _call(self, arguments: Mapping[str, Any] | BaseModel, call: Call) -> Reply:
        if not isinstance(arguments, self.arguments):
            if isinstance(arguments, BaseModel):
                arguments = arguments.model_dump()
            try:
                arguments = self.arguments.model_validate(arguments)
            except ValidationError as error:
                return Reply(self.wrong_arguments(error), is_error=True)
        try:
            reply = await self._run(arguments, call)
        except (CommandDenied, ApprovalRequired) as verdict:
            trace.record(verdict.facts)
            raise
        trace.record(reply.facts)
        return reply

    def stream(
        self,
        arguments: Mapping[str, Any] | BaseModel,
        *,
        call_id: str | None = None,
        approved: bool = False,
        cancelled: Flag | None = None,
    ) -> AsyncGenerator[StreamChunk | Reply]:
        """Call the tool and yield its output while it runs, then its reply.

        Pieces come in order, put together 20 times a second. Of more than 65,536 characters in between the last ones
        come, under a line that says so: who listens never slows the command. Arguments and errors are those of `call`;
        closing the generator early ends the command.
        """
        return live(
            lambda on_output: self._call(
                arguments,
                Call(call_id=call_id, approved=approved, on_output=on_output, cancelled=cancelled),
            )
        )

    def wrong_arguments(self, error: ValidationError) -> str:
        """The text for the model when its arguments are not those of this tool."""
        return output.error(self._wrong(error))

    def _wrong(self, error: ValidationError) -> str:
        found = '; '.join(
            f'{".".join(map(str, detail["loc"])) or "arguments"}: {detail["msg"]}'
            for detail in error.errors(include_url=False)
        )
        wanted = ', '.join(
            name if info.is_required() else f'{name} (optional)'
            for name, info in self.arguments.model_fields.items()
        )
        return f'invalid arguments for {self.name}: {found}. Call it again with: {wanted}'


def tools(
    session: Calls, options: ShellOptions, shell: Shell | None, *, listed: bool = True
) -> tuple[Tool, ...]:
    """The tools of a session.

    Args:
        session: What carries them out.
        options: What the descriptions are made from.
        shell: The sandbox's shell; `None` when that is not known before the first command.
        listed: Whether the options' lists are what judges commands; another policy speaks for itself.
    """
    limits = _limits(options) if listed else []
    full = options.tool_set == 'full'
    found = [
        Tool(
            'run_command',
            _run_description(options, shell, limits),
            RunCommandArgumentsFull if full else RunCommandArguments,
            session.call_run,
        ),
        Tool(
            'start_command',
            _start_description(shell, limits),
            StartCommandArgumentsFull if full else StartCommandArguments,
            session.call_start,
        ),
        Tool(
            'check_command',
            CHECK_FULL if full else CHECK,
            CheckCommandArgumentsFull if full else CheckCommandArguments,
            session.call_check,
        ),
        Tool('stop_command', STOP, StopCommandArguments, session.call_stop),
    ]
    if full:
        found.append(Tool('send_input', SEND, SendInputArguments, session.call_send))
    return tuple(found)


CHECK = (
    'Report whether a background command is still running, its exit code once it has ended, '
    'and the output that it has written so far.'
)
CHECK_FULL = (
    f'{CHECK} With wait_seconds it waits for the end of the command, or for `until`, instead of being called again '
    'and again. Without command_id it lists all background commands. It also reads output that was cut.'
)
REST = "When output is cut, check_command(command_id='last', lines='1-200') reads the rest of it."
STOP = 'Stop a background command with everything that it started, and return its final output.'
SEND = (
    'Write text to the standard input of a background command that was started with stdin=true, '
    'and return its output so far.'
)


def _run_description(options: ShellOptions, shell: Shell | None, limits: list[str]) -> str:
    seconds = min(options.default_timeout, options.max_timeout or options.default_timeout)
    limit = f'It may take {seconds:g} seconds unless timeout_seconds says otherwise'
    if options.max_timeout is not None:
        limit += f' (at most {options.max_timeout:g})'
    if options.on_timeout == 'background':
        limit += '; after that it goes on in the background and you get its ID.'
    else:
        limit += '; after that it is ended and you get what it wrote. For servers and other long work use start_command.'
    return ' '.join(
        (
            f'Run a shell command and return its output. {_reader(shell)}',
            limit,
            _directory(options),
            'Standard input is empty and there is no terminal. A non-zero exit code is shown as [exit code: N].',
            *((REST,) if options.tool_set == 'full' else ()),
            *limits,
        )
    )


def _start_description(shell: Shell | None, limits: list[str]) -> str:
    return ' '.join(
        (
            'Start a shell command in the background, such as a server or a watcher, and return its ID at once.',
            _reader(shell),
            'Look at it with check_command, end it with stop_command. It is ended when the session ends.',
            *limits,
        )
    )


def _reader(shell: Shell | None) -> str:
    return {
        'bash': 'It is read by bash.',
        'sh': 'It is read by a POSIX sh, not by bash.',
        None: 'It is read by bash where there is one, otherwise by a POSIX sh.',
    }[shell]


def _directory(options: ShellOptions) -> str:
    if options.persist_cwd:
        return 'A cd holds for later calls when the command succeeds; variables do not.'
    return 'Every call starts in the same directory: a cd holds for that call only.'


def _limits(options: ShellOptions) -> list[str]:
    said: list[str] = []
    if options.allowed_commands:
        said.append(
            f'Only these commands are allowed: {", ".join((*options.allowed_commands, *options.ask_commands))}.'
        )
    elif options.denied_commands:
        asked = set(options.ask_commands)
        denied = [name for name in options.denied_commands if name not in asked]
        if denied:
            said.append(f'These commands are denied: {", ".join(denied)}.')
    if options.ask_commands:
        said.append(f"These need a person's approval: {', '.join(options.ask_commands)}.")
    if options.denied_operators:
        said.append(f'These shell operators are not allowed: {" ".join(options.denied_operators)}')
    return said
