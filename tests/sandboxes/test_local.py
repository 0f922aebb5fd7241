"""The machine itself, the fake for tests, and the smallest sandboxes that a user can write."""

import asyncio
import codecs
import contextlib
import os
import signal
import subprocess

import pytest

from anyshell import (
    ExecutionResult,
    LocalSandbox,
    PosixShellSandbox,
    SandboxTimeoutError,
    ShellSession,
    StreamChunk,
    run_sync,
)
from anyshell.sandbox.posix import build_shell_env_prefix
from anyshell.testing import FakeSandbox, SandboxContract


class TestLocalSandbox(SandboxContract):
    @pytest.fixture(scope='class')
    @classmethod
    def sandbox(cls, tmp_path_factory):
        sandbox = LocalSandbox(cwd=tmp_path_factory.mktemp('local'))
        yield sandbox
        run_sync(sandbox.aclose())


class TestFakeSandbox(SandboxContract):
    @pytest.fixture(scope='class')
    @classmethod
    def sandbox(cls):
        sandbox = FakeSandbox()
        yield sandbox
        run_sync(sandbox.aclose())


class OwnSandbox(PosixShellSandbox):
    """What a user would write: one method, with asyncio's own subprocesses, and no care beyond the docstring's."""

    def __init__(self, home) -> None:
        self.home = str(home)

    async def execute_streaming(self, command, *, timeout=None, cwd=None, env=None, **_kwargs):
        process = await asyncio.create_subprocess_exec(
            'sh',
            '-c',
            f'cd "$0" || exit; {build_shell_env_prefix(env)}eval "$1"',
            cwd or self.home,
            command,
            cwd=self.home,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        queue: asyncio.Queue = asyncio.Queue()
        kept = {'stdout': '', 'stderr': ''}

        async def pump(name, reader):
            decoder = codecs.getincrementaldecoder('utf-8')('replace')
            while data := await reader.read(65536):
                queue.put_nowait(StreamChunk(decoder.decode(data), name))

        async def all_of_it():
            await asyncio.gather(pump('stdout', process.stdout), pump('stderr', process.stderr))
            queue.put_nowait(await process.wait())

        task = asyncio.create_task(all_of_it())
        try:
            async with asyncio.timeout(timeout):
                while isinstance(item := await queue.get(), StreamChunk):
                    kept[item.stream_type] += item.data
                    yield item
        except TimeoutError:
            raise SandboxTimeoutError(timeout, **kept) from None
        finally:
            task.cancel()
            with contextlib.suppress(ProcessLookupError):
                if process.returncode is None:
                    os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
        yield ExecutionResult(128 - item if item < 0 else item, **kept)


class TestOwnSandbox(SandboxContract):
    hides_values = False

    @pytest.fixture(scope='class')
    @classmethod
    def sandbox(cls, tmp_path_factory):
        return OwnSandbox(tmp_path_factory.mktemp('own'))


class ForgetfulSandbox(PosixShellSandbox):
    """Ends what a command leaves behind when the call ends, as a place does that starts a container for each call."""

    def __init__(self, home) -> None:
        self.home = home

    async def execute_streaming(self, command, **options):
        async with (
            LocalSandbox(cwd=self.home) as once,
            contextlib.aclosing(once.execute_streaming(command, **options)) as chunks,
        ):
            async for chunk in chunks:
                yield chunk


async def test_a_place_that_keeps_nothing_refuses_jobs_and_runs_commands(tmp_path):
    async with ShellSession(sandbox=ForgetfulSandbox(tmp_path)) as session:
        refusal = await session.start_command('sleep 40')
        answer = await session.run_command('echo still here')

    assert 'keeps no background commands' in refusal
    assert answer == '[stdout]\nstill here\n'


async def test_a_fake_answers_what_it_is_told_and_runs_the_rest():
    def answer(command):
        return ExecutionResult(3, 'canned\n', 'oh\n') if command == 'deploy' else None

    sandbox = FakeSandbox(answer)
    async with ShellSession(sandbox=sandbox) as session:
        canned = await session.run('deploy')
        real = await session.run('echo real')
    await sandbox.aclose()

    assert (canned.exit_code, canned.stdout, canned.stderr) == (3, 'canned\n', 'oh\n')
    assert real.stdout == 'real\n'
    assert sandbox.commands == ['deploy', 'echo real']


async def test_noise_around_an_answer_does_no_harm(tmp_path):
    class Noisy(OwnSandbox):
        async def execute_streaming(self, command, **options):
            async for chunk in super().execute_streaming(f'echo Welcome; {command}', **options):
                yield chunk

    sandbox = Noisy(tmp_path)
    await sandbox.write_file('a', b'content')

    assert await sandbox.read_file('a') == b'content'
    assert [entry.name for entry in await sandbox.list_files('.')] == ['a']


async def test_an_answer_that_is_cut_is_an_error(tmp_path):
    class Cut(OwnSandbox):
        async def execute_streaming(self, _command, **_options):
            yield ExecutionResult(0, 'aGVsbG8=', '')

    with pytest.raises(OSError, match='incomplete'):
        await Cut(tmp_path).read_file('a')


async def test_writing_to_a_named_pipe_that_nobody_reads_is_an_error_that_comes_at_once(tmp_path):
    os.mkfifo(tmp_path / 'pipe')
    with pytest.raises(OSError, match='Not a regular file'):
        await asyncio.wait_for(LocalSandbox(cwd=tmp_path).write_file('pipe', b'content'), 10)


async def test_a_path_of_very_many_folders_is_an_os_error(tmp_path):
    async with LocalSandbox(cwd=tmp_path) as sandbox:
        with pytest.raises(OSError, match='too long'):
            await sandbox.write_file('a/' * 3000 + 'b', b'')
