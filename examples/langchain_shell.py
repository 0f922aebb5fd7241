"""LangChain: an agent with a shell.

    python examples/langchain_shell.py
    ANYSHELL_MODEL=openai:gpt-5.2 python examples/langchain_shell.py

Without `ANYSHELL_MODEL` a script plays the model. A real one needs its provider's package (`langchain-openai`) and key,
such as `OPENAI_API_KEY`.
"""

import os

from langchain.agents import create_agent

from anyshell.testing import OpenAIServer
from langchain_anyshell import ShellToolkit

SCRIPT = [
    [('run_command', {'command': 'ls | head -n 5'})],
    [('run_command', {'command': 'rm -rf build'})],
    'I looked around. Deleting is not allowed here, so build/ stays.',
]


def main() -> None:
    toolkit = ShellToolkit(cwd='.', default_timeout=10)
    agent = create_agent(os.environ.get('ANYSHELL_MODEL') or 'openai:scripted', toolkit.get_tools())
    prompt = 'What is in this folder? Delete build/ if you can.'
    answer = agent.invoke({'messages': [('user', prompt)]})
    print(answer['messages'][-1].text)


if os.environ.get('ANYSHELL_MODEL'):
    main()
else:
    with OpenAIServer(SCRIPT) as server:
        os.environ |= server.environment
        main()
        print('\nWhat the tools said:', *server.tool_results(), sep='\n\n')
