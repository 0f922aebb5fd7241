"""Do the same things thousands of times and look for what grows: descriptors, threads, processes, files, memory."""

import asyncio
import gc
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest

from anyshell import Decision, ShellOptions, ShellSession, Verdict
from anyshell.sandbox.watch import Watcher

pytestmark = pytest.mark.soak

COMMANDS, JOBS = 5000, 500
AT_ONCE = 8
LIMIT = 300
"""Seconds for all of it: a command that hangs once in a thousand times shows here."""


class AllowAll:
    def check(self, command: str) -> Verdict:
        del command
        return Verdict(Decision.ALLOW)


def session(**options: object) -> ShellSession:
    return ShellSession(ShellOptions(**options), policy=AllowAll())  # type: ignore[arg-type] - what the test passes


async def succeeds(shell: ShellSession, number: int) -> None:
    assert (await shell.run(f'echo {number}')).stdout == f'{number}\n'


async def fails(shell: ShellSession, number: int) -> None:
    result = await shell.run(f'echo {number} >&2; exit {number % 100 + 1}')

    assert (result.stderr, result.exit_code) == (f'{number}\n', number % 100 + 1)


async def is_not_found(shell: ShellSession, number: int) -> None:
    assert (await shell.run(f'no-such-program-{number}')).exit_code == 127


async def is_killed(shell: ShellSession, number: int) -> None:
    assert (await shell.run(f'kill -{1 + number % 2 * 8} $$')).exit_code in {129, 137}


async def times_out(shell: ShellSession, number: int) -> None:
    result = await shell.run(f'echo {number}; sleep 1000 & sleep 1000', timeout=0.5)

    assert (result.timed_out, result.exit_code) == (0.5, None)


async def is_cancelled(shell: ShellSession, number: int) -> None:
    task = asyncio.create_task(shell.run('sleep 1000 & sleep 1000'))
    await asyncio.sleep(number % 20 / 1000)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def leaves_a_child(shell: ShellSession, number: int) -> None:
    # A short life each, or thousands would run at the end.
    assert (await shell.run(f'sleep 2 & echo {number}')).stdout == f'{number}\n'


async def writes_much(shell: ShellSession, number: int) -> None:
    result = await shell.run(f'head -c 2000000 /dev/zero | tr "\\0" x; echo {number}')

    assert result.truncated
    assert result.stdout.endswith(f'x{number}\n')


async def gets_a_long_line(shell: ShellSession, number: int) -> None:
    result = await shell.run(f'echo {number} #' + 'x' * 150_000)

    assert result.stdout == f'{number}\n'


async def changes_directory(shell: ShellSession, number: int) -> None:
    assert (await shell.run(f'mkdir -p d{number % 7}; cd d{number % 7}; pwd; cd ..')).exit_code == 0


async def speaks(shell: ShellSession, number: int) -> None:
    heard: list[str] = []
    await shell.run(f'echo {number}', on_output=lambda chunk: heard.append(chunk.data))

    assert ''.join(heard) == f'{number}\n'


async def is_judged(shell: ShellSession, number: int) -> None:
    reply = await shell.tools[0].call({'command': f'printf %s {number}'})

    assert reply.text == f'[stdout]\n{number}'


# How many of a hundred commands are of which kind.
MIX = (
    (succeeds, 44),
    (fails, 12),
    (is_not_found, 6),
    (is_killed, 4),
    (times_out, 1),
    (is_cancelled, 5),
    (leaves_a_child, 5),
    (writes_much, 3),
    (gets_a_long_line, 3),
    (changes_directory, 5),
    (speaks, 6),
    (is_judged, 6),
)
KINDS = [kind for kind, share in MIX for _ in range(share)]


async def job(shell: ShellSession, number: int) -> None:
    """A background command's life, in one of five ways."""
    way = number % 5
    command = (
        'echo up; sleep 1000',
        'echo up; exit 3',
        'yes',
        'setsid sleep 1000 & echo up',
        'cat',
    )[way]
    started = await shell.tools[1].call(
        {'command': command, 'stdin': way == 4}, call_id=f'c{number}'
    )
    command_id = started.facts['job_id']
    assert command_id, started.text
    if way == 4:
        answer = await shell.tools[4].call({'command_id': command_id, 'text': f'{number}\n'})
        assert str(number) in answer.text
    else:
        until = 'exit' if way == 1 else 'output:up' if way != 2 else 'output:y'
        answer = await shell.tools[2].call(
            {'command_id': command_id, 'until': until, 'wait_seconds': 60}
        )
        assert answer.facts['job_id'] == command_id
    assert '[stopped: ' in await shell.stop_command(command_id)


