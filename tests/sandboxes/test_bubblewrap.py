"""Namespaces of this machine, made by the real bubblewrap."""

import asyncio
import time

import pytest

from anyshell import run_sync
from anyshell.sandbox import bubblewrap
from anyshell.sandbox.bubblewrap import BubblewrapSandbox
from anyshell.testing import SandboxContract


@pytest.mark.needs('bubblewrap')
class TestBubblewrapSandbox(SandboxContract):
    @pytest.fixture(scope='class')
    @classmethod
    def sandbox(cls, tmp_path_factory):
        sandbox = BubblewrapSandbox(cwd=tmp_path_factory.mktemp('bubblewrap'))
        yield sandbox
        run_sync(sandbox.aclose())


@pytest.mark.needs('bubblewrap')
async def test_a_sandbox_that_no_longer_answers_is_killed_and_made_anew(tmp_path, monkeypatch):
    # A fork bomb does the same by keeping the processors busy. What can't end its commands would hold every call.
    monkeypatch.setattr(bubblewrap._Namespaces, 'patience', 1.0)
    async with BubblewrapSandbox(cwd=tmp_path) as sandbox:
        begin = time.monotonic()
        with pytest.raises(TimeoutError):
            await sandbox.execute('kill -STOP -1; sleep 80', timeout=1)
        assert time.monotonic() - begin < 30

        assert (await sandbox.execute('echo again')).stdout == 'again\n'
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(sandbox.execute('kill -STOP -1; sleep 80'), 1)
        begin = time.monotonic()

    assert time.monotonic() - begin < 30
