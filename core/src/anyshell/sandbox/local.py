"""The machine itself. It isolates nothing: a command can do all that its user can."""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING, Any

from anyshell.errors import SandboxTimeoutError, SandboxUnavailable, SessionClosed
from anyshell.sandbox.base import ExecutionResult, Spawn, StreamChunk
from anyshell.sandbox.capture import Decoder, Tail
from anyshell.sandbox.posix import PosixShellSandbox, validate_env_keys
from anyshell.sandbox.process import STREAMS, LocalProcesses, local_shell

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping
    from pathlib import Path

    from anyshell.sandbox.base import Shell


class LocalSandbox(PosixShellSandbox):
    """Commands and files of this machine, as this process' user, without any isolation.

    Args:
        cwd: The directory that commands start in and relative paths start from; relative to this process' own at
            construction.
        env: Exactly the variables that commands see; `None` for those of this process at the time of the command.

    Raises:
        SandboxUnavailable: On Windows, which has no POSIX processes.
    """

    def __init__(self, *, cwd: str | Path = '.', env: Mapping[str, str] | None = None) -> None:
        super().__init__()
        if sys.platform == 'win32':
            msg = 'LocalSandbox needs a POSIX system; on Windows run the agent in WSL, or use DockerSandbox or SshSandbox'
            raise SandboxUnavailable(msg)
        self.cwd = os.path.abspath(cwd)
        self.env = None if env is None else dict(env)
        self.max_result_bytes = 8 << 20
        self._own: LocalProcesses | None = None
        self._closed = False

    def processes(self, *, max_log_bytes: int = 100_000_000) -> LocalProcesses:
        return LocalProcesses(cwd=self.cwd, env=self.env, max_log_bytes=max_log_bytes)

    def known_shell(self) -> Shell:
        return local_shell()

    async def execute_streaming(
        self,
        command: str,
        *,
        timeout: float | None = None,
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        **kwargs: Any,  # noqa: ARG002 - the spec's
    ) -> AsyncGenerator[StreamChunk | ExecutionResult, None]:
        deadline = None if timeout is None else time.monotonic() + timeout
        own = self._processes()
        validate_env_keys(env or {})
        variables = {**await own.environment(), **env} if env else None
        spawn = Spawn(  # noqa: S604 - a command line is what this method takes
            line=command, shell='sh', cwd=await own.resolve(cwd or '.'), env=variables
        )
        process = await own.spawn(spawn)
        decoder, tails = Decoder(), {stream: Tail(self.max_result_bytes) for stream in STREAMS}
        ended = False
        try:
            async for stream, data in own.stream(process, deadline=deadline):
                tails[stream].add(data)
                if text := decoder.decode(stream, data):
                    yield StreamChunk(text, stream)
            ended = process.exit_code is not None
        finally:
            # Also when the consumer closes the generator or is cancelled: nobody would wait for the command.
            if not ended:
                await own.terminate(process, grace=0.5)
            await own.forget(process)
        for stream in STREAMS:
            if text := decoder.decode(stream, b'', final=True):
                yield StreamChunk(text, stream)
        stdout, stderr = tails['stdout'], tails['stderr']
        if not ended:
            raise SandboxTimeoutError(timeout, stdout.text(), stderr.text())
        assert process.exit_code is not None  # noqa: S101 - `ended` says so
        yield ExecutionResult(process.exit_code, stdout.text(), stderr.text(), truncated=stdout.cut or stderr.cut)

    def _processes(self) -> LocalProcesses:
        if self._closed:
            msg = 'this sandbox is closed; make a new one to run commands'
            raise SessionClosed(msg)
        if self._own is None:
            self._own = self.processes()
        return self._own

    async def aclose(self) -> None:
        """End what `execute_streaming` left running. Sessions over this sandbox close themselves. Idempotent."""
        self._closed = True
        if self._own is not None:
            await self._own.close(grace=2.0)
