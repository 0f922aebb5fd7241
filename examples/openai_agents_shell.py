"""OpenAI Agents SDK: an agent with a shell.

    python examples/openai_agents_shell.py
    ANYSHELL_MODEL=gpt-5.2 python examples/openai_agents_shell.py

Without `ANYSHELL_MODEL` a script plays the model. A real one needs `OPENAI_API_KEY`.
"""

import asyncio
import os

from agents import Agent, Runner

from anyshell.testing import OpenAIServer
from openai_agents_anyshell import ShellTools

SCRIPT = [
    [('run_command', {'command': 'ls | head -n 5'})],
    [('run_command', {'command': 'rm -rf build'})],
    'I looked around. Deleting is not allowed here, so build/ stays.',
]


async def main() -> None:
    async with ShellTools(cwd='.', default_timeout=10) as shell:
        name = os.environ.get('ANYSHELL_MODEL') or 'scripted'
        agent = Agent(name='Helper', model=name, tools=shell.tools())
        result = await Runner.run(agent, 'What is in this folder? Delete build/ if you can.')
        print(result.final_output)


if os.environ.get('ANYSHELL_MODEL'):
    asyncio.run(main())
else:
    with OpenAIServer(SCRIPT) as server:
        os.environ |= server.environment
        asyncio.run(main())
        print('\nWhat the tools said:', *server.tool_results(), sep='\n\n')
