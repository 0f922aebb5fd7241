"""Programs in a bad state use anyshell: it must work there, or say what is wrong."""

import os
import resource
import shutil
import signal
import subprocess
from collections.abc import Iterator

import pytest

RUN = """
    async def main():
        async with session() as shell:
            print(await shell.run('echo out; echo err >&2; exit 3'), file=open('result', 'w'))
            await shell.start_command('echo up; exit 4')
            reply = await shell.tools[2].call({'command_id': 'j1', 'wait_seconds': 30})
            print(reply.text, file=open('job', 'w'))
    asyncio.run(main())
"""


def assert_ran(tmp_path) -> None:
    assert "exit_code=3, stdout='out\\n', stderr='err\\n'" in (tmp_path / 'result').read_text()
    job = (tmp_path / 'job').read_text()
    assert job == '[status: finished]\n[exit code: 4]\n[stdout]\nup\n\n'


@pytest.mark.parametrize('closed', [(0,), (1,), (2,), (0, 2), (0, 1, 2)])
def test_a_host_without_standard_descriptors_runs_commands(host, tmp_path, closed) -> None:
    def close() -> None:
        for number in closed:
            os.close(number)

    host(RUN, preexec=close)

    assert_ran(tmp_path)


def test_a_host_that_ignores_sigchld_gets_output_and_ends_its_commands(host, sleep) -> None:
    # The kernel reaps for such a host, so that nobody learns the exit code.
    printed = host(f"""
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        async def main():
            async with session(kill_grace=0.2) as shell:
                print((await shell.run('echo out')).stdout)
                print((await shell.run('{sleep.command} & wait', timeout=1)).timed_out)
                await shell.start_command('{sleep.command}')
        asyncio.run(main())
    """)

    assert printed == 'out\n\n1.0\n'
    assert sleep.ends()


def test_a_host_that_ignores_sigchld_learns_exit_codes(host, tmp_path) -> None:
    host(f'\n    signal.signal(signal.SIGCHLD, signal.SIG_IGN){RUN}')
    assert_ran(tmp_path)

    printed = host("""
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        async def main():
            async with session() as shell:
                for line in ('kill -9 $$', 'kill $$', 'exec sh -c "exit 5"', 'no-such-program', ': ' + 'x' * 200_000):
                    result = await shell.run(line)
                    print(result.exit_code, 'illed' in result.stderr)
                print(os.listdir(shell._processes._directory))
        asyncio.run(main())
    """)
    assert printed == '137 False\n143 False\n5 False\n127 False\n0 False\n[]\n'


# Waits for every child of the host, as a supervisor may.
STEAL = """
        import threading
        def steal():
            while True:
                try:
                    os.waitpid(-1, 0)
                except ChildProcessError:
                    time.sleep(0.001)
        threading.Thread(target=steal, daemon=True).start()"""


def test_a_host_that_takes_an_exit_code_is_told_so_once(host) -> None:
    printed = host(
        STEAL
        + """
        results = []
        with session() as shell:
            for number in range(30):
                results.append(shell.run_sync('exit 3', timeout=20))
        lost = [result for result in results if result.exit_code != 3]
        assert len(lost) <= 1, results
        for result in lost:
            assert result.exit_code == 255, result
            assert 'something in the program that ran this command took its exit code' in result.stderr, result
        print('done')
    """
    )

    assert printed == 'done\n'


def test_a_host_that_waits_for_every_child_takes_no_output_and_no_end(host) -> None:
    # As a supervisor may, in a thread: exit codes may go to it, output and ends must not.
    printed = host(
        STEAL
        + """
        with session() as shell:
            for number in range(30):
                assert shell.run_sync(f'echo {number}', timeout=20).stdout == f'{number}\\n'
        print('done')
    """
    )

    assert printed == 'done\n'


def test_a_host_that_blocks_signals_ends_its_commands_all_the_same(host, sleep) -> None:
    def block() -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())

    printed = host(
        f"""
        with session(kill_grace=0.2) as shell:
            print(shell.run_sync('{sleep.command} & wait', timeout=1).timed_out)
        """,
        preexec=block,
    )

    assert printed == '1.0\n'
    assert sleep.ends()


