"""Options that several commands have in common, and errors in their words: the rules of a policy, seconds."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import click

from anyshell.errors import PolicyError
from anyshell.policy.entries import Entry
from anyshell.policy.rules import OPERATORS

if TYPE_CHECKING:
    from collections.abc import Callable


def seconds(*, zero: bool = False) -> Callable[[click.Context, click.Parameter, Any], float | None]:
    """The callback of an option that takes a number of seconds, above 0; `zero` says that 0 is one, too."""
    allowed = '0 or more' if zero else 'above 0'

    def number(context: click.Context, parameter: click.Parameter, given: Any) -> float | None:
        if given is None:
            return None
        try:
            found = float(given)
        except ValueError:
            found = math.nan
        if not 0 <= found < math.inf or (found == 0 and not zero):
            raise click.BadParameter(
                f'{given!r} is not a number of seconds, {allowed}', context, parameter
            )
        return found

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
