"""Commands end with everything that they started, however that came to be and whoever ends them."""

import asyncio
import contextlib
import os
import threading
import time
from pathlib import Path

import pytest

from anyshell import LocalSandbox, SessionClosed, run_sync

DAEMON = """
    import os, sys
    if os.fork(): os._exit(0)
    os.setsid()
    if os.fork(): os._exit(0)
    null = os.open('/dev/null', os.O_RDWR)
    for number in (0, 1, 2): os.dup2(null, number)
    os.execvp('sleep', ['sleep', '{seconds}'])
"""


def descendant(kind, sleeper, python) -> str:
    """A command that starts the sleeper in a way that makes it hard to find, and goes on itself."""
    return {
        'plain child': f'{sleeper.command} & wait',
        'grandchild in a pipeline': f'({sleeper.command} & wait) | cat',
        'setsid': f'setsid {sleeper.command} & sleep 86400',
        'nohup': f'nohup {sleeper.command} >/dev/null 2>&1 & sleep 86400',
        'daemon': f'{python(DAEMON.format(seconds=sleeper.seconds))}; sleep 86400',
        'stopped': f"sh -c '{sleeper.command} & until grep -qx sleep /proc/$!/comm; do :; done; kill -STOP $! $$'",
        'ignores SIGTERM': f"trap '' TERM; {sleeper.command} & {python(IGNORE)}",
        'cleared environment': f'env -i {python(DAEMON.format(seconds=sleeper.seconds))}; sleep 86400',
        'forks as it dies': f"""sh -c 'trap "{sleeper.command} & exit" TERM; {sleeper.command} & while :; do wait; done'""",
    }[kind]


IGNORE = """
    import signal, time
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    time.sleep(86400)
"""
KINDS = (
    'plain child',
    'grandchild in a pipeline',
    'setsid',
    'nohup',
    'daemon',
    'stopped',
    'ignores SIGTERM',
    'cleared environment',
    'forks as it dies',
)


async def test_a_timeout_ends_the_whole_tree(shell, sleepers, python) -> None:
    async def run(kind: str) -> tuple[object, list[int]]:
        sleeper = sleepers()
        task = asyncio.create_task(session.run(descendant(kind, sleeper, python), timeout=12))
        await sleeper.started()
        return (await task).timed_out, sleeper.pids

    async with shell(kill_grace=0.2) as session:
        found = await asyncio.gather(*map(run, KINDS))

    assert dict(zip(KINDS, found, strict=True)) == dict.fromkeys(KINDS, (12.0, []))


@pytest.mark.parametrize('kind', KINDS)
async def test_a_cancellation_ends_the_whole_tree_before_it_leaves(
    kind, shell, sleeper, python
) -> None:
    async with shell() as session:
        task = asyncio.create_task(session.run(descendant(kind, sleeper, python)))
        await sleeper.started()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

        assert sleeper.pids == []


@pytest.mark.parametrize('kind', KINDS)
async def test_stopping_a_job_ends_the_whole_tree(kind, shell, sleeper, python) -> None:
    async with shell(kill_grace=0.2) as session:
        await session.start_command(descendant(kind, sleeper, python))
        await sleeper.started()
        await session.stop_command('j1')

        assert sleeper.pids == []


@pytest.mark.parametrize('kind', KINDS)
async def test_closing_ends_what_commands_and_jobs_left_running(
    kind, shell, sleeper, python
) -> None:
    async with shell(kill_grace=0.2) as session:
        await session.start_command(descendant(kind, sleeper, python))
        await session.run(f'{sleeper.command} >/dev/null 2>&1 &')
        await sleeper.started(2)

    assert sleeper.pids == []


CHAIN = """
    import os, time
    end = time.monotonic() + 30
    while time.monotonic() < end:
        if os.fork(): os._exit(0)
        os.setsid()
        with open('beats', 'ab') as file: file.write(b'.')
"""


async def test_a_stop_ends_who_lives_on_by_forking_into_new_sessions(
    shell, python, tmp_path
) -> None:
    # Its number is never old, so a look at /proc has to begin with the newest.
    beats = tmp_path / 'beats'
    async with shell(cwd=tmp_path, kill_grace=0.2) as session:
        await session.start_command(f'{python(CHAIN)}; sleep 86400')
        while not beats.exists():
            await asyncio.sleep(0.01)
        await session.stop_command('j1')
        before = beats.stat().st_size
        await asyncio.sleep(0.5)

        assert beats.stat().st_size == before


async def test_a_second_cancellation_kills_at_once(shell, sleeper) -> None:
    async with shell() as session:
        task = asyncio.create_task(
            session.run(f"trap '' TERM; while :; do {sleeper.command}; done")
        )
        await sleeper.started()
        task.cancel()
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

        assert sleeper.pids == []


