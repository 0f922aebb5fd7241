"""What the core's tests share: sessions that are closed, and commands that can be found among all processes."""

import asyncio
import itertools
import os
import shlex
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from inspect import signature
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from anyshell import Decision, ShellOptions, ShellSession, Verdict, run_sync
from anyshell.cli import main

LIMIT = 20.0
"""Seconds to wait for something that takes milliseconds on an idle machine."""


class AllowAll:
    """A policy that these tests are not about."""

    def check(self, command: str) -> Verdict:
        del command
        return Verdict(Decision.ALLOW)


class Sleeper:
    """A `sleep` that no other process of this machine runs, and where it is."""

    _numbers = itertools.count(os.getpid() * 1000)

    def __init__(self) -> None:
        self.seconds = f'86400.{next(self._numbers)}'
        self.command = f'sleep {self.seconds}'

    @property
    def pids(self) -> list[int]:
        """The live processes that sleep so, zombies aside."""
        found: list[int] = []
        for pid in filter(str.isdecimal, os.listdir('/proc')):
            try:
                arguments = Path(f'/proc/{pid}/cmdline').read_bytes().split(b'\0')
            except OSError:
                continue
            if arguments[:2] == [b'sleep', self.seconds.encode()]:
                found.append(int(pid))
        return found

    async def started(self, count: int = 1) -> list[int]:
        """Wait until so many run."""
        await wait_for(lambda: len(self.pids) >= count, f'{count} of `{self.command}` to start')
        return self.pids

    async def gone(self) -> None:
        """Wait 5 seconds at most until none runs."""
        await wait_for(lambda: not self.pids, f'`{self.command}` to end', seconds=5)


async def wait_for(condition: Callable[[], object], what: str, *, seconds: float = LIMIT) -> None:
    """Poll until the condition holds; fail with `what` when it does not in time."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            pytest.fail(f'waited {seconds} s for {what}', pytrace=False)
        await asyncio.sleep(0.01)


def line_of(process: 'subprocess.Popen[str]') -> str:
    """The next line that a program prints; one that prints none in time is ended."""
    assert process.stdout is not None
    guard = threading.Timer(3 * LIMIT, process.kill)
    guard.start()
    try:
        return process.stdout.readline()
    finally:
        guard.cancel()
        guard.join()


@dataclass
class Driver:
    """A program that uses anyshell and that a test may end in any way."""

    process: 'subprocess.Popen[str]'

    def line(self) -> str:
        """The next line that it prints; when that begins a traceback, the whole of it."""
        line = line_of(self.process).rstrip('\n')
        return line if not line.startswith('Traceback') else line + '\n' + self.output()

    def end(self, number: int | None = None) -> int:
        """Wait for its end, after a signal if one is given; returns the exit code."""
        if number is not None:
            self.process.send_signal(number)
        return self.process.wait(LIMIT)

    def output(self) -> str:
        """What else it prints, up to its end."""
        return self.process.communicate(timeout=2 * LIMIT)[0]


@dataclass
class Drivers:
    started: 'list[subprocess.Popen[str]]' = field(default_factory=list)

    def __call__(self, program: str, *arguments: str, **variables: str) -> Driver:
        """Start a program; it finds `asyncio`, `os`, `sys`, and `session(**options)`."""
        code = HEAD + textwrap.dedent(program)
        process = subprocess.Popen(
            [sys.executable, '-c', code, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, **variables},
        )
        self.started.append(process)
        return Driver(process)


HEAD = """
import asyncio, os, signal, sys, threading, time
from anyshell import Decision, LocalSandbox, ShellOptions, ShellSession, Verdict, run_sync

class AllowAll:
    def check(self, command):
        return Verdict(Decision.ALLOW)

def session(**options):
    return ShellSession(ShellOptions(**options), policy=AllowAll())

def say(*words):
    print(*words, flush=True)

"""


@pytest.fixture
def shell() -> Iterator[Callable[..., ShellSession]]:
    """Makes sessions whose policy allows everything, and closes them."""
    opened: list[ShellSession] = []

    def make(**options: object) -> ShellSession:
        session = ShellSession(ShellOptions(**options), policy=AllowAll())  # type: ignore[arg-type] - what tests pass
        opened.append(session)
        return session

    yield make
    for session in opened:
        run_sync(session.aclose())


@pytest.fixture
def sleepers() -> Iterator[Callable[[], Sleeper]]:
    """Makes long `sleep`s that can be found; the test must have seen to their end."""
    made: list[Sleeper] = []

    def make() -> Sleeper:
        made.append(Sleeper())
        return made[-1]

    yield make
    for sleeper in made:
        for pid in sleeper.pids:
            os.kill(pid, 9)


@pytest.fixture
def sleeper(sleepers: Callable[[], Sleeper]) -> Sleeper:
    """One of them."""
    return sleepers()


@pytest.fixture
def until() -> Callable[..., object]:
    """Polls until a condition holds; fails when it takes too long."""
    return wait_for


@pytest.fixture
def driver() -> Iterator[Drivers]:
    """Starts programs that use anyshell, and ends those that are left."""
    drivers = Drivers()
    yield drivers
    for process in drivers.started:
        if process.poll() is None:
            process.kill()
        process.communicate(timeout=LIMIT)


@pytest.fixture
def python() -> Callable[[str], str]:
    """Makes the command that runs a piece of Python."""
    return lambda code: shlex.join([sys.executable, '-S', '-c', textwrap.dedent(code)])


def anyshell_argv(*arguments: str) -> list[str]:
    """The command `anyshell`: the one that is installed beside this Python, else the one of the sources."""
    installed = Path(sys.executable).with_name('anyshell')
    code = 'from anyshell.cli import main; main(prog_name="anyshell")'
    start = [str(installed)] if installed.exists() else [sys.executable, '-c', code]
    return [*start, *arguments]


@pytest.fixture
def anyshell() -> Callable[..., 'subprocess.CompletedProcess[str]']:
    """Runs the command `anyshell` to its end, without a terminal."""

    def run(*arguments: str, **variables: str) -> 'subprocess.CompletedProcess[str]':
        return subprocess.run(
            anyshell_argv(*arguments),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=3 * LIMIT,
            env={**os.environ, **variables},
            check=False,
        )

    return run


@pytest.fixture
def invoke() -> Callable[..., Result]:
    """Runs the command `anyshell` in this process, which is quick; its two streams are apart."""
    # Before click 8.2 that has to be asked for.
    apart = {'mix_stderr': False} if 'mix_stderr' in signature(CliRunner).parameters else {}
    return lambda *arguments, **settings: CliRunner(**apart).invoke(main, arguments, **settings)


@pytest.fixture
def next_line() -> Callable[['subprocess.Popen[str]'], str]:
    """Reads the next line that a program prints, which does not wait for ever."""
    return line_of


@pytest.fixture
def start_anyshell() -> Iterator[Callable[..., 'subprocess.Popen[str]']]:
    """Starts the command `anyshell`; what still runs at the end of the test is ended."""
    started: list[subprocess.Popen[str]] = []

    def start(*arguments: str, **options: object) -> 'subprocess.Popen[str]':
        settings = {
            'stdin': subprocess.DEVNULL,
            'stdout': subprocess.PIPE,
            'stderr': subprocess.PIPE,
        }
        process = subprocess.Popen(anyshell_argv(*arguments), text=True, **{**settings, **options})  # type: ignore[call-overload] - what tests pass
        started.append(process)
        return process

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate(timeout=LIMIT)
