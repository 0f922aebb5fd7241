"""A sandbox of anyshell as Strands' own environment: `Agent(sandbox=StrandsSandbox(DockerSandbox(...)))`."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing, contextmanager
from typing import TYPE_CHECKING, Any

from strands import PosixShellSandbox, SandboxPathNotFoundError, SandboxTimeoutError
from strands.sandbox.types import ExecutionResult, FileInfo, OutputFile, StreamChunk

import anyshell

if TYPE_CHECKING:
    from collections.abc import Generator


class StrandsSandbox(PosixShellSandbox):
    """Lets Strands' tools, such as the vended `shell` and `file_editor`, work in a sandbox of anyshell.

        agent = Agent(sandbox=StrandsSandbox(LocalSandbox(cwd='./workspace')), tools=[shell, file_editor])

    No policy judges what goes through here, and a tool like the file editor sends scripts of its own; put `ShellPolicy`
    over the tools. What Strands adds to its sandboxes comes by inheritance, as a script for `execute`.

    Args:
        sandbox: Where everything happens; it stays the caller's to close.
    """

    def __init__(self, sandbox: anyshell.Sandbox) -> None:
        super().__init__()
        self.sandbox = sandbox

    async def execute_streaming(
        self,
        command: str,
        *,
        timeout: float | None = None,
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        **kwargs: Any,
    ) -> AsyncGenerator[StreamChunk | ExecutionResult, None]:
        chunks = self.sandbox.execute_streaming(
            command, timeout=timeout, cwd=cwd, env=env, **kwargs
        )
        async with aclosing(_theirs(chunks)) as theirs:
            async for chunk in theirs:
                yield chunk

    async def execute_code_streaming(
        self,
        code: str,
        language: str,
        *,
        timeout: float | None = None,
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        **kwargs: Any,
    ) -> AsyncGenerator[StreamChunk | ExecutionResult, None]:
        chunks = self.sandbox.execute_code_streaming(
            code, language, timeout=timeout, cwd=cwd, env=env, **kwargs
        )
        async with aclosing(_theirs(chunks)) as theirs:
            async for chunk in theirs:
                yield chunk

    async def read_file(self, path: str, **kwargs: Any) -> bytes:
        return await self.sandbox.read_file(path, **kwargs)

    async def write_file(self, path: str, content: bytes, **kwargs: Any) -> None:
        await self.sandbox.write_file(path, content, **kwargs)

    async def remove_file(self, path: str, **kwargs: Any) -> None:
        await self.sandbox.remove_file(path, **kwargs)

    async def list_files(self, path: str, **kwargs: Any) -> list[FileInfo]:
        with _errors():
            found = await self.sandbox.list_files(path, **kwargs)
        return [FileInfo(entry.name, entry.is_dir, entry.size) for entry in found]


async def _theirs(
    chunks: AsyncGenerator[anyshell.StreamChunk | anyshell.ExecutionResult, None],
) -> AsyncGenerator[StreamChunk | ExecutionResult, None]:
    # Strands looks for instances of its own classes.
    with _errors():
        async with aclosing(chunks):
            async for chunk in chunks:
                if isinstance(chunk, anyshell.StreamChunk):
                    yield StreamChunk(chunk.data, chunk.stream_type)
                else:
                    files = [
                        OutputFile(file.name, file.content, file.mime_type)
                        for file in chunk.output_files
                    ]
                    yield ExecutionResult(chunk.exit_code, chunk.stdout, chunk.stderr, files)


@contextmanager
def _errors() -> Generator[None]:
    try:
        yield
    except anyshell.SandboxTimeoutError as error:
        passed = SandboxTimeoutError(error.seconds)
        # Strands has a place for the partial output since 1.55; before, its own tools did not ask for it.
        passed.stdout, passed.stderr = error.stdout, error.stderr
        raise passed from error
    except anyshell.SandboxPathNotFoundError as error:
        raise SandboxPathNotFoundError(error.path) from error
