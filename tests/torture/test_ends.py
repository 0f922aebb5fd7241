"""Many ends at once: of commands, jobs, calls and sessions."""

import asyncio
import os
import threading

import pytest

from anyshell import SessionClosed
from anyshell.sandbox.watch import Watcher


async def test_closing_while_calls_are_being_cancelled_leaves_nothing(session, sleep) -> None:
    one = session(kill_grace=0.2)
    tasks = [asyncio.create_task(one.run(f'{sleep.command} & {sleep.command}')) for _ in range(10)]
    await sleep.runs(10)
    for task in tasks:
        task.cancel()
    await asyncio.sleep(0)
    await asyncio.gather(one.aclose(), one.aclose(), *tasks, return_exceptions=True)

    assert sleep.pids() == []
    with pytest.raises(SessionClosed):
        await one.run('true')


async def test_a_close_that_is_cancelled_still_ends_everything(session, sleep) -> None:
    one = session(kill_grace=30)
    for _ in range(3):
        await one.start_command(f"trap '' TERM; {sleep.command} & while :; do wait; done")
    await sleep.runs(3)
    closing = asyncio.create_task(one.aclose())
    await asyncio.sleep(0.05)
    closing.cancel()
    await asyncio.wait({closing}, timeout=20)

    assert closing.done()
    assert sleep.pids() == []


async def test_closing_ends_fifty_jobs_and_their_families(session, sleep) -> None:
    async with session(kill_grace=0.2) as one:
        for _ in range(50):
            await one.start_command(f'setsid {sleep.command} & {sleep.command} | cat')
        await sleep.runs(100)

    assert sleep.pids() == []


async def test_a_storm_of_cancellations_leaves_nothing(session, sleep) -> None:
    async with session(kill_grace=0.2) as one:
        for storm in range(5):
            tasks = [
                asyncio.create_task(one.run(f'{sleep.command} & {sleep.command}'))
                for _ in range(20)
            ]
            await asyncio.sleep(0.004 * storm)
            for task in tasks:
                task.cancel()
                await asyncio.sleep(0)
                task.cancel()
            await asyncio.wait(tasks)

            assert all(task.cancelled() for task in tasks)
            assert sleep.pids() == []
        assert (await one.run('echo fine')).stdout == 'fine\n'


async def test_limits_that_pass_all_at_once_end_every_command(session, sleep) -> None:
    async with session(kill_grace=0.2) as one:
        results = await asyncio.gather(
            *(one.run(f'echo {n}; {sleep.command} & wait', timeout=2) for n in range(30))
        )

        assert [result.stdout for result in results] == [f'{n}\n' for n in range(30)]
        assert {result.timed_out for result in results} == {2.0}
        assert sleep.pids() == []


async def test_a_thousand_short_commands_at_once_do_not_mix(session) -> None:
    async with session() as one:
        results = await asyncio.gather(
            *(one.run(f'echo {n}; exit {n % 200}', timeout=50) for n in range(1000)),
            return_exceptions=True,
        )
        ran = [result for result in results if not isinstance(result, BaseException)]

        # A machine may have room for fewer at a time: that is said, and nothing else goes wrong.
        assert all(
            'can not start another' in str(r) for r in results if isinstance(r, BaseException)
        )
        assert len(ran) >= 200
        assert all(result.stdout == f'{int(result.stdout)}\n' for result in ran)
        assert all(result.exit_code == int(result.stdout) % 200 for result in ran)
        assert (await one.run('echo fine')).stdout == 'fine\n'


async def test_a_job_can_be_started_again_after_its_end(session, tmp_path) -> None:
    async with session(kill_grace=0.2) as one:
        line = 'mkdir lock || exit 7; trap "rmdir lock; exit 0" TERM; echo up; while :; do sleep 0.02; done'
        for number in range(1, 6):
            start = {'command': line, 'ready_when': 'output:up'}
            text = (await one.tools[1].call(start)).text
            assert f'ID: j{number}' in text
            assert '[stdout]\nup' in await one.stop_command(f'j{number}')

            assert not (tmp_path / 'lock').exists()


async def test_two_sessions_in_one_process_share_nothing(session, sleep) -> None:
    first, second = session(kill_grace=0.2), session(kill_grace=0.2)
    await first.start_command(sleep.command)
    await second.start_command(sleep.command)
    await sleep.runs(2)

    assert 'unknown command ID' in await second.check_command('j2')
    await first.aclose()
    assert len(sleep.pids()) == 1
    assert '[status: running]' in await second.check_command('j1')
    await second.aclose()
    assert sleep.pids() == []


async def test_sessions_that_open_and_close_in_many_threads_leave_nothing(session, sleep) -> None:
    failed: list[BaseException] = []

    def work() -> None:
        try:
            for number in range(5):
                with session(kill_grace=0.2) as one:
                    one.run_sync(f'{sleep.command} >/dev/null 2>&1 &')
                    assert one.run_sync(f'echo {number}').stdout == f'{number}\n'
        except BaseException as error:  # noqa: BLE001 - shown by the test
            failed.append(error)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        await asyncio.to_thread(thread.join)

    assert failed == []
    assert sleep.pids() == []


async def test_a_stop_and_a_check_race_with_the_jobs_end(session) -> None:
    async with session(max_jobs=100) as one:
        for number in range(1, 31):
            await one.start_command('exit 5')
            texts = await asyncio.gather(
                *(one.check_command(f'j{number}') for _ in range(3)),
                *(one.stop_command(f'j{number}') for _ in range(3)),
            )
            after = await one.check_command(f'j{number}')

            assert all(text.startswith(('[status: ', '[stopped: ')) for text in texts)
            assert after.startswith('[status: finished]\n[exit code: ')


async def test_a_job_that_writes_outlives_its_watcher_and_loses_no_output(session) -> None:
    line = 'i=0; while [ $i -lt 3000 ]; do echo $i; i=$((i+1)); [ $((i % 100)) != 0 ] || sleep 0.05; done; exit 7'
    async with session(kill_grace=0.2, max_output_chars=100_000) as one:
        for _ in range(2):
            await one.start_command(line)
        for _ in range(3):
            await asyncio.sleep(0.3)
            os.kill(Watcher.get().pid, 9)
            await asyncio.sleep(0.1)
            assert (await one.check_command('j1')).startswith('[status: running]')
        reply = await one.tools[2].call({'command_id': 'j1', 'wait_seconds': 30})
        other = await one.tools[2].call({'command_id': 'j2', 'wait_seconds': 30})

    expected = ''.join(f'{number}\n' for number in range(3000))
    assert reply.text == f'[status: finished]\n[exit code: 7]\n[stdout]\n{expected}'
    assert other.text == reply.text


async def test_a_watcher_that_is_killed_costs_no_quiet_job(session) -> None:
    async with session(kill_grace=0.2) as one:
        await one.start_command('sleep 1000')
        os.kill(Watcher.get().pid, 9)

        assert (await one.run('echo fine')).stdout == 'fine\n'
        assert (await one.check_command('j1')).startswith('[status: running]')
        assert (await one.stop_command('j1')).startswith('[stopped: ')
