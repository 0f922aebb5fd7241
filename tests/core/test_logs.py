"""Logs on a disk that is full: the command goes on, the tail stays, and what is lost shows."""

import errno
import os

import pytest

from anyshell.sandbox import logs


@pytest.fixture
def disk(monkeypatch, tmp_path):
    """A directory on a disk that holds so many bytes; others may take some."""
    room = {'bytes': 1000}
    write = os.write

    def bounded(descriptor, data):
        left = room['bytes'] - sum(path.stat().st_size for path in tmp_path.iterdir())
        if left <= 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(descriptor, data[:left])

    monkeypatch.setattr(logs.os, 'write', bounded)
    return tmp_path, room


def numbers(first, last):
    return b''.join(b'%09d\n' % number for number in range(first, last))


@pytest.mark.parametrize('limit', [400, 4000, 4_000_000])
def test_full_disk_costs_the_head_and_never_the_tail(disk, limit):
    folder, _ = disk
    log = logs.Log(f'{folder}/1.stdout', limit)

    for number in range(1000):
        log.append(numbers(number, number + 1))
    log.close()

    assert logs.size(f'{folder}/1', 'stdout') == 10_000
    start, data = logs.read(f'{folder}/1', 'stdout', 0, 10_000)
    assert start > 0
    assert start + len(data) == 10_000
    assert numbers(0, 1000).endswith(data)
    assert data.endswith(b'000000999\n')


def test_disk_that_others_have_filled_loses_all_and_says_how_much(disk):
    folder, room = disk
    log = logs.Log(f'{folder}/1.stdout', 4000)
    log.append(numbers(0, 10))
    room['bytes'] = 0

    log.append(numbers(10, 60))

    assert logs.size(f'{folder}/1', 'stdout') == 600
    assert logs.read(f'{folder}/1', 'stdout', 0, 600) == (600, b'')

    room['bytes'] = 1000
    log.append(numbers(60, 70))
    log.close()

    assert logs.read(f'{folder}/1', 'stdout', 0, 700) == (600, numbers(60, 70))


def test_other_errors_are_not_hidden(disk, monkeypatch):
    folder, _ = disk
    log = logs.Log(f'{folder}/1.stdout', 4000)

    def broken(*_):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(logs.os, 'write', broken)

    with pytest.raises(OSError, match='Input/output error'):
        log.append(b'x')
    log.close()
