"""Every setting once, with its default, its unit and its check."""

from __future__ import annotations

import inspect
import math
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, TypedDict, cast

from anyshell.errors import OptionError
from anyshell.keywords import Keywords
from anyshell.policy import DEFAULT_DENIED_COMMANDS, Policy, Verdict
from anyshell.result import CommandResult

_BESIDE = {
    'sandbox': 'it goes beside the settings, as in ShellSession(ShellOptions(…), sandbox=…)',
    'policy': 'it goes beside the settings, as in ShellSession(ShellOptions(…), policy=…)',
    'session': 'only an adapter takes one, in place of settings',
}


@dataclass(kw_only=True)
class ShellOptions(Keywords):
    """The settings of a shell session; an adapter takes the same keywords.

    Attributes:
        cwd: The directory that commands start in, inside the sandbox.
        allowed_commands: When not empty, only these run. An entry is a program (`git`) or a program with the first of
            its arguments (`git status`). Excludes `denied_commands`, whose default steps back.
        denied_commands: These never run. The default holds ten destructive programs; `()` denies none.
        ask_commands: These run after a person's approval. They leave the default deny list and count as listed
            beside `allowed_commands`; an explicit deny still wins.
        denied_operators: Shell operators that are refused, such as `>` or `|`; never text in quotes.
        allow_interactive: Whether programs that expect a terminal (`vi`, `sudo`, `ssh`, …) may run.
        unresolved: What to do with a command whose name is not known before it runs.
        on_ask: 'ask' hands an approval to the framework; 'deny' denies when there is nobody to ask.
        default_timeout: Seconds that `run_command` waits when the call names no limit.
        max_timeout: The most seconds that a call may ask for; `None` for no bound.
        on_timeout: 'kill' ends the command when its time is up; 'background' lets it go on as a job.
        kill_grace: Seconds between SIGTERM and SIGKILL.
        max_output_chars: The most characters of output that a model is shown; the tail is kept.
        max_log_bytes: The most bytes that the log of one stream of one command may take on disk.
        max_jobs: The most background commands that may run at a time.
        persist_cwd: Whether a `cd` of one `run_command` holds for the next calls.
        env: Exactly the variables that commands see; `None` inherits the sandbox's.
        denied_env_patterns: Globs (`fnmatch`, with case) of variables that commands don't see; they filter `env` too.
        noninteractive_env: Whether pagers, editors and prompts are switched off by variables where these are not set.
        clean_output: Whether a model sees output without terminal codes and overwritten progress lines.
        shell: The shell that reads commands; `None` for bash where the sandbox has it, else sh.
        tool_set: 'full', or 'spec' for the four tools with the origin's arguments only.
        on_command: An audit hook, called with the verdict on every command, and its result unless it did not run.

    Raises:
        OptionError: At construction, when a value is not allowed; the text names the setting, the value and what is.
        PolicyError: At construction, when an entry of a list or an operator can't match anything; the text names it.
        TypeError: When there is no such setting; the text names the nearest one.
    """

    _elsewhere = _BESIDE

    cwd: str | Path = '.'
    allowed_commands: Sequence[str] = ()
    denied_commands: Sequence[str] = DEFAULT_DENIED_COMMANDS
    denied_operators: Sequence[str] = ()
    default_timeout: float = 30.0
    max_output_chars: int = 50_000
    persist_cwd: bool = False
    allow_interactive: bool = False
    env: Mapping[str, str] | None = field(default=None, repr=False)  # it may hold secrets
    denied_env_patterns: Sequence[str] = ()
    ask_commands: Sequence[str] = ()
    unresolved: Literal['deny', 'ask', 'allow'] = 'deny'
    on_ask: Literal['ask', 'deny'] = 'ask'
    shell: Literal['bash', 'sh'] | None = None
    on_timeout: Literal['kill', 'background'] = 'kill'
    max_timeout: float | None = None
    max_log_bytes: int = 100_000_000
    max_jobs: int = 64
    clean_output: bool = True
    noninteractive_env: bool = False
    tool_set: Literal['full', 'spec'] = 'full'
    kill_grace: float = 2.0
    on_command: Callable[[Verdict, CommandResult | None], None] | None = None

    def __post_init__(self) -> None:
        _path('cwd', self.cwd)
        for name in (
            'allowed_commands',
            'denied_commands',
            'denied_operators',
            'denied_env_patterns',
            'ask_commands',
        ):
            setattr(self, name, _strings(name, getattr(self, name)))
        self._know_default()
        for name in ('persist_cwd', 'allow_interactive', 'clean_output', 'noninteractive_env'):
            _one_of(name, getattr(self, name), (True, False))
        _one_of('unresolved', self.unresolved, ('deny', 'ask', 'allow'))
        _one_of('on_ask', self.on_ask, ('ask', 'deny'))
        _one_of('shell', self.shell, ('bash', 'sh', None))
        _one_of('on_timeout', self.on_timeout, ('kill', 'background'))
        _one_of('tool_set', self.tool_set, ('full', 'spec'))
        _number('default_timeout', self.default_timeout, 'a number of seconds above 0', above=0)
        if self.max_timeout is not None:
            _number('max_timeout', self.max_timeout, 'None or a number of seconds above 0', above=0)
        _number('kill_grace', self.kill_grace, 'a number of seconds, 0 or more', least=0)
        for name, unit in (
            ('max_output_chars', 'characters'),
            ('max_log_bytes', 'bytes'),
            ('max_jobs', 'jobs'),
        ):
            _number(
                name,
                getattr(self, name),
                f'a whole number of {unit}, 1 or more',
                least=1,
                whole=True,
            )
        _environment('env', self.env)
        if self.env is not None:
            self.env = dict(self.env)
        if self.on_command is not None and (
            not callable(self.on_command) or _is_async(self.on_command)
        ):
            raise OptionError(
                'on_command',
                self.on_command,
                'None or a callable, not an async one, that takes a Verdict and a CommandResult or None',
            )
        if (
            self.allowed_commands
            and self.denied_commands
            and self.denied_commands is not DEFAULT_DENIED_COMMANDS
        ):
            allowed = (
                'empty, since allowed_commands is given. '
                'Specify allowed_commands or denied_commands, not both.'
            )
            raise OptionError('denied_commands', list(self.denied_commands), allowed)
        # Entries and operators that the policy refuses are refused here, at construction. By its class, since an adapter's
        # dataclass has a setting of that name.
        ShellOptions.policy(self)

    def _know_default(self) -> None:
        # The policy knows the default list by identity, which a copy through `asdict`, pickle or JSON loses.
        if self.denied_commands == DEFAULT_DENIED_COMMANDS:
            self.denied_commands = DEFAULT_DENIED_COMMANDS

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._know_default()

    def policy(self, shell: Literal['bash', 'sh'] | None = None) -> Policy:
        """The policy that these settings describe.

        Args:
            shell: The shell that commands are read for; `None` for the setting `shell`, and bash where that is `None`.
        """
        # The default deny list, recognised by identity, steps back before allow and ask lists; `Policy` knows how.
        return Policy.from_lists(
            allowed_commands=self.allowed_commands,
            denied_commands=self.denied_commands,
            ask_commands=self.ask_commands,
            denied_operators=self.denied_operators,
            allow_interactive=self.allow_interactive,
            unresolved=self.unresolved,
            shell=shell or self.shell or 'bash',
        )


