"""A shell for Strands agents."""
