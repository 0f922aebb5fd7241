"""A sandbox for tests: a directory of its own that is gone afterwards, and answers that you choose."""

from __future__ import annotations

import shlex
import shutil
import tempfile
from dataclasses import replace
from typing import TYPE_CHECKING

from anyshell.sandbox.local import LocalSandbox
from anyshell.sandbox.pipes import LocalProcess
from anyshell.sandbox.process import LocalProcesses

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from anyshell.sandbox.base import ExecutionResult, Spawn


class FakeSandbox(LocalSandbox):
    """Runs what has no answer of yours in an empty temporary directory of this machine, without any isolation.

    Args:
        answer: Called with each command; gives its result, or `None` for a command that shall run.
        env: Exactly the variables that commands see; `None` for those of this process.

    Attributes:
        commands: Every command that was asked for, in order.
    """

    def __init__(
        self,
        answer: Callable[[str], ExecutionResult | None] | None = None,
        *,
        env: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(cwd=tempfile.mkdtemp(prefix='anyshell-fake-'), env=env)
        self.commands: list[str] = []
        self._answer = answer

    def processes(self, *, max_log_bytes: int = 100_000_000) -> LocalProcesses:
        return _Answered(self, max_log_bytes=max_log_bytes)

    def answer(self, command: str) -> ExecutionResult | None:
        """Note a command, and look up its answer."""
        self.commands.append(command)
        return None if self._answer is None else self._answer(command)

    async def aclose(self) -> None:
        """End what still runs and remove the directory. Idempotent."""
        await super().aclose()
        shutil.rmtree(self.cwd, ignore_errors=True)


class _Answered(LocalProcesses):
    def __init__(self, sandbox: FakeSandbox, *, max_log_bytes: int) -> None:
        super().__init__(cwd=sandbox.cwd, env=sandbox.env, max_log_bytes=max_log_bytes)
        self._sandbox = sandbox

    async def spawn(self, spawn: Spawn) -> LocalProcess:
        answer = self._sandbox.answer(spawn.line)
        if answer is not None:
            # A real process that says what was chosen: waiting, reading and stopping are the real ones.
            line = (
                f'printf %s {shlex.quote(answer.stdout)}; printf %s {shlex.quote(answer.stderr)} >&2; '
                f'exit {answer.exit_code}'
            )
            spawn = replace(spawn, line=line)
        return await super().spawn(spawn)
