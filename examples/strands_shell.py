"""Strands: an agent with a shell.

    python examples/strands_shell.py
    ANYSHELL_MODEL=gpt-5.2 python examples/strands_shell.py

Without `ANYSHELL_MODEL` a script plays the model. A real one needs `OPENAI_API_KEY`; for another provider use its model
class of `strands.models`.
"""

import os

from strands import Agent
from strands.models.openai import OpenAIModel

from anyshell.testing import OpenAIServer
from strands_anyshell import ShellPlugin

SCRIPT = [
    [('run_command', {'command': 'ls | head -n 5'})],
    [('run_command', {'command': 'rm -rf build'})],
    'I looked around. Deleting is not allowed here, so build/ stays.',
]


def main() -> None:
    model = OpenAIModel(model_id=os.environ.get('ANYSHELL_MODEL') or 'scripted')
    plugin = ShellPlugin(cwd='.', default_timeout=10)
    agent = Agent(model=model, plugins=[plugin], callback_handler=None)
    print(agent('What is in this folder? Delete build/ if you can.'))


if os.environ.get('ANYSHELL_MODEL'):
    main()
else:
    with OpenAIServer(SCRIPT) as server:
        os.environ |= server.environment
        main()
        print('\nWhat the tools said:', *server.tool_results(), sep='\n\n')
