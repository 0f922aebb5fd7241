"""What happens when a server, a container or a client dies in the middle of a command and of a background command."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from anyshell import LocalSandbox, SandboxClosed, ShellOptions, ShellSession
from anyshell.errors import SandboxError, SandboxUnavailable
from anyshell.sandbox import waits
from anyshell.sandbox.bubblewrap import BubblewrapSandbox
from anyshell.sandbox.channels import Channel
from anyshell.sandbox.docker import DockerSandbox
from anyshell.sandbox.ssh import SshSandbox
from anyshell.testing.sandbox_contract import sleeper, until


def session_over(sandbox):
    return ShellSession(ShellOptions(denied_commands=(), unresolved='allow'), sandbox=sandbox)


def pids(seconds: str) -> list[int]:
    """The processes `sleep SECONDS` of this machine, which are also those of its containers."""
    found = []
    for entry in Path('/proc').iterdir():
        with contextlib.suppress(OSError):
            words = (entry / 'cmdline').read_bytes().split(b'\0')
            if words[-2:-1] == [seconds.encode()] and b'sleep' in b' '.join(words[:2]):
                found.append(int(entry.name))
    return found


async def runs(seconds: str) -> bool:
    async def some() -> bool:
        return bool(pids(seconds))

    return await until(some)


async def ended(seconds: str, within: float = 10) -> bool:
    async def none() -> bool:
        return not pids(seconds)

    return await until(none, within)


def client_of(sandbox) -> list[int]:
    """The client processes of a sandbox's shells."""
    channel = sandbox._channel
    lanes = {*channel._lent, *channel._free, *channel._settling}
    return [lane.popen.pid for lane in lanes if lane.popen is not None]


