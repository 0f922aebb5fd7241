"""A shell for Strands agents."""

from strands_anyshell.guard import ShellPolicy
from strands_anyshell.plugin import ShellPlugin

__all__ = ['ShellPlugin', 'ShellPolicy']
