"""Ways to run a script of ours on a far side, and what is known about one."""

from __future__ import annotations

import base64
import shlex
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

from anyshell.errors import AnyshellError, InvalidCommand, SandboxError
from anyshell.sandbox import far
from anyshell.sandbox.posix import ALTERED, ENV_KEY_PATTERN

if TYPE_CHECKING:
    from anyshell.sandbox.base import Spawn
    from anyshell.sandbox.posix import PosixShellSandbox

_SHELLS_OWN = frozenset({'PWD', 'OLDPWD', '_'})
_READONLY = frozenset({'BASHOPTS', 'BASH_VERSINFO', 'EUID', 'PPID', 'SHELLOPTS', 'UID'})


@dataclass(frozen=True, slots=True, kw_only=True)
class Far:
    """What is known about a far side.

    Attributes:
        bash: Where bash is, or ''.
        setsid: Where the program is that gives a command a session of its own, or ''.
        is_bash: Whether its `sh` is bash, which has read-only variables.
        cwd: The directory that commands start in.
        tmp: A directory for temporary files.
        environment: The variables that commands see.
        linux: Whether it has a Linux /proc and takes marks, by which commands are found and ended.
    """

    bash: str
    setsid: str
    is_bash: bool
    cwd: str
    tmp: str
    environment: dict[str, str]
    linux: bool


class Channel(ABC):
    """A way to run a script on the far side. It holds no asyncio object and may be used from several loops at once."""

    far: Far | None = None
    keeps_jobs = False
    """Whether it is known that the place keeps what a call leaves running."""

    max_script: int | None = None
    """The longest script in bytes; `None` when there is no limit."""

    epoch = 0
    """Grows when a connection is made while there is none: what the far side held may be gone."""

    folder = ''
    """A directory on the far side that owners make theirs in; '' for the far side's temporary directory."""

    patience = 60.0
    """Seconds that the far side may take to end commands, beside the grace that these have."""

    @abstractmethod
    async def call(self, script: str, *, timeout: float) -> bytes:
        """Run a script that may use `far.LIBRARY` and return what it wrote to standard output.

        Raises:
            SandboxError: If the far side can't be reached or does not answer within `timeout` seconds.
        """

    async def abandon(self) -> bool:
        """End the place itself with all that runs there, where it is ours; whether that was done."""
        return False

    def renew(self) -> bool:
        """Have the next scripts make what every connection needs on the far side; whether there is such a thing."""
        return False

    async def know(self) -> Far:
        """What is known about the far side; asked for once."""
        if self.far is None:
            self.far = _far(await self.call('_as_hello', timeout=60))
        return self.far


class StreamingChannel(Channel):
    """Scripts over `execute_streaming` of any sandbox."""

    max_script = 90_000

    def __init__(self, sandbox: PosixShellSandbox) -> None:
        self._sandbox = sandbox

    async def call(self, script: str, *, timeout: float) -> bytes:
        try:
            code, reply, noise = await self._sandbox.run_script(
                far.LIBRARY + script, timeout=timeout
            )
        except AnyshellError:
            raise
        except Exception as error:
            # Whatever a sandbox of the user's raises when its place has gone, an agent's run goes on.
            raise SandboxError(
                f'the sandbox failed ({type(error).__name__}: {error}); what ran in it may still be running. '
                'Try again, or say that the sandbox does not answer'
            ) from error
        if code:
            raise SandboxError(
                f'a script of ours failed in the sandbox with exit code {code}: {noise or "no message"}'
            )
        # A terminal on the way ends lines like that. Ours are text; what is not, comes as base64.
        return reply.replace(b'\r\n', b'\n')


def settings(known: Far, spawn: Spawn) -> str:
    """Shell text that turns the far side's variables into those that the command shall see."""
    if spawn.env is None:
        return ''
    wanted = {name: value for name, value in spawn.env.items() if name not in _SHELLS_OWN}
    if known.is_bash:
        wanted = {name: value for name, value in wanted.items() if name not in _READONLY}
    if odd := [name for name in wanted if not ENV_KEY_PATTERN.fullmatch(name)]:
        if any(known.environment.get(name) != wanted[name] for name in odd):
            raise InvalidCommand(
                f'no shell can set a variable called {odd[0]!r} in this sandbox; leave it out'
            )
        wanted = {name: value for name, value in wanted.items() if name not in odd}
    drop = [
        name for name in known.environment if name not in wanted and ENV_KEY_PATTERN.fullmatch(name)
    ]
    changed = [
        f'{name}={shlex.quote(value)}'
        for name, value in wanted.items()
        if known.environment.get(name) != value
    ]
    return '; '.join(
        ([f'unset {" ".join(drop)}'] if drop else [])
        + ([f'export {" ".join(changed)}'] if changed else [])
    )


def decoded(text: bytes) -> bytes:
    """Bytes that a script sent as base64, in lines of any length."""
    return base64.b64decode(text.translate(None, b' \r\n\t'))


def _far(reply: bytes) -> Far:
    parts = reply.split(b'.\n')
    if len(parts) != 5:
        raise SandboxError(ALTERED)
    bash, setsid, is_bash, environment, system = parts
    name, _, places = is_bash.partition(b'\n')
    cwd, tmp, *_ = (*decoded(places).split(b'\0'), b'', b'')
    variables: dict[str, str] = {}
    for entry in decoded(environment).split(b'\0'):
        key, equals, value = entry.partition(b'=')
        if equals and key.decode('utf-8', 'surrogateescape') not in _SHELLS_OWN:
            variables[key.decode('utf-8', 'surrogateescape')] = value.decode(
                'utf-8', 'surrogateescape'
            )
    return Far(
        bash=bash.strip().decode(),
        setsid=setsid.strip().decode(),
        is_bash=name == b'bash',
        cwd=cwd.removesuffix(b'.').removesuffix(b'\n').decode('utf-8', 'surrogateescape') or '/',
        tmp=tmp.decode('utf-8', 'surrogateescape') or '/tmp',  # noqa: S108 - a private directory is made in it
        environment=variables,
        linux=system.strip() == b'linux',
    )