class ShellKeywords(TypedDict, total=False):
    """The settings as keyword arguments, for a signature: `**options: Unpack[ShellKeywords]`."""

    cwd: str | Path
    allowed_commands: Sequence[str]
    denied_commands: Sequence[str]
    denied_operators: Sequence[str]
    default_timeout: float
    max_output_chars: int
    persist_cwd: bool
    allow_interactive: bool
    env: Mapping[str, str] | None
    denied_env_patterns: Sequence[str]
    ask_commands: Sequence[str]
    unresolved: Literal['deny', 'ask', 'allow']
    on_ask: Literal['ask', 'deny']
    shell: Literal['bash', 'sh'] | None
    on_timeout: Literal['kill', 'background']
    max_timeout: float | None
    max_log_bytes: int
    max_jobs: int
    clean_output: bool
    noninteractive_env: bool
    tool_set: Literal['full', 'spec']
    kill_grace: float
    on_command: Callable[[Verdict, CommandResult | None], None] | None


def option_names() -> tuple[str, ...]:
    """The names of all settings, in their order."""
    return tuple(field.name for field in fields(ShellOptions))


def _is_async(function: Callable[..., object]) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(function, '__call__', None)  # noqa: B004  # the method of an object that is called
    )


def _path(name: str, value: object) -> None:
    text = os.fspath(cast('os.PathLike[str]', value)) if isinstance(value, os.PathLike) else value
    if not isinstance(text, str) or not text or '\0' in text:
        raise OptionError(
            name, cast('object', value), 'the path of a directory, as a str or a Path'
        )


