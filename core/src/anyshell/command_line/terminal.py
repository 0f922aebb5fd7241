"""How the commands speak to a person: in colour where that can be seen."""

from __future__ import annotations

import os
from typing import Literal

import click

Tone = Literal['good', 'warn', 'bad', 'dim', 'bold', 'accent']

_CODES: dict[Tone, int] = {'good': 32, 'warn': 33, 'bad': 31, 'dim': 2, 'bold': 1, 'accent': 36}
"""Select Graphic Rendition (ECMA-48 8.3.117)."""


def colour() -> bool | None:
    """Whether to write in colour; `None` when each stream decides, by being a terminal.

    `NO_COLOR` forbids it and `FORCE_COLOR` asks for it, for recordings; each counts when it is not empty
    (https://no-color.org).
    """
    if os.environ.get('NO_COLOR') or os.environ.get('TERM') == 'dumb':
        return False
    return True if os.environ.get('FORCE_COLOR') else None


def say(*pieces: str | tuple[str, Tone], err: bool = False) -> None:
    """Print a line.

    Args:
        pieces: The line; a piece may come with what it is, which decides its colour.
        err: Whether it goes to standard error.
    """
    line = ''.join(piece if isinstance(piece, str) else paint(*piece) for piece in pieces)
    click.echo(line, err=err)  # which takes the colour out where `colour` or the stream says so


def paint(text: str, tone: Tone) -> str:
    """The text between the codes of its colour."""
    return f'\033[{_CODES[tone]}m{text}\033[0m' if text else text
