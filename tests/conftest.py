"""What all tests share: async tests without a plugin, what a machine must have, and that nothing stays behind."""

import asyncio
import inspect
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator

import pytest

ASYNC_TEST_SECONDS = 60
PROMISED = frozenset(filter(None, os.environ.get('ANYSHELL_REQUIRE', '').split(',')))


def _works(*command: str) -> bool:
    try:
        return subprocess.run(command, capture_output=True, timeout=30, check=False).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def _bubblewrap() -> bool:
    # Installed is not enough: in many containers it may not make a namespace.
    return _works('bwrap', '--unshare-user', '--ro-bind', '/', '/', 'true')


def _ssh() -> bool:
    return all(shutil.which(name) for name in ('ssh', 'ssh-keygen')) and any(
        shutil.which('sshd', path=path) for path in (None, '/usr/sbin', '/usr/local/sbin')
    )


# What a test may need -> whether this machine has it, and what to install if not.
NEEDS: dict[str, tuple[Callable[[], bool], str]] = {
    'bubblewrap': (_bubblewrap, 'bubblewrap, and user namespaces must be allowed'),
    'busybox': (lambda: shutil.which('busybox') is not None, 'busybox-static'),
    'dash': (lambda: shutil.which('dash') is not None, 'dash'),
    'docker': (lambda: _works('docker', 'info'), 'docker.io, and its daemon must run'),
    'ssh': (_ssh, 'openssh-client and openssh-server'),
}
_found: dict[str, bool] = {}


def pytest_configure(config: pytest.Config) -> None:
    """Refuse a promise that no test could hold the machine to."""
    del config
    if unknown := PROMISED - NEEDS.keys():
        msg = f'ANYSHELL_REQUIRE names {sorted(unknown)}; known are {sorted(NEEDS)}'
        raise pytest.UsageError(msg)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test whose `needs` this machine lacks; fail it where the machine promised to have it."""
    for marker in item.iter_markers('needs'):
        (name,) = marker.args
        present, package = NEEDS[name]
        if name not in _found:
            _found[name] = present()
        if _found[name]:
            continue
        if name in PROMISED:
            pytest.fail(
                f'ANYSHELL_REQUIRE promises {name}, which does not work here', pytrace=False
            )
        pytest.skip(f'no {name} here; install {package}')


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run an `async def` test in a loop of its own, for a minute at most."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = pyfuncitem._fixtureinfo.argnames  # how pytest's own hook finds them
    test = pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names})
    asyncio.run(asyncio.wait_for(test, ASYNC_TEST_SECONDS))
    return True


@pytest.fixture(scope='session', autouse=True)
def _nothing_stays_behind(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Fail at the very end when a process or a temporary file of the tests is still there.

    The run has a temporary directory of its own, named in PATH: all that the tests start inherits that, the watcher
    too, which sees hardly any other variable.
    """
    directory = str(tmp_path_factory.mktemp('temporary'))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tempfile, 'tempdir', directory)
        patch.setenv('TMPDIR', directory)
        patch.setenv('PATH', f'{os.environ["PATH"]}:{directory}/bin')
        yield
    end = time.monotonic() + 10
    while (left := _processes_with(f':{directory}/bin')) and time.monotonic() < end:
        time.sleep(0.05)

    assert left == []
    # A pytest that a test runs keeps its own directory there.
    assert [name for name in os.listdir(directory) if not name.startswith('pytest-of-')] == []


def _processes_with(mark: str) -> list[str]:
    """What the processes that carry a mark in their environment run; the live watcher of this process is none of them."""
    found: list[str] = []
    for pid in filter(str.isdecimal, os.listdir('/proc') if os.path.isdir('/proc') else ()):
        try:
            with open(f'/proc/{pid}/environ', 'rb') as file:
                marked = os.fsencode(mark) in file.read()
            with open(f'/proc/{pid}/cmdline', 'rb') as file:
                command = file.read().replace(b'\0', b' ').decode('utf-8', 'replace').strip()
            with open(f'/proc/{pid}/stat', 'rb') as file:
                parent = int(file.read().rpartition(b')')[2].split()[1])
        except OSError:  # it has just gone, or is another user's
            continue
        if marked and not (parent == os.getpid() and 'watcher.main()' in command):
            found.append(command)
    return found
