"""Nothing outlives the process that owns it, whichever way that ends; a forked child owns what it starts itself."""

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest

BUSY = """
    async def main():
        shell = session(kill_grace=0.2, persist_cwd=True)
        await shell.start_command(sys.argv[1])
        await shell.start_command("trap '' TERM; setsid " + sys.argv[1] + ' & wait')
        await shell.run('setsid ' + sys.argv[1] + ' >/dev/null 2>&1 &')
        say('ready')
        {ending}
        await shell.run(sys.argv[1], timeout=600)
    asyncio.run(main())
"""


@pytest.fixture
def temporary(tmp_path) -> Path:
    """A temporary directory of a program's own."""
    path = tmp_path / 'tmp'
    path.mkdir()
    return path


ENDINGS = {
    'returns': 'return',
    'raises': "raise LookupError('on purpose')",
    'sys.exit': 'sys.exit(3)',
    'os._exit': 'os._exit(4)',
    'cancelled by asyncio.run': 'asyncio.ensure_future(shell.run(sys.argv[1])); await asyncio.sleep(0.2); return',
    'killed by itself': 'os.kill(os.getpid(), signal.SIGKILL)',
    'exec': "os.execvp('true', ['true'])",
}


@pytest.mark.parametrize('ending', ENDINGS)
async def test_nothing_outlives_a_program_that_ends(
    ending, driver, sleeper, temporary, until
) -> None:
    program = driver(BUSY.format(ending=ENDINGS[ending]), sleeper.command, TMPDIR=str(temporary))
    assert program.line() == 'ready'
    program.end()

    await sleeper.gone()
    await until(lambda: os.listdir(temporary) == [], 'the directory to be removed', seconds=5)


@pytest.mark.parametrize(
    'number', [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGKILL, signal.SIGSEGV]
)
async def test_nothing_outlives_a_program_that_a_signal_ends(
    number, driver, sleeper, temporary, until
) -> None:
    program = driver(BUSY.format(ending=''), sleeper.command, TMPDIR=str(temporary))
    assert program.line() == 'ready'
    await sleeper.started(4)
    program.end(number)

    await sleeper.gone()
    await until(lambda: os.listdir(temporary) == [], 'the directory to be removed', seconds=5)


@pytest.mark.parametrize('delay', [0.0, 0.002, 0.005, 0.01, 0.02, 0.05])
async def test_a_signal_while_the_first_command_starts_leaves_nothing(
    delay, driver, sleeper, temporary, until
) -> None:
    program = driver(BUSY.format(ending=''), sleeper.command, TMPDIR=str(temporary))
    await until(lambda: _has_a_watcher(program.process.pid), 'the first command to start')
    await asyncio.sleep(delay)  # not a wait for something: the moment of the signal is what varies
    program.end(signal.SIGKILL)

    await until(lambda: os.listdir(temporary) == [], 'the directory to be removed', seconds=5)
    await sleeper.gone()


def _has_a_watcher(pid: int) -> bool:
    try:
        return any(
            os.readlink(f'/proc/{pid}/fd/{name}').startswith('socket:')
            for name in os.listdir(f'/proc/{pid}/fd')
        )
    except OSError:
        return False


async def test_the_watcher_ends_with_its_owner(driver, until) -> None:
    program = driver("""
        from anyshell.sandbox.watch import Watcher
        session().run_sync('true')
        say(Watcher.get().pid)
    """)
    pid = int(program.line())
    program.end()

    await until(lambda: not os.path.exists(f'/proc/{pid}'), 'the watcher to end', seconds=5)


async def test_a_session_that_nobody_closed_ends_with_its_last_reference(
    driver, sleeper, temporary, until
) -> None:
    program = driver(
        """
        async def main():
            shell = session()
            await shell.start_command(sys.argv[1])
            say('ready')
        asyncio.run(main())
        import gc
        gc.collect()
        say('dropped')
        time.sleep(60)
        """,
        sleeper.command,
        TMPDIR=str(temporary),
    )
    assert (program.line(), program.line()) == ('ready', 'dropped')

    await sleeper.gone()
    await until(lambda: os.listdir(temporary) == [], 'the directory to be removed', seconds=5)


def test_garbage_collection_may_end_a_session_at_any_moment(driver) -> None:
    program = driver("""
        from anyshell.sandbox.watch import Watcher
        shell, other = session(), session()
        shell.run_sync('true')
        other.run_sync('true')
        with Watcher._guard:  # as when the collector runs inside of it
            del shell
        with Watcher.get()._lock:
            del other
        session().run_sync('true')
        say('went on')
    """)

    assert program.output() == 'went on\n'


