"""Pydantic AI: our sandboxes as the workspace of a run."""

import os
import shutil
import subprocess
from collections.abc import AsyncGenerator, Awaitable, Callable
from pathlib import Path

import pytest
from openai import AsyncOpenAI
from pydantic_ai import Agent, RunContext
from pydantic_ai.capabilities import LocalWorkspace
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.workspaces import WorkspaceBackend, WorkspaceRef
from pydantic_ai.workspaces.conformance import WorkspaceBackendSuite

from anyshell import BubblewrapSandbox, LocalSandbox, OptionError, Sandbox
from anyshell.testing import OpenAIServer
from pydantic_ai_anyshell import SandboxEnvironment, SandboxWorkspace, Shell

NAP = f'sleep 43{os.getpid()}.5'


class SandboxSuite(WorkspaceBackendSuite):
    @pytest.fixture
    def anyio_backend(self) -> str:
        return 'asyncio'

    @pytest.fixture
    def backend(self, sandbox: Sandbox) -> SandboxWorkspace:
        return SandboxWorkspace(sandbox)


class TestLocalSandbox(SandboxSuite):
    @pytest.fixture
    async def sandbox(self, tmp_path: Path) -> AsyncGenerator[Sandbox]:
        async with LocalSandbox(cwd=tmp_path) as sandbox:
            yield sandbox

    @pytest.fixture
    def fresh_backend(self, sandbox: Sandbox) -> Callable[[], WorkspaceBackend]:
        return lambda: SandboxWorkspace(sandbox)

    @pytest.fixture
    def attach_backend(self, sandbox: Sandbox) -> Callable[[WorkspaceRef], WorkspaceBackend]:
        return lambda ref: SandboxWorkspace(sandbox, name=ref.id)

    @pytest.fixture
    def destroy_environment(self, tmp_path: Path) -> Callable[[WorkspaceBackend], Awaitable[None]]:
        async def destroy(_: WorkspaceBackend) -> None:
            shutil.rmtree(tmp_path)

        return destroy


@pytest.mark.needs('bubblewrap')
class TestBubblewrapSandbox(SandboxSuite):
    @pytest.fixture
    async def sandbox(self, tmp_path: Path) -> AsyncGenerator[Sandbox]:
        # The tests' own TMPDIR is not there inside.
        env = {**os.environ, 'TMPDIR': '/tmp'}  # noqa: S108  (the sandbox's)
        async with BubblewrapSandbox(cwd=tmp_path, env=env) as sandbox:
            yield sandbox


async def test_tools_of_others_work_in_the_sandbox_and_a_later_run_goes_on_there(
    tmp_path: Path,
) -> None:
    with OpenAIServer([[('make', {})], 'Made.', [('look', {})], 'Seen.']) as server:
        async with LocalSandbox(cwd=tmp_path) as sandbox:
            client = AsyncOpenAI(base_url=server.base_url, api_key='any')
            model = OpenAIChatModel('gpt-5.2', provider=OpenAIProvider(openai_client=client))
            agent = Agent(model, capabilities=[SandboxEnvironment(sandbox)])

            @agent.tool
            async def make(ctx: RunContext) -> str:
                await ctx.workspace.write_bytes('made', b'by a tool')
                return 'made'

            @agent.tool
            async def look(ctx: RunContext) -> str:
                return (await ctx.workspace.run(['cat', 'made'])).stdout

            first = await agent.run('Make.')
            await agent.run('Look.', message_history=first.all_messages())

    assert (tmp_path / 'made').read_text() == 'by a tool'
    assert server.tool_results()[-1] == 'by a tool'


async def test_our_shell_works_in_the_workspace_that_the_run_has(tmp_path: Path) -> None:
    (tmp_path / 'below').mkdir()
    turns = [
        [('run_command', {'command': 'cd below; echo $WORD'})],
        [('run_command', {'command': 'pwd; exit 3'})],
        [('start_command', {'command': f'echo on; touch said; exec {NAP}'})],
        [('run_command', {'command': 'until test -e said; do sleep 0.05; done'})],
        [('check_command', {'command_id': 'j1'})],
        [('run_command', {'command': 'rm said'})],
        'Done.',
    ]
    with OpenAIServer(turns) as server:
        client = AsyncOpenAI(base_url=server.base_url, api_key='any')
        model = OpenAIChatModel('gpt-5.2', provider=OpenAIProvider(openai_client=client))
        place = LocalWorkspace(tmp_path, env={**os.environ, 'WORD': 'from the workspace'})
        shell = Shell(workspace=True, persist_cwd=True)
        await Agent(model, capabilities=[place, shell]).run('Go.')

    first, second, started, _, checked, denied = server.tool_results()
    assert first == '[stdout]\nfrom the workspace\n'
    assert second == f'[stdout]\n{tmp_path}/below\n\n[exit code: 3]'
    assert 'ID: j1' in started
    assert checked == '[status: running]\n[stdout]\non\n'
    assert "Command 'rm' is denied." in denied
    listed = subprocess.run(
        ['ps', '-A', '-o', 'args='], capture_output=True, text=True, check=True, timeout=30
    )
    assert NAP not in listed.stdout


def test_workspace_and_sandbox_exclude_each_other() -> None:
    with pytest.raises(OptionError, match='workspace'):
        Shell(workspace=True, sandbox=LocalSandbox())