def state() -> dict[str, object]:
    """What must be the same at the end."""
    descriptors: list[str] = []
    for name in os.listdir('/proc/self/fd'):
        try:
            descriptors.append(os.readlink(f'/proc/self/fd/{name}').partition(':')[0])
        except OSError:  # the one that lists them
            continue
    return {
        'descriptors': sorted(descriptors),
        'threads': threading.active_count(),
        'files': sorted(os.listdir(tempfile.gettempdir())),
        'children': sorted(_children()),
        'watcher': _watcher_descriptors(),
    }


def _children() -> list[str]:
    """What this process has started, by what it runs; zombies too."""
    found: list[str] = []
    for pid in filter(str.isdecimal, os.listdir('/proc')):
        try:
            fields = Path(f'/proc/{pid}/stat').read_text().rpartition(')')[2].split()
            if fields[1] == str(os.getpid()):
                found.append(f'{fields[0] == "Z"} {Path(f"/proc/{pid}/cmdline").read_bytes()!r}')
        except OSError:
            continue
    return found


def _watcher_descriptors() -> int:
    return len(os.listdir(f'/proc/{Watcher.get().pid}/fd'))


def _sleepers() -> list[str]:
    """The commands of this test that still run, wherever they went."""
    found: list[str] = []
    for pid in filter(str.isdecimal, os.listdir('/proc')):
        try:
            command = Path(f'/proc/{pid}/cmdline').read_bytes()
        except OSError:
            continue
        if command in {b'sleep\x001000\x00', b'yes\x00'}:
            found.append(pid)
    return found


def memory() -> int:
    """Bytes that this process holds now."""
    return int(Path('/proc/self/statm').read_text().split()[1]) * os.sysconf('SC_PAGE_SIZE')


async def work(shell: ShellSession, commands: range, jobs: range) -> None:
    """The mix, AT_ONCE at a time."""
    todo = [KINDS[number * 37 % 100](shell, number) for number in commands]
    todo += [job(shell, number) for number in jobs]
    todo = [
        todo[number * 7919 % len(todo)] for number in range(len(todo))
    ]  # mixed, and the same each time
    slots = asyncio.Semaphore(AT_ONCE)

    async def one(coroutine) -> None:
        async with slots:
            await coroutine

    async with asyncio.TaskGroup() as group:
        for coroutine in todo:
            group.create_task(one(coroutine))


async def one_session(directory: Path, commands: range, jobs: range) -> None:
    async with session(
        cwd=directory, kill_grace=0.2, persist_cwd=bool(commands.start % 2)
    ) as shell:
        await work(shell, commands, jobs)


def test_thousands_of_commands_and_hundreds_of_jobs_leave_nothing(tmp_path) -> None:
    sleepers = _sleepers()  # somebody else's
    asyncio.run(one_session(tmp_path, range(200), range(20)))  # what is made once has been made
    gc.collect()
    before, held = state(), memory()

    async def everything() -> None:
        async with asyncio.timeout(LIMIT):
            for part in range(10):
                commands = range(part * COMMANDS // 10, (part + 1) * COMMANDS // 10)
                jobs = range(part * JOBS // 10, (part + 1) * JOBS // 10)
                await one_session(tmp_path, commands, jobs)

    asyncio.run(everything())
    gc.collect()

    assert state() == before
    assert [pid for pid in _sleepers() if pid not in sleepers] == []
    assert memory() < held + 30_000_000


def test_thousands_of_sessions_leave_nothing(tmp_path) -> None:
    async def one(number: int) -> None:
        async with session(cwd=tmp_path, kill_grace=0.2) as shell:
            await shell.run(f'sleep 1000 & echo {number}')

    asyncio.run(one(0))
    before = state()
    for number in range(300):
        asyncio.run(one(number))  # a loop of its own, as in a synchronous agent

    assert state() == before


def test_sessions_that_nobody_closes_leave_nothing(tmp_path) -> None:
    code = f"""
import asyncio, gc, os, sys
sys.path[:0] = {sys.path!r}
from anyshell import ShellOptions, ShellSession
for number in range(100):
    shell = ShellSession(ShellOptions(cwd={str(tmp_path)!r}, unresolved='allow'))
    shell.run_sync('setsid sleep 1000.25 >/dev/null 2>&1 & true')
    asyncio.run(shell.start_command('sleep 1000.25'))
    del shell
    gc.collect()
print(len(os.listdir('/proc/self/fd')))
"""
    command = [sys.executable, '-c', code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, check=False)

    assert (done.returncode, done.stderr) == (0, '')
    assert int(done.stdout) < 20
    end = time.monotonic() + 5
    while _with(b'sleep\x001000.25\x00') and time.monotonic() < end:
        time.sleep(0.05)
    assert _with(b'sleep\x001000.25\x00') == []


def _with(command: bytes) -> list[str]:
    found: list[str] = []
    for pid in filter(str.isdecimal, os.listdir('/proc')):
        try:
            if Path(f'/proc/{pid}/cmdline').read_bytes() == command:
                found.append(pid)
        except OSError:
            continue
    return found
