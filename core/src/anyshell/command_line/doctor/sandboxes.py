"""Which sandboxes this host can start, and what it can enforce in them. Each is tried, not guessed from a version."""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile

from anyshell.command_line.doctor.checks import SECONDS, Answer, Check, ask
from anyshell.errors import AnyshellError, SandboxError
from anyshell.sandbox import BubblewrapSandbox, Sandbox
from anyshell.sandbox.cgroups import ROOT, Group
from anyshell.synchronous import run_sync

_UNSHARE = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
print(os.strerror(ctypes.get_errno()) if libc.unshare(0x10000000) else 'made')
"""  # CLONE_NEWUSER (namespaces(7)); Python has os.unshare from 3.12 on
_NO_LINUX = 'only Linux has it'


def bubblewrap() -> Check:
    """Whether a `BubblewrapSandbox` starts, which in many containers it may not."""
    program = shutil.which('bwrap')
    if not sys.platform.startswith('linux'):
        return _gap('bubblewrap', _NO_LINUX, 'use DockerSandbox or SshSandbox')
    if program is None:
        fix = (
            'install bubblewrap: apt install bubblewrap, dnf install bubblewrap, apk add bubblewrap'
        )
        return _gap('bubblewrap', 'there is no bwrap on PATH', fix)
    release = ask(program, '--version').first_line
    try:
        made = tempfile.TemporaryDirectory(prefix='anyshell-doctor-')
    except OSError as error:
        found = f'{release} ({program}) was not tried: {error.strerror or error}'
        return _gap('bubblewrap', found, 'mend temporary-directory first')
    with made as folder:
        try:
            run_sync(_start(BubblewrapSandbox(cwd=folder)))
        except (AnyshellError, OSError) as error:
            return _gap(
                'bubblewrap',
                f'{release} ({program}) does not start: {error}',
                _namespace_fix(str(error)),
            )
    return _works(
        'bubblewrap', f'{release} ({program}) starts, with namespaces and a /tmp of its own'
    )


async def _start(sandbox: Sandbox) -> None:
    async with sandbox:
        result = await sandbox.execute('echo started', timeout=SECONDS)
    if result.stdout != 'started\n':
        raise SandboxError(result.stderr.strip() or f'exit code {result.exit_code}')


def user_namespaces() -> Check:
    """Whether a user without rights may make namespaces; root's bubblewrap does without."""
    if not sys.platform.startswith('linux'):
        return _gap(
            'user-namespaces',
            _NO_LINUX,
            'none is needed for LocalSandbox, DockerSandbox and SshSandbox',
        )
    # Tried in a process of its own: what it makes, nobody else is in.
    answer = ask(sys.executable, '-I', '-S', '-c', _UNSHARE)
    if answer.code == 0 and answer.first_line == 'made':
        return _works('user-namespaces', 'one can be made')
    return _gap('user-namespaces', f'none can be made: {_said(answer)}', _namespace_fix(''))


def cgroups() -> Check:
    """Whether limits on memory and processes can be enforced by a group, which binds root and all processes together."""
    if not sys.platform.startswith('linux'):
        return _gap('cgroups', _NO_LINUX, 'use DockerSandbox, whose engine has limits of its own')
    group = Group(memory=64 << 20, pids=16)  # nobody enters it
    try:
        if group.kind != 'none':
            found = f'{group.kind}: a group with limits on memory and processes can be made'
            return _works('cgroups', found)
    finally:
        group.remove()
    version = 'v2' if os.path.exists(f'{ROOT}/cgroup.controllers') else 'v1'
    mounted = (
        f'cgroup {version} is mounted' if os.path.isdir(ROOT) else f'nothing is mounted at {ROOT}'
    )
    return _gap(
        'cgroups',
        f'{mounted}, but no group can be made: limits on memory and processes hold for each process by itself, and not for root',
        f'run as root where {ROOT} is writable; in a container: docker run --cgroupns=private -v {ROOT}:{ROOT}:rw. '
        'DockerSandbox has limits without',
    )


def docker() -> Check:
    """Docker's client and its engine."""
    return _engine(
        'docker',
        ('info', '--format', '{{.ServerVersion}}'),
        install='install Docker (apt install docker.io) or Podman',
        start='start the engine (sudo systemctl start docker), or let DOCKER_HOST or "docker context use" name one that runs',
    )


def podman() -> Check:
    """Podman, which needs no engine on Linux."""
    return _engine(
        'podman',
        ('info', '--format', '{{.Version.Version}}'),
        install='install Podman (apt install podman), for --sandbox podman:… and DockerSandbox(program="podman"); not needed beside Docker',
        start='see what "podman info" says; a user without rights needs entries in /etc/subuid and /etc/subgid',
    )


def _engine(name: str, question: tuple[str, ...], *, install: str, start: str) -> Check:
    program = shutil.which(name)
    if program is None:
        return _gap(name, f'there is no {name} on PATH', install)
    client = ask(program, '--version').first_line.rstrip(',')
    answer = ask(program, *question)
    release = answer.first_line
    if answer.code == 0 and re.match(r'[0-9]', release):
        return _works(name, f'{client} ({program}), engine {release}')
    if 'permission denied' in answer.output.lower():
        start = f'let this user use the engine (sudo usermod -aG {name} $USER, then log in again), or use Podman'
    return _gap(
        name, f'{client} ({program}), but its engine can not be used: {_said(answer)}', start
    )


def ssh() -> Check:
    """OpenSSH's client; whether a host can be reached is a question to that host."""
    program = shutil.which('ssh')
    if program is None:
        return _gap(
            'ssh',
            'there is no ssh on PATH',
            'install the OpenSSH client (apt install openssh-client)',
        )
    release = ask(program, '-V').first_line
    if 'OpenSSH' not in release:
        return _gap('ssh', f'{program} is {release!r}, not OpenSSH', 'install the OpenSSH client')
    return _works('ssh', f'{release} ({program}); try a host with: ssh -o BatchMode=yes HOST true')


def _namespace_fix(output: str) -> str:
    """What to change when no namespace can be made, by what the kernel's settings say."""
    if _setting('kernel/apparmor_restrict_unprivileged_userns') == '1':
        return (
            'AppArmor forbids it (Ubuntu 23.10 and later): give bwrap a profile with "userns,", or '
            'sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0'
        )
    if _setting('kernel/unprivileged_userns_clone') == '0':
        return 'sudo sysctl kernel.unprivileged_userns_clone=1'
    if _setting('user/max_user_namespaces') == '0':
        return 'sudo sysctl user.max_user_namespaces=15000'
    if 'proc' in output:
        return 'in a container: start it with --security-opt systempaths=unconfined, so that a new /proc can be mounted'
    return (
        'in a container: start it with --security-opt seccomp=unconfined --security-opt apparmor=unconfined '
        '(or a profile that allows unshare and mount); elsewhere ask who forbids unshare(2)'
    )


def _setting(name: str) -> str:
    try:
        with open(f'/proc/sys/{name}', encoding='ascii') as file:
            return file.read().strip()
    except OSError:
        return ''


def _said(answer: Answer) -> str:
    if answer.code is None:
        return 'it did not answer in time'
    lines = [line.strip() for line in answer.output.splitlines() if line.strip()]
    return lines[-1] if lines else f'exit code {answer.code}, no message'


def _works(name: str, found: str) -> Check:
    return Check(name=name, area='sandboxes', works=True, found=found)


def _gap(name: str, found: str, fix: str) -> Check:
    return Check(name=name, area='sandboxes', works=False, found=found, fix=fix)
