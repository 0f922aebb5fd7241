"""What options and sessions may be made with, for a type checker."""

from pathlib import Path

from anyshell import LocalSandbox, Policy, ShellOptions, ShellSession

ShellOptions(cwd=Path('/'), allowed_commands=['ls'], persist_cwd=True, default_timeout=5)
ShellOptions(default_timeout='5')  # pyright: ignore[reportArgumentType]
ShellOptions(no_such_option=True)  # pyright: ignore[reportCallIssue]
ShellOptions('.')  # pyright: ignore[reportCallIssue]
ShellSession(ShellOptions(), sandbox=LocalSandbox(), policy=Policy(()))
ShellSession(cwd='.')  # pyright: ignore[reportCallIssue]
ShellSession(policy='policy.yaml')  # pyright: ignore[reportArgumentType]
