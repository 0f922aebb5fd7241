"""A shell for Pydantic AI agents."""

from pydantic_ai_anyshell.capability import CommandOutput, Shell
from pydantic_ai_anyshell.guard import ShellPolicy

__all__ = ['CommandOutput', 'Shell', 'ShellPolicy']
