"""A container of Docker (or Podman), reached by its command-line client."""

from __future__ import annotations

import asyncio
import os
import secrets
import shutil
import subprocess
import threading
import time
from typing import TYPE_CHECKING

from anyshell.errors import SandboxError, SandboxUnavailable
from anyshell.sandbox.kept import KeptChannel
from anyshell.sandbox.remote import KeptSandbox
from anyshell.sandbox.watch import Watcher

if TYPE_CHECKING:
    from collections.abc import Sequence


IDLE = "trap 'exit 0' TERM INT; while :; do sleep 86400 & wait $!; done"
"""The first process of a container that we start: it does nothing but reap orphans, which `sleep` would not."""


ENGINE_IS_OFF = 'Start its engine, or see that this user may use it; "anyshell doctor" says more'

ENGINE = (
    'CONTAINER_CONNECTION',
    'CONTAINER_HOST',
    'DOCKER_CERT_PATH',
    'DOCKER_CONFIG',
    'DOCKER_CONTEXT',
    'DOCKER_HOST',
    'DOCKER_TLS_VERIFY',
    'XDG_RUNTIME_DIR',
)
"""Variables by which the clients find their engine; no value of theirs is a secret."""


class _Containers(KeptChannel):
    """Shells in one container."""

    def __init__(self, program: str, *, user: str | None, cwd: str | None, grace: int) -> None:
        super().__init__(grace=grace, cwd=cwd)
        self.program = program
        self.container = ''
        self.start: list[str] | None = None
        self._user = user
        self._starting = threading.Lock()
        self._starter = 0

    async def prepare(self) -> None:
        await super().prepare()
        if self.start is not None and not self.container:
            await asyncio.to_thread(self._start, self.start)

    def _start(self, options: list[str]) -> None:
        with self._starting:
            if self.container:  # another thread was first
                return
            name = f'anyshell-{secrets.token_hex(8)}'
            # Told first: also a container that is just being started when this process ends is removed.
            program = shutil.which(self.program)
            if program is not None:
                # The watcher has few variables of its own; these say where the engine is.
                where = [f'{key}={os.environ[key]}' for key in ENGINE if key in os.environ]
                remove = [program, 'rm', '--force', '--volumes', name]
                Watcher.get().tell('far', name, ['/usr/bin/env', *where, *remove])
            begun = run(
                self.program, 'run', '--detach', '--rm', f'--name={name}', *options, timeout=600
            )
            if begun.returncode:
                Watcher.get().tell('near', name)
                raise SandboxUnavailable(
                    f'no container could be started ({self.program} says: {_text(begun.stderr)}). '
                    f'{self._advice(begun.stderr)}'
                )
            self.container, self._starter = name, os.getpid()

    def _advice(self, said: bytes) -> str:
        """What to do when the client could start no container."""
        if shutil.which(self.program) is None:
            return '"anyshell doctor" says which sandboxes work here'
        if b'annot connect' in said or b'ermission denied' in said or b'did not answer' in said:
            return ENGINE_IS_OFF
        return f'See that the image is there (`{self.program} images`) or can be pulled'

    def remove(self) -> None:
        """Remove the container that this process started; a forked child leaves it to its parent."""
        if self.start is not None and self.container and self._starter == os.getpid():
            gone = run(self.program, 'rm', '--force', '--volumes', self.container)
            if gone.returncode and b'o such' not in gone.stderr:
                raise SandboxError(
                    f'the container {self.container!r} could not be removed; {self.program} says: {_text(gone.stderr)}'
                )
            Watcher.get().tell('near', self.container)
            self.start = None

    @property
    def place(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride] - it has the container's name
        """What errors call it."""
        return f'the container {self.container!r}'

    def argv(self, script: str | None) -> list[str]:
        user = [] if self._user is None else ['--user', self._user]
        # Without "--" a container called "--privileged" would be read as an option.
        command = ['sh'] if script is None else ['sh', '-c', script]
        return [self.program, 'exec', '-i', *user, '--', self.container, *command]

    def refused(self, why: str) -> SandboxError:
        return SandboxUnavailable(self._state().rstrip() or f'{self.program} says: {why}')

    def lost(self, why: str) -> SandboxError:
        end = time.monotonic() + 1
        # The client learns of a container's end before its engine says so.
        while not (state := self._state()) and time.monotonic() < end:
            time.sleep(0.1)
        if state:
            return SandboxUnavailable(f'{state}The call was cut off; {self.program} says: {why}')
        return super().lost(why)

    def _state(self) -> str:
        """A sentence about a container that does not run; '' when it does, or nobody knows."""
        found = run(
            self.program, 'inspect', '--format={{.State.Running}}', '--', self.container, timeout=10
        )
        if found.returncode == 0 and found.stdout.strip() == b'true':
            return ''
        if self.start and (found.returncode == 0 or b'o such' in found.stderr):
            return (
                f'The container {self.container!r} of this sandbox has stopped, and everything that ran in it has ended; '
                'it is not started again: make a new DockerSandbox. '
            )
        if found.returncode == 0:
            return (
                f'The container {self.container!r} has stopped, and everything that ran in it has ended; '
                f'start it again with "{self.program} start {self.container}", or use another one. '
            )
        if shutil.which(self.program) is None:
            return f'{_text(found.stderr)}. '
        if b'o such' in found.stderr:
            return f'There is no container {self.container!r}, and everything that ran in it has ended; use one that "{self.program} ps" lists. '
        return f'{self.program} does not answer ({_text(found.stderr)}). {ENGINE_IS_OFF}. '


