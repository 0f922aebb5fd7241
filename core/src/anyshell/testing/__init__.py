"""What you need to test an agent that uses a shell, or a sandbox or an adapter of your own.

Nothing here is imported by anyshell itself.
"""

from anyshell.testing.adapter_contract import AdapterContract
from anyshell.testing.fake import FakeSandbox
from anyshell.testing.openai_server import Exchange, Failure, Hang, OpenAIServer
from anyshell.testing.openai_wire import ModelRequest, ModelTurn, ToolCall
from anyshell.testing.sandbox_contract import SandboxContract

__all__ = [
    'AdapterContract',
    'Exchange',
    'Failure',
    'FakeSandbox',
    'Hang',
    'ModelRequest',
    'ModelTurn',
    'OpenAIServer',
    'SandboxContract',
    'ToolCall',
]
