"""A shell for the OpenAI Agents SDK.

`openai_agents_anyshell.sandbox` is imported on its own: it stands on a part of the SDK that is still beta.
"""

from openai_agents_anyshell.guard import asks, shell_guardrail
from openai_agents_anyshell.output import CommandOutput
from openai_agents_anyshell.shell_tool import shell_tool
from openai_agents_anyshell.tools import ShellTools

__all__ = ['CommandOutput', 'ShellTools', 'asks', 'shell_guardrail', 'shell_tool']
