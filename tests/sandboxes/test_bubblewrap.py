"""Namespaces of this machine, made by the real bubblewrap."""

import asyncio
import os
import re
import resource
import time

import pytest

from anyshell import ShellOptions, ShellSession, run_sync
from anyshell.errors import InvalidCommand, SandboxUnavailable
from anyshell.sandbox import bubblewrap
from anyshell.sandbox.bubblewrap import BubblewrapSandbox
from anyshell.testing import SandboxContract


@pytest.mark.needs('bubblewrap')
class TestBubblewrapSandbox(SandboxContract):
    @pytest.fixture(scope='class')
    @classmethod
    def sandbox(cls, tmp_path_factory):
        sandbox = BubblewrapSandbox(cwd=tmp_path_factory.mktemp('bubblewrap'))
        yield sandbox
        run_sync(sandbox.aclose())


@pytest.mark.needs('bubblewrap')
async def test_a_sandbox_that_no_longer_answers_is_killed_and_made_anew(tmp_path, monkeypatch):
    # A fork bomb does the same by keeping the processors busy. What can't end its commands would hold every call.
    monkeypatch.setattr(bubblewrap._Namespaces, 'patience', 1.0)
    async with BubblewrapSandbox(cwd=tmp_path) as sandbox:
        begin = time.monotonic()
        with pytest.raises(TimeoutError):
            await sandbox.execute('kill -STOP -1; sleep 80', timeout=1)
        assert time.monotonic() - begin < 30

        assert (await sandbox.execute('echo again')).stdout == 'again\n'
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(sandbox.execute('kill -STOP -1; sleep 80'), 1)
        begin = time.monotonic()

    assert time.monotonic() - begin < 30


async def _said(sandbox: BubblewrapSandbox) -> str:
    async with sandbox, ShellSession(ShellOptions(unresolved='allow'), sandbox=sandbox) as session:
        script = 'echo "${TMPDIR-unset} ${TEMP-unset}"; mktemp >/dev/null && echo made'
        direct = await sandbox.execute(script)
        result = await session.run(script)

    assert result.stdout == direct.stdout
    return result.stdout


@pytest.mark.needs('bubblewrap')
async def test_temporary_files_of_this_machine_that_are_not_there_inside_are_not_named(
    tmp_path, monkeypatch
):
    for name in ('work', 'more', 'other'):
        (tmp_path / name).mkdir()
    monkeypatch.setenv('TMPDIR', str(tmp_path / 'other'))
    monkeypatch.setenv('TEMP', '/etc')  # is there, and can't be written
    assert await _said(BubblewrapSandbox(cwd=tmp_path / 'work')) == 'unset unset\nmade\n'

    monkeypatch.setenv('TMPDIR', str(tmp_path / 'more'))
    sandbox = BubblewrapSandbox(cwd=tmp_path / 'work', writable=[tmp_path / 'more'])
    assert await _said(sandbox) == f'{tmp_path}/more unset\nmade\n'


@pytest.mark.needs('bubblewrap')
async def test_variables_that_are_given_are_exact(tmp_path):
    env = {'PATH': os.environ['PATH'], 'TMPDIR': '/nowhere'}
    async with BubblewrapSandbox(cwd=tmp_path, env=env) as sandbox:
        assert (await sandbox.execute('echo $TMPDIR')).stdout == '/nowhere\n'


@pytest.mark.needs('bubblewrap')
async def test_a_directory_that_is_not_there_is_named(tmp_path):
    (tmp_path / 'file').touch()
    for sandbox, why in (
        (BubblewrapSandbox(cwd=tmp_path / 'gone'), f"cwd: '{tmp_path}/gone' does not exist"),
        (BubblewrapSandbox(cwd=tmp_path / 'file'), f"cwd: '{tmp_path}/file' is no directory"),
        (
            BubblewrapSandbox(cwd=tmp_path, writable=[tmp_path / 'gone']),
            f"writable: '{tmp_path}/gone' does not exist",
        ),
    ):
        with pytest.raises(SandboxUnavailable, match=re.escape(why)):
            await sandbox.execute('true')
        await sandbox.aclose()


