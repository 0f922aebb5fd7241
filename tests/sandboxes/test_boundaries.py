"""What each sandbox keeps a command from; SECURITY.md has these as a table."""

import asyncio
import contextlib
import os
import socket
import subprocess
import time
from pathlib import Path

import pytest

from anyshell import ShellOptions, ShellSession
from anyshell.sandbox.bubblewrap import BubblewrapSandbox
from anyshell.sandbox.docker import DockerSandbox
from anyshell.testing.sandbox_contract import sleeper

bubblewrap = pytest.mark.needs('bubblewrap')
docker = pytest.mark.needs('docker')


@bubblewrap
async def test_bubblewrap_hides_what_it_is_told_to(tmp_path):
    (tmp_path / 'work').mkdir()
    (tmp_path / 'keys').mkdir()
    (tmp_path / 'keys/id').write_text('secret')
    (tmp_path / 'token').write_text('secret')
    hidden = (tmp_path / 'keys', tmp_path / 'token')
    async with BubblewrapSandbox(cwd=tmp_path / 'work', hidden=hidden) as sandbox:
        result = await sandbox.execute(
            f'cat {tmp_path}/keys/id {tmp_path}/token; ls -A {tmp_path}/keys'
        )
        told = await sandbox.execute(f'echo x >{tmp_path}/keys/new')

    assert 'secret' not in result.stdout
    assert result.stdout == ''
    assert told.exit_code != 0


@bubblewrap
async def test_bubblewrap_hides_credentials_by_default(tmp_path, monkeypatch):
    monkeypatch.setenv('HOME', str(tmp_path))
    (tmp_path / '.ssh').mkdir()
    (tmp_path / '.ssh/id').write_text('secret')
    (tmp_path / 'work').mkdir()
    async with BubblewrapSandbox(cwd=tmp_path / 'work') as sandbox:
        result = await sandbox.execute(f'cat {tmp_path}/.ssh/id')

    assert (result.exit_code != 0, result.stdout) == (True, '')


@bubblewrap
async def test_bubblewrap_writes_only_where_it_may(tmp_path):
    for name in ('work', 'more', 'other'):
        (tmp_path / name).mkdir()
    async with BubblewrapSandbox(cwd=tmp_path / 'work', writable=(tmp_path / 'more',)) as sandbox:
        for path in ('work/a', 'more/a', 'other/a'):
            await sandbox.execute(f'echo x >{tmp_path}/{path}')
        await sandbox.execute(
            'echo x >/usr/anyshell-test; echo x >/etc/anyshell-test; rm -f /etc/hostname'
        )
        await sandbox.execute(
            f'mount -o remount,rw,bind {tmp_path}/other; echo x >{tmp_path}/other/b'
        )

    assert (tmp_path / 'work/a').exists()
    assert (tmp_path / 'more/a').exists()
    assert list((tmp_path / 'other').iterdir()) == []
    assert not Path('/usr/anyshell-test').exists()
    assert not Path('/etc/anyshell-test').exists()
    assert Path('/etc/hostname').exists() or not Path('/etc/hosts').is_file()


@bubblewrap
async def test_bubblewrap_has_a_tmp_of_its_own_that_its_commands_share(tmp_path):
    name = f'/tmp/anyshell-test-{sleeper()}'  # noqa: S108 - inside the sandbox
    async with BubblewrapSandbox(cwd=tmp_path) as sandbox:
        await sandbox.execute(f'echo shared >{name}')
        inside = await sandbox.execute(f'cat {name}')

        assert inside.stdout == 'shared\n'
        assert not Path(name).exists()


