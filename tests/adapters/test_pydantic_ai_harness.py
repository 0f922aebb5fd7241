"""pydantic-ai-harness' own tools in our sandboxes and under our policy; its release pins that of the framework."""

import os
from pathlib import Path
from typing import Any

import pytest
from openai import AsyncOpenAI
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from anyshell import LocalSandbox, Policy
from anyshell.testing import OpenAIServer
from pydantic_ai_anyshell import SandboxEnvironment, ShellPolicy

harness: Any = pytest.importorskip('pydantic_ai_harness', reason='no pydantic-ai-harness here')


def agent(base_url: str, *capabilities: Any) -> Agent:
    client = AsyncOpenAI(base_url=base_url, api_key='any')
    model = OpenAIChatModel('gpt-5.2', provider=OpenAIProvider(openai_client=client))
    return Agent(model, capabilities=capabilities)


async def test_its_shell_and_files_work_in_our_sandbox(tmp_path: Path) -> None:
    turns = [
        [('write_file', {'path': 'made.txt', 'content': 'by its file tool\n'})],
        [('run_command', {'command': 'cat made.txt'})],
        'Done.',
    ]
    with OpenAIServer(turns) as server:
        async with LocalSandbox(cwd=tmp_path) as sandbox:
            place = SandboxEnvironment(sandbox)
            await agent(server.base_url, place, harness.FileSystem(), harness.Shell()).run('Go.')

    assert (tmp_path / 'made.txt').read_text() == 'by its file tool\n'
    assert 'by its file tool' in server.tool_results()[-1]


async def test_our_policy_judges_its_shell(tmp_path: Path) -> None:
    (tmp_path / 'kept').touch()
    policy = Policy.from_lists(denied_commands=['mv'])
    turns = [
        [('run_command', {'command': 'ls; mv kept lost'})],
        [('run_command', {'command': 'mv kept lost'})],
        [('start_command', {'command': 'mv kept lost'})],
        [('run_command', {'command': 'ls'})],
        'Done.',
    ]
    with OpenAIServer(turns) as server:
        async with LocalSandbox(cwd=tmp_path) as sandbox:
            place = SandboxEnvironment(sandbox)
            await agent(server.base_url, place, harness.Shell(), ShellPolicy(policy)).run('Go.')

    *denied, listed = server.tool_results()
    assert all("Command 'mv' is denied." in text for text in denied)
    assert 'kept' in listed
    assert os.listdir(tmp_path) == ['kept']
