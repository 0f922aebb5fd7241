"""One command as a stream of chunks, over any engine that reads commands in the caller's loop."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Protocol, TypeVar

from anyshell.errors import SandboxError, SandboxTimeoutError
from anyshell.sandbox.base import STREAMS, ExecutionResult, Process, Spawn, StreamChunk
from anyshell.sandbox.capture import Decoder, Tail
from anyshell.sandbox.posix import validate_env_keys

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping

    from anyshell.sandbox.base import StreamType

P = TypeVar('P', bound=Process)


class Engine(Protocol[P]):
    """What `stream_command` needs of an engine; see `Processes` for the methods that it has there too."""

    async def resolve(self, path: str) -> str:
        """An absolute path for one that is seen from the sandbox's own directory."""
        ...

    async def environment(self) -> dict[str, str]:
        """The variables that a command sees by default."""
        ...

    async def spawn(self, spawn: Spawn) -> P:
        """Start a command."""
        ...

    def stream(
        self, process: P, *, deadline: float | None
    ) -> AsyncGenerator[tuple[StreamType, bytes]]:
        """Yield output until the command has ended or `deadline`, a `time.monotonic()`, has passed."""
        ...

    async def terminate(self, process: Process, *, grace: float) -> None:
        """End the command with everything that it started."""
        ...

    async def forget(self, process: Process) -> None:
        """Drop what is kept of the command."""
        ...


async def stream_command(
    engine: Engine[P],
    command: str,
    *,
    timeout: float | None,
    cwd: str | None,
    env: Mapping[str, str] | None,
    limit: int,
) -> AsyncGenerator[StreamChunk | ExecutionResult, None]:
    """Run a command for `Sandbox.execute_streaming`.

    Args:
        engine: Where it runs.
        command: The command, for sh.
        timeout: Seconds for the whole call; `None` for no limit.
        cwd: The directory to start in, seen from the sandbox's own; `None` for that.
        env: Variables to add.
        limit: The most bytes of each stream that the result holds.

    Raises:
        SandboxTimeoutError: If the limit has passed; it carries the partial output.
        ValueError: If a name in `env` is not a POSIX variable name.
    """
    validate_env_keys(env or {})
    deadline = None if timeout is None else time.monotonic() + timeout
    try:
        async with asyncio.timeout(timeout):
            spawn = Spawn(  # noqa: S604 - what this is for
                line=command,
                shell='sh',
                cwd=await engine.resolve(cwd or '.'),
                env={**await engine.environment(), **env} if env else None,
            )
            process = await engine.spawn(spawn)
    except TimeoutError as error:
        if isinstance(error, SandboxError):
            raise
        raise SandboxTimeoutError(timeout) from error
    decoder, tails = Decoder(), {stream: Tail(limit) for stream in STREAMS}
    ended = False
    output = engine.stream(process, deadline=deadline)
    try:
        async for stream, data in output:
            tails[stream].add(data)
            if text := decoder.decode(stream, data):
                yield StreamChunk(text, stream)
        ended = process.exit_code is not None
    finally:
        await output.aclose()
        # Also when the consumer closes the generator or is cancelled: nobody would wait for the command.
        if not ended:
            await engine.terminate(process, grace=0.5)
        await engine.forget(process)
    for stream in STREAMS:
        if text := decoder.decode(stream, b'', final=True):
            yield StreamChunk(text, stream)
    stdout, stderr = tails['stdout'], tails['stderr']
    if not ended:
        raise SandboxTimeoutError(timeout, stdout.text(), stderr.text())
    assert process.exit_code is not None  # noqa: S101 - `ended` says so
    yield ExecutionResult(
        process.exit_code, stdout.text(), stderr.text(), truncated=stdout.cut or stderr.cut
    )
