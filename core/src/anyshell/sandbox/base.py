"""What a sandbox is: the contract of every place where commands run, and the values that it speaks in.

A sandbox knows no policy, no tools and no framework. It has two faces:

- the one that users call: `execute`, `execute_code`, files (the spec of Strands' sandboxes, names and errors included);
- `processes()`, the one that sessions stand on: start a command, wait for it, read what it wrote, end it with all
  its children, also from another event loop, another thread, or after the call that started it has gone.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol

from anyshell.errors import SandboxError
from anyshell.keywords import Keywords
from anyshell.synchronous import Closing

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping

StreamType = Literal['stdout', 'stderr']
Shell = Literal['bash', 'sh']

STREAMS: tuple[StreamType, StreamType] = ('stdout', 'stderr')


class Flag(Protocol):
    """What `threading.Event` has and a running command looks at."""

    def is_set(self) -> bool:
        """Whether the command is to be ended."""
        ...


@dataclass
class StreamChunk:
    """A piece of output, in the order in which its stream wrote it.

    Attributes:
        data: Decoded text, never cut inside a character; undecodable bytes are U+FFFD.
        stream_type: The stream that wrote it.
    """

    data: str
    stream_type: StreamType = 'stdout'


@dataclass
class FileInfo:
    """An entry of a directory.

    Attributes:
        name: The entry's name, not its path.
        is_dir: Whether it is a directory; `None` when the sandbox can't tell.
        size: Bytes; `None` when the sandbox can't tell.
    """

    name: str
    is_dir: bool | None = None
    size: int | None = None


@dataclass
class OutputFile:
    """A file that executed code made, such as a plot.

    Attributes:
        name: The file's name.
        content: Its bytes.
        mime_type: Its media type.
    """

    name: str
    content: bytes
    mime_type: str = 'application/octet-stream'


@dataclass
class ExecutionResult:
    """How a command or a piece of code ended.

    Attributes:
        exit_code: 0-255; 128 + n when signal n ended it (POSIX 2.8.2), 127 when the program was not found.
        stdout: Standard output; its last 8 MiB when `truncated`.
        stderr: Standard error; its last 8 MiB when `truncated`.
        output_files: Files that the code made; shell sandboxes give none.
        truncated: Whether a stream was longer than what is kept here. The chunks were complete all the same.
    """

    exit_code: int
    stdout: str
    stderr: str
    output_files: list[OutputFile] = field(default_factory=list[OutputFile])
    truncated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Spawn:
    """What to start.

    Attributes:
        line: The command, exactly as given; it travels as one argument or over a descriptor, never glued to other text.
        shell: The shell that reads it.
        cwd: An absolute directory inside the sandbox.
        env: Exactly these variables; `None` for those that the sandbox has.
        preamble: Shell text of ours that runs before the line (see `cwd.recorder`).
        stdin: Whether standard input stays open for `Processes.send`; otherwise it is at EOF.
        keep: Whether the command may be detached after it was waited for.
    """

    line: str
    shell: Shell
    cwd: str
    env: Mapping[str, str] | None = None
    preamble: str = ''
    stdin: bool = False
    keep: bool = False


@dataclass(slots=True)
class Process:
    """A command that was started: plain data, usable from every loop and thread.

    Attributes:
        number: Its number within its owner; the mark that all its children carry is made from it.
        exit_code: `None` while it runs.
    """

    number: int
    exit_code: int | None = None


@dataclass(frozen=True, slots=True)
class Written:
    """The last bytes that a stream wrote.

    Attributes:
        tail: At most as many bytes as were asked for.
        total: How many bytes the stream has written in all.
    """

    tail: bytes = b''
    total: int = 0


class CommandLost(SandboxError):
    """Raised when the sandbox no longer knows a command, which has been ended."""


class Processes(ABC):
    """The commands of one owner (a session, or a sandbox used directly) inside one sandbox.

    No asyncio object outlives a call: every method may be called from another event loop or thread than the one
    before. What a command leaves running belongs to the owner and dies with `close`, and with the owning process
    however that one ends.
    """

    @abstractmethod
    async def shell(self) -> Shell:
        """The best shell there is: bash, else sh. Asked for once."""

    @abstractmethod
    async def environment(self) -> dict[str, str]:
        """The variables that a command sees when `Spawn.env` is `None`."""

    @abstractmethod
    async def resolve(self, path: str) -> str:
        """An absolute path inside the sandbox for `path`, which may be relative to the sandbox's own directory."""

    @abstractmethod
    async def is_directory(self, path: str) -> bool:
        """Whether `path`, absolute, names a directory that a command can start in."""

    @abstractmethod
    async def directory(self) -> str:
        """The owner's private directory inside the sandbox, made at the first call and removed by `close`."""

    @abstractmethod
    async def take_private(self, name: str, limit: int = 1 << 16) -> bytes:
        """Read at most the last `limit` bytes of a file in `directory()` and remove it; b'' when there is none.

        They are untrusted: the command could have put anything there.
        """

    async def full(self) -> bool:
        """Whether the disk of `directory()` has no room left; `False` where nobody can tell, as by default."""
        return False

    @abstractmethod
    async def spawn(self, spawn: Spawn) -> Process:
        """Start a command.

        Raises:
            WorkingDirectoryGone: If `spawn.cwd` is no directory; nothing has run.
            InvalidCommand: If the system refuses the command (too long, an impossible environment).
            SandboxError: If the sandbox can't start anything.
        """

    @abstractmethod
    async def wait(
        self,
        process: Process,
        *,
        timeout: float | None,
        on_bytes: Callable[[StreamType, bytes], Awaitable[None]] | None = None,
        cancelled: Flag | None = None,
    ) -> bool:
        """Wait until the command's own process has ended and what it wrote has been taken in.

        A child that still holds the output open is not waited for. Being cancelled does not end the command.

        Args:
            process: The command.
            timeout: Seconds; `None` waits without a limit.
            on_bytes: Gets every piece of output that this call takes in, in order, in the caller's own task.
            cancelled: When it is set, return `False` within 0.1 seconds.

        Returns:
            Whether the command has ended.
        """

    @abstractmethod
    async def detach(self, process: Process) -> None:
        """From now on collect the command's output although nobody waits for it (it becomes a job)."""

    @abstractmethod
    async def written(self, process: Process, stream: StreamType, limit: int) -> Written:
        """The last `limit` bytes of a stream, while the command runs and after it."""

    @abstractmethod
    async def read(
        self, process: Process, stream: StreamType, start: int, length: int
    ) -> tuple[int, bytes]:
        """Bytes `start` … `start + length` of a stream, counted from its beginning.

        Returns:
            The offset of the first byte returned (larger than `start` when the head of the log was dropped) and
            the bytes, fewer at the end of what is written.
        """

    @abstractmethod
    async def send(self, process: Process, data: bytes) -> None:
        """Write to the standard input of a command that was spawned with `stdin=True`."""

    async def listening(self) -> set[int]:
        """The TCP ports that somebody listens on inside the sandbox; asked of a Linux /proc by default."""
        process = await self.spawn(
            Spawn(line='cat /proc/net/tcp /proc/net/tcp6 2>/dev/null; :', shell='sh', cwd='/')  # noqa: S604 - ours
        )
        try:
            if not await self.wait(process, timeout=10):
                await self.terminate(process, grace=0)
            table = await self.written(process, 'stdout', 1 << 20)
        finally:
            await self.forget(process)
        return listening_ports(table.tail.decode('ascii', 'replace'))

    @abstractmethod
    async def terminate(self, process: Process, *, grace: float) -> None:
        """End the command with everything that it started: SIGTERM, after `grace` seconds SIGKILL, then reap.

        SIGTERM has been sent before this coroutine first suspends. Harmless when the command has ended.
        """

    @abstractmethod
    async def forget(self, process: Process) -> None:
        """Drop what is kept of an ended command. Children that it left behind live on until `close`."""

    @abstractmethod
    async def close(self, *, grace: float) -> None:
        """End everything that was ever started here and remove every file. Idempotent."""


