"""The places where commands run."""

from anyshell.sandbox.base import ExecutionResult, FileInfo, OutputFile, Sandbox, StreamChunk
from anyshell.sandbox.local import LocalSandbox
from anyshell.sandbox.posix import PosixShellSandbox, build_shell_env_prefix, validate_env_keys

__all__ = [
    'ExecutionResult',
    'FileInfo',
    'LocalSandbox',
    'OutputFile',
    'PosixShellSandbox',
    'Sandbox',
    'StreamChunk',
    'build_shell_env_prefix',
    'validate_env_keys',
]
