"""Our sandboxes as the workspace of a run, for the tools of others; and the other way round, a workspace as sandbox."""

from __future__ import annotations

import posixpath
import shlex
from collections.abc import AsyncGenerator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from pydantic_ai import RunContext
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.tools import AgentDepsT
from pydantic_ai.workspaces import (
    CommandResult,
    Workspace,
    WorkspaceBackend,
    WorkspaceCommand,
    WorkspaceOutputLimitError,
    WorkspaceRef,
    WorkspaceTimeoutError,
    WorkspaceUnavailableError,
)
from pydantic_ai.workspaces.protocol import validate_timeout

from anyshell import (
    ExecutionResult,
    PosixShellSandbox,
    Sandbox,
    SandboxError,
    SandboxTimeoutError,
    SandboxUnavailable,
    SessionClosed,
    StreamChunk,
    WorkingDirectoryGone,
    validate_env_keys,
)

PROVIDER = 'anyshell'


class SandboxWorkspace:
    """A workspace backend over a sandbox; files are reached through its shell.

    Args:
        sandbox: Where commands run; it stays yours to close, and outlives every run.
        name: What the reference in a run's history names; a later run with the same name continues there.
    """

    def __init__(self, sandbox: Sandbox, *, name: str | None = None) -> None:
        self._sandbox = sandbox
        self._ref = None if name is None else WorkspaceRef(provider=PROVIDER, id=name)
        self._directory = ''

    @property
    def ref(self) -> WorkspaceRef | None:
        return self._ref

    async def working_dir(self) -> str:
        if not self._directory:
            found = await self._execute('pwd -P', None, None)
            self._directory = posixpath.normpath(found.stdout.removesuffix('\n'))
        return self._directory

    async def run(
        self,
        command: WorkspaceCommand,
        *,
        shell: bool = False,
        env: Mapping[str, str] | None = None,
        timeout: float | None = None,
    ) -> CommandResult:
        if isinstance(command, str) is not shell:
            raise TypeError('a command is a str with shell=True, or a sequence of words without')
        validate_timeout(timeout)
        if not isinstance(command, str):
            command = f'exec {shlex.join(command)}'
        return await self._execute(command, env, timeout)

    async def _execute(
        self, command: str, env: Mapping[str, str] | None, timeout: float | None
    ) -> CommandResult:
        if self._ref is None:
            self._ref = WorkspaceRef(provider=PROVIDER, id=uuid4().hex)
        try:
            result = await self._sandbox.execute(command, timeout=timeout, env=dict(env or {}))
            # Only a second look tells a command that was killed from one whose place is gone.
            await self._sandbox.execute(':')
        except SandboxTimeoutError as error:
            raise WorkspaceTimeoutError(
                str(error), stdout=error.stdout, stderr=error.stderr
            ) from error
        except (SandboxError, SessionClosed, WorkingDirectoryGone) as error:
            raise WorkspaceUnavailableError(str(error)) from error
        if result.truncated:
            longest = max(len(result.stdout), len(result.stderr))
            raise WorkspaceOutputLimitError(
                f'the command wrote more than is kept ({longest} characters)',
                limit=longest,
                stdout=result.stdout,
                stderr=result.stderr,
            )
        return CommandResult(exit_code=result.exit_code, stdout=result.stdout, stderr=result.stderr)


@dataclass
class SandboxEnvironment(AbstractCapability[AgentDepsT]):
    """Makes a sandbox the workspace of an agent's runs: `capabilities=[SandboxEnvironment(sandbox), …]`.

    Attributes:
        sandbox: Where the run's tools work; it stays yours to close.
        name: See `SandboxWorkspace`; give one to continue in the same sandbox from another process.
    """

    sandbox: Sandbox
    name: str = field(default_factory=lambda: uuid4().hex)

    @classmethod
    def get_serialization_name(cls) -> None:
        return None  # a sandbox is no plain data

    def get_workspace(
        self,
        ctx: RunContext[AgentDepsT],  # noqa: ARG002  (the base class's signature)
        *,
        ref: WorkspaceRef | None,
    ) -> WorkspaceBackend | None:
        backend = SandboxWorkspace(self.sandbox, name=self.name)
        return backend if ref is None or ref == backend.ref else None


WORKSPACE: ContextVar[Workspace] = ContextVar('anyshell_workspace')
"""The workspace of the run that a call is part of."""


class WorkspaceSandbox(PosixShellSandbox):
    """The workspace of the current run, whatever provides it, as the sandbox of `Shell(workspace=True)`.

    A workspace gives a command's output when it has ended, so nothing is shown while it runs.
    """

    async def execute_streaming(
        self,
        command: str,
        *,
        timeout: float | None = None,
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        **_: Any,
    ) -> AsyncGenerator[StreamChunk | ExecutionResult, None]:
        validate_env_keys(env or {})
        if cwd is not None:
            command = f'cd -- {shlex.quote(cwd)} || exit\n{command}'
        try:
            run = WORKSPACE.get().run
            result = await run(command, shell=True, env=env, timeout=timeout)  # noqa: S604  (what a shell is for)
        except WorkspaceTimeoutError as error:
            raise SandboxTimeoutError(timeout, error.stdout, error.stderr) from error
        except WorkspaceUnavailableError as error:
            raise SandboxUnavailable(str(error)) from error
        if result.stdout:
            yield StreamChunk(result.stdout, 'stdout')
        if result.stderr:
            yield StreamChunk(result.stderr, 'stderr')
        yield ExecutionResult(result.exit_code, result.stdout, result.stderr)
