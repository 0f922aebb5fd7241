"""A shell for Strands agents."""

from strands_anyshell.guard import ShellPolicy
from strands_anyshell.plugin import ShellPlugin
from strands_anyshell.sandbox import StrandsSandbox

__all__ = ['ShellPlugin', 'ShellPolicy', 'StrandsSandbox']
