"""Output while a command runs: `Tool.stream`."""

import asyncio
import contextlib
import subprocess
import time
from typing import get_type_hints

import pytest

from anyshell import ApprovalRequired, Reply, ShellOptions, ShellSession, StreamChunk
from anyshell.live import MOST, Pieces, live
from anyshell.options import ShellKeywords, option_names


def processes() -> str:
    return subprocess.run(
        ['ps', '-A', '-o', 'args='], capture_output=True, text=True, check=True, timeout=30
    ).stdout


async def collect(session: ShellSession, command: str) -> list[StreamChunk | Reply]:
    run_command = session.tools[0]
    return [piece async for piece in run_command.stream({'command': command})]


async def test_pieces_come_while_the_command_runs_and_the_reply_comes_last() -> None:
    command = 'echo one; echo two >&2; sleep 0.5; echo three'
    times: list[float] = []
    pieces: list[StreamChunk | Reply] = []
    async with ShellSession() as session:
        async for piece in session.tools[0].stream({'command': command}):
            times.append(time.monotonic())
            pieces.append(piece)

    *chunks, reply = pieces
    assert isinstance(reply, Reply)
    assert reply.text == '[stdout]\none\nthree\n\n[stderr]\ntwo\n'
    assert chunks[-1] == StreamChunk('three\n')
    assert sorted(str(chunk) for chunk in chunks[:-1]) == sorted(
        str(chunk) for chunk in (StreamChunk('one\n'), StreamChunk('two\n', 'stderr'))
    )
    assert times[-1] - times[0] > 0.4


async def test_many_small_pieces_are_put_together() -> None:
    async with ShellSession() as session:
        *chunks, _ = await collect(session, 'for i in $(seq 2000); do echo $i; done')

    assert ''.join(chunk.data for chunk in chunks if isinstance(chunk, StreamChunk)) == ''.join(
        f'{i}\n' for i in range(1, 2001)
    )
    assert len(chunks) < 200


async def test_listener_that_is_slow_does_not_slow_the_command() -> None:
    async with ShellSession() as session:
        stream = session.tools[0].stream({'command': 'seq 3000000; echo done >&2'})
        first = await anext(stream)
        await asyncio.sleep(1)  # meanwhile the loop goes on, only this listener does not
        rest = [piece async for piece in stream]

    assert isinstance(first, StreamChunk)
    *chunks, reply = rest
    assert isinstance(reply, Reply)
    assert all(isinstance(chunk, StreamChunk) and len(chunk.data) < MOST + 100 for chunk in chunks)
    assert any('characters are not shown here' in str(chunk) for chunk in chunks)


async def test_closing_early_ends_the_command() -> None:
    async with ShellSession() as session:
        stream = session.tools[0].stream({'command': 'echo on; exec sleep 4111.25'})
        first = await anext(stream)
        await stream.aclose()
        listed = await asyncio.to_thread(processes)

    assert first == StreamChunk('on\n')
    assert 'sleep 4111.25' not in listed


async def test_cancelling_ends_the_command() -> None:
    async with ShellSession() as session:
        task = asyncio.create_task(collect(session, 'exec sleep 4112.25'))
        await asyncio.sleep(0.3)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        listed = await asyncio.to_thread(processes)

    assert task.cancelled()
    assert 'sleep 4112.25' not in listed


async def test_an_ask_is_raised_to_the_listener() -> None:
    async with ShellSession(ShellOptions(ask_commands=['touch'])) as session:
        with pytest.raises(ApprovalRequired) as asked:
            await collect(session, 'touch x')

    assert asked.value.request('run_command', {'command': 'touch x'}) == {
        'tool': 'run_command',
        'arguments': {'command': 'touch x'},
        'command': 'touch x',
        'part': asked.value.verdict.command,
        'reason': str(asked.value),
        'rule': 'ask_commands',
    }


def test_what_is_too_much_is_left_out_at_the_front() -> None:
    pieces = Pieces()
    pieces.add(StreamChunk('a' * 10))
    pieces.add(StreamChunk('b' * MOST))
    pieces.add(StreamChunk('c', 'stderr'))

    assert pieces.take() == [
        StreamChunk('[... 11 characters are not shown here]\n' + 'b' * (MOST - 1)),
        StreamChunk('c', 'stderr'),
    ]
    assert pieces.take() == []


async def test_an_error_of_the_call_reaches_the_listener() -> None:
    async def call(take_in: object) -> None:
        del take_in
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        [piece async for piece in live(call)]


def test_keywords_are_the_options() -> None:
    assert tuple(ShellKeywords.__annotations__) == option_names()
    options = get_type_hints(ShellOptions)
    assert get_type_hints(ShellKeywords) == {name: options[name] for name in option_names()}
