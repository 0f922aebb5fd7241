"""Our sandboxes as the environment of a `SandboxAgent`: a client of the SDK's, and its sessions."""

from __future__ import annotations

import io
import shlex
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
from agents.sandbox.errors import InvalidManifestPathError
from agents.sandbox.session.base_sandbox_session import BaseSandboxSession
from agents.sandbox.session.pty_types import PtyExecUpdate
from agents.sandbox.session.sandbox_client import BaseSandboxClient
from agents.sandbox.session.sandbox_session import SandboxSession
from agents.sandbox.session.sandbox_session_state import SandboxSessionState
from agents.sandbox.snapshot import SnapshotBase

from anyshell import Sandbox, SandboxError, SandboxTimeoutError, WorkingDirectoryGone
from openai_agents_anyshell.background import BackgroundCommands

DEFAULT_ROOT = '/workspace'
"""The root of a manifest that names none; the sandbox's own directory takes its place."""

INSIDE = """
path=$1; shift
until [ -e "$path" ] || [ -h "$path" ]; do path=${path%/*}; [ "$path" ] || path=/; done
path=$(readlink -f -- "$path") || exit 1
for root; do
    root=$(readlink -f -- "$root") && case $path in "$root" | "${root%/}"/*) exit 0 ;; esac
done
exit 1
"""
"""Whether a path, or what there is of it, is in one of the directories after it once links are followed."""


class SandboxState(SandboxSessionState):
    """What a run state keeps of a session: the sandbox itself is the client's."""

    type: Literal['anyshell'] = 'anyshell'  # pyright: ignore[reportIncompatibleVariableOverride]  (the SDK registers states by it)


class SandboxClient(BaseSandboxClient[Any]):
    """Gives a `SandboxAgent` one of our sandboxes: `RunConfig(sandbox=SandboxRunConfig(client=SandboxClient(sandbox)))`.

    All its sessions are in the one sandbox, which stays yours to close. Commands have no terminal: a call that asks for
    one gets an open standard input, on which Ctrl+C ends the command.

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


class _Session(BaseSandboxSession):
    def __init__(self, state: SandboxSessionState, sandbox: Sandbox) -> None:
        self.state = state
        self._sandbox = sandbox
        self._background = BackgroundCommands(sandbox)

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
        tty: bool = False,
        yield_time_s: float | None = None,
        max_output_tokens: int | None = None,
    ) -> PtyExecUpdate:
        words = self._prepare_exec_command(*command, shell=shell, user=user)
        state = self.state.manifest
        variables = dict(await state.environment.resolve())
        # Without it standard input is at its end, also since `rg` searches there when it finds it open.
        number = await self._background.start(
            _line(words), cwd=state.root, variables=variables, stdin=tty
        )
        return await self._background.look(number, yield_time_s, max_output_tokens)

    async def pty_write_stdin(
        self,
        *,
        session_id: int,
        chars: str,
        yield_time_s: float | None = None,
        max_output_tokens: int | None = None,
    ) -> PtyExecUpdate:
        await self._background.send(session_id, chars)
        return await self._background.look(session_id, yield_time_s, max_output_tokens)

    async def pty_terminate_all(self) -> None:
        await self._background.close()

    # -- files

    async def _validate_path_access(self, path: Path | str, *, for_write: bool = False) -> Path:
        # As the SDK's own sessions do, but without a helper at a place in /tmp that everybody knows.
        target = self.normalize_path(path, for_write=for_write)
        manifest = self.state.manifest
        grants = (
            grant.path
            for grant in manifest.extra_path_grants
            if not (for_write and grant.read_only)
        )
        inside = await self._exec_internal(
            'sh', '-c', INSIDE, 'sh', str(target), manifest.root, *grants
        )
        if not inside.ok():
            raise InvalidManifestPathError(rel=path, reason='escape_root')
        return target

    async def read(self, path: Path, *, user: str | User | None = None) -> io.IOBase:
        if user is not None:
            await self._check_read_with_exec(path, user=user)
        try:
            return io.BytesIO(
                await self._sandbox.read_file(str(await self._validate_path_access(path)))
            )
        except FileNotFoundError as error:
            raise WorkspaceReadNotFoundError(path=path, cause=error) from error
        except OSError as error:
            raise WorkspaceArchiveReadError(path=path, cause=error) from error

    async def write(self, path: Path, data: io.IOBase, *, user: str | User | None = None) -> None:
        if user is not None:
            await self._check_write_with_exec(path, user=user)
        target = await self._validate_path_access(path, for_write=True)
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
