"""The command line: the group `anyshell`, its commands, and how it ends."""

from __future__ import annotations

import sys
from typing import Any, NoReturn

import click

from anyshell.command_line.demo import demo
from anyshell.command_line.doctor.command import doctor, own_version
from anyshell.command_line.judge import check, explain, schema, test
from anyshell.command_line.run import run
from anyshell.command_line.terminal import colour
from anyshell.errors import AnyshellError

_FAILED = 3  # 0, 1 and 2 are verdicts


class _Group(click.Group):
    """A group whose usage errors do not end in 2, which means "deny" here."""

    def main(self, *args: Any, **kwargs: Any) -> NoReturn:
        kwargs['standalone_mode'] = False
        try:
            result = super().main(*args, **kwargs)
        except click.exceptions.Abort:
            click.echo('Aborted.', err=True)
            sys.exit(_FAILED)
        except click.ClickException as error:
            error.show()
            sys.exit(_FAILED)
        except AnyshellError as error:
            click.echo(f'Error: {error}', err=True)
            sys.exit(_FAILED)
        sys.exit(result if isinstance(result, int) else 0)


@click.group(cls=_Group, context_settings={'help_option_names': ['-h', '--help']})
@click.version_option(own_version())
def main() -> None:
    """One shell tool for AI agents, by hand: judge a command, run one, look at this host.

    \b
    Completion of commands and options, for the shell's start-up file (also zsh_source; fish_source | source):
      eval "$(_ANYSHELL_COMPLETE=bash_source anyshell)"

    Colour is for terminals only; NO_COLOR=1 switches it off.
    """  # noqa: D301 - a backspace is how click is told not to wrap
    click.get_current_context().color = colour()


for _command in (check, explain, test, schema, run, doctor, demo):
    main.add_command(_command)
