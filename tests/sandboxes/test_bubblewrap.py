"""Namespaces of this machine, made by the real bubblewrap."""

import pytest

from anyshell import run_sync
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
