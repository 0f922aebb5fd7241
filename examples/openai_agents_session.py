"""OpenAI Agents SDK: the working directory and the background commands outlive a run.

`ANYSHELL_MODEL=gpt-5.2` uses a real model, which needs `OPENAI_API_KEY`; without it a script plays the model.
"""

import asyncio
import os

from agents import Agent, Runner

from anyshell import ShellOptions, ShellSession
from anyshell.testing import OpenAIServer
from openai_agents_anyshell import ShellTools

SCRIPT = [
    [('run_command', {'command': 'cd /usr/bin'}), ('start_command', {'command': 'sleep 60'})],
    'I am in /usr/bin, and something runs.',
    [('run_command', {'command': 'pwd'}), ('check_command', {'command_id': 'j1'})],
    'I am still in /usr/bin, and it still runs.',
]


async def main() -> None:
    name = os.environ.get('ANYSHELL_MODEL') or 'scripted'
    # whoever opens a session closes it
    async with ShellSession(ShellOptions(persist_cwd=True)) as session:
        for prompt in ('Go to /usr/bin and start `sleep 60`.', 'Where are you? Does it still run?'):
            async with ShellTools(session=session) as shell:  # one for each request, say
                agent = Agent(name='Helper', model=name, tools=shell.tools())
                print((await Runner.run(agent, prompt)).final_output)


if os.environ.get('ANYSHELL_MODEL'):
    asyncio.run(main())
else:
    with OpenAIServer(SCRIPT) as server:
        os.environ |= server.environment
        asyncio.run(main())
        print('\nWhat the tools said:', *server.tool_results(), sep='\n\n')
