"""One shell tool for any agent framework, in any sandbox."""

from anyshell.environment import LLM_API_KEY_ENV_PATTERNS
from anyshell.errors import (
    AnyshellError,
    ApprovalRequired,
    CommandDenied,
    CommandError,
    InvalidCommand,
    JobsRefused,
    OptionError,
    PolicyError,
    SandboxClosed,
    SandboxError,
    SandboxPathNotFoundError,
    SandboxTimeoutError,
    SandboxUnavailable,
    SessionClosed,
    UnknownCommandID,
    WorkingDirectoryGone,
)
from anyshell.guard import COMMAND_ARGUMENTS, Guard, judge_call
from anyshell.interrupt import interruptible
from anyshell.options import ShellKeywords, ShellOptions
from anyshell.policy import Decision, Policy, Verdict
from anyshell.result import CommandResult
from anyshell.sandbox import (
    BubblewrapSandbox,
    DockerSandbox,
    ExecutionResult,
    FileInfo,
    LocalSandbox,
    OutputFile,
    PosixShellSandbox,
    Process,
    Processes,
    Sandbox,
    Spawn,
    SshSandbox,
    StreamChunk,
    build_shell_env_prefix,
    validate_env_keys,
)
from anyshell.session import ShellSession
from anyshell.sessions import Sessions
from anyshell.synchronous import run_sync
from anyshell.tools import Reply, Tool

__all__ = [
    'COMMAND_ARGUMENTS',
    'LLM_API_KEY_ENV_PATTERNS',
    'AnyshellError',
    'ApprovalRequired',
    'BubblewrapSandbox',
    'CommandDenied',
    'CommandError',
    'CommandResult',
    'Decision',
    'DockerSandbox',
    'ExecutionResult',
    'FileInfo',
    'Guard',
    'InvalidCommand',
    'JobsRefused',
    'LocalSandbox',
    'OptionError',
    'OutputFile',
    'Policy',
    'PolicyError',
    'PosixShellSandbox',
    'Process',
    'Processes',
    'Reply',
    'Sandbox',
    'SandboxClosed',
    'SandboxError',
    'SandboxPathNotFoundError',
    'SandboxTimeoutError',
    'SandboxUnavailable',
    'SessionClosed',
    'Sessions',
    'ShellKeywords',
    'ShellOptions',
    'ShellSession',
    'Spawn',
    'SshSandbox',
    'StreamChunk',
    'Tool',
    'UnknownCommandID',
    'Verdict',
    'WorkingDirectoryGone',
    'build_shell_env_prefix',
    'interruptible',
    'judge_call',
    'run_sync',
    'validate_env_keys',
]
