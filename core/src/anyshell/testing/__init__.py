"""What you need to test an agent that uses a shell, or a sandbox or an adapter of your own.

Nothing here is imported by anyshell itself.
"""

from typing import TYPE_CHECKING

from anyshell.testing.adapter_contract import AdapterContract, Paused, Said
from anyshell.testing.fake import FakeSandbox
from anyshell.testing.openai_script import Failure, Hang
from anyshell.testing.openai_server import Exchange, OpenAIServer
from anyshell.testing.openai_wire import ModelRequest, ModelTurn, ToolCall

if TYPE_CHECKING:
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
    'Paused',
    'Said',
    'SandboxContract',
    'ToolCall',
]


def __getattr__(name: str) -> object:
    """`SandboxContract` needs pytest, which all else here does without."""
    if name == 'SandboxContract':
        from anyshell.testing.sandbox_contract import SandboxContract  # noqa: PLC0415 - as above

        return SandboxContract
    raise AttributeError(f'module {__name__!r} has no attribute {name!r}')