async def test_a_forked_child_has_commands_of_its_own(driver, sleeper, temporary, until) -> None:
    program = driver(
        """
        shell = session(persist_cwd=True)
        asyncio.run(shell.start_command(sys.argv[1]))
        with session(persist_cwd=True) as unused:
            pass
        pid = os.fork()
        if pid == 0:
            async def child():
                say(await shell.run_command('echo child'))
                say(await shell.check_command('j1'))
                say(await shell.stop_command('j1'))
                say(await shell.start_command('sleep 600'))
                await shell.aclose()
            asyncio.run(child())
            os._exit(0)
        os.waitpid(pid, 0)
        say(shell.run_sync('echo parent').stdout)
        say(asyncio.run(shell.check_command('j1')))
        say('ready')
        time.sleep(60)
        """,
        sleeper.command,
        TMPDIR=str(temporary),
    )
    unknown = "[Error: unknown command ID 'j1']\nstart_command has not been called yet, so there are none.\n"
    said = ''
    while not said.endswith('ready\n'):
        said += program.line() + '\n'

    assert said == (
        f"[stdout]\nchild\n\n{unknown}{unknown}Started background command: 'sleep 600'\nID: j1\n"
        'parent\n\n[status: running]\n(no output yet)\nready\n'
    )
    assert len(sleeper.pids) == 1
    program.end(signal.SIGKILL)
    await sleeper.gone()
    await until(lambda: os.listdir(temporary) == [], 'both directories to be removed', seconds=5)


async def test_a_forked_child_that_stops_or_closes_first_leaves_its_parents_jobs_alone(
    driver, sleeper
) -> None:
    program = driver(
        """
        shell = session()
        asyncio.run(shell.start_command(sys.argv[1]))
        pid = os.fork()
        if pid == 0:
            asyncio.run(shell.stop_command('j1'))
            shell.close()
            sys.exit()
        os.waitpid(pid, 0)
        say(asyncio.run(shell.check_command('j1')))
        time.sleep(60)
        """,
        sleeper.command,
    )

    assert (program.line(), program.line()) == ('[status: running]', '(no output yet)')
    assert len(sleeper.pids) == 1


async def test_what_a_forked_child_started_ends_with_that_child(driver, sleeper) -> None:
    program = driver(
        """
        shell = session()
        shell.run_sync('true')
        pid = os.fork()
        if pid == 0:
            asyncio.run(shell.start_command(sys.argv[1]))
            say('started')
            os._exit(0)
        os.waitpid(pid, 0)
        say('child has gone')
        time.sleep(60)
        """,
        sleeper.command,
    )
    assert (program.line(), program.line()) == ('started', 'child has gone')

    await sleeper.gone()


def test_workers_of_multiprocessing_can_use_a_session_of_their_parent(driver) -> None:
    program = driver("""
        import multiprocessing
        shell = session()
        shell.run_sync('true')
        def work(number):
            return shell.run_sync(f'echo {number}').stdout
        with multiprocessing.get_context('fork').Pool(2) as pool:
            say(pool.map(work, range(4)))
    """)

    assert program.output() == "['0\\n', '1\\n', '2\\n', '3\\n']\n"


async def test_a_killed_watcher_is_replaced(driver, sleeper) -> None:
    program = driver(
        """
        from anyshell.sandbox.watch import Watcher
        async def main():
            shell = session()
            await shell.run(sys.argv[1] + ' >/dev/null 2>&1 &')
            os.kill(Watcher.get().pid, 9)
            say(await shell.start_command('echo hi; exit 3'))
            while '[status: running]' in (text := await shell.check_command('j1')):
                await asyncio.sleep(0.01)
            say(text)
            say('ready')
            os.kill(os.getpid(), 9)
        asyncio.run(main())
        """,
        sleeper.command,
    )

    assert program.output() == (
        "Started background command: 'echo hi; exit 3'\nID: j1\n[status: finished]\n[exit code: 3]\n[stdout]\nhi\n\nready\n"
    )
    await sleeper.gone()


async def test_losing_the_temporary_directory_ends_nothing(
    shell, sleeper, tmp_path, monkeypatch
) -> None:
    monkeypatch.setattr('tempfile.tempdir', str(tmp_path))
    (tmp_path / 'sub').mkdir()
    async with shell(cwd=tmp_path, persist_cwd=True) as session:
        await session.start_command(f'echo one; {sleeper.command}')
        await sleeper.started()
        await session.run('rm -rf anyshell-*')
        assert os.listdir(tmp_path) == ['sub']
        big = await session.run('head -c 1000000 /dev/zero; echo end')
        moved = await session.run('cd sub')
        started = await session.start_command('echo two')

        assert (big.exit_code, big.stdout[-5:], moved.exit_code) == (0, '\0end\n', 0)
        assert session.cwd == str(tmp_path / 'sub')
        assert started.startswith("Started background command: 'echo two'\nID: ")
        assert len(sleeper.pids) == 1

    assert sleeper.pids == []
    assert os.listdir(tmp_path) == ['sub']


async def test_a_session_inside_a_command_ends_with_it(shell, sleeper, python) -> None:
    command = f"trap '' TERM; setsid {sleeper.command} & wait"
    inner = python(f"""
        import asyncio, sys
        sys.path[:0] = {sys.path!r}
        from anyshell import ShellOptions, ShellSession
        async def main():
            shell = ShellSession(ShellOptions(unresolved='allow'))
            await shell.start_command({command!r})
            await shell.run({command!r}, timeout=600)
        asyncio.run(main())
    """)
    async with shell(kill_grace=0) as session:
        await session.start_command(inner)
        await sleeper.started(2)
        await session.stop_command('j1')

        await sleeper.gone()
