"""Logs on disk: bounded, exact at the end, read while they are written; the watcher that writes them survives trouble."""

import os

import pytest

from anyshell.sandbox import logs
from anyshell.sandbox.logs import SEGMENTS, Log, offsets, read, size
from anyshell.sandbox.watcher import Pump, copy


@pytest.fixture
def base(tmp_path) -> str:
    """Where a command's logs begin."""
    return f'{tmp_path}/1'


def written(base: str, limit: int, pieces: list[bytes]) -> Log:
    log = Log(f'{base}.stdout', limit)
    for piece in pieces:
        log.append(piece)
    log.close()
    return log


@pytest.mark.parametrize('piece', [1, 7, 100, 1000, 5000])
@pytest.mark.parametrize('limit', [4, 10, 100, 999, 4096])
def test_a_log_never_takes_more_than_its_limit_and_ends_exactly(base, limit, piece) -> None:
    data = os.urandom(5000)
    log = Log(f'{base}.stdout', limit)
    for start in range(0, len(data), piece):
        log.append(data[start : start + piece])
        on_disk = sum(
            os.stat(f'{base}.stdout.{offset}').st_size for offset in offsets(base, 'stdout')
        )
        assert on_disk <= limit
    log.close()
    first, tail = read(base, 'stdout', 0, 10_000)

    assert size(base, 'stdout') == 5000
    assert tail == data[first:]
    assert len(tail) > (SEGMENTS - 2) * (limit // SEGMENTS)


def test_an_empty_log_reads_as_nothing(base) -> None:
    written(base, 100, [])

    assert (offsets(base, 'stdout'), size(base, 'stdout')) == ([], 0)
    assert read(base, 'stdout', 0, 10) == (0, b'')


@pytest.mark.parametrize(
    ('start', 'length', 'found'),
    [
        (0, 5, (80, b'80818')),
        (80, 4, (80, b'8081')),
        (85, 10, (85, b'282838485')),
        (0, 1000, (80, b'80818283848586878889' * 1)),
        (99, 10, (99, b'9')),
        (100, 10, (100, b'')),
        (500, 10, (500, b'')),
        (90, 0, (90, b'')),
    ],
)
def test_a_range_is_read_from_where_it_still_is(base, start, length, found) -> None:
    # 100 bytes, of which four segments of five are left: 80 to 99.
    written(base, 20, [b''.join(b'%02d' % n for n in range(50, 90)), b'80818283848586878889'])
    begin, data = read(base, 'stdout', start, length)

    everything = b''.join(b'%02d' % n for n in range(50, 90)) + b'80818283848586878889'
    assert (begin, data) == (found[0], everything[found[0] : found[0] + length])


def test_streams_and_commands_have_logs_apart(base) -> None:
    written(base, 100, [b'one'])
    written(f'{base}1', 100, [b'eleven'])
    Log(f'{base}.stderr', 100).append(b'err')

    assert read(base, 'stdout', 0, 10) == (0, b'one')
    assert read(base, 'stderr', 0, 10) == (0, b'err')


def test_other_files_beside_a_log_are_not_part_of_it(base) -> None:
    written(base, 100, [b'one'])
    for name in ('x', '1x', '', '-1'):
        with open(f'{base}.stdout.{name}', 'w') as file:
            file.write('noise')

    assert offsets(base, 'stdout') == [0]


def test_a_log_in_a_directory_that_has_gone_reads_as_nothing(base) -> None:
    assert (size(f'{base}/no', 'stdout'), read(f'{base}/no', 'stdout', 0, 9)) == (0, (0, b''))


def test_a_segment_that_goes_while_it_is_read_is_passed_over(base, monkeypatch) -> None:
    written(base, 20, [b'0123456789' * 2])
    known = offsets(base, 'stdout')
    os.unlink(f'{base}.stdout.{known[0]}')
    monkeypatch.setattr(logs, 'offsets', lambda _log, _stream: known)

    assert read(base, 'stdout', 0, 100)[1] in {b'', b'567890123456789'}


@pytest.mark.parametrize(
    'make', [os.mkfifo, os.mkdir, lambda path: os.symlink('/etc/passwd', path)]
)
def test_what_a_command_puts_in_the_place_of_a_log_is_not_read(make, base) -> None:
    make(f'{base}.stdout.0')

    assert read(base, 'stdout', 0, 10) == (0, b'')
    with pytest.raises(FileExistsError):
        Log(f'{base}.stdout', 100).append(b'x')


def test_more_than_there_is_may_be_asked_for(base) -> None:
    written(base, 100, [b'one'])

    assert read(base, 'stdout', 0, 1 << 62) == (0, b'one')


def test_a_pipe_whose_log_can_not_grow_is_emptied_all_the_same(tmp_path) -> None:
    reading, writing = os.pipe()
    pump = Pump(reading, Log(f'{tmp_path}/gone/1.stdout', 100))
    os.write(writing, b'x' * 1000)
    os.write(writing, b'y' * 1000)

    assert [pump.step(1000), pump.log, pump.step(1000)] == [1000, None, 1000]
    os.close(writing)
    assert pump.step() == 0
    pump.close()


def test_a_pipe_with_nothing_in_it_is_said_apart_from_its_end() -> None:
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    pump = Pump(reading, None)

    assert pump.step() == -1
    os.close(writing)
    assert pump.step() == 0
    pump.close()
    assert pump.step() == 0


def test_what_was_read_before_is_copied_from_its_beginning(base) -> None:
    source = os.memfd_create('test')
    os.write(source, b'before')
    log = Log(f'{base}.stdout', 100)
    copy(source, log)
    log.append(b' and after')
    log.close()

    assert read(base, 'stdout', 0, 100) == (0, b'before and after')
    with pytest.raises(OSError, match='Bad file descriptor'):
        os.fstat(source)