def test_a_host_whose_commands_can_not_be_marked_says_so_once(host) -> None:
    def lower() -> None:
        resource.setrlimit(10, (1000, 1000))  # RLIMIT_LOCKS, as `ulimit -x 1000` does

    printed = host(
        """
        import logging
        logging.basicConfig(stream=sys.stdout, format='%(message)s')
        for number in range(2):
            with session(kill_grace=0.2) as shell:
                print(shell.run_sync('sleep 1000 & sleep 1000', timeout=0.2).timed_out)
        from anyshell.command_line.doctor.host import engine
        print(engine().fix)
        """,
        preexec=lower,
    )

    warned, *limits, fix = printed.splitlines()
    assert warned.startswith(
        'commands can not be marked, since the hard limit on file locks is 1000 here'
    )
    assert limits == ['0.2', '0.2']
    assert fix.startswith('leave the hard limit on file locks alone, which is 1000 here')


@pytest.mark.needs('bubblewrap')
def test_a_sandbox_whose_commands_can_not_be_marked_runs_none(host) -> None:
    def lower() -> None:
        resource.setrlimit(10, (1000, 1000))

    printed = host(
        """
        from anyshell import BubblewrapSandbox, SandboxUnavailable
        with BubblewrapSandbox() as sandbox, ShellSession(sandbox=sandbox) as shell:
            try:
                shell.run_sync('echo hi')
            except SandboxUnavailable as error:
                print(error)
        """,
        preexec=lower,
    )

    assert 'an untouched limit on file locks' in printed


def test_a_host_with_few_descriptors_gets_a_sentence_and_goes_on(host) -> None:
    def few() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))

    printed = host(
        """
        async def main():
            async with session(max_jobs=64) as shell:
                texts = [await shell.start_command('sleep 1000') for _ in range(40)]
                runs = await asyncio.gather(*(shell.run_command('echo hi') for _ in range(30)))
                for text in (*texts, *runs):
                    assert text.startswith(('Started', '[Error: ')) or 'hi' in text, text
                for number in range(1, 41):
                    await shell.stop_command(f'j{number}')
                print(await shell.run_command('echo after'))
        asyncio.run(main())
        """,
        preexec=few,
    )

    assert printed == '[stdout]\nafter\n\n'


def test_a_temporary_directory_that_is_missing_is_done_without(host, tmp_path) -> None:
    host(RUN, TMPDIR=str(tmp_path / 'missing'))

    assert_ran(tmp_path)


def test_a_temporary_directory_that_takes_nothing_is_said(host, tmp_path) -> None:
    (tmp_path / 'file').touch()  # a file is no directory, for root too
    printed = host("""
        import tempfile
        tempfile.tempdir = os.path.abspath('file')
        async def main():
            async with session() as shell:
                print(await shell.start_command('sleep 1000'))
                print(await shell.run_command('echo after'))
        asyncio.run(main())
    """)

    assert printed.startswith('[Error: no temporary directory can be made')
    assert printed.endswith('[stdout]\nafter\n\n')


@pytest.fixture
def disk(tmp_path) -> Iterator[str]:
    """A directory on a disk that holds 1 MiB."""
    path = tmp_path / 'disk'
    path.mkdir()
    mount = ['mount', '-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', str(path)]
    if (
        not shutil.which('mount')
        or subprocess.run(mount, capture_output=True, check=False, timeout=30).returncode
    ):
        pytest.skip('no file system may be mounted here')
    yield str(path)
    subprocess.run(['umount', str(path)], check=True, timeout=30)


def test_a_full_disk_takes_logs_but_no_command(host, disk) -> None:
    printed = host(
        """
        async def main():
            async with session() as shell:
                long = await shell.run('head -c 20000000 /dev/zero; echo end >&2; exit 5')
                print(long.exit_code, long.timed_out, long.truncated, long.stderr, long.stdout[-9:] == 9 * '\\0')
                await shell.start_command('head -c 5000000 /dev/zero; exit 6')
                await shell.tools[2].call({'command_id': 'j1', 'wait_seconds': 30})
                for known in shell._jobs.ids:
                    await shell.stop_command(known)
                print((await shell.run('echo after')).stdout)
        asyncio.run(main())
        """,
        TMPDIR=disk,
    )

    assert printed == '5 None True end\n True\nafter\n\n'
    assert os.listdir(disk) == []