async def docker(*arguments: str) -> str:
    """What the client says; the loop goes on meanwhile."""
    done = await asyncio.to_thread(
        subprocess.run,
        ['docker', *arguments],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return done.stdout


@contextlib.asynccontextmanager
async def container_of_the_users(image: str):
    """The name of a container that no sandbox has started."""
    started = await docker('run', '-d', '--network=none', image, 'sleep', '600')
    name = started.strip()
    try:
        yield name
    finally:
        await docker('rm', '-f', name)


@pytest.mark.needs('ssh')
async def test_a_server_that_dies_in_a_command_is_told_and_the_next_call_connects_again(ssh_server):
    seconds = sleeper()
    sandbox = SshSandbox(**ssh_server.arguments())
    async with session_over(sandbox) as session:
        task = asyncio.create_task(session.run(f'sleep {seconds}'))
        assert await runs(seconds)
        ssh_server.kill()
        try:
            with pytest.raises(SandboxError, match='was lost in the middle of the call'):
                await task
            assert await ended(seconds)
            with pytest.raises(SandboxUnavailable, match='check that it is up'):
                await session.run('echo nobody')
        finally:
            ssh_server.start()
        again = await session.run('echo again')
    await sandbox.aclose()

    assert again.stdout == 'again\n'


@pytest.mark.needs('ssh')
async def test_a_job_goes_on_while_the_connection_is_gone(ssh_server):
    seconds = sleeper()
    sandbox = SshSandbox(**ssh_server.arguments())
    async with session_over(sandbox) as session:
        await session.start_command(f'echo kept; sleep {seconds}')
        assert await runs(seconds)
        ssh_server.kill()
        ssh_server.start()
        checked = await session.check_command('j1')
        still = bool(pids(seconds))
        stopped = await session.stop_command('j1')
        assert await ended(seconds)
    await sandbox.aclose()

    assert 'running' in checked
    assert 'kept' in checked
    assert still
    assert stopped.startswith('[stopped: ')


@pytest.mark.needs('ssh')
async def test_jobs_end_when_nobody_connects_again_in_time(ssh_server):
    seconds = sleeper()
    sandbox = SshSandbox(**ssh_server.arguments(), disconnect_grace=2)
    session = session_over(sandbox)
    await session.start_command(f'sleep {seconds}')
    assert await runs(seconds)
    folder = sandbox._channel.folder
    ssh_server.kill()
    ssh_server.start()

    assert await ended(seconds, 20)
    answer = await session.check_command('j1')
    assert 'has been ended' in answer
    assert (await session.run('echo on')).stdout == 'on\n'
    await session.aclose()
    await sandbox.aclose()
    assert not Path(folder).exists()


@pytest.mark.parametrize(
    'make',
    [
        LocalSandbox,
        pytest.param(BubblewrapSandbox, marks=pytest.mark.needs('bubblewrap')),
    ],
)
async def test_a_sandbox_that_is_closed_runs_nothing_more(make, tmp_path):
    sandbox = make(cwd=tmp_path)
    async with session_over(sandbox) as before:
        await before.run('true')
        await sandbox.aclose()
        with pytest.raises(SandboxClosed, match='make a new one'):
            await sandbox.execute('true')
        with pytest.raises(SandboxClosed, match='make a new one'):
            async with session_over(sandbox) as after:
                await after.run('true')


@pytest.mark.needs('docker')
async def test_a_container_that_dies_in_a_command_is_named_and_never_replaced(busybox_image):
    seconds = sleeper()
    sandbox = DockerSandbox(image=busybox_image)
    session = session_over(sandbox)
    await session.start_command(f'sleep {seconds}')
    task = asyncio.create_task(session.run(f'sleep {seconds}'))
    assert await runs(seconds)
    name = sandbox.container
    await asyncio.to_thread(
        subprocess.run, ['docker', 'kill', name], check=True, capture_output=True, timeout=60
    )
    with pytest.raises(SandboxUnavailable, match='everything that ran in it has ended'):
        await task
    with pytest.raises(SandboxUnavailable, match='make a new DockerSandbox'):
        await session.run('echo new')
    answer = await session.check_command('j1')
    await session.aclose()
    await sandbox.aclose()

    assert name in answer
    assert sandbox.container == name
    assert await ended(seconds)


@pytest.mark.needs('docker')
async def test_a_client_that_dies_in_a_command_ends_it_in_the_container(busybox_image):
    seconds, other = sleeper(), sleeper()
    sandbox = DockerSandbox(image=busybox_image)
    async with session_over(sandbox) as session:
        await session.start_command(f'echo job; sleep {other}')
        task = asyncio.create_task(session.run(f'sleep {seconds}'))
        assert await runs(seconds)
        for pid in client_of(sandbox):
            os.kill(pid, signal.SIGKILL)
        with pytest.raises(SandboxError, match='was lost in the middle of the call'):
            await task
        assert await ended(seconds)
        checked = await session.check_command('j1')
        assert await runs(other)
    assert await ended(other)
    await sandbox.aclose()

    assert 'running' in checked
    assert 'job' in checked


@pytest.mark.needs('bubblewrap')
async def test_namespaces_that_die_are_told_and_made_anew(tmp_path):
    seconds, other = sleeper(), sleeper()
    sandbox = BubblewrapSandbox(cwd=tmp_path)
    async with session_over(sandbox) as session:
        await session.start_command(f'sleep {other}')
        task = asyncio.create_task(session.run(f'sleep {seconds}'))
        assert await runs(seconds)
        assert await runs(other)
        os.killpg(sandbox._namespaces._root.popen.pid, signal.SIGKILL)
        with pytest.raises(SandboxError, match='all background commands'):
            await task
        assert await ended(seconds)
        assert await ended(other)
        answer = await session.check_command('j1')
        again = await session.run('echo anew')
    await sandbox.aclose()

    assert 'has been ended' in answer
    assert again.stdout == 'anew\n'


OWNER = """
    import asyncio, sys
    from anyshell import ShellOptions, ShellSession
    from anyshell.sandbox import BubblewrapSandbox, DockerSandbox, SshSandbox

    async def main():
        sandbox = eval(sys.argv[1])
        session = ShellSession(ShellOptions(denied_commands=(), unresolved='allow'), sandbox=sandbox)
        await session.start_command('sleep ' + sys.argv[2])
        await session.run('setsid sleep ' + sys.argv[2], timeout=600)

    asyncio.run(main())
"""


async def owner_dies(make: str) -> None:
    """Start a process that owns a sandbox with a command and a job, kill it, and see both go."""
    seconds = sleeper()
    owner = subprocess.Popen([sys.executable, '-c', textwrap.dedent(OWNER), make, seconds])

    async def both() -> bool:
        return len(pids(seconds)) >= 2

    try:
        assert await until(both, 30)
    finally:
        owner.kill()
        owner.wait(10)

    assert await ended(seconds, 20)


@pytest.mark.needs('ssh')
async def test_an_owner_that_is_killed_leaves_nothing_on_the_host(ssh_server):
    arguments = ssh_server.arguments()
    await owner_dies(f'SshSandbox(**{arguments!r}, disconnect_grace=2)')


@pytest.mark.needs('docker')
async def test_an_owner_that_is_killed_leaves_no_container(busybox_image):
    await owner_dies(f'DockerSandbox(image={busybox_image!r})')
    end = time.monotonic() + 10
    while time.monotonic() < end and 'anyshell-' in await _names():
        await asyncio.sleep(0.1)

    assert 'anyshell-' not in await _names()


async def _names() -> str:
    return await docker('ps', '--all', '--format={{.Names}}')


@pytest.mark.needs('bubblewrap')
async def test_an_owner_that_is_killed_leaves_no_namespaces(tmp_path):
    await owner_dies(f'BubblewrapSandbox(cwd={str(tmp_path)!r})')


@pytest.mark.needs('docker')
async def test_a_container_that_is_not_there_is_an_error_that_names_it():
    sandbox = DockerSandbox('no-such-container-here')
    with pytest.raises(SandboxUnavailable, match="no container 'no-such-container-here'"):
        await sandbox.execute('true')
    await sandbox.aclose()


@pytest.mark.needs('docker')
async def test_a_container_of_the_users_stays(busybox_image):
    async with container_of_the_users(busybox_image) as name:
        async with DockerSandbox(name, user='someone', working_dir='/home') as sandbox:
            result = await sandbox.execute('id -un; pwd')

        async def clean() -> bool:
            listing = await docker('exec', name, 'ps', '-o', 'args')
            return 'sh' not in listing.split('\n')

        left_nothing = await until(clean)

    assert result.stdout == 'someone\n/home\n'
    assert left_nothing


async def test_a_client_that_is_missing_is_an_error_that_says_so(monkeypatch, tmp_path):
    monkeypatch.setenv('PATH', '/nonexistent')
    for sandbox, name in (
        (DockerSandbox('x'), 'docker is not installed'),
        (DockerSandbox(image='x', program='podman'), 'podman is not installed'),
        (SshSandbox('nowhere'), 'ssh is not installed'),
        (BubblewrapSandbox(cwd=tmp_path), 'bwrap is not installed'),
    ):
        with pytest.raises(SandboxUnavailable, match=name):
            await sandbox.execute('true')
        await sandbox.aclose()


def test_ssh_options_that_start_programs_are_refused():
    for option in (
        'ProxyCommand=id',
        'LocalCommand id',
        'permitlocalcommand=yes',
        'Match exec "id"',
        'Include x',
    ):
        with pytest.raises(ValueError, match='is not allowed'):
            SshSandbox('host', ssh_options=[option])
    SshSandbox('host', ssh_options=['ProxyCommand=x'], allow_unsafe_ssh_options=True)
    SshSandbox('host', ssh_options=['ConnectTimeout=5', 'compression yes'])


@pytest.mark.needs('ssh')
async def test_a_host_name_is_never_an_option(tmp_path):
    sandbox = SshSandbox(f'-oProxyCommand=touch {tmp_path}/owned')
    with pytest.raises(SandboxUnavailable):
        await sandbox.execute('true')
    await sandbox.aclose()

    assert list(tmp_path.iterdir()) == []


@pytest.mark.needs('ssh')
async def test_a_key_that_is_not_known_there_is_an_error_that_says_so(ssh_server, tmp_path):
    subprocess.run(
        ['ssh-keygen', '-q', '-t', 'ed25519', '-N', '', '-f', tmp_path / 'other'],
        check=True,
        timeout=30,
    )
    sandbox = SshSandbox(**{**ssh_server.arguments(), 'identity_file': str(tmp_path / 'other')})
    with pytest.raises(SandboxUnavailable, match='check the user and the key'):
        await sandbox.execute('true')
    await sandbox.aclose()


@pytest.mark.needs('ssh')
async def test_files_behind_a_frozen_connection_are_given_up(ssh_server, monkeypatch, tmp_path):
    monkeypatch.setattr(waits, 'STALLED', 1.0)
    monkeypatch.setattr(Channel, 'patience', 1.0)
    async with SshSandbox(**ssh_server.arguments()) as sandbox:
        await sandbox.write_file(f'{tmp_path}/small', b'content')
        frozen = ssh_server.connections()
        for pid in frozen:
            os.kill(pid, signal.SIGSTOP)
        try:
            begin = time.monotonic()
            with pytest.raises(SandboxError, match='answer'):
                await sandbox.read_file(f'{tmp_path}/small')
            with pytest.raises(SandboxError, match='answer'):
                await sandbox.write_file(f'{tmp_path}/big', bytes(4 << 20))
            assert time.monotonic() - begin < 40
        finally:
            for pid in frozen:
                os.kill(pid, signal.SIGCONT)

        assert await sandbox.read_file(f'{tmp_path}/small') == b'content'


@pytest.mark.needs('docker')
async def test_a_container_that_was_restarted_has_lost_its_jobs_and_goes_on(busybox_image):
    async with (
        container_of_the_users(busybox_image) as name,
        DockerSandbox(name) as sandbox,
        session_over(sandbox) as session,
    ):
        await session.start_command('echo once; sleep 500')
        await session.check_command('j1')
        await docker('restart', '--time=0', name)
        with contextlib.suppress(SandboxError):  # a connection that looked alive
            await session.run('true')
        again = await session.run('echo again')

        async def told() -> bool:
            return 'has been ended' in await session.check_command('j1')

        lost = await until(told)

    assert again.stdout == 'again\n'
    assert lost


FORK = """
    import asyncio, os, sys
    from anyshell.sandbox import BubblewrapSandbox, DockerSandbox, SshSandbox

    async def say(word):
        print((await sandbox.execute('echo ' + word)).stdout, end='', flush=True)

    sandbox = eval(sys.argv[1])
    asyncio.run(say('before'))
    child = os.fork()
    asyncio.run(say('parent' if child else 'child'))
    if child:
        os.waitpid(child, 0)
        asyncio.run(say('after'))
    asyncio.run(sandbox.aclose())
"""


async def forks(make: str) -> None:
    done = await asyncio.to_thread(
        subprocess.run,
        [
            sys.executable,
            '-W',
            'error',
            '-W',
            'ignore::DeprecationWarning',
            '-c',
            textwrap.dedent(FORK),
            make,
        ],
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )

    assert done.stderr == ''
    assert sorted(done.stdout.split()) == ['after', 'before', 'child', 'parent']


@pytest.mark.needs('ssh')
async def test_a_forked_child_has_a_connection_of_its_own(ssh_server):
    await forks(f'SshSandbox(**{ssh_server.arguments()!r})')


@pytest.mark.needs('docker')
async def test_a_forked_child_shares_the_container_and_leaves_it_to_its_parent(busybox_image):
    await forks(f'DockerSandbox(image={busybox_image!r})')


@pytest.mark.needs('bubblewrap')
async def test_a_forked_child_has_namespaces_of_its_own(tmp_path):
    await forks(f'BubblewrapSandbox(cwd={str(tmp_path)!r})')


@pytest.mark.needs('ssh')
async def test_a_command_that_removes_the_far_sides_files_costs_what_runs_and_no_more(ssh_server):
    seconds = sleeper()
    async with SshSandbox(**ssh_server.arguments()) as sandbox, session_over(sandbox) as session:
        await session.start_command(f'sleep {seconds}')
        await sandbox.execute(f'rm -rf {sandbox._channel.folder}')
        started = await session.start_command('echo up')
        answer = await session.run_command('echo up')

        assert started.endswith('ID: j2')
        assert answer == '[stdout]\nup\n'
        assert Path(sandbox._channel.folder, 'life').is_fifo()
    assert await ended(seconds)
