"""Strands: the working directory and the background commands outlive an invocation.

    python examples/strands_session.py

`ANYSHELL_MODEL=gpt-5.2` uses a real model, which needs `OPENAI_API_KEY`; without it a script plays the model.
"""

import os

from strands import Agent
from strands.models.openai import OpenAIModel

from anyshell import ShellOptions, ShellSession
from anyshell.testing import OpenAIServer
from strands_anyshell import ShellPlugin

SCRIPT = [
    [('run_command', {'command': 'cd /usr/bin'})],
    [('start_command', {'command': 'sleep 60'})],
    'I am in /usr/bin, and something runs.',
    [('run_command', {'command': 'pwd'}), ('check_command', {'command_id': 'j1'})],
    'I am still in /usr/bin, and it still runs.',
]


def main() -> None:
    model = OpenAIModel(model_id=os.environ.get('ANYSHELL_MODEL') or 'scripted')
    with ShellSession(ShellOptions(persist_cwd=True)) as session:  # whoever opens it closes it
        for prompt in ('Go to /usr/bin and start `sleep 60`.', 'Where are you? Does it still run?'):
            plugin = ShellPlugin(session=session)  # a new agent for each request, say
            print(Agent(model=model, plugins=[plugin], callback_handler=None)(prompt))


if os.environ.get('ANYSHELL_MODEL'):
    main()
else:
    with OpenAIServer(SCRIPT) as server:
        os.environ |= server.environment
        main()
        print('\nWhat the tools said:', *server.tool_results(), sep='\n\n')
