"""OpenAI Agents SDK: our sandbox behaves as the SDK's own local one, and a `SandboxAgent` works in it."""

import asyncio
import io
import subprocess
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeAlias

import agents
import pytest
from agents import OpenAIResponsesModel, RunConfig, Runner
from agents.sandbox import (
    ExecTimeoutError,
    Manifest,
    SandboxAgent,
    SandboxError,
    SandboxRunConfig,
    WorkspaceReadNotFoundError,
)
from agents.sandbox.sandboxes.unix_local import UnixLocalSandboxClient
from openai import AsyncOpenAI

from anyshell import LocalSandbox, Policy
from anyshell.testing import OpenAIServer
from openai_agents_anyshell import shell_guardrail
from openai_agents_anyshell.sandbox import SandboxClient

agents.set_tracing_disabled(True)

Open: TypeAlias = Callable[[Path], Any]


@asynccontextmanager
async def ours(root: Path) -> AsyncGenerator[Any]:
    async with LocalSandbox(cwd=root) as sandbox:
        session = await SandboxClient(sandbox).create(manifest=Manifest(root=str(root)))
        async with session:
            yield session


@asynccontextmanager
async def theirs(root: Path) -> AsyncGenerator[Any]:
    session = await UnixLocalSandboxClient().create(manifest=Manifest(root=str(root)))
    async with session:
        yield session


both = pytest.mark.parametrize('opened', [ours, theirs])


@both
@pytest.mark.parametrize(
    ('command', 'expected'),
    [
        ('echo out; echo err >&2; exit 3', (b'out\n', b'err\n', 3)),
        ('printf "%s" "$WORD"', (b'', b'', 0)),
        ('cat', (b'', b'', 0)),
        ('mkdir -p a && cd a && basename "$PWD"', (b'a\n', b'', 0)),
    ],
)
async def test_exec_gives_both_streams_and_the_exit_code(
    opened: Open, command: str, expected: tuple[bytes, bytes, int], tmp_path: Path
) -> None:
    async with opened(tmp_path) as session:
        result = await session.exec(command + ' < /dev/null')

    assert (result.stdout, result.stderr, result.exit_code) == expected


@both
async def test_exec_of_words_takes_them_as_they_are(opened: Open, tmp_path: Path) -> None:
    async with opened(tmp_path) as session:
        result = await session.exec('printf', '%s|', 'a b', '$HOME', "it's", shell=False)

    assert result.stdout == b"a b|$HOME|it's|"


@both
async def test_exec_starts_in_the_root(opened: Open, tmp_path: Path) -> None:
    async with opened(tmp_path) as session:
        result = await session.exec('pwd -P')

    assert result.stdout.decode().strip() == str(tmp_path.resolve())


@both
async def test_exec_ends_at_its_time_limit(opened: Open, tmp_path: Path) -> None:
    async with opened(tmp_path) as session:
        with pytest.raises(ExecTimeoutError):
            await session.exec('sleep 44.25', timeout=0.3)

    listed = subprocess.run(
        ['ps', '-A', '-o', 'args='], capture_output=True, text=True, check=True, timeout=30
    )
    assert 'sleep 44.25' not in listed.stdout


@both
async def test_files_are_written_read_and_listed(opened: Open, tmp_path: Path) -> None:
    content = bytes(range(256)) * 1000
    async with opened(tmp_path) as session:
        await session.write(Path('deep/er/file'), io.BytesIO(content))
        with await session.read(Path('deep/er/file')) as file:
            found = file.read()
        names = [Path(entry.path).name for entry in await session.ls(Path('deep'))]
        with pytest.raises(WorkspaceReadNotFoundError):
            await session.read(Path('missing'))

    assert found == content
    assert names == ['er']
    assert (tmp_path / 'deep/er/file').read_bytes() == content


@both
async def test_files_are_not_reached_through_a_link_that_leaves_the_root(
    opened: Open, tmp_path: Path
) -> None:
    root, outside = tmp_path / 'root', tmp_path / 'outside'
    root.mkdir()
    outside.mkdir()
    (outside / 'secret').write_text('s')
    (root / 'link').symlink_to('../outside')
    (root / 'dead').symlink_to('../outside/new')
    (root / 'inner').symlink_to('d')
    (root / 'd').mkdir()
    async with opened(root) as session:
        for call in (
            session.read(Path('link/secret')),
            session.write(Path('link/made'), io.BytesIO(b'x')),
            session.write(Path('link/deep/made'), io.BytesIO(b'x')),
            session.write(Path('dead'), io.BytesIO(b'x')),
            session.ls(Path('link')),
            session.mkdir(Path('link/d')),
            session.rm(Path('link/secret')),
        ):
            with pytest.raises(SandboxError):
                await call
        await session.write(Path('inner/made'), io.BytesIO(b'x'))
        with await session.read(Path('inner/made')) as file:
            found = file.read()

    assert found == b'x'
    assert [path.name for path in outside.iterdir()] == ['secret']


