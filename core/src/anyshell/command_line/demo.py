"""`anyshell demo`: a model's session with the tools, played from a script. No model, no key, no network."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import socket
import sys
import tempfile
import textwrap
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import click

from anyshell.command_line.options import seconds
from anyshell.command_line.terminal import Tone, say
from anyshell.errors import AnyshellError, CommandDenied
from anyshell.options import ShellOptions
from anyshell.session import ShellSession

TASK = 'See what is in this folder, get rid of the old log, and check that the page is served.'
ANSWER = 'The page is served. I may not delete the log, so I put it into attic/, and the server that I had started is stopped.'
FILES = {
    'index.html': '<h1>Hello from anyshell</h1>\n',
    'old.log': 'Nobody has read this for years.\n',
    'fetch.py': 'import sys, urllib.request\nprint(urllib.request.urlopen(sys.argv[1], timeout=10).read().decode().strip())\n',
}


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn of the model.

    Attributes:
        thought: What it says.
        tool: The tool that it calls.
        arguments: With what; `{id}` stands for the ID of the background command, `{port}` for a free port.
        expected: What the answer has to hold; the demo is a test of itself.
    """

    thought: str
    tool: str
    arguments: Mapping[str, object]
    expected: str


TURNS = (
    Turn('I look around first.', 'run_command', {'command': 'ls'}, 'index.html'),
    Turn('The log has to go.', 'run_command', {'command': 'rm old.log'}, "Command 'rm' is denied."),
    Turn(
        'I may not delete anything, and I am told why. Then I put it out of the way.',
        'run_command',
        {'command': 'mkdir attic && mv old.log attic/ && ls attic'},
        'old.log',
    ),
    Turn(
        'Now the page. I start a server in the background, and come back when its port is open.',
        'start_command',
        {
            'command': 'python3 -u -m http.server {port} --bind 127.0.0.1',
            'ready_when': 'port:{port}',
        },
        '[ready: port:',
    ),
    Turn(
        'It listens. What does it serve?',
        'run_command',
        {'command': 'python3 fetch.py http://127.0.0.1:{port}/'},
        'Hello from anyshell',
    ),
    Turn(
        'There is the page. Did the server see me?',
        'check_command',
        {'command_id': '{id}', 'until': 'output:GET /', 'wait_seconds': 10},
        '"GET / HTTP/1.1" 200',
    ),
    Turn('It did, so I stop it.', 'stop_command', {'command_id': '{id}'}, '[stopped:'),
)


@click.command(short_help='Play a session with all tools, as a model sees it.')
@click.option(
    '--pause',
    metavar='SECONDS',
    callback=seconds(zero=True),
    help='Wait so long before each turn; by default 0.8 on a terminal, else 0.',
)
def demo(*, pause: float | None) -> int:
    """Show what a model sees: a session with all tools, played from a script. It needs no model, no key, no network.

    What is shown really happens, in a temporary folder that is removed at the end: a command is denied, a server is
    started in the background, waited for, asked, and stopped.

    \b
    Exit codes:
      0  all went as it should
      1  something did not, and the last lines say what; "anyshell doctor" says more

    \b
    Examples:
      anyshell demo --pause 2
    """  # noqa: D301 - a backspace is how click is told not to wrap
    if pause is None:
        pause = 0.8 if sys.stdout.isatty() else 0.0
    started = time.monotonic()
    _tell(TASK, 'Task: ', 'bold')
    try:
        port = _free_port()
        with tempfile.TemporaryDirectory(prefix='anyshell-demo-') as folder:
            for name, content in FILES.items():
                Path(folder, name).write_text(content, encoding='utf-8')
            wrong = asyncio.run(_play(folder, port, pause))
        if not wrong and _is_served(port):
            wrong = 'the server is still there after its session'
    except (AnyshellError, OSError) as error:
        wrong = str(error)
    if wrong:
        say(('Not as it should be: ', 'bad'), f'{wrong}; "anyshell doctor" says more', err=True)
        return 1
    say()
    _tell(ANSWER, 'Answer: ', 'bold')
    took = time.monotonic() - started
    say((f'\n  {took:.1f} seconds, and nothing is left running. Next: anyshell run --help', 'dim'))
    return 0


async def _play(folder: str, port: int, pause: float) -> str:
    """Play all turns; returns what was wrong, or ''."""
    # The Python that runs this is there, also where no `python3` is on PATH.
    path = os.pathsep.join((os.path.dirname(sys.executable), os.environ.get('PATH', os.defpath)))
    options = ShellOptions(cwd=folder, env={**os.environ, 'PATH': path, 'no_proxy': '127.0.0.1'})
    blanks = {'{port}': str(port), '{id}': ''}
    async with ShellSession(options) as session:
        tools = {tool.name: tool for tool in session.tools}
        for turn in TURNS:
            arguments = {name: _filled(value, blanks) for name, value in turn.arguments.items()}
            say()
            _tell(turn.thought, '', 'bold')
            await asyncio.sleep(pause)
            _tell(_call(turn.tool, arguments), '▸ ', 'accent')
            try:
                text = (await tools[turn.tool].call(arguments)).text
            except CommandDenied as denial:
                text = str(denial)
            _tell(text.rstrip(), '│ ', 'bad' if 'is denied' in text else 'dim')
            await asyncio.sleep(pause)
            if turn.expected not in text:
                return f'{turn.tool} should have given {turn.expected!r}'
            if (match := re.search(r'^ID: (\S+)$', text, re.MULTILINE)) is not None:
                blanks['{id}'] = match[1]
    return ''


def _filled(value: object, blanks: Mapping[str, str]) -> object:
    if isinstance(value, str):
        for blank, text in blanks.items():
            value = value.replace(blank, text)
    return value


def _call(tool: str, arguments: Mapping[str, object]) -> str:
    """A call as a person reads it: the command first, what else there is behind it."""
    first, *rest = arguments.items()
    return '  '.join((tool, str(first[1]), *(f'{name}={value}' for name, value in rest)))


def _tell(text: str, mark: str, tone: Tone) -> None:
    """Print a block of text: `Task: ` and its like before its first line, a bar before all of them."""
    if not _shows(mark):
        mark = {'│ ': '| ', '▸ ': '> '}[mark]
    width = max(40, min(shutil.get_terminal_size().columns, 100) - 2 - len(mark))
    parts = [
        part
        for line in text.split('\n')
        for part in textwrap.wrap(line, width, break_on_hyphens=False) or ['']
    ]
    after = mark if mark in {'│ ', '| '} else ' ' * len(mark)
    for number, part in enumerate(parts):
        say('  ', ((after if number else mark) + part, tone))


def _shows(text: str) -> bool:
    """Whether what reads us has these characters."""
    try:
        text.encode(sys.stdout.encoding or 'ascii')
    except UnicodeEncodeError:
        return False
    return True


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(('127.0.0.1', 0))
        return probe.getsockname()[1]


def _is_served(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(('127.0.0.1', port)) == 0
