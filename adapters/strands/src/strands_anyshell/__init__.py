"""A shell for Strands agents."""

from strands_anyshell.plugin import ShellPlugin

__all__ = ['ShellPlugin']
