"""One command as a stream of chunks, over any engine that reads commands in the caller's loop."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Protocol, TypeVar

from anyshell.errors import SandboxTimeoutError
from anyshell.sandbox.base import ExecutionResult, Process, Spawn, StreamChunk
from anyshell.sandbox.capture import Decoder, Tail
from anyshell.sandbox.process import STREAMS

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping

    from anyshell.sandbox.base import StreamType

P = TypeVar('P', bound=Process)


class Engine(Protocol[P]):
    """What `stream_command` needs of an engine; see `Processes` for the methods that it has there too."""

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
    cwd: str,
    env: Mapping[str, str] | None,
    limit: int,
) -> AsyncGenerator[StreamChunk | ExecutionResult, None]:
    """Run a command for `Sandbox.execute_streaming`.

    Args:
        engine: Where it runs.
        command: The command, for sh.
        timeout: Seconds for the whole call; `None` for no limit.
        cwd: An absolute directory.
        env: Exactly the variables that it sees; `None` for the sandbox's.
        limit: The most bytes of each stream that the result holds.
    """
    deadline = None if timeout is None else time.monotonic() + timeout
    process = await engine.spawn(Spawn(line=command, shell='sh', cwd=cwd, env=env))  # noqa: S604 - what this is for
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
