"""Strands: our sandboxes as its own environment. Beside Strands' local one, where both have to do the same."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from pathlib import Path
from typing import Any

import psutil
import pytest
from strands import Agent, Sandbox, SandboxPathNotFoundError, SandboxTimeoutError
from strands.models.openai import OpenAIModel
from strands.sandbox.not_a_sandbox_local_environment import NotASandboxLocalEnvironment
from strands.sandbox.types import ExecutionResult, FileInfo, StreamChunk
from strands.vended_tools.file_editor import file_editor
from strands.vended_tools.shell import shell

from anyshell import BubblewrapSandbox, LocalSandbox, Policy
from anyshell.testing import OpenAIServer
from strands_anyshell import ShellPolicy, StrandsSandbox

NAP = f'sleep 44{os.getpid()}.5'


def running(command: str) -> bool:
    for process in psutil.process_iter():
        try:
            if command in ' '.join(process.cmdline()):
                return True
        except psutil.Error:  # it has gone meanwhile
            continue
    return False


def ours(cwd: Path) -> Sandbox:
    return StrandsSandbox(LocalSandbox(cwd=str(cwd)))


def theirs(cwd: Path) -> Sandbox:
    del cwd  # it takes the process' own
    return NotASandboxLocalEnvironment()


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


BOTH = pytest.mark.parametrize('make', [ours, theirs])
Make = Callable[[Path], Sandbox]


async def chunks(sandbox: Sandbox, command: str, **options: Any) -> AsyncIterator[object]:
    async with aclosing(sandbox.execute_streaming(command, **options)) as stream:
        async for chunk in stream:
            yield chunk


@BOTH
async def test_command_gets_its_variables_and_its_directory(tmp_path: Path, make: Make) -> None:
    Path(tmp_path, 'below').mkdir()
    sandbox = make(tmp_path)

    done = await sandbox.execute(
        'echo $WORD; pwd; echo err >&2; exit 3', env={'WORD': "it's"}, cwd=str(tmp_path / 'below')
    )

    assert done == ExecutionResult(3, f"it's\n{tmp_path}/below\n", 'err\n')
    assert type(done) is ExecutionResult


@BOTH
async def test_stream_is_of_strands_own_classes(tmp_path: Path, make: Make) -> None:
    *pieces, result = [chunk async for chunk in chunks(make(tmp_path), 'echo a; echo b >&2')]

    assert sorted(map(str, pieces)) == sorted(
        map(str, [StreamChunk('a\n'), StreamChunk('b\n', 'stderr')])
    )
    assert result == ExecutionResult(0, 'a\n', 'b\n')


@BOTH
async def test_code_runs_and_a_language_is_a_plain_name(tmp_path: Path, make: Make) -> None:
    sandbox = make(tmp_path)

    done = await sandbox.execute_code(
        "import os\nprint(os.environ['WORD'] * 2)", 'python3', env={'WORD': '"x"'}
    )

    assert (done.exit_code, done.stdout) == (0, '"x""x"\n')
    assert (await sandbox.execute_code('x', 'no-such-language')).exit_code == 127
    with pytest.raises(ValueError, match='language'):
        await sandbox.execute_code('x', 'sh; true')


@BOTH
async def test_time_limit_keeps_what_was_written(tmp_path: Path, make: Make) -> None:
    if make is theirs and not hasattr(SandboxTimeoutError(1), 'stdout'):
        pytest.skip('needs Strands 1.55: its error had no place for output')
    with pytest.raises(SandboxTimeoutError) as passed:
        await make(tmp_path).execute(f'echo out; echo err >&2; {NAP}', timeout=1)

    assert (passed.value.stdout, passed.value.stderr) == ('out\n', 'err\n')
    assert str(passed.value) == 'Execution timed out after 1 seconds'
    assert not running(NAP)


@BOTH
async def test_files_are_written_listed_and_removed(tmp_path: Path, make: Make) -> None:
    sandbox, every_byte = make(tmp_path), bytes(range(256))

    await sandbox.write_file('below/all', every_byte)
    await sandbox.write_text('below/text', 'grün\n')
    found = await sandbox.list_files('below')
    listed = await sandbox.list_files('.')
    await sandbox.remove_file('below/all')

    assert [(entry.name, entry.is_dir) for entry in found] == [('all', False), ('text', False)]
    assert [(type(entry), entry.name, entry.is_dir) for entry in listed] == [
        (FileInfo, 'below', True)
    ]
    assert await sandbox.read_text('below/text') == 'grün\n'
    with pytest.raises(FileNotFoundError):
        await sandbox.read_file('below/all')
    with pytest.raises(FileNotFoundError):
        await sandbox.remove_file('below/all')
    with pytest.raises(SandboxPathNotFoundError):
        await sandbox.list_files('no-such-directory')


@BOTH
async def test_bad_variable_name_is_refused(tmp_path: Path, make: Make) -> None:
    with pytest.raises(ValueError, match='environment variable name'):
        await make(tmp_path).execute('true', env={'A B': 'c'})


async def test_cancelling_ends_the_command(tmp_path: Path) -> None:
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(ours(tmp_path).execute(f'exec {NAP}'), 0.7)

    assert not running(NAP)


async def test_closing_the_stream_early_ends_the_command(tmp_path: Path) -> None:
    async with aclosing(chunks(ours(tmp_path), f'echo on; exec {NAP}')) as stream:  # pyright: ignore[reportArgumentType, reportGeneralTypeIssues]
        first = await anext(stream)

    assert first == StreamChunk('on\n')
    assert not running(NAP)


@pytest.mark.parametrize(
    'make', [LocalSandbox, pytest.param(BubblewrapSandbox, marks=pytest.mark.needs('bubblewrap'))]
)
def test_vended_tools_work_in_it(tmp_path: Path, make: Any) -> None:
    script = [
        [('shell', {'command': 'echo one > file; cat file; exit 3'})],
        [('file_editor', {'command': 'view', 'path': f'{tmp_path}/file'})],
        [('shell', {'command': 'rm file'})],
        'Done.',
    ]
    sandbox = make(cwd=str(tmp_path))
    with OpenAIServer(script) as server:
        client = {'base_url': server.base_url, 'api_key': 'any'}
        agent = Agent(
            model=OpenAIModel(client_args=client, model_id='any'),
            sandbox=StrandsSandbox(sandbox),
            tools=[shell, file_editor],
            interventions=[ShellPolicy(Policy.from_lists(denied_commands=['rm']), tools=['shell'])],
            callback_handler=None,
        )
        agent('Go.')
    asyncio.run(sandbox.aclose())  # whoever opens it closes it

    ran, viewed, denied = server.tool_results()
    assert 'one' in ran
    assert 'one' in viewed
    assert "'rm' is denied" in denied
    assert Path(tmp_path, 'file').read_text() == 'one\n'
