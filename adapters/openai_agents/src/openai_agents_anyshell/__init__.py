"""A shell for the OpenAI Agents SDK."""
