# ruff: noqa: INP001, T201 - a script beside the pages
"""Make a picture of what a command prints on a terminal: `python docs/record_demo.py FILE.svg [--lines N] -- COMMAND …`.

`nox -s record` makes the one in README.md: it runs the demo (a real agent, a scripted model) in a terminal of its own,
reads all that this shows, and draws that. Nothing is written by hand, and the picture loads nothing from elsewhere.
"""

import argparse
import io
import os
import pty
import re
import shlex
import struct
import subprocess
import sys
from fcntl import ioctl
from pathlib import Path
from termios import TIOCSWINSZ

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

COLUMNS = 96
THEME = TerminalTheme(
    (22, 27, 34),
    (230, 237, 243),
    [
        (22, 27, 34),
        (255, 123, 114),
        (126, 231, 135),
        (242, 204, 96),
        (121, 192, 255),
        (210, 168, 255),
        (86, 212, 221),
        (201, 209, 217),
    ],
)
# The template without its fonts from a server; the columns hold with any font, since each text has its length.
TEMPLATE = re.sub(r'@font-face \{\{.*?\}\}\s*', '', CONSOLE_SVG_FORMAT, flags=re.DOTALL).replace(
    'Fira Code', 'ui-monospace, SFMono-Regular, Menlo, Consolas'
)


def shown(command: list[str]) -> str:
    """What a command writes to a terminal of `COLUMNS` columns.

    Raises:
        CalledProcessError: If the command fails.
    """
    ours, theirs = pty.openpty()
    ioctl(theirs, TIOCSWINSZ, struct.pack('HHHH', 60, COLUMNS, 0, 0))
    environment = {**os.environ, 'COLUMNS': str(COLUMNS), 'TERM': 'xterm-256color'}
    environment.pop('NO_COLOR', None)
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs, env=environment
    )
    os.close(theirs)
    pieces: list[bytes] = []
    while True:
        try:
            piece = os.read(ours, 65536)
        except OSError:  # how Linux says that nobody holds the terminal any more
            break
        if not piece:
            break
        pieces.append(piece)
    os.close(ours)
    text = b''.join(pieces).decode().replace('\r\n', '\n')
    if process.wait():
        print(text, file=sys.stderr)
        raise subprocess.CalledProcessError(process.returncode, command)
    return text


def picture(text: str, title: str, lines: int | None) -> str:
    """The text as an SVG; of more than `lines` lines the first ones, and a mark that there are more."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), legacy_windows=False)
    rows = Text.from_ansi(text.strip('\n')).split(allow_blank=True)
    for row in rows[:lines]:
        console.print(row, soft_wrap=True)
    if lines is not None and len(rows) > lines:
        console.print(Text('  …', style='dim'))
    return console.export_svg(
        title=title, theme=THEME, code_format=TEMPLATE, unique_id='anyshell-demo'
    )


def main() -> None:
    """Run the command and write the picture."""
    parser = argparse.ArgumentParser(description=__doc__.partition('\n')[0])
    parser.add_argument('file', type=Path)
    parser.add_argument('--lines', type=int, help='how many lines to show; all of them otherwise')
    parser.add_argument('--title', help='what stands above; the command otherwise')
    parser.add_argument('command', nargs='+')
    given = parser.parse_args()
    text = shown(given.command)
    given.file.write_text(picture(text, given.title or shlex.join(given.command), given.lines))


if __name__ == '__main__':
    main()