@pytest.mark.needs('bubblewrap')
async def test_a_directory_may_be_made_before_the_first_command(tmp_path):
    async with BubblewrapSandbox(cwd=tmp_path / 'later') as sandbox:
        (tmp_path / 'later').mkdir()
        assert (await sandbox.execute('pwd')).stdout == f'{tmp_path}/later\n'


@pytest.mark.needs('bubblewrap')
async def test_a_crowd_leaves_few_shells(tmp_path):
    async with BubblewrapSandbox(cwd=tmp_path) as sandbox:
        await sandbox.execute('true')
        before = len(os.listdir('/proc/self/fd'))
        results = await asyncio.gather(*(sandbox.execute(f'echo {n}') for n in range(60)))
        after = len(os.listdir('/proc/self/fd'))
        later = await asyncio.gather(*(sandbox.execute(f'echo {n}') for n in range(60)))

    expected = [f'{n}\n' for n in range(60)]
    assert [[result.stdout for result in some] for some in (results, later)] == [expected, expected]
    # The streams of each, and a hold on the end of the namespaces.
    assert after - before <= 16 * 4


@pytest.mark.needs('bubblewrap')
async def test_a_crowd_for_which_there_are_too_few_descriptors_is_told_so(tmp_path):
    most = resource.getrlimit(resource.RLIMIT_NOFILE)
    async with BubblewrapSandbox(cwd=tmp_path) as sandbox:
        options = ShellOptions(unresolved='allow')
        async with ShellSession(options, sandbox=sandbox) as session:
            await session.run_command('true')
            before = len(os.listdir('/proc/self/fd'))
            resource.setrlimit(resource.RLIMIT_NOFILE, (before + 40, most[1]))
            try:
                answers = await asyncio.gather(
                    *(session.run_command('echo up; sleep 0.2') for _ in range(40))
                )
            finally:
                resource.setrlimit(resource.RLIMIT_NOFILE, most)
            after = len(os.listdir('/proc/self/fd'))
            again = await session.run_command('echo again')

    told = {answer for answer in answers if answer != '[stdout]\nup\n'}
    assert told
    assert all('Too many open files' in answer for answer in told)
    # The streams of each, and a hold on the end of the namespaces.
    assert after - before <= 16 * 4
    assert again == '[stdout]\nagain\n'


@pytest.mark.needs('bubblewrap')
async def test_a_command_that_removes_the_sandboxs_files_costs_what_runs_and_no_more(
    tmp_path, monkeypatch
):
    monkeypatch.setattr('tempfile.tempdir', str(tmp_path))
    options = ShellOptions(unresolved='allow')
    async with (
        BubblewrapSandbox(cwd=tmp_path) as sandbox,
        ShellSession(options, sandbox=sandbox) as session,
    ):
        await session.start_command('sleep 60')
        await sandbox.execute('rm -rf anyshell-*')
        answers = [await session.run_command('echo up') for _ in range(2)]
        started = await session.start_command('echo up')

    assert answers[1] == '[stdout]\nup\n'
    assert started.endswith('ID: j2')
    assert list(tmp_path.iterdir()) == []


@pytest.mark.needs('bubblewrap')
async def test_a_nul_in_a_command_is_refused_and_nothing_runs(tmp_path):
    async with BubblewrapSandbox(cwd=tmp_path) as sandbox:
        with pytest.raises(InvalidCommand, match='NUL'):
            await sandbox.execute('touch fi\0le')

    assert list(tmp_path.iterdir()) == []


@pytest.mark.needs('bubblewrap')
@pytest.mark.parametrize('delay', [0, 0.02, 0.1])
async def test_a_close_while_a_call_starts_ends_it_soon(delay, tmp_path):
    sandbox = BubblewrapSandbox(cwd=tmp_path)
    call = asyncio.create_task(sandbox.execute('echo hi', timeout=30))
    await asyncio.sleep(delay)
    begin = time.monotonic()
    await sandbox.aclose()

    await asyncio.wait((call,), timeout=20)

    assert call.done()
    assert time.monotonic() - begin < 20
    call.exception()
