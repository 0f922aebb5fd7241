"""Which session belongs to which run, and when it ends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pydantic_ai import RunContext

from anyshell import ShellSession


class Runs:
    """The sessions of a capability: one for each run, made at its first call.

    A run that ends with questions to a person has not ended: its session waits for the next run of the conversation.

    Args:
        make: Makes a session.
    """

    def __init__(self, make: Callable[[], ShellSession]) -> None:
        self._make = make
        self._live: dict[str, ShellSession] = {}
        self._paused: dict[str, ShellSession] = {}
        self._asked: set[str] = set()

    def session(self, ctx: RunContext[Any]) -> ShellSession:
        """The session of a run. Two runs of one conversation at the same time have one each."""
        run = ctx.run_id or ''
        if run not in self._live:
            waiting = self._paused.pop(ctx.conversation_id or run, None)
            self._live[run] = waiting or self._make()
        return self._live[run]

    def asked(self, ctx: RunContext[Any]) -> None:
        """A call of this step has to be approved: when the run ends with this step, it ends with a question."""
        self._asked.add(ctx.run_id or '')

    def went_on(self, ctx: RunContext[Any]) -> None:
        """The run begins another step, so its questions were answered within the run."""
        self._asked.discard(ctx.run_id or '')

    async def end(self, run: str, conversation: str, *, paused: bool | None = None) -> None:
        """End the session of a run, or let it wait.

        Args:
            run: The run's ID.
            conversation: The ID of its conversation.
            paused: Whether its output is questions; `None` when only `asked` and `went_on` can tell.
        """
        asked = run in self._asked
        self._asked.discard(run)
        session = self._live.pop(run, None)
        if session is None:
            return
        if asked if paused is None else paused:
            # Of two runs that ask in one conversation, the later one is what a person goes on with.
            session, self._paused[conversation] = self._paused.get(conversation), session
        if session is not None:
            await session.aclose()

    async def aclose(self) -> None:
        """End all sessions, those that wait too. Idempotent."""
        for sessions in (self._live, self._paused):
            while sessions:
                await sessions.popitem()[1].aclose()
