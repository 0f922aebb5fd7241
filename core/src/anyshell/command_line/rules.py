"""The rules on the command line: the same options for every command that judges, and errors in their words."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import click

from anyshell.errors import PolicyError
from anyshell.policy.entries import Entry
from anyshell.policy.rules import OPERATORS

if TYPE_CHECKING:
    from collections.abc import Callable


def seconds(context: click.Context, parameter: click.Parameter, given: object) -> float | None:
    """For an option that takes a number of seconds, above 0: the number, or an error that says what is one."""
    return _number(context, parameter, given, 'above 0')


def seconds_or_none(
    context: click.Context, parameter: click.Parameter, given: object
) -> float | None:
    """`seconds`, where 0 is one too."""
    return _number(context, parameter, given, '0 or more')


def _number(
    context: click.Context, parameter: click.Parameter, given: Any, allowed: str
) -> float | None:
    if given is None:
        return None
    try:
        number = float(given)
    except ValueError:
        number = math.nan
    if not 0 <= number < math.inf or (number == 0 and allowed == 'above 0'):
        raise click.BadParameter(
            f'{given!r} is not a number of seconds, {allowed}', context, parameter
        )
    return number


def _entries(
    context: click.Context, parameter: click.Parameter, given: tuple[str, ...]
) -> tuple[str, ...]:
    del context
    for text in given:
        try:
            Entry.parse(text, parameter.opts[0])
        except PolicyError as error:
            raise click.UsageError(str(error)) from None
    return given


def _operators(
    context: click.Context, parameter: click.Parameter, given: tuple[str, ...]
) -> tuple[str, ...]:
    del context
    for text in given:
        if text not in OPERATORS:
            known = ' '.join(map(repr, OPERATORS))
            raise click.UsageError(
                f'{parameter.opts[0]} holds {text!r}: an operator is one of {known}'
            )
    return given


def policy_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options that describe a policy; `settings` takes what comes of them."""
    options = (
        click.option(
            '--policy',
            'path',
            metavar='FILE',
            type=click.Path(),
            help='A policy file. It takes the place of the rules below, up to --unresolved.',
        ),
        click.option(
            '--allow',
            metavar='COMMAND',
            multiple=True,
            callback=_entries,
            help='Allow only this (repeat), such as git or "git status".',
        ),
        click.option(
            '--deny',
            metavar='COMMAND',
            multiple=True,
            callback=_entries,
            help='Deny this (repeat), instead of the default list.',
        ),
        click.option(
            '--ask',
            metavar='COMMAND',
            multiple=True,
            callback=_entries,
            help='Ask before this runs (repeat).',
        ),
        click.option(
            '--deny-operator',
            metavar='OPERATOR',
            multiple=True,
            callback=_operators,
            help='Deny this operator of the shell (repeat), such as ">".',
        ),
        click.option(
            '--allow-interactive', is_flag=True, help='Allow programs that expect a terminal.'
        ),
        click.option(
            '--unresolved',
            type=click.Choice(['deny', 'ask', 'allow']),
            help='What to do with a command whose name is not known before it runs; by default deny.',
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


def settings(
    *,
    allow: tuple[str, ...],
    deny: tuple[str, ...],
    ask: tuple[str, ...],
    deny_operator: tuple[str, ...],
    allow_interactive: bool,
    unresolved: str | None,
) -> dict[str, Any]:
    """The settings that the options describe, without those that nobody gave.

    Raises:
        click.UsageError: If two of them exclude each other.
    """
    if allow and deny:
        raise click.UsageError(
            '--deny has no place beside --allow, which lets nothing else run: give one of the two'
        )
    given = {
        'allowed_commands': allow,
        'denied_commands': deny,
        'ask_commands': ask,
        'denied_operators': deny_operator,
        'allow_interactive': allow_interactive,
        'unresolved': unresolved,
    }
    return {name: value for name, value in given.items() if value}
