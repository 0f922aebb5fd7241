"""What a call can wait for: how it is written, and when it is so."""

import asyncio
from typing import cast

import pytest

from anyshell import InvalidCommand
from anyshell.sandbox.base import Process, Processes, StreamType
from anyshell.waiting import Condition, Search, parse

FORMS = "'exit', 'output:REGEX', 'port:NUMBER' or 'quiet:SECONDS'"


@pytest.mark.parametrize(
    ('text', 'kind', 'number'),
    [
        ('exit', 'exit', 0),
        ('port:1', 'port', 1),
        ('port:65535', 'port', 65535),
        ('quiet:2', 'quiet', 2),
        ('quiet:0.5', 'quiet', 0.5),
        ('output:x', 'output', 0),
        ('output:a:b', 'output', 0),
    ],
)
def test_a_condition_is_read(text, kind, number) -> None:
    condition = parse(text, 'until')

    assert (condition.text, condition.kind, condition.number) == (text, kind, number)


@pytest.mark.parametrize(
    'text',
    [
        *('', 'exit:1', 'port', 'port:', 'port:0', 'port:65536', 'port:80x', 'port:-1', 'port:٣'),
        *('quiet', 'quiet:', 'quiet:0', 'quiet:-1', 'quiet:nan', 'quiet:inf', 'quiet:soon'),
        *('output', 'output:', 'EXIT', 'ready'),
    ],
)
def test_anything_else_is_a_sentence_with_the_forms(text) -> None:
    with pytest.raises(InvalidCommand) as caught:
        parse(text, 'until')

    assert str(caught.value) == f'until must be {FORMS}, not {text!r}'


@pytest.mark.parametrize('pattern', ['(', '[', 'a{2,1}', '(?=x)', r'(a)\1', '*'])
def test_an_expression_that_can_not_be_used_is_a_sentence(pattern) -> None:
    with pytest.raises(InvalidCommand) as caught:
        parse(f'output:{pattern}', 'ready_when')

    said = str(caught.value)
    assert said.startswith(
        f'ready_when: {pattern!r} is not a regular expression that can be used here ('
    )
    assert said.endswith('; look-around and back-references are not supported')


@pytest.mark.parametrize(
    ('pattern', 'output', 'matches'),
    [
        ('ready', 'not ready yet', True),
        ('^ready$', 'a\nready\nb', True),
        ('^ready$', 'a\nnot ready\nb', False),
        (r'port \d+', 'on port 8000', True),
        ('(?i)READY', 'ready', True),
        ('é', 'café', True),
        ('(a+)+$', 'a' * 50_000 + '!', False),
    ],
)
def test_an_expression_looks_at_lines_and_takes_linear_time(pattern, output, matches) -> None:
    assert parse(f'output:{pattern}', 'until').matches(output) is matches


def test_only_output_matches() -> None:
    assert not Condition('exit', 'exit').matches('exit')


class Written:
    """Stands for a sandbox whose command writes what a test says."""

    def __init__(self) -> None:
        self.data: dict[StreamType, bytes] = {'stdout': b'', 'stderr': b''}

    async def read(
        self, _process: Process, stream: StreamType, start: int, length: int
    ) -> tuple[int, bytes]:
        return start, self.data[stream][start : start + length]


def search(text: str, written: Written, **arguments) -> Search:
    return Search(cast('Processes', written), Process(1), parse(text, 'until'), **arguments)


async def test_a_text_is_found_across_two_looks() -> None:
    written = Written()
    looking = search('output:ready€', written, since=None)
    written.data['stderr'] = b'not rea'
    assert not await looking.step()
    written.data['stderr'] += 'dy€'.encode()[:4]
    assert not await looking.step()
    written.data['stderr'] += 'dy€'.encode()[4:]

    assert await looking.step()


async def test_what_was_shown_before_does_not_count() -> None:
    written = Written()
    written.data['stdout'] = b'ready\n'
    looking = search('output:ready', written, since={'stdout': 6, 'stderr': 0})

    assert not await looking.step()


async def test_silence_counts_from_the_last_output() -> None:
    written = Written()
    looking = search('quiet:0.2', written, since=None)
    await asyncio.sleep(0.1)
    written.data['stdout'] = b'x'
    assert not await looking.step()
    async with asyncio.timeout(20):
        while not await looking.step():
            await asyncio.sleep(0.01)
