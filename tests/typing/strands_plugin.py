"""What a plugin may be made with, for a type checker."""

from pathlib import Path
from typing import assert_type

from strands import Agent

from anyshell import LocalSandbox, Policy, ShellSession
from strands_anyshell import ShellPlugin

plugin = ShellPlugin(cwd=Path('/'), allowed_commands=['ls'], persist_cwd=True, default_timeout=5)
Agent(plugins=[plugin])
assert_type(plugin.name, str)
ShellPlugin(sandbox=LocalSandbox(cwd='/'), policy=Policy.from_lists(denied_commands=['rm']))
ShellPlugin(default_timeout='5')  # pyright: ignore[reportArgumentType]
ShellPlugin(no_such_option=True)  # pyright: ignore[reportCallIssue]


async def closes(session: ShellSession) -> None:
    await ShellPlugin(session=session).aclose()
