"""Real engines for the sandboxes' tests: an SSH server on a loopback port, and images for Docker."""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import tarfile
import time
from pathlib import Path

import pytest


class SshServer:
    """An sshd of our own, with keys made for the run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        with socket.socket() as free:
            free.bind(('127.0.0.1', 0))
            self.port = free.getsockname()[1]
        for name in ('host', 'user'):
            subprocess.run(
                ['ssh-keygen', '-q', '-t', 'ed25519', '-N', '', '-f', folder / name],
                check=True,
                timeout=30,
            )
        shutil.copy(folder / 'user.pub', folder / 'authorized')
        (folder / 'config').write_text(
            f'Port {self.port}\nListenAddress 127.0.0.1\nHostKey {folder}/host\nPidFile {folder}/pid\n'
            f'AuthorizedKeysFile {folder}/authorized\nStrictModes no\nUsePAM no\nPasswordAuthentication no\n'
            'MaxSessions 30\nMaxStartups 100\n'
        )
        self.process: subprocess.Popen | None = None

    def start(self) -> None:
        Path('/run/sshd').mkdir(exist_ok=True)  # its privilege separation wants one
        sshd = shutil.which('sshd', path=f'{os.environ["PATH"]}:/usr/sbin:/usr/local/sbin')
        self.process = subprocess.Popen(
            [sshd, '-D', '-f', self.folder / 'config', '-E', self.folder / 'log'],
            start_new_session=True,
        )
        end = time.monotonic() + 15
        while time.monotonic() < end:
            with (
                contextlib.suppress(OSError),
                socket.create_connection(('127.0.0.1', self.port), 1),
            ):
                return
            time.sleep(0.05)
        raise RuntimeError(f'sshd did not start: {(self.folder / "log").read_text()}')

    def connections(self) -> list[int]:
        """The processes of this server's connections."""
        found, seen = [self.process.pid], []
        while found:
            pid = found.pop()
            children = Path(f'/proc/{pid}/task/{pid}/children')
            with contextlib.suppress(OSError):
                for child in map(int, children.read_text().split()):
                    with contextlib.suppress(OSError):
                        if b'sshd' in Path(f'/proc/{child}/cmdline').read_bytes():
                            found.append(child)
                            seen.append(child)
        return seen

    def kill(self, *, connections: bool = True) -> None:
        """End the server at once, with its connections."""
        pids = self.connections() if connections else []
        for pid in (self.process.pid, *pids):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait(10)

    def arguments(self) -> dict:
        """What `SshSandbox` needs to get here."""
        return {
            'host': 'root@127.0.0.1' if os.geteuid() == 0 else '127.0.0.1',
            'port': self.port,
            'identity_file': str(self.folder / 'user'),
            'ssh_options': [f'UserKnownHostsFile={self.folder}/known_hosts'],
        }


@pytest.fixture(scope='session')
def ssh_server(tmp_path_factory):
    server = SshServer(tmp_path_factory.mktemp('sshd'))
    server.start()
    yield server
    if server.process.poll() is None:
        server.kill()


def _import_image(name: str, folder: Path) -> None:
    """Make an image of a folder's content."""
    with subprocess.Popen(
        ['docker', 'import', '-', name], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL
    ) as process:
        with tarfile.open(fileobj=process.stdin, mode='w|') as archive:
            archive.add(folder, '.')
        process.stdin.close()
        assert process.wait(300) == 0


def make_busybox_image(root: Path) -> str:
    """An image with busybox and nothing else, made in an empty folder."""
    for name in ('bin', 'etc', 'proc', 'tmp', 'home'):
        (root / name).mkdir()
    root.chmod(0o755)
    (root / 'tmp').chmod(0o1777)
    shutil.copy(shutil.which('busybox'), root / 'bin/busybox')
    applets = subprocess.run(
        ['busybox', '--list'], capture_output=True, text=True, check=True, timeout=30
    ).stdout.split()
    for applet in applets:
        if applet != 'busybox':
            (root / 'bin' / applet).symlink_to('busybox')
    (root / 'etc/passwd').write_text(
        'root:x:0:0:root:/:/bin/sh\nsomeone:x:1000:1000::/home:/bin/sh\n'
    )
    _import_image('anyshell-test-busybox', root)
    return 'anyshell-test-busybox'


GNU = """
sh bash cat chmod cp cut date dd dirname echo env false grep head id kill ln ls mkdir mkfifo mktemp mv printf ps pwd
readlink rm rmdir sed seq setsid sleep sort stat tail tee test touch tr true uname wc yes base64
""".split()  # noqa: SIM905 - fifty quoted words would be harder to read


def make_gnu_image(root: Path) -> str:
    """An image with this machine's own GNU programs and the libraries that they need, made in an empty folder."""
    for name in ('bin', 'etc', 'proc', 'tmp'):
        (root / name).mkdir()
    root.chmod(0o755)
    (root / 'tmp').chmod(0o1777)
    needed: set[str] = set()
    for name in GNU:
        if (path := shutil.which(name)) is None:
            continue
        shutil.copy(path, root / 'bin' / name)
        listing = subprocess.run(
            ['ldd', path], capture_output=True, text=True, check=False, timeout=30
        ).stdout
        needed |= {word for word in listing.split() if word.startswith('/')}
    for library in needed:
        target = root / library.lstrip('/')
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(library, target)
    (root / 'etc/passwd').write_text('root:x:0:0:root:/:/bin/bash\n')
    _import_image('anyshell-test-gnu', root)
    return 'anyshell-test-gnu'


def _image(make, folder):
    name = make(folder)
    yield name
    subprocess.run(['docker', 'rmi', '--force', name], capture_output=True, check=False, timeout=60)


@pytest.fixture(scope='session')
def busybox_image(tmp_path_factory):
    yield from _image(make_busybox_image, tmp_path_factory.mktemp('busybox'))


@pytest.fixture(scope='session')
def gnu_image(tmp_path_factory):
    yield from _image(make_gnu_image, tmp_path_factory.mktemp('gnu'))
