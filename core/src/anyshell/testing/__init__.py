"""What you need to test an agent that uses a shell, or a sandbox or an adapter of your own.

Nothing here is imported by anyshell itself.
"""

from anyshell.testing.adapter_contract import AdapterContract
from anyshell.testing.openai_server import Exchange, Failure, Hang, OpenAIServer
from anyshell.testing.openai_wire import ModelRequest, ModelTurn, ToolCall

__all__ = [
    'AdapterContract',
    'Exchange',
    'Failure',
    'Hang',
    'ModelRequest',
    'ModelTurn',
    'OpenAIServer',
    'ToolCall',
]
