"""Another machine, over a real SSH server on this one."""

import psutil
import pytest

from anyshell import ShellOptions, ShellSession, run_sync
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


@pytest.mark.needs('ssh')
def test_a_server_that_takes_no_more_sessions_is_told_so():
    why = 'mux_client_request_session: session request failed: Session open refused by peer'
    error = SshSandbox('host')._channel.refused(why)

    assert 'takes no more sessions (MaxSessions, MaxStartups)' in str(error)


@pytest.mark.needs('ssh')
async def test_a_sandbox_that_is_closed_before_its_session_ends_background_commands_all_the_same(
    ssh_server, tmp_path
):
    sandbox = SshSandbox(**ssh_server.arguments(), working_dir=str(tmp_path))
    async with ShellSession(ShellOptions(allow_interactive=True), sandbox=sandbox) as session:
        await session.start_command('echo $$ > pid; exec sleep 86401')
        await session.run_command('while [ ! -s pid ]; do sleep 0.1; done')
        pid = int((tmp_path / 'pid').read_text())
        await sandbox.aclose()

        assert not psutil.pid_exists(pid)
