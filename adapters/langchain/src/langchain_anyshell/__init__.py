"""A shell for LangChain agents."""