def _text(output: bytes) -> str:
    lines = [line.strip() for line in output.decode('utf-8', 'replace').splitlines()]
    # The client ends with a hint at its own help, which is of no use here.
    telling = [line for line in lines if line and not line.startswith(("Run '", "See '"))]
    return ' '.join(telling[-3:]).rstrip('.') or 'it gave no reason'


def run(*argv: str, timeout: float = 60.0) -> subprocess.CompletedProcess[bytes]:
    """Run the client once; a client that is missing or hangs is a failed run with that as its error text."""
    try:
        return subprocess.run(
            argv, capture_output=True, stdin=subprocess.DEVNULL, timeout=timeout, check=False
        )
    except FileNotFoundError:
        text = f'{argv[0]} is not installed or not on PATH; install it, or name another client with program='
    except subprocess.TimeoutExpired:
        text = f'{argv[0]} did not answer within {timeout:.0f} seconds'
    except OSError as error:
        text = f'{argv[0]} could not be started ({error.strerror})'
    return subprocess.CompletedProcess(argv, 127, b'', text.encode())


class DockerSandbox(KeptSandbox):
    """Commands in a container: one that runs already, or one that is started from an image and removed at the end.

    The container has to have `sh` and the usual small programs; busybox is enough. With an image, the container gets no
    network unless you name one, no capabilities, and limits on memory and processes.

    Args:
        container: The name or ID of a running container. It stays as it is.
        image: The image for a container of our own; it has to be there or can be pulled.
        user: Who runs commands, as `docker exec --user` takes it; `None` for the container's own.
        working_dir: Where commands start and relative paths begin; `None` for the container's own. It has to exist.
        network: The network of a container of our own, such as 'bridge'.
        memory: Its limit on memory, such as '2g'; `None` for none.
        pids: Its limit on processes; `None` for none.
        cpus: Its limit on processors; `None` for none.
        mounts: Its mounts, as `docker run --volume` takes them, such as '/srv/data:/data:ro'.
        run_options: More options for `docker run`.
        program: The client, such as 'podman'.
        disconnect_grace: Seconds that background commands live on in the container when nothing is connected to it.

    Raises:
        ValueError: If not exactly one of `container` and `image` is given.
    """

    def __init__(
        self,
        container: str | None = None,
        *,
        image: str | None = None,
        user: str | None = None,
        working_dir: str | None = None,
        network: str = 'none',
        memory: str | None = '2g',
        pids: int | None = 512,
        cpus: float | None = None,
        mounts: Sequence[str] = (),
        run_options: Sequence[str] = (),
        program: str = 'docker',
        disconnect_grace: int = 60,
    ) -> None:
        if (container is None) == (image is None):
            raise ValueError(
                'DockerSandbox needs either container=, the name of one that runs, or image='
            )
        self._containers = _Containers(program, user=user, cwd=working_dir, grace=disconnect_grace)
        super().__init__(self._containers)
        self._containers.container = container or ''
        if image is not None:
            self._containers.start = [
                f'--network={network}',
                *(() if memory is None else (f'--memory={memory}',)),
                *(() if pids is None else (f'--pids-limit={pids}',)),
                *(() if cpus is None else (f'--cpus={cpus}',)),
                *(f'--volume={mount}' for mount in mounts),
                '--cap-drop=ALL',
                '--security-opt=no-new-privileges',
                *run_options,
                '--entrypoint=sh',
                '--',
                image,
                '-c',
                IDLE,
            ]

    @property
    def container(self) -> str:
        """The container's name; '' before one of our own was started."""
        return self._containers.container

    async def aclose(self) -> None:
        """End what was started here; a container of our own is removed. Idempotent."""
        try:
            await super().aclose()
        finally:
            await asyncio.to_thread(self._containers.remove)
