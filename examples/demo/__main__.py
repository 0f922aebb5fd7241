"""The main job, in one framework: `python examples/demo NAME`.

A real agent of that framework (NAME_agent.py beside this file) talks over HTTP to a model that follows the script below. The
transcript is what that model saw, so it reads the same in every framework. With `--again` after the name the same is done and
checked; of the transcript a line for each call is shown, and one of what it gave.
"""

import asyncio
import importlib
import inspect
import json
import os
import re
import shutil
import socket
import sys
import tempfile
import textwrap
import time
from pathlib import Path

from anyshell.testing import Exchange, ModelRequest, ModelTurn, OpenAIServer, ToolCall

WIDTH = min(shutil.get_terminal_size().columns, 100) - 2
TASK = 'See what is in this folder, get rid of the old log, and check that the page can be served.'
RESULT = (
    'The folder holds a page, a script and a log. I may not delete the log, so I put it into attic/.'
    ' The page can be served.'
)
REAL = (
    'The model is scripted, so no key is needed. All else is real: the agent, its HTTP client, the commands.'
    ' This is how the agent is made:'
)
FETCH = 'import sys, urllib.request\nprint(urllib.request.urlopen(sys.argv[1], timeout=10).read().decode())\n'
# What has to be in the results of the model's calls, one after the other.
EXPECTED = (
    'index.html',
    "Command 'rm' is denied.",
    'old.log',
    '[ready: port:',
    'Hello from anyshell',
    '"GET / HTTP/1.1" 200',
    '[stopped:',
)


def script(port: int) -> list:
    """What the model does, turn by turn; all of it is known before, apart from the web server's ID."""
    serve = f'python3 -u -m http.server {port} --bind 127.0.0.1'
    fetch = f'python3 fetch.py http://127.0.0.1:{port}/'

    def on_server(text: str, tool: str, **more: object) -> object:
        def turn(request: ModelRequest) -> ModelTurn:
            started = re.findall(r'^ID: (\S+)$', '\n'.join(request.results), re.MULTILINE)
            return ModelTurn(text, [(tool, {'command_id': started[-1], **more})])

        return turn

    return [
        ModelTurn('I look around first.', [('run_command', {'command': 'ls'})]),
        ModelTurn('The log has to go.', [('run_command', {'command': 'rm old.log'})]),
        ModelTurn(
            'I may not delete. Then I put it out of the way.',
            [('run_command', {'command': 'mkdir attic && mv old.log attic/ && ls attic'})],
        ),
        ModelTurn(
            'Now the page. I start a server, and come back when its port is open.',
            [('start_command', {'command': serve, 'ready_when': f'port:{port}'})],
        ),
        ModelTurn('It listens. What does it serve?', [('run_command', {'command': fetch})]),
        on_server(
            'There is the page. Did the server see me?',
            'check_command',
            until='output:GET /',
            wait_seconds=10,
        ),
        on_server('It did, so I stop it.', 'stop_command'),
        RESULT,
    ]


def free_port() -> int:
    """A port that nobody listens on, for the model to name in its command."""
    with socket.socket() as probe:
        probe.bind(('127.0.0.1', 0))
        return probe.getsockname()[1]


def is_served(port: int) -> bool:
    """Whether somebody listens on the port."""
    with socket.socket() as probe:
        return probe.connect_ex(('127.0.0.1', port)) == 0


def show(text: str, *, mark: str = '', colour: str = '') -> None:
    """Print a block of text, its long lines wrapped and its end left out; in colour on a terminal."""
    after = mark if mark == '│ ' else ' ' * len(mark)
    lines = [
        part
        for line in text.rstrip().split('\n')
        for part in textwrap.wrap(line, WIDTH - len(mark), break_on_hyphens=False) or ['']
    ]
    block = '\n'.join(f'  {after if number else mark}{line}' for number, line in enumerate(lines))
    plain = not sys.stdout.isatty() or 'NO_COLOR' in os.environ
    print(block if plain else f'\033[{colour}m{block}\033[0m')


def show_call(call: ToolCall) -> None:
    """Print a call as a person reads it: the command first, what else there is behind it."""
    first, *rest = call.arguments.items()
    named = (f'{name}={value}' for name, value in rest)
    show('  '.join((call.name, str(first[1]), *named)), mark='▸ ', colour='36')


def show_result(text: str) -> None:
    """Print what a call gave."""
    show(text, mark='│ ', colour='31' if 'denied' in text else '2')


def told(result: str) -> str:
    """What a model is told; Pydantic AI puts the sentence of a denial into JSON."""
    if result.startswith('{"error":'):
        return json.loads(result)['error']
    return result


def print_transcript(exchanges: tuple[Exchange, ...]) -> None:
    """Print what the model said and what its calls gave; of the last exchange what it said to the user."""
    results = exchanges[-1].request.tool_results
    for exchange in exchanges:
        show(exchange.answer.text, colour='1')
        for call in exchange.answer.calls:
            show_call(call)
            show_result(told(results[call.call_id]))
            print()


def print_summary(exchanges: tuple[Exchange, ...]) -> None:
    """Print the same calls, with one line of what each gave: all of it, or the line that matters."""
    calls = [call for exchange in exchanges for call in exchange.answer.calls]
    results = exchanges[-1].request.tool_results
    for call, want in zip(calls, EXPECTED, strict=True):
        show_call(call)
        lines = told(results[call.call_id]).removeprefix('[stdout]\n').splitlines()
        whole = ' '.join(lines)
        line = whole if len(whole) < WIDTH - 2 else next(line for line in lines if want in line)
        show_result(textwrap.shorten(line, WIDTH - 2, placeholder=' …'))


def main(name: str, again: str = '') -> None:
    """Run the agent of one framework, print what happened, and fail if it is not what should."""
    agent = importlib.import_module(f'{name}_agent')
    port = free_port()
    print(f'\n━━ {name} {"━" * (WIDTH - len(name) - 2)}\n')
    if not again:
        show(TASK, mark='Task: ', colour='1')
        print()
        show(REAL)
        print()
    print(textwrap.indent(inspect.getsource(agent.run), '  '))
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder, OpenAIServer(script(port)) as model:
        Path(folder, 'index.html').write_text('<h1>Hello from anyshell</h1>\n')
        Path(folder, 'old.log').write_text('Nobody has read this for years.\n')
        Path(folder, 'fetch.py').write_text(FETCH)
        answer = asyncio.run(agent.run(model.base_url, folder, TASK))
    took = time.monotonic() - started

    results = model.tool_results()
    wrong = [want for want, got in zip(EXPECTED, results, strict=False) if want not in told(got)]
    if wrong or len(results) != len(EXPECTED) or answer.strip() != RESULT:
        told_so = '\n'.join(results)
        sys.exit(f'{name}: missing: {wrong}, the answer: {answer!r}, the results:\n{told_so}')
    if is_served(port):
        sys.exit(f'{name}: the web server is still running')
    (print_summary if again else print_transcript)(model.exchanges)
    print()
    show(f'({took:.1f} seconds, and nothing is left running)', colour='2')


if __name__ == '__main__':
    main(*sys.argv[1:])
