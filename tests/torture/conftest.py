"""What the hard cases share: sessions that judge nothing, long sleeps that can be found, and programs that are hosts."""

import asyncio
import itertools
import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from anyshell import Decision, ShellOptions, ShellSession, Verdict

LIMIT = 50
"""Seconds for a host, which needs less than one on an idle machine."""

HEAD = f"""
import asyncio, os, resource, signal, sys, time
sys.path[:0] = {sys.path!r}
from anyshell import Decision, ShellOptions, ShellSession, Verdict

class AllowAll:
    def check(self, command):
        return Verdict(Decision.ALLOW)

def session(**options):
    return ShellSession(ShellOptions(**options), policy=AllowAll())

"""


class AllowAll:
    def check(self, command: str) -> Verdict:
        del command
        return Verdict(Decision.ALLOW)


class Sleep:
    """A `sleep` that nobody else runs."""

    numbers = itertools.count(os.getpid() * 1000)

    def __init__(self) -> None:
        self.seconds = f'864000.{next(self.numbers)}'
        self.command = f'sleep {self.seconds}'

    def pids(self) -> list[int]:
        """Where it runs."""
        found: list[int] = []
        for pid in filter(str.isdecimal, os.listdir('/proc')):
            try:
                words = Path(f'/proc/{pid}/cmdline').read_bytes().split(b'\0')
            except OSError:
                continue
            if words[:2] == [b'sleep', self.seconds.encode()]:
                found.append(int(pid))
        return found

    async def runs(self, count: int = 1) -> None:
        """Wait until so many run."""
        async with asyncio.timeout(LIMIT):
            while len(self.pids()) < count:
                await asyncio.sleep(0.01)

    def ends(self) -> bool:
        """Whether none runs within 5 seconds."""
        end = time.monotonic() + 5
        while (left := self.pids()) and time.monotonic() < end:
            time.sleep(0.01)
        return not left


@pytest.fixture
def sleep():
    """A long sleep; the test must see to its end."""
    sleep = Sleep()
    yield sleep
    for pid in sleep.pids():
        os.kill(pid, 9)


@pytest.fixture
def session(tmp_path) -> Callable[..., ShellSession]:
    """Makes sessions in a directory of their own; the test closes them."""

    def make(**options: object) -> ShellSession:
        return ShellSession(ShellOptions(**{'cwd': tmp_path, **options}), policy=AllowAll())  # type: ignore[arg-type] - what the test passes

    return make


@pytest.fixture
def host(tmp_path) -> Callable[..., str]:
    """Runs a program that uses anyshell, to its end, and returns what it prints."""

    def run(
        program: str,
        *before: str,
        preexec: Callable[[], None] | None = None,
        **variables: str,
    ) -> str:
        command = [*before, sys.executable, '-c', HEAD + textwrap.dedent(program)]
        printed = tmp_path / 'printed'
        with printed.open('wb') as file:
            done = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                preexec_fn=preexec,
                env={**os.environ, **variables},
                cwd=tmp_path,
                timeout=LIMIT,
                check=False,
            )
        text = printed.read_text(errors='replace')
        assert done.returncode == 0, text
        return text

    return run
