"""A shell for Pydantic AI agents."""

from pydantic_ai_anyshell.capability import CommandOutput, Shell
from pydantic_ai_anyshell.guard import ShellPolicy
from pydantic_ai_anyshell.workspace import SandboxEnvironment, SandboxWorkspace

__all__ = ['CommandOutput', 'SandboxEnvironment', 'SandboxWorkspace', 'Shell', 'ShellPolicy']