async def test_cancellation_at_any_moment_of_the_start_leaves_nothing(shell, sleeper) -> None:
    async with shell() as session:
        for step in range(20):
            task = asyncio.create_task(session.run(sleeper.command))
            await asyncio.sleep(step * 0.001)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asyncio.wait_for(task, 20)

        assert sleeper.pids == []


async def test_an_error_in_on_output_ends_the_command(shell, sleeper) -> None:
    def fail(chunk) -> None:
        raise LookupError(chunk.data)

    async with shell() as session:
        with pytest.raises(LookupError, match='up'):
            await session.run(f'{sleeper.command} & echo up; wait', on_output=fail)

        assert sleeper.pids == []


async def test_a_stream_that_is_closed_early_ends_the_command(sleeper) -> None:
    async with LocalSandbox() as sandbox:
        stream = sandbox.execute_streaming(f'{sleeper.command} & echo up; wait')
        assert (await anext(stream)).data == 'up\n'
        await sleeper.started()
        await stream.aclose()

        assert sleeper.pids == []


async def test_the_cancelled_event_ends_the_command(shell, sleeper) -> None:
    async with shell() as session:
        cancelled = threading.Event()
        run = session.tools[0].call(
            {'command': f'echo before; {sleeper.command}'}, cancelled=cancelled
        )
        task = asyncio.create_task(run)
        await sleeper.started()
        cancelled.set()
        reply = await task

        assert reply.text == '[stdout]\nbefore\n\n[Command cancelled]'
        assert reply.facts['cancelled'] is True
        assert sleeper.pids == []


async def test_a_call_that_was_taken_back_before_it_began_starts_nothing(
    shell, monkeypatch
) -> None:
    async with shell() as session:
        monkeypatch.setattr(session._processes, 'spawn', lambda _: pytest.fail('it was started'))
        cancelled = threading.Event()
        cancelled.set()
        reply = await session.tools[0].call({'command': 'touch ran'}, cancelled=cancelled)

        assert (reply.text, reply.facts['cancelled']) == ('[Command cancelled]', True)


async def test_sigterm_comes_first_and_lets_a_command_tidy_up(shell, tmp_path) -> None:
    async with shell(cwd=tmp_path) as session:
        await session.start_command(
            "trap 'echo tidy >tidied; exit 7' TERM; echo up; while :; do sleep 0.01; done"
        )
        await _output(session, 'up')
        text = await session.stop_command('j1')

    assert (tmp_path / 'tidied').read_text() == 'tidy\n'
    assert '[exit code: 7]' in text.splitlines()


async def _output(session, text: str) -> None:
    async with asyncio.timeout(20):
        while text not in await session.check_command('j1'):
            await asyncio.sleep(0.01)


async def test_a_background_child_lives_on_after_its_call(shell, sleeper) -> None:
    async with shell() as session:
        result = await session.run(f'{sleeper.command} & echo hi', timeout=20)

        assert (result.stdout, result.exit_code, result.timed_out) == ('hi\n', 0, None)
        assert len(await sleeper.started()) == 1

    assert sleeper.pids == []


async def test_a_background_child_that_writes_later_is_not_killed_by_sigpipe(
    shell, tmp_path, until
) -> None:
    async with shell(cwd=tmp_path) as session:
        await session.run(
            '(until [ -e go ]; do sleep 0.01; done; echo late; echo late >&2; echo lived >said) &'
        )
        (tmp_path / 'go').touch()
        await until((tmp_path / 'said').exists, 'the child to write after its call')


async def test_a_background_child_that_floods_its_output_is_neither_blocked_nor_kept(
    shell, tmp_path, until
) -> None:
    async with shell(cwd=tmp_path) as session:
        result = await session.run('(head -c 5000000 /dev/zero; touch done) & echo hi', timeout=20)
        await until((tmp_path / 'done').exists, 'the child to write 5 MB')

        assert result.timed_out is None


async def test_the_limit_holds_although_a_child_writes_without_end(shell) -> None:
    async with shell() as session:
        result = await session.run('yes & echo hi', timeout=20)

        assert result.exit_code == 0


async def test_zombies_of_ended_commands_are_reaped(shell, sleeper) -> None:
    async with shell(kill_grace=0.1) as session:
        for _ in range(3):
            await session.run('true')
            await session.run(f'{sleeper.command} & {sleeper.command}', timeout=0.3)
            await session.start_command('true')
            await session.start_command(sleeper.command)
            await session.run(f'{sleeper.command} &')

    assert _zombies() == []