@both
async def test_workspace_goes_through_an_archive(opened: Open, tmp_path: Path) -> None:
    first, second = tmp_path / 'first', tmp_path / 'second'
    first.mkdir()
    second.mkdir()
    async with opened(first) as session:
        await session.exec('mkdir d; printf x > d/f; ln -s f d/link; chmod 700 d/f')
        archive = await session.persist_workspace()
        content = archive.read()
    async with opened(second) as session:
        await session.hydrate_workspace(io.BytesIO(content))

    assert (second / 'd/f').read_text() == 'x'
    assert (second / 'd/link').is_symlink()
    assert (second / 'd/f').stat().st_mode & 0o777 == 0o700


@both
async def test_command_goes_on_and_takes_input(opened: Open, tmp_path: Path) -> None:
    async with opened(tmp_path) as session:
        started = await session.pty_exec_start(
            'echo ready; read line; echo "got $line"; exit 3', tty=True, yield_time_s=0.5
        )
        ended = await session.pty_write_stdin(
            session_id=started.process_id, chars='hello\n', yield_time_s=5
        )

    assert b'ready' in started.output
    assert started.exit_code is None
    assert b'got hello' in ended.output
    assert (ended.process_id, ended.exit_code) == (None, 3)


@both
async def test_ctrl_c_ends_a_command(opened: Open, tmp_path: Path) -> None:
    async with opened(tmp_path) as session:
        started = await session.pty_exec_start('echo up; sleep 44.75', tty=True, yield_time_s=0.5)
        ended = await session.pty_write_stdin(
            session_id=started.process_id, chars='\x03', yield_time_s=10
        )

    assert b'up' in started.output
    assert ended.process_id is None
    assert ended.exit_code


@both
async def test_command_without_terminal_takes_no_input(opened: Open, tmp_path: Path) -> None:
    async with opened(tmp_path) as session:
        started = await session.pty_exec_start('echo up; sleep 1; exit 3', yield_time_s=0.2)
        with pytest.raises(RuntimeError, match=r'^stdin is not available for this process$'):
            await session.pty_write_stdin(session_id=started.process_id, chars='hello\n')
        ended = await session.pty_write_stdin(
            session_id=started.process_id, chars='', yield_time_s=10
        )

    assert (ended.process_id, ended.exit_code) == (None, 3)


async def test_input_of_a_command_without_terminal_is_at_its_end(tmp_path: Path) -> None:
    async with ours(tmp_path) as session:
        ended = await session.pty_exec_start('cat; echo end', yield_time_s=10)

    assert (ended.process_id, ended.exit_code, ended.output) == (None, 0, b'end\n')


@both
async def test_command_that_goes_on_ends_with_the_session(opened: Open, tmp_path: Path) -> None:
    async with opened(tmp_path) as session:
        started = await session.pty_exec_start('exec sleep 45.25', yield_time_s=0.3)

    assert started.process_id is not None
    for _ in range(40):
        listed = subprocess.run(
            ['ps', '-A', '-o', 'args='], capture_output=True, text=True, check=True, timeout=30
        )
        if 'sleep 45.25' not in listed.stdout:
            break
        await asyncio.sleep(0.05)
    assert 'sleep 45.25' not in listed.stdout


async def test_sandbox_agent_works_in_our_sandbox_under_our_policy(tmp_path: Path) -> None:
    (tmp_path / 'notes.txt').write_text('hello\n')
    turns: list[Any] = [
        [('exec_command', {'cmd': 'ls; touch made'})],
        [('exec_command', {'cmd': 'rm notes.txt'})],
        'Done.',
    ]
    policy = Policy.from_lists(denied_commands=['rm'])
    with OpenAIServer(turns) as server:
        async with LocalSandbox(cwd=tmp_path) as sandbox:
            client = AsyncOpenAI(base_url=server.base_url, api_key='any')
            helper = SandboxAgent(
                name='Tester',
                model=OpenAIResponsesModel('gpt-5.2', client),
                capabilities=[guarded(policy)],
            )
            config = RunConfig(sandbox=SandboxRunConfig(client=SandboxClient(sandbox)))
            result = await Runner.run(helper, 'Go.', run_config=config)

    listed, denied = server.tool_results()
    assert result.final_output == 'Done.'
    assert 'notes.txt' in listed
    assert (tmp_path / 'made').exists()
    assert "Command 'rm' is denied." in denied
    assert (tmp_path / 'notes.txt').exists()


def guarded(policy: Policy) -> Any:
    from agents.sandbox.capabilities import Shell  # noqa: PLC0415  (there are two of that name)

    def configure(tools: Any) -> None:
        tools.exec_command.tool_input_guardrails = [shell_guardrail(policy)]

    return Shell(configure_tools=configure)