def listening_ports(table: str) -> set[int]:
    """The TCP ports in state LISTEN in the text of `/proc/net/tcp` and `/proc/net/tcp6` (proc(5))."""
    ports: set[int] = set()
    for line in table.splitlines():
        fields = line.split()
        if len(fields) > 3 and fields[3] == '0A':
            ports.add(int(fields[1].rpartition(':')[2], 16))
    return ports


class Sandbox(Closing, Keywords, ABC):
    """A place where commands run.

    Use it as an async context manager or call `aclose`; both may happen twice. Methods that yield are the
    primitives: `execute` and `execute_code` consume them.
    """

    def __init__(self) -> None:
        """Take no arguments, so that a subclass may leave out `super().__init__()`."""

    async def aclose(self) -> None:
        """End what the sandbox still runs and release what it holds. Idempotent; by default there is nothing to do."""

    @abstractmethod
    def processes(self, *, max_log_bytes: int = 100_000_000) -> Processes:
        """A new owner of commands in this sandbox; whoever asked closes it.

        Args:
            max_log_bytes: The most that the log of one stream of one command may take on the sandbox's disk.
        """

    def known_shell(self) -> Shell | None:
        """The shell that commands will be read by, when that is known without asking the sandbox; else `None`."""
        return None

    @abstractmethod
    def execute_streaming(
        self,
        command: str,
        *,
        timeout: float | None = None,
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        **kwargs: Any,
    ) -> AsyncGenerator[StreamChunk | ExecutionResult, None]:
        """Run a shell command and yield its output as it comes, then one `ExecutionResult`.

        Closing the generator early, or cancelling the task, ends the command and its children first.

        Args:
            command: The command for the sandbox's POSIX shell.
            timeout: The limit for the whole call in seconds; `None` for no limit.
            cwd: The directory to start in; `None` for the sandbox's own. If it is missing, the command does not run.
            env: Variables to add for this command.
            **kwargs: Accepted for forward compatibility, as the spec has it.

        Yields:
            `StreamChunk`s of both streams, each stream in its own order, then one `ExecutionResult`.

        Raises:
            SandboxTimeoutError: If the limit has passed; it carries the partial output.
            ValueError: If a name in `env` is not a POSIX variable name, or a value holds a NUL.
        """

    @abstractmethod
    def execute_code_streaming(
        self,
        code: str,
        language: str,
        *,
        timeout: float | None = None,
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        **kwargs: Any,
    ) -> AsyncGenerator[StreamChunk | ExecutionResult, None]:
        """Run source code by an interpreter of the sandbox and yield its output as it comes.

        Args:
            code: The source.
            language: The interpreter's program name, such as `python3`.
            timeout: The limit for the whole call in seconds; `None` for no limit.
            cwd: The directory to start in; `None` for the sandbox's own.
            env: Variables to add.
            **kwargs: Accepted for forward compatibility, as the spec has it.

        Yields:
            As `execute_streaming`; an interpreter that is not there ends with exit code 127.

        Raises:
            ValueError: If `language` is no plain program name.
            SandboxTimeoutError: If the limit has passed; it carries the partial output.
        """

    @abstractmethod
    async def read_file(self, path: str, **kwargs: Any) -> bytes:
        """Read a whole file.

        Raises:
            FileNotFoundError: If there is no such file or it can't be read.
        """

    @abstractmethod
    async def write_file(self, path: str, content: bytes, **kwargs: Any) -> None:
        """Write a whole file, with the directories above it.

        Raises:
            OSError: If it can't be written.
        """

    @abstractmethod
    async def remove_file(self, path: str, **kwargs: Any) -> None:
        """Remove a file.

        Raises:
            FileNotFoundError: If there is no such file.
        """

    @abstractmethod
    async def list_files(self, path: str, **kwargs: Any) -> list[FileInfo]:
        """List a directory: hidden entries too, `.` and `..` not.

        Raises:
            SandboxPathNotFoundError: If the path does not exist or is no directory.
            OSError: If it can't be listed.
        """

    async def execute(
        self,
        command: str,
        *,
        timeout: float | None = None,
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        **kwargs: Any,
    ) -> ExecutionResult:
        """Run a shell command and return its result; arguments and errors as `execute_streaming`.

        Raises:
            RuntimeError: If `execute_streaming` yields no result.
        """
        stream = self.execute_streaming(command, timeout=timeout, cwd=cwd, env=env, **kwargs)
        return await _result(stream, 'execute_streaming')

    async def execute_code(
        self,
        code: str,
        language: str,
        *,
        timeout: float | None = None,
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        **kwargs: Any,
    ) -> ExecutionResult:
        """Run source code and return its result; arguments and errors as `execute_code_streaming`.

        Raises:
            RuntimeError: If `execute_code_streaming` yields no result.
        """
        stream = self.execute_code_streaming(
            code, language, timeout=timeout, cwd=cwd, env=env, **kwargs
        )
        return await _result(stream, 'execute_code_streaming')

    async def read_text(self, path: str, encoding: str = 'utf-8', **kwargs: Any) -> str:
        """`read_file`, decoded strictly."""
        return (await self.read_file(path, **kwargs)).decode(encoding)

    async def write_text(
        self, path: str, content: str, encoding: str = 'utf-8', **kwargs: Any
    ) -> None:
        """`write_file` of encoded text."""
        await self.write_file(path, content.encode(encoding), **kwargs)


async def _result(
    stream: AsyncGenerator[StreamChunk | ExecutionResult, None], name: str
) -> ExecutionResult:
    try:
        async for chunk in stream:
            if isinstance(chunk, ExecutionResult):
                return chunk
    finally:
        await stream.aclose()
    msg = f'{name}() did not yield an ExecutionResult'
    raise RuntimeError(msg)
