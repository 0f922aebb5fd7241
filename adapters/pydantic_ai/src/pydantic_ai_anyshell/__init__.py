"""A shell for Pydantic AI agents."""

from pydantic_ai_anyshell.capability import CommandOutput, Shell

__all__ = ['CommandOutput', 'Shell']
