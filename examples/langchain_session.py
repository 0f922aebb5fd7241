"""LangChain: the working directory and the background commands outlive a run.

    python examples/langchain_session.py

`ANYSHELL_MODEL=openai:gpt-5.2` uses a real model, which needs its provider's package and key, such as `OPENAI_API_KEY`.
"""

import os

from langchain.agents import create_agent

from anyshell import ShellOptions, ShellSession
from anyshell.testing import OpenAIServer
from langchain_anyshell import ShellToolkit

SCRIPT = [
    [('run_command', {'command': 'cd /usr/bin'})],
    [('start_command', {'command': 'sleep 60'})],
    'I am in /usr/bin, and something runs.',
    [('run_command', {'command': 'pwd'}), ('check_command', {'command_id': 'j1'})],
    'I am still in /usr/bin, and it still runs.',
]


def main() -> None:
    with ShellSession(ShellOptions(persist_cwd=True)) as session:  # whoever opens it closes it
        name = os.environ.get('ANYSHELL_MODEL') or 'openai:scripted'
        agent = create_agent(name, ShellToolkit(session=session).get_tools())
        for prompt in ('Go to /usr/bin and start `sleep 60`.', 'Where are you? Does it still run?'):
            answer = agent.invoke({'messages': [('user', prompt)]})
            print(answer['messages'][-1].text)


if os.environ.get('ANYSHELL_MODEL'):
    main()
else:
    with OpenAIServer(SCRIPT) as server:
        os.environ |= server.environment
        main()
        print('\nWhat the tools said:', *server.tool_results(), sep='\n\n')
