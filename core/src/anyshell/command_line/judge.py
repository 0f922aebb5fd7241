"""`anyshell check | explain | test | schema`: what a policy says. They judge commands and run none."""

from __future__ import annotations

import json
import shlex
import sys
from typing import TYPE_CHECKING, Any, Literal

import click

from anyshell.command_line.options import policy_options, settings
from anyshell.options import ShellOptions
from anyshell.policy import Decision
from anyshell.policy.file import json_schema, load, read

if TYPE_CHECKING:
    from collections.abc import Callable

    from anyshell.policy import Explanation, Policy, Verdict

_COLOURS = {Decision.ALLOW: 'green', Decision.ASK: 'yellow', Decision.DENY: 'red'}


class _Line(click.Command):
    """A command that takes one line; of the words of one, that were not put in quotes, it says so."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        words = tuple(args)
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            if not error.possibilities and not words[0].startswith('-'):
                raise click.UsageError(
                    f'{error.format_message()} {_unquoted(ctx, words)}', ctx
                ) from None
            raise


def _unquoted(context: click.Context, words: tuple[str, ...]) -> str:
    return f'A line is one argument, so put it in quotes: {context.command_path} {shlex.quote(" ".join(words))}'


def _one_line(context: click.Context, parameter: click.Parameter, words: tuple[str, ...]) -> str:
    del parameter
    line, *more = words
    if more:
        raise click.UsageError(_unquoted(context, words))
    if line != '-':
        return line
    # Undecodable bytes become lone surrogates, which the policy refuses with a reason.
    return sys.stdin.buffer.read().decode('utf-8', 'surrogateescape')


def _judging(command: Callable[..., Any]) -> Callable[..., Any]:
    options = (
        click.argument('command', metavar='COMMAND', nargs=-1, required=True, callback=_one_line),
        policy_options,
        click.option(
            '--shell',
            type=click.Choice(['bash', 'sh']),
            help="The shell that the line is for; by default the policy file's, else bash.",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


def _policy(*, path: str | None, shell: Literal['bash', 'sh'] | None, **given: Any) -> Policy:
    rules = settings(**given)
    if path is None:
        return ShellOptions(**rules).policy(shell or 'bash')
    if rules:
        raise click.UsageError('give either --policy or rules such as --allow and --deny, not both')
    return load(path).policy(shell=shell)


def _printable(text: str) -> str:
    return text.encode('utf-8', 'backslashreplace').decode()


@click.command(cls=_Line, short_help='Say whether a command may run, without running it.')
@_judging
@click.option('--json', 'as_json', is_flag=True, help='Print the verdict as JSON.')
def check(command: str, as_json: bool, **options: Any) -> int:  # noqa: FBT001  # click passes it by name
    """Say whether COMMAND may run (`-` reads it): exit code 0 allow, 1 ask, 2 deny, 3 for an error. Runs nothing.

    \b
    Examples:
      anyshell check 'ls | head'
      anyshell check --ask 'git push' --deny curl 'cd x && git push'
      anyshell check --policy policy.yaml --json 'ls -la'
    """  # noqa: D301 - a backspace is how click is told not to wrap
    verdict = _policy(**options).check(command)
    if as_json:
        click.echo(json.dumps(_verdict(verdict)))
    else:
        click.echo(
            f'{click.style(verdict.decision.name.lower(), fg=_COLOURS[verdict.decision], bold=True)}  {_printable(verdict.reason)}'.rstrip()
        )
    return int(verdict.decision)


def _verdict(verdict: Verdict) -> dict[str, Any]:
    return {
        'decision': verdict.decision.name.lower(),
        'reason': verdict.reason,
        'rule': verdict.rule,
        'command': verdict.command,
        'span': list(verdict.span) if verdict.span else None,
    }


@click.command(cls=_Line, short_help='Show why: what a line would run, and what each rule says.')
@_judging
@click.option('--json', 'as_json', is_flag=True, help='Print everything as JSON.')
def explain(command: str, as_json: bool, **options: Any) -> int:  # noqa: FBT001  # click passes it by name
    """Show every command that COMMAND would run, what runs it, what each rule said, and the winner. Runs nothing.

    \b
    Examples:
      anyshell explain 'find . -name "*.c" | xargs rm'
      anyshell explain --allow git 'git log | head'
    """  # noqa: D301 - a backspace is how click is told not to wrap
    explanation = _policy(**options).explain(command)
    if as_json:
        click.echo(json.dumps(_explanation(explanation)))
    else:
        _show(explanation)
    return int(explanation.verdict.decision)


def _explanation(explanation: Explanation) -> dict[str, Any]:
    found = explanation.findings
    return {
        'command': explanation.command,
        'verdict': _verdict(explanation.verdict),
        'objections': [_verdict(verdict) for verdict in explanation.objections],
        'calls': [
            {
                'name': call.name,
                'path': call.path,
                'text': call.text,
                'through': list(call.via),
                'span': list(call.span),
            }
            for call in found.calls
        ],
        'unresolved': [
            {
                'what': item.what,
                'reason': item.reason,
                'text': item.text,
                'through': list(item.via),
                'span': list(item.span),
            }
            for item in found.unresolved
        ],
        'variables': [
            {'name': item.name, 'text': item.text, 'span': list(item.span)}
            for item in found.settings
        ],
        'operators': [
            {'operator': operator, 'span': list(span)} for operator, span in found.operators
        ],
    }


def _show(explanation: Explanation) -> None:
    found = explanation.findings
    click.secho('commands', bold=True)
    rows = [(call.name, call.text, call.via, call.span) for call in found.calls]
    rows += [('?', item.text, item.via, item.span) for item in found.unresolved]
    for name, text, via, span in sorted(rows, key=lambda row: row[3]):
        through = f'  through {" > ".join(via)}' if via else ''
        shown = _printable(' '.join(text.split()))
        shown = shown if len(shown) <= 100 else f'{shown[:97]}…'  # a line of a terminal
        click.echo(
            f'  {click.style(_printable(name), fg="cyan")}  {shown}{click.style(through, dim=True)}{click.style(f"  [{span[0]}:{span[1]}]", dim=True)}'
        )
    if not rows:
        click.echo('  none')
    if found.settings:
        click.secho('variables', bold=True)
        for item in found.settings:
            click.echo(
                f'  {click.style(item.name or "?", fg="cyan")}  {_printable(item.text[:100])}'
            )
    if found.operators:
        click.secho('operators', bold=True)
        click.echo(
            '  '
            + ' '.join(
                repr(operator) if operator == '\n' else operator for operator, _ in found.operators
            )
        )
    click.secho('rules', bold=True)
    for verdict in explanation.objections:
        word = click.style(verdict.decision.name.lower(), fg=_COLOURS[verdict.decision])
        click.echo(f'  {verdict.rule}: {word}  {_printable(verdict.reason)}')
    if not explanation.objections:
        click.echo('  none objects')
    verdict = explanation.verdict
    click.secho('verdict', bold=True)
    by = f'  by {verdict.rule}' if verdict.rule else ''
    click.echo(
        f'  {click.style(verdict.decision.name.lower(), fg=_COLOURS[verdict.decision], bold=True)}{by}'
    )


@click.command(short_help='Run the examples of a policy file.')
@click.argument('policy', metavar='FILE', type=click.Path())
def test(policy: str) -> int:
    """Run the examples of a policy FILE and name entries that can never match: exit code 0 when all is well, else 1.

    An entry of the file's lists carries its own examples, lines that it must match and lines that it must not:

    \b
      allowed_commands: [ls, cat]
      ask_commands:
        - command: git push
          match: [git -C sub push]
          not_match: [git status]

    \b
    Examples:
      anyshell test policy.yaml
    """  # noqa: D301 - a backspace is how click is told not to wrap
    loaded = read(policy)
    failed, unreachable = loaded.failed_examples(), loaded.unreachable()
    for sentence in failed:
        click.echo(f'{click.style("failed", fg="red")}  {_printable(sentence)}')
    for sentence in unreachable:
        click.echo(f'{click.style("unreachable", fg="yellow")}  {_printable(sentence)}')
    examples = sum(len(entry.match) + len(entry.not_match) for entry in loaded.entries)
    click.echo(
        f'{len(loaded.entries)} entries, {examples} examples, {len(failed)} failed, {len(unreachable)} unreachable'
    )
    return int(bool(failed or unreachable))


@click.command(short_help='Print the JSON Schema of policy files.')
def schema() -> None:
    """Print the JSON Schema of policy files, for editors.

    \b
    Examples:
      anyshell schema > policy.schema.json
    """  # noqa: D301 - a backspace is how click is told not to wrap
    click.echo(json.dumps(json_schema(), indent=2))
