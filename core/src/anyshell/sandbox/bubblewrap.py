"""Namespaces of this machine, made by bubblewrap: its files can be read, and only what you name can be written."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import shlex
import shutil
import sys
import threading
import time
from typing import TYPE_CHECKING

from anyshell.errors import SandboxError, SandboxUnavailable
from anyshell.sandbox import far
from anyshell.sandbox.base import STREAMS
from anyshell.sandbox.cgroups import Group
from anyshell.sandbox.kept import KeptChannel
from anyshell.sandbox.lanes import Lane
from anyshell.sandbox.remote import KeptSandbox
from anyshell.sandbox.shells import local_shell
from anyshell.sandbox.watch import Watcher, temporary_directory

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from anyshell.sandbox.base import Shell

INSIDE = '/run/anyshell'
"""Where the named pipes of shells are inside; each is gone from there once its shell has opened it."""

SECRETS = (
    '~/.ssh',
    '~/.gnupg',
    '~/.aws',
    '~/.azure',
    '~/.config/gcloud',
    '~/.config/gh',
    '~/.kube',
    '~/.docker',
    '~/.netrc',
    '~/.git-credentials',
    '~/.npmrc',
    '~/.pypirc',
)
"""What is hidden by default: where common programs keep credentials."""


TIDY = (
    'for _as_x in TMPDIR TEMP TMP; do eval "_as_y=\\${$_as_x-}"; '
    '[ -d "$_as_y" ] && [ -w "$_as_y" ] || unset "$_as_x"; done; '
)
"""Shell text that drops this machine's directories for temporary files where they are not there inside, or not to be
written: /tmp is."""


class _Namespaces(KeptChannel):
    """Shells inside one set of namespaces.

    One `bwrap` is kept, with a shell in it that does nothing but start the others, each of which is reached by named
    pipes in a directory of this machine. Its standard input is the lifeline: when that ends, so does all inside.
    """

    place = 'the sandbox'
    patience = 10.0

    def __init__(
        self,
        options: Sequence[str],
        *,
        cwd: str,
        writable: Sequence[str],
        env: Mapping[str, str] | None,
        before: str,
        memory: int | None,
        pids: int | None,
    ) -> None:
        super().__init__(grace=0, cwd=cwd)
        self._options = options
        self._cwd = cwd
        self._writable = writable
        self._env = env
        self._before = before
        self._memory = memory
        self._pids = pids
        self._root: Lane | None = None
        self._starting = threading.Lock()
        self.group: Group | None = None

    def argv(self, script: str | None) -> list[str]:
        raise NotImplementedError('a shell inside has no client of its own')

    def connect(self) -> Lane:
        return self._inside('_as_lane')

    def pour(self, script: str) -> Lane:
        return self._inside('_as_pour', script)

    def _inside(self, function: str, script: str | None = None) -> Lane:
        with self._starting:
            root = self._alive()
        name = secrets.token_hex(8)
        ends = ('in', 'out', 'err')
        paths = [f'{self.here}/{name}.{end}' for end in ends]
        lane = Lane(None, *_pipes(paths))
        lane.parent, lane.paths = root, paths
        try:
            lane.lifeline = os.dup(root.outputs['stdout'])
        except OSError:  # it was buried in between
            lane.eof = True
        words = [function, *(f'{INSIDE}/{name}.{end}' for end in ends)]
        if script is not None:
            lane.begun['stdout'] = True
            words += [lane.hello.decode(), shlex.quote(script)]
        with contextlib.suppress(
            OSError
        ):  # it has just died: the first look at the lane finds that out
            os.write(root.stdin, f'{{ _as_bg {" ".join(words)}; }}\n'.encode())
        return lane

    def _alive(self) -> Lane:
        root = self._root
        # Its directory may be gone too: commands can remove it where they can write it, as with cwd='/tmp'.
        if root is not None and not root.gone() and os.path.isdir(self.here):
            return root
        if root is not None:
            self._bury(root)
        self._check_places()
        if not os.path.isdir(self.here):
            self.here = temporary_directory()
        self.group = Group(memory=self._memory, pids=self._pids)
        before = self._before
        if self.group.kind == 'none' and self._memory is not None:
            before += f'ulimit -v {self._memory // 1024}; '
        if self.group.kind == 'none' and self._pids is not None:
            before += f'ulimit -u {self._pids} 2>/dev/null; '
        if self.group.folders:
            folders = ' '.join(map(shlex.quote, self.group.folders))
            remove = f'i=0; while [ $i -lt 100 ] && ! rmdir {folders} 2>/dev/null; do sleep 0.1; i=$((i+1)); done'
            Watcher.get().tell('far', self.token, ['/bin/sh', '-c', remove])
        argv = ['bwrap', *self._options, '--ro-bind', self.here, INSIDE, '--', 'sh', '-s']
        root = self.client(argv, before=self.group.enter() + before, env=self._env)
        root.begun = dict.fromkeys(STREAMS, True)
        os.set_blocking(
            root.stdin, True
        )  # its pipe holds every request that it ever gets at a time
        with contextlib.suppress(OSError):
            tidy = TIDY if self._env is None else ''
            os.write(root.stdin, f'{tidy}{far.LIBRARY}{far.KEPT}\n'.encode())
        self._root = root
        return root

    def _check_places(self) -> None:
        """Name a place that is not there (yet), instead of what bubblewrap would say of it."""
        for name, path in (('cwd', self._cwd), *(('writable', path) for path in self._writable)):
            if not os.path.exists(path):
                raise SandboxUnavailable(
                    f'{name}: {path!r} does not exist; make it, or name another'
                )
        if not os.path.isdir(self._cwd):
            raise SandboxUnavailable(f'cwd: {self._cwd!r} is no directory; name one')

    def _leave(self) -> None:
        root, self._root, self.group = self._root, None, None
        if root is not None:
            root.leave()
        super()._leave()

    def _bury(self, root: Lane) -> None:
        """Make sure that nothing is left of namespaces that have died."""
        self._root = None
        root.retire()
        end = time.monotonic() + 2
        while time.monotonic() < end and not root.reap():
            time.sleep(
                0.005
            )  # its shell has found the end of its input; killed processes would be orphans first
        root.reap(now=True)
        if self.group is not None:
            self.group.remove()
            Watcher.get().tell('near', self.token)

    async def abandon(self) -> bool:
        """Kill the namespaces: the calls that wait for something in them find that out by themselves."""
        return await asyncio.to_thread(self._abandon)

    def _abandon(self) -> bool:
        root = self._root
        return root is None or bool(root.retired) or root.reap(now=True)

    def refused(self, why: str) -> SandboxError:
        if shutil.which('bwrap') is None:
            return SandboxUnavailable(
                'bwrap is not installed or not on PATH; install the package bubblewrap'
            )
        root = self._root
        if root is not None:
            why = root.why()
        return SandboxUnavailable(
            f'bubblewrap can make no sandbox here; it says: {why}. In a container it needs permission to make '
            'namespaces; use DockerSandbox there, or none'
        )

    def lost(self, why: str) -> SandboxError:
        root = self._root
        if root is None or root.gone():
            return SandboxError(
                'the sandbox has died, and everything in it has ended: this command, all background commands and '
                'the files in its /tmp are lost. The next call starts a new one'
            )
        return super().lost(why)

    def close(self) -> None:
        if self._root is not None and self._pid == os.getpid():
            self._root.hang_up()  # all inside ends with it, and the calls that wait for something there
        super().close()
        root = self._root
        if root is not None and self._pid == os.getpid():
            self._bury(root)
        folder, self.here = self.here, ''
        if folder and self._pid == os.getpid():
            shutil.rmtree(folder, ignore_errors=True)


class BubblewrapSandbox(KeptSandbox):
    """Commands on this machine in namespaces of their own.

    All files of this machine can be read, but for those that are hidden; the working directory and what `writable` names
    can be written; `/tmp` and `/run` are empty and private. Processes, IPC and, unless `network` is set, the network are
    the sandbox's own, shared by all its commands and background commands. Needs Linux and the program `bwrap`.

    Args:
        cwd: The directory that commands start in, which they can write; relative to this process' own at construction.
            It has to be there at the first command.
        writable: More files and directories that can be written.
        hidden: Files and directories that can't be seen; the default hides where common programs keep credentials.
        network: Whether commands share this machine's network, also its loopback interface.
        env: Exactly the variables that commands see; `None` for those of this process when the sandbox starts, without
            a TMPDIR that can't be used inside.
        memory: The limit on memory in bytes, the files in `/tmp` included; `None` for none.
        pids: The limit on processes; `None` for none.
        file_size: The largest file that can be written, in bytes; `None` for none.
        cpu_seconds: The processor time of each process; `None` for no limit.
        tmp_size: The size of `/tmp` in bytes.

    Raises:
        SandboxUnavailable: Elsewhere than on Linux.
        ValueError: If `cwd` is the root directory, which would make everything writable.
    """

    def __init__(
        self,
        *,
        cwd: str | Path = '.',
        writable: Sequence[str | Path] = (),
        hidden: Sequence[str | Path] = SECRETS,
        network: bool = False,
        env: Mapping[str, str] | None = None,
        memory: int | None = 4 << 30,
        pids: int | None = 1024,
        file_size: int | None = None,
        cpu_seconds: int | None = None,
        tmp_size: int = 1 << 30,
    ) -> None:
        if sys.platform != 'linux':
            raise SandboxUnavailable(
                'BubblewrapSandbox needs Linux; use DockerSandbox or SshSandbox here'
            )
        self.cwd = os.path.abspath(cwd)
        if self.cwd == '/':
            raise ValueError(
                'cwd="/" would make the whole machine writable; name the directory to work in'
            )
        options = [
            '--unshare-user',
            '--unshare-pid',
            '--unshare-ipc',
            '--unshare-uts',
            '--unshare-cgroup-try',
        ]
        options += [] if network else ['--unshare-net']
        options += [
            '--die-with-parent',
            '--new-session',
            '--cap-drop',
            'ALL',
            '--ro-bind',
            '/',
            '/',
        ]
        options += ['--dev', '/dev', '--proc', '/proc', '--size', str(tmp_size), '--tmpfs', '/tmp']  # noqa: S108 - inside
        # Sockets in /run, such as Docker's, are ways out that a read-only mount leaves open.
        options += ['--tmpfs', '/run']
        if network and os.path.isdir('/run/systemd/resolve'):
            options += ['--ro-bind', '/run/systemd/resolve', '/run/systemd/resolve']
        writable = [_absolute(path) for path in writable]
        for path in writable:
            options += ['--bind', path, path]
        options += ['--bind', self.cwd, self.cwd]
        for path in map(_absolute, hidden):
            if os.path.isdir(path):
                options += ['--tmpfs', path, '--remount-ro', path]
            elif os.path.exists(path):
                options += ['--ro-bind', '/dev/null', path]
        options += ['--chdir', self.cwd]
        before = '' if file_size is None else f'ulimit -f {max(1, file_size // 512)}; '
        before += '' if cpu_seconds is None else f'ulimit -t {cpu_seconds}; '
        self._namespaces = _Namespaces(
            options,
            cwd=self.cwd,
            writable=writable,
            env=None if env is None else dict(env),
            before=before or ': ; ',
            memory=memory,
            pids=pids,
        )
        super().__init__(self._namespaces)

    def known_shell(self) -> Shell:
        return local_shell()  # it sees this machine's programs

    @property
    def limits(self) -> str:
        """What holds memory and processes: 'cgroup v2', 'cgroup v1', or 'none' for limits per process only."""
        group = self._namespaces.group
        return 'none' if group is None else group.kind


def _pipes(paths: Sequence[str]) -> list[int]:
    """Make named pipes for a shell's input and two outputs and open our ends."""
    opened: list[int] = []
    # The input for both reading and writing, since a pipe can't be opened for writing before somebody reads it; the
    # shell still finds its end when we close ours.
    modes = (os.O_RDWR, os.O_RDONLY, os.O_RDONLY)
    try:
        for path, mode in zip(paths, modes, strict=True):
            os.mkfifo(path, 0o600)
            opened.append(os.open(path, mode | os.O_NONBLOCK | os.O_CLOEXEC))
    except OSError as error:
        for descriptor in opened:
            os.close(descriptor)
        for path in paths:
            with contextlib.suppress(OSError):
                os.unlink(path)
        raise SandboxError(
            f'no more shells can be started in the sandbox ({error.strerror}); run fewer commands at a time'
        ) from error
    return opened


def _absolute(path: str | Path) -> str:
    return os.path.realpath(os.path.expanduser(path))