FILLED = """
    from anyshell import BubblewrapSandbox
    async def main():
        options = ShellOptions(cwd='/usr', persist_cwd={sandbox} is None)
        async with ShellSession(options, policy=AllowAll(), sandbox={sandbox}) as shell:
            await shell.run('seq 1 100000')  # has a private directory now
            fill = open(os.environ['TMPDIR'] + '/fill', 'wb', 0)
            try:
                while True:
                    fill.write(bytes(4096))
            except OSError:
                pass
            long = await shell.run('seq 1 300000; echo said >&2; exit 5')
            print(long.exit_code, long.truncated, long.stdout.endswith('299999\\n300000\\n'), long.stderr)
            if {sandbox} is None:
                print((await shell.run('cd /etc')).stderr, shell.cwd)
                await shell.start_command('echo lost')
                print((await shell.tools[2].call({{'command_id': 'j3', 'wait_seconds': 30}})).text)
    asyncio.run(main())
"""


def test_a_disk_that_others_have_filled_takes_no_tail_and_what_is_lost_is_said(host, disk) -> None:
    printed = host(FILLED.format(sandbox=None), TMPDIR=disk)

    ran, _, _, moved, cwd, *job = printed.splitlines()
    assert ran == '5 True True said'
    assert moved.startswith(
        '[the disk for temporary files is full: the working directory is still /usr'
    )
    assert cwd == ' /usr'
    assert '[the disk for temporary files is full: this output is lost]' in job


@pytest.mark.needs('bubblewrap')
def test_a_disk_that_others_have_filled_takes_no_tail_of_a_sandbox(host, disk) -> None:
    printed = host(FILLED.format(sandbox='BubblewrapSandbox()'), TMPDIR=disk)

    assert printed == '5 True True said\n\n'


def test_an_ordinary_user_ends_all_that_it_started(host, sleep, tmp_path) -> None:
    if os.getuid() or not shutil.which('setpriv'):
        pytest.skip('only root can become somebody else, with setpriv')
    user = ('setpriv', '--reuid=65534', '--regid=65534', '--clear-groups')
    for folder in (tmp_path, *tmp_path.parents[:2]):
        folder.chmod(0o777)
    (tmp_path / 'tmp').mkdir()
    (tmp_path / 'tmp').chmod(0o777)
    program = f"""
        assert os.getuid() == 65534
        if not os.access(sys.executable, os.X_OK):
            sys.executable = '/usr/bin/python3'
        async def main():
            async with session(kill_grace=0.2) as shell:
                await shell.start_command('setsid {sleep.command} & {sleep.command}')
                print((await shell.run('(setsid {sleep.command} &); {sleep.command}', timeout=1)).timed_out)
                print((await shell.run('cat /etc/shadow')).exit_code)
        asyncio.run(main())
    """
    try:
        host('', *user)
    except (AssertionError, OSError):
        pytest.skip('an ordinary user can not run this Python')
    printed = host(program, *user, TMPDIR=str(tmp_path / 'tmp'), HOME=str(tmp_path))

    assert printed == '1.0\n1\n'
    assert sleep.ends()
    assert os.listdir(tmp_path / 'tmp') == []


def test_an_environment_that_is_too_big_is_said_and_one_that_is_nearly_works(host) -> None:
    printed = host("""
        async def main():
            async with session(env={**os.environ, 'BIG': 'x' * 120_000}) as shell:
                print((await shell.run('echo ${#BIG}')).stdout)
            async with session(env={**os.environ, 'BIG': 'x' * 200_000}) as shell:
                print(await shell.run_command('echo ${#BIG}'))
        asyncio.run(main())
    """)

    assert printed.startswith('120000\n\n[Error: the environment is too big')