@bubblewrap
async def test_bubblewrap_has_no_network_but_a_loopback_that_its_commands_share(tmp_path):
    listener = socket.create_server(('127.0.0.1', 0))
    port = listener.getsockname()[1]
    reach = f'python3 -c "import socket; socket.create_connection((\'127.0.0.1\', {port}), 3)"'
    serve = 'python3 -m http.server 8765 --bind 127.0.0.1'
    ask = 'python3 -c "import urllib.request as u; print(u.urlopen(\'http://127.0.0.1:8765\', timeout=5).status)"'
    with listener:
        async with BubblewrapSandbox(cwd=tmp_path) as sandbox:
            outside = await sandbox.execute(reach)
            options = ShellOptions(denied_commands=(), unresolved='allow')
            async with ShellSession(options, sandbox=sandbox) as session:
                await session.start_command(serve)
                answer = await session.run(
                    f'for i in 1 2 3 4 5 6 7 8 9; do {ask} 2>/dev/null && break; sleep 0.5; done'
                )
        async with BubblewrapSandbox(cwd=tmp_path, network=True) as sandbox:
            allowed = await sandbox.execute(reach)

    assert outside.exit_code != 0
    assert answer.stdout == '200\n'
    assert allowed.exit_code == 0


@bubblewrap
async def test_bubblewrap_sees_and_signals_no_process_of_the_machine(tmp_path):
    seconds = sleeper()
    outside = subprocess.Popen(['sleep', seconds])
    try:
        async with BubblewrapSandbox(cwd=tmp_path) as sandbox:
            result = await sandbox.execute(
                f'kill -9 {outside.pid}; cat /proc/{outside.pid}/cmdline'
            )
            await _give_up(sandbox.execute('kill -9 -1'))
            seen = await sandbox.execute(
                f"cat /proc/[0-9]*/cmdline | tr '\\0' ' ' | grep -c 'sleep {seconds[:-1]}[{seconds[-1]}]'"
            )

        assert outside.poll() is None
        assert seconds not in result.stdout
        assert seen.stdout == '0\n'
    finally:
        outside.kill()
        outside.wait(10)


@bubblewrap
async def test_bubblewrap_reaches_no_socket_of_the_machine(tmp_path):
    async with BubblewrapSandbox(cwd=tmp_path) as sandbox:
        found = await sandbox.execute('find /run /var/run -type s 2>/dev/null')

    assert found.stdout == ''


@bubblewrap
async def test_bubblewrap_gives_no_capabilities(tmp_path):
    async with BubblewrapSandbox(cwd=tmp_path) as sandbox:
        status = await sandbox.execute('grep -E "^Cap(Eff|Prm|Bnd)" /proc/self/status')

    assert {line.split()[1] for line in status.stdout.splitlines()} == {'0' * 16}


BOMBS = {
    'shell': 'f() { f | f & }; f; sleep 2; echo alive',
    # Goes on for ever, ignores SIGTERM, and no process of it grows old.
    'python': """exec python3 -c '
import os, signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
while True:
    try:
        if os.fork() and os.fork(): os._exit(0)
        os.setsid()
    except OSError: pass
'""",
}


@bubblewrap
@pytest.mark.parametrize('bomb', BOMBS)
async def test_bubblewrap_holds_a_fork_bomb(tmp_path, bomb):
    async with BubblewrapSandbox(cwd=tmp_path, pids=200) as sandbox:
        if (await sandbox.execute('true')).exit_code == 0 and sandbox.limits == 'none':
            pytest.skip('no cgroup can be made here, and limits by user do not bind root')
        before = len(os.listdir('/proc'))
        await _give_up(sandbox.execute(BOMBS[bomb], timeout=4))
        most = len(os.listdir('/proc')) - before
    async with BubblewrapSandbox(cwd=tmp_path) as sandbox:
        assert (await sandbox.execute('echo after')).stdout == 'after\n'

    assert most < 400


async def _give_up(work) -> None:
    """Run something that is meant to go wrong, for 20 seconds at most."""
    # A time limit, or a sandbox in which nothing can be started any more.
    with contextlib.suppress(OSError):
        await asyncio.wait_for(work, 20)


@bubblewrap
async def test_bubblewrap_holds_memory(tmp_path):
    async with BubblewrapSandbox(cwd=tmp_path, memory=300 << 20) as sandbox:
        result = await sandbox.execute(
            'python3 -c "x = bytearray(900 << 20); print(len(x))"', timeout=30
        )

    assert 'bytearray' not in result.stdout
    assert result.exit_code != 0