def _environment(option: str, value: object) -> None:
    if value is None:
        return
    allowed = 'None or a mapping of variable names to str values'
    if not isinstance(value, Mapping):
        raise OptionError(option, _without_values(value), allowed)
    for name, text in cast('Mapping[object, object]', value).items():
        if not isinstance(name, str) or not name or '=' in name or '\0' in name:
            raise OptionError(
                option,
                _without_values(name),
                f'{allowed}; a name is not empty and has no "=" and no NUL',
            )
        if not isinstance(text, str) or '\0' in text:
            raise OptionError(
                f'{option}[{name!r}]',
                '…' if isinstance(text, str) else type(text),
                'a str without NUL characters',
            )
        try:
            os.fsencode(f'{name}{text}')
        except UnicodeEncodeError:
            allowed = 'text that can be encoded; it holds half a character (a lone surrogate)'
            raise OptionError(f'{option}[{name!a}]', '…', allowed) from None


def _without_values(given: object) -> object:
    """What was given for variables, for an error, which must not repeat the value of one: it may be a secret."""
    if isinstance(given, str):
        name, equals, _ = given.partition('=')
        return f'{name}=…' if equals else name
    if isinstance(given, list | tuple):
        return [_without_values(entry) for entry in cast('Sequence[object]', given)]
    return given if isinstance(given, int) else type(given)


def _strings(name: str, value: object) -> tuple[str, ...]:
    entries = tuple(cast('Sequence[object]', value)) if isinstance(value, Sequence) else ()
    if (
        not isinstance(value, Sequence)
        or isinstance(value, (str, bytes))
        or not all(isinstance(entry, str) for entry in entries)
    ):
        raise OptionError(name, cast('object', value), "a list of strings, such as ['git', 'ls']")
    # `tuple()` of a tuple is that tuple: the default deny list stays recognisable as the default.
    return cast('tuple[str, ...]', entries)


def _one_of(name: str, value: object, allowed: tuple[object, ...]) -> None:
    # By identity or as equal strings: 1 is not True.
    if not any(
        value is choice or (isinstance(choice, str) and value == choice) for choice in allowed
    ):
        *most, last = map(repr, allowed)
        raise OptionError(name, value, f'{", ".join(most)} or {last}')


def _number(
    name: str,
    value: object,
    allowed: str,
    *,
    least: float = -sys.float_info.max,
    above: float = -math.inf,
    whole: bool = False,
) -> None:
    number = (
        math.nan
        if isinstance(value, bool) or not isinstance(value, int if whole else (int, float))
        else value
    )
    # Neither NaN nor infinity nor an int beyond them is in this range.
    if not least <= number <= sys.float_info.max or number <= above:
        raise OptionError(name, value, allowed)
