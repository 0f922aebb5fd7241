"""A shell for LangChain agents."""

from langchain_anyshell.toolkit import ShellToolkit

__all__ = ['ShellToolkit']
