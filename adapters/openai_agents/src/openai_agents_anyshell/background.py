"""Commands of a `SandboxAgent` that go on after the call that started them, under the numbers that the SDK gives."""

from __future__ import annotations

from dataclasses import dataclass

from agents.sandbox.errors import PtySessionNotFoundError
from agents.sandbox.session.pty_types import (
    PtyExecUpdate,
    allocate_pty_process_id,
    truncate_text_by_tokens,
)

from anyshell import Process, Processes, Sandbox, Spawn

YIELD_SECONDS = 10.0
"""How long a call waits for the end of a command when it does not say."""

MOST = 1 << 20
"""Bytes of output that one look at a command gives; of more, the last ones."""

INTERRUPT = '\x03'
"""What a terminal makes SIGINT of (Ctrl+C). There is no terminal here: the command is ended."""


@dataclass(slots=True)
class _Command:
    process: Process
    stdin: bool
    seen: int = 0


class BackgroundCommands:
    """The commands of one session that have not been seen to end.

    Args:
        sandbox: Where they run.
    """

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self._processes: Processes | None = None
        self._commands: dict[int, _Command] = {}

    async def start(self, line: str, *, cwd: str, variables: dict[str, str], stdin: bool) -> int:
        """Start a command, and return its number.

        Args:
            line: What `sh` is to run.
            cwd: The directory that it starts in.
            variables: What it sees beside the sandbox's own variables.
            stdin: Whether its standard input stays open for `send`; otherwise it is at its end.
        """
        if self._processes is None:
            self._processes = self._sandbox.processes()
        env = await self._processes.environment() | variables
        # As on a terminal, both streams are one.
        spawn = Spawn(line=f'{line} 2>&1', shell='sh', cwd=cwd, env=env, stdin=stdin)  # noqa: S604  (what it is for)
        number = allocate_pty_process_id(set(self._commands))
        self._commands[number] = _Command(await self._processes.spawn(spawn), stdin)
        return number

    async def send(self, number: int, text: str) -> None:
        """Write to the standard input of a command, or end it when the text holds a Ctrl+C.

        Raises:
            PtySessionNotFoundError: If no command has that number.
            RuntimeError: If its standard input was not left open, in the words that the SDK explains to the model.
        """
        processes, command = self._get(number)
        if not text:
            return
        if not command.stdin:
            raise RuntimeError('stdin is not available for this process')
        if INTERRUPT in text:
            await processes.terminate(command.process, grace=0.5)
        else:
            await processes.send(command.process, text.encode())

    async def look(self, number: int, seconds: float | None, tokens: int | None) -> PtyExecUpdate:
        """Wait for the end of a command, and give what it has written since the last look.

        Args:
            number: The command's; it is forgotten when it has ended.
            seconds: How long to wait; `None` for `YIELD_SECONDS`.
            tokens: The most tokens of output; `None` for no bound but `MOST`.
        """
        processes, command = self._get(number)
        ended = await processes.wait(
            command.process, timeout=YIELD_SECONDS if seconds is None else seconds
        )
        if not ended:
            await processes.detach(command.process)
        written = await processes.written(command.process, 'stdout', MOST)
        output = written.tail[max(0, len(written.tail) - (written.total - command.seen)) :]
        command.seen = written.total
        if ended and self._commands.pop(number, None) is not None:
            await processes.forget(command.process)
        text, count = truncate_text_by_tokens(output.decode(errors='replace'), tokens)
        return PtyExecUpdate(
            None if ended else number, text.encode(), command.process.exit_code, count
        )

    def _get(self, number: int) -> tuple[Processes, _Command]:
        command = self._commands.get(number)
        if command is None or self._processes is None:
            raise PtySessionNotFoundError(session_id=number)
        return self._processes, command

    async def close(self) -> None:
        """End all of them. Others may be started later."""
        self._commands.clear()
        processes, self._processes = self._processes, None
        if processes is not None:
            await processes.close(grace=0.5)
