"""What users of the Pydantic AI adapter write must type-check; it is never run."""

from typing import assert_type

from pydantic_ai import Agent, AgentStreamEvent

from anyshell import LocalSandbox, Policy, ShellSession
from pydantic_ai_anyshell import LLM_API_KEY_ENV_PATTERNS, CommandOutput, Shell


class Deps:
    pass


spec = Shell[object](
    cwd='.',
    allowed_commands=[],
    denied_commands=['rm'],
    denied_operators=[],
    default_timeout=30.0,
    max_output_chars=50_000,
    persist_cwd=False,
    allow_interactive=False,
    env=None,
    denied_env_patterns=LLM_API_KEY_ENV_PATTERNS,
)
agent = Agent('test', capabilities=[Shell(cwd='./workspace', allowed_commands=['ls', 'cat'])])
other = Agent('test', deps_type=Deps, capabilities=[Shell[Deps](sandbox=LocalSandbox())])
bare = Agent('test', toolsets=[Shell[object]().get_toolset()])
Shell[object]('./workspace')
Shell[object](policy=Policy(()), ask_commands=('git push',), on_ask='deny')
Shell[object](default_timeout='5')  # pyright: ignore[reportArgumentType]
Shell[object](no_such_option=True)  # pyright: ignore[reportCallIssue]


async def use(event: AgentStreamEvent) -> None:
    async with ShellSession() as session:
        Shell[object](session=session)
    if isinstance(event, CommandOutput):
        assert_type(event.text, str)
    await spec.aclose()
    result = await agent.run('Go.')
    assert_type(result.output, str)
