"""The main job, in one framework: `python examples/demo NAME`.

A real agent of that framework (NAME_agent.py beside this file) talks over HTTP to a model that follows the script below. The
transcript is what that model saw, so it reads the same in every framework. With `--again` after the name the same is done and
checked; what is shown is what differs, how the agent is made, and of the transcript a line for each call.
"""

import asyncio
import importlib
import inspect
import os
import re
import shutil
import socket
import sys
import tempfile
import textwrap
import time
from pathlib import Path
from types import ModuleType

from anyshell.testing import Exchange, ModelRequest, ModelTurn, OpenAIServer

WIDTH = min(shutil.get_terminal_size().columns, 100)
TASK = 'See what is in this folder, get rid of the old log, and check that the page can be served.'
RESULT = (
    'The folder holds a page, a script and a log. I may not delete the log, so I put it into attic/.'
    ' The page can be served.'
)
FETCH = """\
import sys, time, urllib.request

for _ in range(50):  # a server needs a moment
    try:
        print(urllib.request.urlopen(sys.argv[1]).read().decode().strip())
        break
    except OSError:
        time.sleep(0.1)
else:
    sys.exit('nobody answers')
"""
# What has to be in the results of the model's calls, one after the other.
EXPECTED = (
    'index.html',
    "Command 'rm' is denied.",
    'old.log',
    'Started background command',
    'Hello from anyshell',
    '[status: running]',
    '[stopped:',
)


def script(port: int) -> list:
    """What the model does, turn by turn; all of it is known before, apart from the web server's ID."""
    serve = f'python3 -u -m http.server {port} --bind 127.0.0.1'
    fetch = f'python3 fetch.py http://127.0.0.1:{port}/'

    def on_server(text: str, tool: str) -> object:
        def turn(request: ModelRequest) -> ModelTurn:
            results = '\n'.join(request.tool_results.values())
            started = re.findall(r'^ID: (\S+)$', results, re.MULTILINE)
            return ModelTurn(text, [(tool, {'command_id': started[-1]})])

        return turn

    return [
        ModelTurn('I look around first.', [('run_command', {'command': 'ls'})]),
        ModelTurn('The log has to go.', [('run_command', {'command': 'rm old.log'})]),
        ModelTurn(
            'I may not delete. Then I put it out of the way.',
            [('run_command', {'command': 'mkdir attic && mv old.log attic/ && ls attic'})],
        ),
        ModelTurn('Now the page. I start a server.', [('start_command', {'command': serve})]),
        ModelTurn('Does it answer?', [('run_command', {'command': fetch})]),
        on_server('It does. What does the server itself say?', 'check_command'),
        on_server('All is well, so I stop it.', 'stop_command'),
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
    """Print a block of text, in colour on a terminal."""
    block = textwrap.indent(text, f'  {mark}', lambda _: True)
    plain = not sys.stdout.isatty() or 'NO_COLOR' in os.environ
    print(block if plain else f'\033[{colour}m{block}\033[0m')


def print_transcript(exchanges: tuple[Exchange, ...]) -> None:
    """Print what the model said and what its calls gave."""
    shown: set[str] = set()
    for exchange in exchanges:
        for call_id, result in exchange.request.tool_results.items():
            if call_id not in shown:
                show(result.rstrip(), mark='│ ', colour='31' if 'denied' in result else '2')
                print()
            shown.add(call_id)
        if not isinstance(exchange.answer, ModelTurn):
            continue
        show(textwrap.fill(exchange.answer.text, WIDTH - 2), colour='1')
        for call in exchange.answer.calls:
            show(f'{call.name}  {" ".join(call.arguments.values())}', mark='▸ ', colour='36')


def print_difference(agent: ModuleType, exchanges: tuple[Exchange, ...]) -> None:
    """Print how the agent is made, and that it did the same: a line for each call, with the beginning of what it gave."""
    show(inspect.getsource(agent.run).strip())
    print()
    turns = [one.answer for one in exchanges if isinstance(one.answer, ModelTurn)]
    calls = [call for turn in turns for call in turn.calls]
    results = exchanges[-1].request.tool_results
    for call in calls:
        said = ' '.join(results[call.call_id].removeprefix('[stdout]').split())
        line = f'{call.name}  {" ".join(call.arguments.values())}  →  {said}'
        show(textwrap.shorten(line, WIDTH - 4, placeholder=' …'), mark='▸ ', colour='36')


def main(name: str, again: str = '') -> None:
    """Run the agent of one framework, print what happened, and fail if it is not what should."""
    agent = importlib.import_module(f'{name}_agent')
    port = free_port()
    started = time.monotonic()
    print(f'\n━━ {name} {"━" * (WIDTH - len(name) - 4)}\n')
    show('The same task.' if again else TASK, mark='' if again else 'Task: ', colour='1')
    print()
    with tempfile.TemporaryDirectory() as folder, OpenAIServer(script(port)) as model:
        Path(folder, 'index.html').write_text('<h1>Hello from anyshell</h1>\n')
        Path(folder, 'old.log').write_text('Nobody has read this for years.\n')
        Path(folder, 'fetch.py').write_text(FETCH)
        answer = asyncio.run(agent.run(model.base_url, folder, TASK))
    if again:
        print_difference(agent, model.exchanges)
    else:
        print_transcript(model.exchanges)
    show(f'\n({time.monotonic() - started:.1f} seconds)', colour='2')

    results = model.tool_results()
    wrong = [want for want, got in zip(EXPECTED, results, strict=False) if want not in got]
    if wrong or len(results) != len(EXPECTED) or answer.strip() != RESULT:
        sys.exit(f'{name}: not as expected; missing: {wrong}, the answer: {answer!r}')
    if is_served(port):
        sys.exit(f'{name}: the web server is still running')


if __name__ == '__main__':
    main(*sys.argv[1:])