def _zombies() -> list[str]:
    found = []
    for pid in filter(str.isdecimal, os.listdir('/proc')):
        try:
            status = Path(f'/proc/{pid}/stat').read_text()
        except OSError:
            continue
        state, parent = status.rpartition(')')[2].split()[:2]
        if parent == str(os.getpid()) and state == 'Z':
            found.append(status)
    return found


async def test_descriptors_are_given_back(shell, sleeper) -> None:
    def fail(_chunk) -> None:
        raise LookupError

    async def round_of(session) -> None:
        await session.run('echo a; echo b >&2; exit 3')
        await session.run(f'{sleeper.command} & true')
        await session.run(sleeper.command, timeout=0.05)
        await session.run('head -c 600000 /dev/zero')
        await session.run('no-such-program')
        await session.run('x=' + 'a' * 200_000)
        await session.start_command('echo hi')
        await session.stop_command(await _start(session, sleeper.command))
        with pytest.raises(LookupError):
            await session.run('echo hi; head -c 600000 /dev/zero', on_output=fail)
        task = asyncio.create_task(session.run(sleeper.command))
        await asyncio.sleep(0.02)
        task.cancel()
        await asyncio.wait({task})

    async with shell(kill_grace=0.1) as session:
        await round_of(session)
    before = _descriptors()
    for _ in range(3):
        async with shell(kill_grace=0.1, persist_cwd=True) as session:
            await round_of(session)
            await round_of(session)

    assert _descriptors() == before


@pytest.mark.parametrize('tool_set', ['full', 'spec'])
async def test_descriptors_of_output_that_was_cut_are_given_back(tool_set, shell) -> None:
    async with shell(tool_set=tool_set) as session:
        await session.run('true')
    before = _descriptors()
    for _ in range(5):
        async with shell(tool_set=tool_set) as session:
            for _ in range(
                50
            ):  # now and then the command has ended when its output goes to the log
                await session.run('head -c 300000 /dev/zero')

    assert _descriptors() == before


async def _start(session, command: str) -> str:
    return (await session.start_command(command)).rpartition('ID: ')[2]


def _descriptors() -> list[str]:
    """What this process has open, apart from the directory that is being listed."""
    found = []
    for name in os.listdir('/proc/self/fd'):
        try:
            found.append(os.readlink(f'/proc/self/fd/{name}').partition(':')[0])
        except OSError:
            continue
    return sorted(found)


async def test_a_kernel_without_process_descriptors_will_do(shell, sleeper, monkeypatch) -> None:
    def refuse(*_arguments) -> int:
        raise OSError(38, 'Function not implemented')

    monkeypatch.setattr(os, 'pidfd_open', refuse)
    async with shell(kill_grace=0.2) as session:
        result = await session.run('echo hi; exit 3')
        timed_out = await session.run(f'setsid {sleeper.command} & {sleeper.command}', timeout=1)
        await session.run(f'setsid {sleeper.command} >/dev/null 2>&1 &')
        await session.start_command('echo job; exit 4')
        reply = await session.tools[2].call({'command_id': 'j1', 'wait_seconds': 20})

        assert (result.stdout, result.exit_code, timed_out.timed_out) == ('hi\n', 3, 1.0)
        assert reply.text == '[status: finished]\n[exit code: 4]\n[stdout]\njob\n'
        assert len(await sleeper.started()) == 1

    assert sleeper.pids == []


def test_a_session_that_closes_while_other_threads_start_commands_leaves_none(
    shell, sleeper, tmp_path, monkeypatch
) -> None:
    monkeypatch.setattr('tempfile.tempdir', str(tmp_path))

    def work(session) -> None:
        while not session.closed:
            with contextlib.suppress(SessionClosed):
                run_sync(session.start_command(sleeper.command))

    for round_ in range(15):
        session = shell(kill_grace=0.1, persist_cwd=True)
        threads = [threading.Thread(target=work, args=(session,)) for _ in range(3)]
        for thread in threads:
            thread.start()
        time.sleep(0.01 * (round_ % 5))
        session.close()
        for thread in threads:
            thread.join(30)

    assert sleeper.pids == []
    assert os.listdir(tmp_path) == []


async def test_one_session_serves_many_threads_at_once(shell) -> None:
    """A command that another thread reaps meanwhile is no error of the call that waits for it."""

    def work(number: int) -> list[str]:
        async def calls() -> list[str]:
            return [(await session.run(f'echo {number}-{i}')).stdout for i in range(60)]

        return asyncio.run(calls())

    async with shell() as session:
        found = await asyncio.gather(*(asyncio.to_thread(work, number) for number in range(8)))

    assert found == [[f'{number}-{i}\n' for i in range(60)] for number in range(8)]
