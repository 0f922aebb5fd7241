"""The sessions of an adapter: one for each run, or the one that the user handed in for all of them."""

from __future__ import annotations

import threading
from collections.abc import Hashable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from anyshell.errors import OptionError
from anyshell.keywords import refuse_unknown
from anyshell.options import ShellKeywords, ShellOptions, option_names
from anyshell.policy import Decision, Verdict
from anyshell.session import ShellSession, judge

if TYPE_CHECKING:
    from anyshell.policy import Policy
    from anyshell.sandbox import Sandbox


class Sessions:
    """Gives each run its session. What was opened here is ended with its run; a session that was handed in is not.

    A run that pauses for a person has not ended: its session waits for the run that goes on with its thread.

    A copy has the same settings and no runs; the session, the sandbox and the policy that were handed in are the same.

    Args:
        settings: The settings of new sessions.
        session: One session for all runs; it takes no settings beside it.
        sandbox: Where the commands of new sessions run; it stays the caller's to close.
        policy: Judges commands instead of the policy that the settings describe.

    Attributes:
        own: The session for calls outside of any run; all others have the same tools.

    Raises:
        OptionError: If a setting has a value that is not allowed.
        TypeError: If there is no such setting; the text names the nearest one.
    """

    def __init__(
        self,
        settings: ShellKeywords,
        *,
        session: ShellSession | None = None,
        sandbox: Sandbox | None = None,
        policy: Policy | None = None,
    ) -> None:
        self._lock = threading.Lock()
        self._running: dict[Hashable, tuple[ShellSession, str | None]] = {}
        self._paused: dict[str, ShellSession] = {}
        self._retired: list[ShellSession] = []
        self._take(settings, session, sandbox, policy)

    def _take(
        self,
        settings: ShellKeywords,
        session: ShellSession | None,
        sandbox: Sandbox | None,
        policy: Policy | None,
    ) -> None:
        beside: dict[str, object] = {'sandbox': sandbox, 'policy': policy}
        refuse_unknown(settings, (*option_names(), 'session', *beside), {})
        given = [*settings, *(name for name, value in beside.items() if value is not None)]
        if session is not None and given:
            allowed = f'given without {" and ".join(given)}, since it has settings of its own'
            raise OptionError('session', session, allowed)
        if session is not None and not isinstance(session, ShellSession):  # pyright: ignore[reportUnnecessaryIsInstance]  # what a checker has not seen
            raise OptionError('session', session, 'None or a ShellSession that is open')
        options = ShellOptions(**settings)
        own = ShellSession(options, sandbox=sandbox, policy=policy) if session is None else session
        self._given = settings, session, sandbox, policy
        self._settings = settings
        self._options = options
        self._sandbox = sandbox
        self._policy = policy
        self._shared = session is not None
        self.own = own

    def change(
        self,
        settings: ShellKeywords,
        *,
        session: ShellSession | None = None,
        sandbox: Sandbox | None = None,
        policy: Policy | None = None,
    ) -> None:
        """Open sessions with other settings from now on; runs that have one keep it. Arguments and errors as at construction."""
        with self._lock:
            closed = self.own.closed and not self._shared
            if closed or (settings, session, sandbox, policy) == self._given:
                return
            before = [] if self._shared else [self.own]
            self._take(settings, session, sandbox, policy)
            self._retired += before

    def __reduce__(self) -> tuple[Any, ...]:
        session = self.own if self._shared else None
        again = partial(Sessions, session=session, sandbox=self._sandbox, policy=self._policy)
        return again, (self._settings,)

    def _open(self) -> ShellSession:
        return ShellSession(self._options, sandbox=self._sandbox, policy=self._policy)

    def of(self, run: Hashable | None, *, thread: str | None = None) -> ShellSession:
        """The session of a run, opened when it has none yet.

        Args:
            run: Whatever stands for a run in the framework; `None` outside of any run.
            thread: What a run and the one that goes on after its pause have in common. Two runs of one thread at the
                same time have one session each.
        """
        if run is None or self._shared or self.own.closed:
            return self.own
        with self._lock:
            if run not in self._running:
                waiting = None if thread is None else self._paused.pop(thread, None)
                self._running[run] = (waiting or self._open(), thread)
            return self._running[run][0]

    def knows(self, run: Hashable) -> bool:
        """Whether a run has a session that ends with it."""
        return run in self._running

    def verdict(self, tool: str, arguments: Mapping[str, Any]) -> Verdict:
        """What the policy says about a call, for a framework that asks a person before it makes the call.

        Args:
            tool: The tool's name.
            arguments: What the model gave.

        Returns:
            ALLOW also where nobody is to be asked: with `on_ask='deny'`, without a command, and for arguments that are wrong,
            since the call itself says so.
        """
        models = {known.name: known.arguments for known in self.own.tools}
        if tool not in models or self.own.options.on_ask == 'deny':
            return Verdict(Decision.ALLOW)
        try:
            given = models[tool].model_validate(arguments)
        except ValidationError:
            return Verdict(Decision.ALLOW)
        command: str | None = getattr(given, 'command', None)
        if command is None:
            return Verdict(Decision.ALLOW)
        return judge(self.own.policy(), command, open_input=getattr(given, 'stdin', False))

    def end(self, run: Hashable, *, paused: bool = False) -> ShellSession | None:
        """Say that a run has ended, or that it pauses.

        Returns:
            The session that the caller has to close now, if there is one.
        """
        with self._lock:
            session, thread = self._running.pop(run, (None, None))
            if session is None or not paused or thread is None:
                return session
            # Of two runs that pause in one thread, the later one is what a person goes on with.
            before = self._paused.get(thread)
            self._paused[thread] = session
            return before

    async def aclose(self) -> None:
        """Close all sessions that were opened here; later calls are refused. Idempotent."""
        with self._lock:
            sessions = [session for session, _ in self._running.values()]
            sessions += self._paused.values()
            sessions += self._retired
            self._running.clear()
            self._paused.clear()
            self._retired.clear()
        for session in sessions if self._shared else [*sessions, self.own]:
            await session.aclose()
