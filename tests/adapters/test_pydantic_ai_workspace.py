"""Pydantic AI: our sandboxes as the workspace of a run."""

import shutil
from collections.abc import AsyncGenerator, Awaitable, Callable
from pathlib import Path

import pytest
from openai import AsyncOpenAI
from pydantic_ai import Agent, RunContext
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.workspaces import WorkspaceBackend, WorkspaceRef
from pydantic_ai.workspaces.conformance import WorkspaceBackendSuite

from anyshell import LocalSandbox
from anyshell.testing import OpenAIServer
from pydantic_ai_anyshell import SandboxEnvironment, SandboxWorkspace


class TestLocalSandbox(WorkspaceBackendSuite):
    @pytest.fixture
    def anyio_backend(self) -> str:
        return 'asyncio'

    @pytest.fixture
    async def sandbox(self, tmp_path: Path) -> AsyncGenerator[LocalSandbox]:
        async with LocalSandbox(cwd=tmp_path) as sandbox:
            yield sandbox

    @pytest.fixture
    def backend(self, sandbox: LocalSandbox) -> SandboxWorkspace:
        return SandboxWorkspace(sandbox)

    @pytest.fixture
    def fresh_backend(self, sandbox: LocalSandbox) -> Callable[[], WorkspaceBackend]:
        return lambda: SandboxWorkspace(sandbox)

    @pytest.fixture
    def attach_backend(self, sandbox: LocalSandbox) -> Callable[[WorkspaceRef], WorkspaceBackend]:
        return lambda ref: SandboxWorkspace(sandbox, name=ref.id)

    @pytest.fixture
    def destroy_environment(self, tmp_path: Path) -> Callable[[WorkspaceBackend], Awaitable[None]]:
        async def destroy(_: WorkspaceBackend) -> None:
            shutil.rmtree(tmp_path)

        return destroy


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
