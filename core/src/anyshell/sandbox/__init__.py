"""The places where commands run."""

from anyshell.sandbox.base import (
    ExecutionResult,
    FileInfo,
    OutputFile,
    Process,
    Processes,
    Sandbox,
    Spawn,
    StreamChunk,
)
from anyshell.sandbox.bubblewrap import BubblewrapSandbox
from anyshell.sandbox.docker import DockerSandbox
from anyshell.sandbox.local import LocalSandbox
from anyshell.sandbox.posix import PosixShellSandbox, build_shell_env_prefix, validate_env_keys
from anyshell.sandbox.ssh import SshSandbox

__all__ = [
    'BubblewrapSandbox',
    'DockerSandbox',
    'ExecutionResult',
    'FileInfo',
    'LocalSandbox',
    'OutputFile',
    'PosixShellSandbox',
    'Process',
    'Processes',
    'Sandbox',
    'Spawn',
    'SshSandbox',
    'StreamChunk',
    'build_shell_env_prefix',
    'validate_env_keys',
]
