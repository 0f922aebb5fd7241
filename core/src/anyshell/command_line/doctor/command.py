"""The command: asks all questions, and prints the answers."""

from __future__ import annotations

import json
import platform
import shutil
import sys
import textwrap
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version

import click

from anyshell.command_line.doctor import adapters, host, sandboxes
from anyshell.command_line.doctor.checks import Check
from anyshell.command_line.terminal import Tone, say

QUESTIONS: dict[str, Callable[[], Check]] = {
    'system': host.system,
    'shell': host.shell,
    'pidfd': host.process_descriptors,
    'temporary-directory': host.temporary_directory,
    'engine': host.engine,
    'init': host.first_process,
    'bubblewrap': sandboxes.bubblewrap,
    'user-namespaces': sandboxes.user_namespaces,
    'cgroups': sandboxes.cgroups,
    'docker': sandboxes.docker,
    'podman': sandboxes.podman,
    'ssh': sandboxes.ssh,
}
_HEADINGS = {'commands': 'Commands', 'sandboxes': 'Sandboxes', 'adapters': 'Adapters'}
_TONES: dict[str, Tone] = {'ok': 'good', 'gap': 'warn', 'fail': 'bad'}


def examine(required: frozenset[str] = frozenset()) -> list[Check]:
    """Ask all questions at the same time.

    Args:
        required: Names of checks that the caller can't do without, beside those that nobody can.
    """
    with ThreadPoolExecutor(max_workers=len(QUESTIONS) + 1) as pool:
        asked = [pool.submit(question) for question in QUESTIONS.values()]
        others = pool.submit(adapters.checks)
        found = [*(one.result() for one in asked), *others.result()]
    return [replace(check, required=True) if check.name in required else check for check in found]


@click.command(short_help='Try what this host can do, and say how to mend the rest.')
@click.option('--json', 'as_json', is_flag=True, help='Print the answers as JSON.')
@click.option(
    '--require',
    'required',
    multiple=True,
    type=click.Choice(tuple(QUESTIONS)),
    metavar='NAME',
    help=f'Fail when this does not work; may be given several times. One of: {", ".join(QUESTIONS)}.',
)
def doctor(*, as_json: bool, required: tuple[str, ...]) -> int:
    """Look at what this host can start and enforce, and say how to mend what it can't.

    Every answer is tried: a command is run, a child is left behind and looked for, bubblewrap is started, the engines
    are asked, every adapter that is installed is imported. That takes some seconds, at most a minute.

    "ok" works; "gap" does not and not everybody needs it; "fail" does not and is required.

    \b
    Exit codes:
      0  everything that is required works
      1  something that is required does not
      3  the command line was wrong

    \b
    Examples:
      anyshell doctor
      anyshell doctor --require bubblewrap --require cgroups   # in a Dockerfile or in CI
      anyshell doctor --json | jq '.checks[] | select(.works | not)'
    """  # noqa: D301 - a backspace is how click is told not to wrap
    found = examine(frozenset(required))
    works = all(check.works for check in found if check.required)
    if as_json:
        click.echo(
            json.dumps(
                {**_about(), 'works': works, 'checks': [check.as_dict() for check in found]},
                indent=2,
            )
        )
    else:
        _print(found, works=works)
    return 0 if works else 1


def own_version() -> str:
    """The release of this package."""
    try:
        return version('anyshell')
    except PackageNotFoundError:  # the sources, not installed
        return 'unknown'


def _about() -> dict[str, str]:
    return {
        'anyshell': own_version(),
        'python': platform.python_version(),
        'executable': sys.executable,
    }


def _print(found: list[Check], *, works: bool) -> None:
    about = _about()
    say((f'anyshell {about["anyshell"]}, Python {about["python"]} ({about["executable"]})', 'bold'))
    wide = max(len(check.name) for check in found)
    for area, heading in _HEADINGS.items():
        say((f'\n{heading}', 'bold'))
        for check in (check for check in found if check.area == area):
            _print_check(check, wide)
    gaps = sum(check.status == 'gap' for check in found)
    fails = [check.name for check in found if check.status == 'fail']
    if not works:
        say((f'\nNot ready: {", ".join(fails)}. What to do is said above.', 'bad'))
    elif gaps:
        say(('\nReady. The gaps matter only to those who use what they name.', 'good'))
    else:
        say(('\nReady.', 'good'))


def _print_check(check: Check, wide: int) -> None:
    width = max(60, min(shutil.get_terminal_size().columns, 120))
    margin = ' ' * (wide + 10)
    text = textwrap.fill(
        f'  {check.status:<4}  {check.name:<{wide}}  {check.found}',
        width,
        subsequent_indent=margin,
        break_on_hyphens=False,
    )
    say((text[:6], _TONES[check.status]), text[6:])
    if check.fix:
        fix = textwrap.fill(
            f'-> {check.fix}',
            width,
            initial_indent=margin,
            subsequent_indent=margin + '   ',
            break_on_hyphens=False,
        )
        say((fix, 'accent'))
