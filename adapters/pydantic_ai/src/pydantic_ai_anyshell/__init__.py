"""A shell for Pydantic AI agents."""

from anyshell import LLM_API_KEY_ENV_PATTERNS
from pydantic_ai_anyshell.capability import Shell
from pydantic_ai_anyshell.guard import ShellPolicy
from pydantic_ai_anyshell.output import CommandOutput
from pydantic_ai_anyshell.workspace import SandboxEnvironment, SandboxWorkspace

__all__ = [
    'LLM_API_KEY_ENV_PATTERNS',
    'CommandOutput',
    'SandboxEnvironment',
    'SandboxWorkspace',
    'Shell',
    'ShellPolicy',
]
