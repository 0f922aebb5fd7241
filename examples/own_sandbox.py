"""A sandbox of your own: one method, and the contract that shows whether it is one.

Run it as a program to use the sandbox, and with pytest to hold it to the contract. Both need `pip install pytest`, which the
contract is written with; a sandbox in a file of its own, apart from its tests, does not.

    python examples/own_sandbox.py
    pytest examples/own_sandbox.py
"""

import asyncio
import contextlib
import shlex

import pytest

from anyshell import LocalSandbox, PosixShellSandbox, ShellSession, run_sync
from anyshell.testing import SandboxContract


class NiceSandbox(PosixShellSandbox):
    """This machine, at the lowest priority. Yours would reach a cloud's machine, a jail or a virtual machine."""

    def __init__(self, cwd: str = '.') -> None:
        self.machine = LocalSandbox(cwd=cwd)

    async def execute_streaming(self, command, **options):
        nice = f'exec nice -n 19 sh -c {shlex.quote(command)}'
        async with contextlib.aclosing(self.machine.execute_streaming(nice, **options)) as chunks:
            async for chunk in chunks:
                yield chunk

    async def aclose(self) -> None:
        await self.machine.aclose()


class TestNiceSandbox(SandboxContract):
    hides_values = False  # with this one method, variables travel in the command

    @pytest.fixture(scope='class')
    @classmethod
    def sandbox(cls, tmp_path_factory):
        sandbox = NiceSandbox(str(tmp_path_factory.mktemp('nice')))
        yield sandbox
        run_sync(sandbox.aclose())


async def main() -> None:
    async with NiceSandbox() as sandbox, ShellSession(sandbox=sandbox) as session:
        print(await session.run_command('nice'))
        print(await session.start_command('echo up; sleep 100'))
        await asyncio.sleep(0.5)
        print(await session.check_command('j1'))
        print(await session.stop_command('j1'))


if __name__ == '__main__':
    asyncio.run(main())
