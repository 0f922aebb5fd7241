"""Pydantic AI: an agent with a shell.

    python examples/pydantic_ai_shell.py
    ANYSHELL_MODEL=openai:gpt-5.2 python examples/pydantic_ai_shell.py

Without `ANYSHELL_MODEL` a script plays the model. A real one needs its provider's key, such as `OPENAI_API_KEY`.
"""

import os

from pydantic_ai import Agent

from anyshell.testing import OpenAIServer
from pydantic_ai_anyshell import Shell

SCRIPT = [
    [('run_command', {'command': 'ls | head -n 5'})],
    [('run_command', {'command': 'rm -rf build'})],
    'I looked around. Deleting is not allowed here, so build/ stays.',
]


def main() -> None:
    agent = Agent(
        os.environ.get('ANYSHELL_MODEL') or 'openai-chat:scripted',
        capabilities=[Shell(cwd='.', default_timeout=10)],
    )
    result = agent.run_sync('What is in this folder? Delete build/ if you can.')
    print(result.output)


if os.environ.get('ANYSHELL_MODEL'):
    main()
else:
    with OpenAIServer(SCRIPT) as server:
        os.environ |= server.environment
        main()
        print('\nWhat the tools said:', *server.tool_results(), sep='\n\n')
