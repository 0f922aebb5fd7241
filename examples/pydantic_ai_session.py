"""Pydantic AI: the working directory and the background commands outlive a run.

    python examples/pydantic_ai_session.py

`ANYSHELL_MODEL=openai:gpt-5.2` uses a real model, which needs its provider's key, such as `OPENAI_API_KEY`.
"""

import asyncio
import os

from pydantic_ai import Agent

from anyshell import ShellOptions, ShellSession
from anyshell.testing import OpenAIServer
from pydantic_ai_anyshell import Shell

SCRIPT = [
    [('run_command', {'command': 'cd /usr/bin'}), ('start_command', {'command': 'sleep 60'})],
    'I am in /usr/bin, and something runs.',
    [('run_command', {'command': 'pwd'}), ('check_command', {'command_id': 'j1'})],
    'I am still in /usr/bin, and it still runs.',
]


async def main() -> None:
    # whoever opens a session closes it
    async with ShellSession(ShellOptions(persist_cwd=True)) as session:
        name = os.environ.get('ANYSHELL_MODEL') or 'openai-chat:scripted'
        agent = Agent(name, capabilities=[Shell(session=session)])
        for prompt in ('Go to /usr/bin and start `sleep 60`.', 'Where are you? Does it still run?'):
            print((await agent.run(prompt)).output)


if os.environ.get('ANYSHELL_MODEL'):
    asyncio.run(main())
else:
    with OpenAIServer(SCRIPT) as server:
        os.environ |= server.environment
        asyncio.run(main())
        print('\nWhat the tools said:', *server.tool_results(), sep='\n\n')
