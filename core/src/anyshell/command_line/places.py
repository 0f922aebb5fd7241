"""Which sandboxes this host can start, and what it can enforce in them. Each is tried, not guessed from a version."""

from __future__ import annotations

import os
import re
import shutil
import sys

from anyshell.command_line.checks import Answer, Check, ask

_STARTED = ('--ro-bind', '/', '/', '--dev', '/dev', '--proc', '/proc', '--die-with-parent')
_NAMESPACES = ('--unshare-pid', '--unshare-ipc', '--unshare-net')
_UNSHARE = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
print(os.strerror(ctypes.get_errno()) if libc.unshare(0x10000000) else 'made')
"""  # CLONE_NEWUSER (namespaces(7)); Python has os.unshare from 3.12 on
_NO_LINUX = 'only Linux has it'


def bubblewrap() -> Check:
    """Whether `bwrap` is there and may make namespaces, which in many containers it may not."""
    program = shutil.which('bwrap')
    if program is None:
        fix = (
            'install bubblewrap: apt install bubblewrap, dnf install bubblewrap, apk add bubblewrap'
        )
        if not sys.platform.startswith('linux'):
            fix = f'{_NO_LINUX}; use DockerSandbox'
        return _gap('bubblewrap', 'there is no bwrap on PATH', fix)
    release = ask(program, '--version').first_line
    answer = ask(program, *_STARTED, *_NAMESPACES, '/bin/sh', '-c', 'echo started')
    if answer.code == 0 and answer.first_line == 'started':
        found = f'{release} ({program}) starts, with PID, IPC and network namespaces of its own'
        return _works('bubblewrap', found)
    found = f'{release} ({program}) does not start: {_said(answer)}'
    return _gap('bubblewrap', found, _namespace_fix(answer.output))


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
    """Whether limits on memory and processes can be enforced by a group, which binds root too."""
    if not sys.platform.startswith('linux'):
        return _gap('cgroups', _NO_LINUX, 'use DockerSandbox, whose engine has limits of its own')
    try:
        with open('/proc/self/cgroup', encoding='utf-8', errors='surrogateescape') as file:
            membership = file.read()
        with open('/proc/self/mountinfo', encoding='utf-8', errors='surrogateescape') as file:
            mounts = file.read()
    except OSError as error:
        return _gap('cgroups', f'/proc can not be read ({error.strerror})', 'mount /proc')
    reasons: list[str] = []
    for kind, places in group_places(membership, mounts).items():
        refused = next((why for place in places if (why := _refused(place, kind))), None)
        if refused is None:
            return _works(
                'cgroups', f'{kind}: a group with limits on memory and processes can be made'
            )
        reasons.append(f'{kind}: {refused}')
    return _gap(
        'cgroups',
        '; '.join(reasons) or 'no group with limits on memory and processes is mounted',
        'limits fall back to rlimits, which do not bind root. On a host with systemd start the agent by '
        '"systemd-run --user --scope -p Delegate=yes"; in a container mount /sys/fs/cgroup writable',
    )


def group_places(membership: str, mounts: str) -> dict[str, list[str]]:
    """Where groups of this process can be made: kind -> directories that are all needed.

    Args:
        membership: The text of `/proc/self/cgroup` (cgroups(7)).
        mounts: The text of `/proc/self/mountinfo` (proc_pid_mountinfo(5)).
    """
    own = {
        controller: path
        for line in membership.splitlines()
        if line.count(':') >= 2
        for controllers, path in [line.split(':', 2)[1:]]
        for controller in controllers.split(',')
    }
    found: dict[str, list[str]] = {}
    version_1: dict[str, str] = {}
    for line in mounts.splitlines():
        before, _, after = line.partition(' - ')
        fields, kind = before.split(' '), after.split(' ')
        if len(fields) < 5 or len(kind) < 3:
            continue
        root, point = fields[3], fields[4]
        if kind[0] == 'cgroup2' and '' in own:
            found.setdefault('cgroups v2', [_below(point, root, own[''])])
        elif kind[0] == 'cgroup':
            for controller in ('memory', 'pids'):
                if controller in kind[2].split(',') and controller in own:
                    version_1.setdefault(controller, _below(point, root, own[controller]))
    if len(version_1) == 2:
        found['cgroups v1'] = list(version_1.values())
    return found


def _below(point: str, root: str, path: str) -> str:
    """The directory of a group in a mount that shows the hierarchy from `root` on."""
    inside = os.path.relpath(path, root) if root != '/' else path.lstrip('/')
    # In a container the path may be the host's, of which the mount shows nothing.
    return point if inside.startswith('..') else os.path.normpath(os.path.join(point, inside))


def _refused(place: str, kind: str) -> str:
    """Why no group with limits can be made in a directory; '' when one can."""
    group = os.path.join(place, f'anyshell-doctor-{os.getpid()}')
    try:
        os.mkdir(group)
    except OSError as error:
        return f'no group can be made ({error.strerror})'
    try:
        files = os.listdir(group)
    finally:
        os.rmdir(group)
    wanted = ('memory.max', 'pids.max') if kind == 'cgroups v2' else ()
    lacking = [name.partition('.')[0] for name in wanted if name not in files]
    return (
        f'the controllers {" and ".join(lacking)} are not delegated to this process'
        if lacking
        else ''
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
        install="install Podman (apt install podman) for DockerSandbox(program='podman'); not needed beside Docker",
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