@bubblewrap
async def test_bubblewrap_bounds_tmp_and_the_size_of_a_file(tmp_path):
    limits = {'tmp_size': 8 << 20, 'file_size': 4 << 20}
    async with BubblewrapSandbox(cwd=tmp_path, **limits) as sandbox:
        filled = await sandbox.execute(
            'for i in 1 2 3 4 5; do head -c 3000000 /dev/zero >/tmp/fill$i; done; du -k /tmp | tail -n 1'
        )
        await sandbox.execute('rm -f /tmp/fill*; head -c 9000000 /dev/zero >big')

    assert int(filled.stdout.split()[0]) <= (8 << 10) + 64  # and its directory
    assert (tmp_path / 'big').stat().st_size <= 4 << 20


@bubblewrap
async def test_bubblewrap_bounds_processor_time(tmp_path):
    begin = time.monotonic()
    async with BubblewrapSandbox(cwd=tmp_path, cpu_seconds=1) as sandbox:
        result = await sandbox.execute('while :; do :; done', timeout=30)

    assert result.exit_code > 128
    assert time.monotonic() - begin < 25


@bubblewrap
def test_bubblewrap_does_not_make_everything_writable():
    with pytest.raises(ValueError, match='whole machine writable'):
        BubblewrapSandbox(cwd='/')


@bubblewrap
async def test_bubblewrap_passes_exactly_its_variables(tmp_path):
    env = {'PATH': os.environ['PATH'], 'ONLY': 'this'}
    async with BubblewrapSandbox(cwd=tmp_path, env=env) as sandbox:
        found = await sandbox.execute('env')

    names = {line.split('=')[0] for line in found.stdout.splitlines()}
    assert names - {'PWD', 'OLDPWD', 'SHLVL', '_'} == {'PATH', 'ONLY'}


@docker
async def test_docker_sees_no_file_of_the_machine_but_its_mounts(busybox_image, tmp_path):
    (tmp_path / 'file').write_text('outside')
    mounts = (f'{tmp_path}:/data:ro',)
    async with DockerSandbox(image=busybox_image, mounts=mounts) as sandbox:
        result = await sandbox.execute(f'cat {tmp_path}/file; cat /data/file; echo x >/data/new')

    assert result.stdout == 'outside'
    assert [path.name for path in tmp_path.iterdir()] == ['file']


@docker
async def test_docker_has_no_network_by_default(busybox_image):
    async with DockerSandbox(image=busybox_image) as sandbox:
        result = await sandbox.execute('ls /sys/class/net; cat /proc/net/dev | wc -l')

    assert result.stdout.split()[:1] == ['lo']
    assert result.stdout.split()[-1] == '3'


@docker
async def test_docker_sees_no_process_of_the_machine_and_gives_no_capabilities(busybox_image):
    seconds = sleeper()
    outside = subprocess.Popen(['sleep', seconds])
    try:
        async with DockerSandbox(image=busybox_image) as sandbox:
            result = await sandbox.execute(
                f'kill -9 {outside.pid}; ps; grep CapEff /proc/self/status'
            )

        assert outside.poll() is None
        assert f'sleep {seconds}' not in result.stdout
        assert result.stdout.split()[-1] == '0' * 16
    finally:
        outside.kill()
        outside.wait(10)


@docker
async def test_docker_holds_a_fork_bomb(busybox_image):
    async with DockerSandbox(image=busybox_image, pids=100) as sandbox:
        await sandbox.execute('true')
        before = len(os.listdir('/proc'))
        await _give_up(sandbox.execute(BOMBS['shell'], timeout=4))
        most = len(os.listdir('/proc')) - before

    assert most < 300


@docker
async def test_docker_holds_memory(busybox_image):
    async with DockerSandbox(image=busybox_image, memory='64m') as sandbox:
        result = await sandbox.execute(
            'head -c 300000000 /dev/zero | tail -c 250000000 | wc -c', timeout=30
        )

    assert result.stdout.strip() != '250000000'
