"""What users of the OpenAI Agents adapter write must type-check; it is never run."""

from typing import assert_type

from agents import Agent, Runner, RunState

from anyshell import LocalSandbox, Policy, ShellSession
from openai_agents_anyshell import CommandOutput, ShellTools


def show(piece: CommandOutput) -> None:
    print(piece.call_id, piece.stream, piece.text)


async def show_later(piece: CommandOutput) -> None:
    show(piece)


async def use() -> None:
    async with ShellTools(cwd='.', allowed_commands=['ls'], on_output=show) as shell:
        agent = Agent[None](name='Helper', tools=shell.tools())
        result = await Runner.run(agent, 'Go.')
        state: RunState = result.to_state()
        for item in result.interruptions:
            print(shell.request(item)['command'])
            shell.edit(item, 'ls')
            state.approve(item)
        async for piece in shell.output():
            assert_type(piece, CommandOutput)
    ShellTools(default_timeout='5')  # pyright: ignore[reportArgumentType]
    ShellTools(no_such_option=True)  # pyright: ignore[reportCallIssue]
    ShellTools(sandbox=LocalSandbox(), policy=Policy(()), on_output=show_later)
    with ShellSession() as session, ShellTools(session=session) as shell:
        assert_type(shell.session, ShellSession)
