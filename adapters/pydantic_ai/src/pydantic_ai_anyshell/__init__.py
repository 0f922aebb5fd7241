"""A shell for Pydantic AI agents."""
