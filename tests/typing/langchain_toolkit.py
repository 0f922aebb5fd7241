"""What a toolkit may be made with and what it gives, for a type checker."""

from pathlib import Path
from typing import Any, assert_type

from langchain_core.tools import BaseTool

from anyshell import LocalSandbox, Policy, ShellSession
from langchain_anyshell import ShellToolkit

assert_type(ShellToolkit().get_tools(), list[BaseTool])
ShellToolkit(cwd=Path('/'), allowed_commands=['ls'], persist_cwd=True, default_timeout=5)
ShellToolkit(sandbox=LocalSandbox(cwd='/'), policy=Policy.from_lists(denied_commands=['rm']))
ShellToolkit(default_timeout='5')  # pyright: ignore[reportArgumentType]
ShellToolkit(no_such_option=True)  # pyright: ignore[reportCallIssue]


def when(request: Any) -> bool:
    return ShellToolkit(ask_commands=['touch']).needs_approval(request)


async def closes(session: ShellSession) -> None:
    with ShellToolkit(session=session) as toolkit:
        assert_type(toolkit, ShellToolkit)
    await toolkit.aclose()
