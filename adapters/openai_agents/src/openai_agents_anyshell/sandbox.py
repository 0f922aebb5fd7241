"""Our sandboxes as the environment of a `SandboxAgent`: a client of the SDK's, and its sessions."""

from __future__ import annotations

import io
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal
from uuid import uuid4

from agents.sandbox import (
    ExecResult,
    ExecTimeoutError,
    ExecTransportError,
    Manifest,
    SnapshotSpec,
    User,
    WorkspaceArchiveReadError,
    WorkspaceArchiveWriteError,
    WorkspaceReadNotFoundError,
    resolve_snapshot,
)
from agents.sandbox.errors import PtySessionNotFoundError
from agents.sandbox.session.base_sandbox_session import BaseSandboxSession
from agents.sandbox.session.pty_types import (
    PtyExecUpdate,
    allocate_pty_process_id,
    truncate_text_by_tokens,
)
from agents.sandbox.session.sandbox_client import BaseSandboxClient
from agents.sandbox.session.sandbox_session import SandboxSession
from agents.sandbox.session.sandbox_session_state import SandboxSessionState
from agents.sandbox.snapshot import SnapshotBase

from anyshell import (
    Process,
    Processes,
    Sandbox,
    SandboxError,
    SandboxTimeoutError,
    Spawn,
    WorkingDirectoryGone,
)

DEFAULT_ROOT = '/workspace'
"""The root of a manifest that names none; the sandbox's own directory takes its place."""

YIELD_SECONDS = 10.0
MOST = 1 << 20
"""Bytes of output that one look at a command gives; of more, the last ones."""


class SandboxState(SandboxSessionState):
    """What a run state keeps of a session: the sandbox itself is the client's."""

    type: Literal['anyshell'] = 'anyshell'  # pyright: ignore[reportIncompatibleVariableOverride]  (the SDK registers states by it)


class SandboxClient(BaseSandboxClient[Any]):
    """Gives a `SandboxAgent` one of our sandboxes: `RunConfig(sandbox=SandboxRunConfig(client=SandboxClient(sandbox)))`.

    All its sessions are in the one sandbox, which stays yours to close. Commands have no terminal: a call that asks for
    one gets an open standard input.

    Args:
        sandbox: Where the agents work.
    """

    backend_id = 'anyshell'
    supports_default_options = True

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox

    async def create(
        self,
        *,
        snapshot: SnapshotSpec | SnapshotBase | None = None,
        manifest: Manifest | None = None,
        options: Any = None,  # noqa: ARG002  (the base class's; there are none)
    ) -> SandboxSession:
        manifest = self._validate_manifest_for_create(manifest or Manifest())
        if manifest.root == DEFAULT_ROOT:
            found = await self._sandbox.execute('pwd -P')
            manifest = manifest.model_copy(
                update={'root': found.stdout.removesuffix('\n')}, deep=True
            )
        session_id = uuid4()
        state = SandboxState(
            session_id=session_id,
            manifest=manifest,
            snapshot=resolve_snapshot(snapshot, str(session_id)),
        )
        return self._wrap_session(_Session(state, self._sandbox))

    async def resume(self, state: SandboxSessionState) -> SandboxSession:
        return self._wrap_session(_Session(state, self._sandbox))

    async def delete(self, session: SandboxSession) -> SandboxSession:
        return session  # the sandbox and its files are the caller's

    def deserialize_session_state(self, payload: dict[str, object]) -> SandboxSessionState:
        return self._deserialize_session_state_payload(payload, SandboxState)


@dataclass(slots=True)
class _Pty:
    process: Process
    seen: int = 0


