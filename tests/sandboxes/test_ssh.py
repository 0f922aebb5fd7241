"""Another machine, over a real SSH server on this one."""

import pytest

from anyshell import run_sync
from anyshell.sandbox.ssh import SshSandbox
from anyshell.testing import SandboxContract


@pytest.mark.needs('ssh')
class TestSshSandbox(SandboxContract):
    @pytest.fixture(scope='class')
    @classmethod
    def sandbox(cls, ssh_server, tmp_path_factory):
        home = tmp_path_factory.mktemp('ssh')
        sandbox = SshSandbox(**ssh_server.arguments(), working_dir=str(home))
        yield sandbox
        run_sync(sandbox.aclose())
