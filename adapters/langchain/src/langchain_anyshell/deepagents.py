"""A sandbox of anyshell as the backend of deepagents: `create_deep_agent(backend=SandboxBackend(DockerSandbox(...)))`.

Needs `deepagents`.
"""

from __future__ import annotations

import uuid
from collections import deque
from contextlib import aclosing
from typing import TYPE_CHECKING

from deepagents.backends.protocol import (
    FILE_NOT_FOUND,
    INVALID_PATH,
    IS_DIRECTORY,
    PERMISSION_DENIED,
    ExecuteResponse,
    FileDownloadResponse,
    FileOperationError,
    FileUploadResponse,
)
from deepagents.backends.sandbox import BaseSandbox

from anyshell import Sandbox, SandboxError, SandboxTimeoutError, StreamChunk, run_sync

if TYPE_CHECKING:
    from collections.abc import Sequence

MOST = 8 << 20
"""Characters of one command's output that are kept: its end."""


class SandboxBackend(BaseSandbox):
    """Lets a deep agent run commands and use files in a sandbox of anyshell.

        create_deep_agent(model, backend=SandboxBackend(LocalSandbox(cwd='./workspace')))

    No policy judges what goes through here, since deepagents' file tools send scripts of their own (for `python3`, which the
    sandbox must have); put `langchain_anyshell.guard.ShellPolicy(policy, tools=['execute'])` over the model's commands.
    Cancelling a run ends its command.

    Args:
        sandbox: Where everything happens; it stays the caller's to close.
        default_timeout: Seconds for a command when the model names no limit.
    """

    def __init__(self, sandbox: Sandbox, *, default_timeout: float = 120.0) -> None:
        self.sandbox = sandbox
        self.default_timeout = default_timeout
        self._id = f'anyshell-{uuid.uuid4().hex[:12]}'

    @property
    def id(self) -> str:
        return self._id

    def execute(self, command: str, *, timeout: int | None = None) -> ExecuteResponse:
        return run_sync(self.aexecute(command, timeout=timeout))

    async def aexecute(self, command: str, *, timeout: int | None = None) -> ExecuteResponse:
        seconds = float(timeout or self.default_timeout)
        written = _Tail()
        chunks = self.sandbox.execute_streaming(command, timeout=seconds)
        # An exception would end the agent's run, so what goes wrong is an answer.
        try:
            async with aclosing(chunks):
                async for chunk in chunks:
                    if not isinstance(chunk, StreamChunk):
                        return ExecuteResponse(written.text(), chunk.exit_code, written.cut)
                    written.add(chunk.data)
        except SandboxTimeoutError:
            text = f'{written.text()}\n[Command timed out after {seconds}s]'.lstrip('\n')
            return ExecuteResponse(text, 124, written.cut)
        except (SandboxError, ValueError) as error:
            return ExecuteResponse(f'[Error: {error}]', 1)
        raise AssertionError  # the result is the last chunk

    def upload_files(self, files: list[tuple[str, bytes]]) -> list[FileUploadResponse]:
        return run_sync(self.aupload_files(files))

    async def aupload_files(self, files: Sequence[tuple[str, bytes]]) -> list[FileUploadResponse]:
        answers: list[FileUploadResponse] = []
        for path, content in files:
            error = None if path.startswith('/') else INVALID_PATH
            if error is None:
                try:
                    await self.sandbox.write_file(path, content)
                except OSError as failed:
                    error = _error(failed)
            answers.append(FileUploadResponse(path, error))
        return answers

    def download_files(self, paths: list[str]) -> list[FileDownloadResponse]:
        return run_sync(self.adownload_files(paths))

    async def adownload_files(self, paths: Sequence[str]) -> list[FileDownloadResponse]:
        answers: list[FileDownloadResponse] = []
        for path in paths:
            content, error = None, None if path.startswith('/') else INVALID_PATH
            if error is None:
                try:
                    content = await self.sandbox.read_file(path)
                except OSError as failed:
                    error = _error(failed)
            answers.append(FileDownloadResponse(path, content, error))
        return answers


class _Tail:
    """The end of what both streams wrote, in the order in which it came."""

    def __init__(self) -> None:
        self._pieces: deque[str] = deque()
        self._length = 0
        self.cut = False

    def add(self, text: str) -> None:
        self._pieces.append(text)
        self._length += len(text)
        while self._length - len(self._pieces[0]) >= MOST:
            self._length -= len(self._pieces.popleft())
            self.cut = True

    def text(self) -> str:
        return ''.join(self._pieces)


def _error(failed: OSError) -> FileOperationError:
    match failed:
        case IsADirectoryError():
            return IS_DIRECTORY
        case PermissionError():
            return PERMISSION_DENIED
        case NotADirectoryError():
            return INVALID_PATH
        case _:
            return FILE_NOT_FOUND