class _Session(BaseSandboxSession):
    def __init__(self, state: SandboxSessionState, sandbox: Sandbox) -> None:
        self.state = state
        self._sandbox = sandbox
        self._processes: Processes | None = None
        self._ptys: dict[int, _Pty] = {}

    # -- one command

    async def _exec_internal(
        self, *command: str | Path, timeout: float | None = None
    ) -> ExecResult:
        env = await self.state.manifest.environment.resolve()
        try:
            result = await self._sandbox.execute(
                _line(command), timeout=timeout, cwd=self.state.manifest.root, env=dict(env)
            )
        except SandboxTimeoutError as error:
            raise ExecTimeoutError(command=command, timeout_s=timeout, cause=error) from error
        except (SandboxError, WorkingDirectoryGone) as error:
            raise ExecTransportError(command=command, cause=error) from error
        return ExecResult(
            stdout=result.stdout.encode(),
            stderr=result.stderr.encode(),
            exit_code=result.exit_code,
        )

    async def _prepare_backend_workspace(self) -> None:
        await self._sandbox.execute(f'mkdir -p -- {shlex.quote(self.state.manifest.root)}')

    async def running(self) -> bool:
        try:
            return (await self._sandbox.execute(':')).exit_code == 0
        except (SandboxError, WorkingDirectoryGone):
            return False

    # -- commands that go on

    def supports_pty(self) -> bool:
        return True

    async def pty_exec_start(
        self,
        *command: str | Path,
        timeout: float | None = None,  # noqa: ARG002  (the SDK's own sessions have none here either)
        shell: bool | list[str] = True,
        user: str | User | None = None,
        tty: bool = False,  # noqa: ARG002  (see the client)
        yield_time_s: float | None = None,
        max_output_tokens: int | None = None,
    ) -> PtyExecUpdate:
        words = self._prepare_exec_command(*command, shell=shell, user=user)
        if self._processes is None:
            self._processes = self._sandbox.processes()
        env = await self._processes.environment()
        env |= await self.state.manifest.environment.resolve()
        line = f'{_line(words)} 2>&1'  # as on a terminal, both streams are one
        spawn = Spawn(line=line, shell='sh', cwd=self.state.manifest.root, env=env, stdin=True)  # noqa: S604  (what it is for)
        number = allocate_pty_process_id(set(self._ptys))
        self._ptys[number] = _Pty(await self._processes.spawn(spawn))
        return await self._update(number, yield_time_s, max_output_tokens)

    async def pty_write_stdin(
        self,
        *,
        session_id: int,
        chars: str,
        yield_time_s: float | None = None,
        max_output_tokens: int | None = None,
    ) -> PtyExecUpdate:
        pty = self._ptys.get(session_id)
        if pty is None or self._processes is None:
            raise PtySessionNotFoundError(session_id=session_id)
        if chars:
            await self._processes.send(pty.process, chars.encode())
        return await self._update(session_id, yield_time_s, max_output_tokens)

    async def _update(
        self, number: int, yield_time_s: float | None, max_output_tokens: int | None
    ) -> PtyExecUpdate:
        pty, processes = self._ptys[number], self._processes
        assert processes is not None  # noqa: S101  (whoever has a number has started something)
        ended = await processes.wait(
            pty.process, timeout=YIELD_SECONDS if yield_time_s is None else yield_time_s
        )
        if not ended:
            await processes.detach(pty.process)
        written = await processes.written(pty.process, 'stdout', MOST)
        output = written.tail[max(0, len(written.tail) - (written.total - pty.seen)) :]
        pty.seen = written.total
        if ended:
            del self._ptys[number]
            await processes.forget(pty.process)
        text, tokens = truncate_text_by_tokens(output.decode(errors='replace'), max_output_tokens)
        return PtyExecUpdate(
            None if ended else number, text.encode(), pty.process.exit_code, tokens
        )

    async def pty_terminate_all(self) -> None:
        self._ptys.clear()
        processes, self._processes = self._processes, None
        if processes is not None:
            await processes.close(grace=0.5)

    # -- files

    async def read(self, path: Path, *, user: str | User | None = None) -> io.IOBase:
        if user is not None:
            await self._check_read_with_exec(path, user=user)
        try:
            return io.BytesIO(await self._sandbox.read_file(str(self.normalize_path(path))))
        except FileNotFoundError as error:
            raise WorkspaceReadNotFoundError(path=path, cause=error) from error
        except OSError as error:
            raise WorkspaceArchiveReadError(path=path, cause=error) from error

    async def write(self, path: Path, data: io.IOBase, *, user: str | User | None = None) -> None:
        if user is not None:
            await self._check_write_with_exec(path, user=user)
        target = self.normalize_path(path, for_write=True)
        try:
            await self._sandbox.write_file(str(target), _bytes(data))
        except OSError as error:
            raise WorkspaceArchiveWriteError(path=target, cause=error) from error

    async def persist_workspace(self) -> io.IOBase:
        root, archive = self.state.manifest.root, f'/tmp/anyshell-{uuid4().hex}.tar'  # noqa: S108  (nobody can guess it)
        skipped = [
            f'--exclude=./{path.as_posix()}' for path in self._persist_workspace_skip_relpaths()
        ]
        pack = shlex.join(['tar', '-cf', archive, '-C', root, *skipped, '.'])
        return io.BytesIO(await self._archived(pack, archive))

    async def _archived(self, pack: str, archive: str) -> bytes:
        root = Path(self.state.manifest.root)
        try:
            result = await self._sandbox.execute(f'umask 077; {pack}')
            if result.exit_code:
                raise WorkspaceArchiveReadError(path=root, context={'reason': result.stderr})
            return await self._sandbox.read_file(archive)
        finally:
            await self._sandbox.execute(f'rm -f {archive}')

    async def hydrate_workspace(self, data: io.IOBase) -> None:
        root, archive = self.state.manifest.root, f'/tmp/anyshell-{uuid4().hex}.tar'  # noqa: S108  (nobody can guess it)
        await self._sandbox.write_file(archive, _bytes(data))
        unpack = shlex.join(['tar', '-xf', archive, '-C', root])
        result = await self._sandbox.execute(
            f'mkdir -p {shlex.quote(root)} && {unpack}; code=$?; rm -f {archive}; exit $code'
        )
        if result.exit_code:
            raise WorkspaceArchiveWriteError(path=Path(root), context={'reason': result.stderr})


def _line(command: Any) -> str:
    return f'exec {shlex.join(str(word) for word in command)}'


def _bytes(data: io.IOBase) -> bytes:
    content: Any = data.read()
    return content.encode() if isinstance(content, str) else bytes(content)
