"""Another machine, reached by the OpenSSH client over one connection."""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import shutil
import threading
from typing import TYPE_CHECKING

from anyshell.errors import SandboxError, SandboxUnavailable
from anyshell.sandbox.base import STREAMS
from anyshell.sandbox.kept import KeptChannel
from anyshell.sandbox.lanes import Lane
from anyshell.sandbox.remote import KeptSandbox
from anyshell.sandbox.watch import temporary_directory

if TYPE_CHECKING:
    from collections.abc import Sequence

SAFE_OPTIONS = frozenset(
    """
    addressfamily bindaddress bindinterface canonicaldomains canonicalizefallbacklocal canonicalizehostname
    canonicalizemaxdots canonicalizepermittedcnames checkhostip ciphers compression connectionattempts connecttimeout
    hostkeyalgorithms hostname identitiesonly ipqos kbdinteractiveauthentication kexalgorithms loglevel macs
    numberofpasswordprompts passwordauthentication port preferredauthentications pubkeyacceptedalgorithms
    pubkeyauthentication rekeylimit serveralivecountmax serveraliveinterval tcpkeepalive updatehostkeys user
    userknownhostsfile verifyhostkeydns
    """.split()  # noqa: SIM905 - thirty quoted words would be harder to read
)
"""Options of ssh_config(5) that start no program, open no tunnel and read no further configuration."""

_NAME = re.compile(r'[=\s]')

MAX_SOCKET = 80
"""Bytes of a socket's directory. The system takes 108 for the whole path, and ssh adds a name and a suffix."""


class _Host(KeptChannel):
    """Shells on one host, over one connection that a client of its own keeps."""

    def __init__(self, host: str, options: Sequence[str], *, cwd: str | None, grace: int) -> None:
        super().__init__(grace=grace, cwd=cwd)
        self.place = f'the host {host!r}'
        self._host = host
        self._options = options
        self._master: Lane | None = None
        self._starting = threading.Lock()

    def argv(self, script: str | None) -> list[str]:
        shared = ['-o', 'ControlMaster=no', '-o', f'ControlPath={self.here}/s'] if self.here else []
        # Without "--" a host called "-oProxyCommand=..." would be read as an option.
        command = 'exec sh' if script is None else f'exec sh -c {shlex.quote(script)}'
        return ['ssh', *self._options, *shared, '--', self._host, command]

    async def prepare(self) -> None:
        """Open the connection that all shells share, and wait until it stands."""
        await super().prepare()
        master = self._master
        if (
            master is not None
            and self._pid == os.getpid()
            and master.popen is not None
            and master.popen.poll() is None
        ):
            return
        with self._starting:
            if self._master is master:
                self._connect(master)
            master = self._master
        while master is not None and not self._connected():
            if master.popen is None or master.popen.poll() is not None:
                master.noise += master.take('stderr', master.hello)[0]
                raise self.refused(master.why())
            await asyncio.sleep(0.01)

    def _leave(self) -> None:
        master, self._master = self._master, None
        if master is not None:
            master.leave()
        super()._leave()

    def _connected(self) -> bool:
        return os.path.exists(f'{self.here}/s')

    def _connect(self, before: Lane | None) -> None:
        if before is not None and not before.retired:
            before.retire()
        if not self.here:
            folder = temporary_directory()
            if len(folder) > MAX_SOCKET:
                os.rmdir(folder)
                return  # then each shell has a connection of its own
            self.here = folder
        if self._connected():
            os.unlink(f'{self.here}/s')
        argv = ['ssh', *self._options, '-o', 'ControlMaster=yes', '-o', 'ControlPersist=no']
        self._master = self.client(
            [*argv, '-o', f'ControlPath={self.here}/s', '-N', '--', self._host]
        )
        self._master.begun = dict.fromkeys(STREAMS, True)

    def refused(self, why: str) -> SandboxError:
        if shutil.which('ssh') is None:
            return SandboxUnavailable(
                'ssh is not installed or not on PATH; install the OpenSSH client'
            )
        advice = 'check that it is up and that its SSH server runs'
        if 'ermission denied' in why:
            advice = 'check the user and the key; no password is ever asked for'
        elif 'ost key verification' in why or 'IDENTIFICATION HAS CHANGED' in why:
            advice = 'its key is not the one that is known; check with its owner before you change known_hosts'
        elif 'resolve' in why:
            advice = 'check the name'
        elif 'Session open refused' in why:
            advice = 'its server takes no more sessions (MaxSessions, MaxStartups); run fewer commands at a time'
        return SandboxUnavailable(f'{self.place} can not be used: {advice}. ssh says: {why}')

    def close(self) -> None:
        super().close()
        master, self._master = self._master, None
        if master is not None and self._pid == os.getpid():
            master.retire()
            master.reap(now=True)
        folder, self.here = self.here, ''
        if folder and self._pid == os.getpid():
            shutil.rmtree(folder, ignore_errors=True)


class SshSandbox(KeptSandbox):
    """Commands on another machine, over one SSH connection that is kept.

    The OpenSSH client is used as it is set up: `~/.ssh/config`, agents and hardware keys work. It is never interactive
    (`BatchMode`), so authentication is by key.

    Args:
        host: Where to, as `ssh` takes it: 'user@host', an address, or a name from `~/.ssh/config`.
        working_dir: Where commands start and relative paths begin; `None` for the user's home directory.
        identity_file: A private key; `None` for what the client is set up with.
        port: The port; `None` for what the client is set up with.
        ssh_options: More options, as `ssh -o` takes them, such as 'ConnectTimeout=5'.
        allow_unknown_hosts: `False` takes the key of a host that is new and refuses one that has changed; `True` checks
            no host key at all.
        allow_unsafe_ssh_options: Whether `ssh_options` may have options that start programs or open tunnels.
        disconnect_grace: Seconds that background commands live on over there when the connection is lost.

    Raises:
        ValueError: If `ssh_options` has an option that is not known to be safe.
    """

    def __init__(
        self,
        host: str,
        *,
        working_dir: str | None = None,
        identity_file: str | None = None,
        port: int | None = None,
        ssh_options: Sequence[str] = (),
        allow_unknown_hosts: bool = False,
        allow_unsafe_ssh_options: bool = False,
        disconnect_grace: int = 60,
    ) -> None:
        if not allow_unsafe_ssh_options:
            for option in ssh_options:
                name = _NAME.split(option.strip(), maxsplit=1)[0]
                if name.lower() not in SAFE_OPTIONS:
                    raise ValueError(
                        f'SSH option "{name}" is not allowed. Set allow_unsafe_ssh_options=True to bypass.'
                    )
        options = ['-T', '-x', '-a', '-o', 'BatchMode=yes']
        options += ['-o', f'StrictHostKeyChecking={"no" if allow_unknown_hosts else "accept-new"}']
        if port is not None:
            options += ['-p', str(port)]
        if identity_file is not None:
            options += ['-i', identity_file]
        for option in ssh_options:
            options += ['-o', option]
        # After the caller's, since ssh takes the first value that it finds: a connection that is dead is noticed.
        options += [
            '-o',
            'ConnectTimeout=10',
            '-o',
            'ServerAliveInterval=15',
            '-o',
            'ServerAliveCountMax=3',
        ]
        super().__init__(_Host(host, options, cwd=working_dir, grace=disconnect_grace))
        self.host = host
