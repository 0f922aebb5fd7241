"""LangChain: our sandboxes as the backend of deepagents, which are there in `nox -s peers`."""

import asyncio
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

pytest.importorskip('deepagents', reason='tested beside deepagents in `nox -s peers`')

from deepagents import create_deep_agent
from langchain_openai import ChatOpenAI
from langchain_tests.integration_tests import SandboxIntegrationTests

from anyshell import LocalSandbox, Policy
from anyshell.testing import OpenAIServer
from langchain_anyshell.deepagents import SandboxBackend
from langchain_anyshell.guard import ShellPolicy

ROOT = Path(tempfile.gettempdir(), f'anyshell-deepagents-{os.getpid()}')
NAP = f'sleep 45{os.getpid()}.5'

GLOBS = 'deepagents 0.7 gives absolute paths, and files only'
STALE = {
    'test_write_existing_file_fails': 'deepagents 0.7 overwrites',
    'test_glob': GLOBS,
    'test_glob_basic_pattern': GLOBS,
    'test_glob_with_directories': GLOBS,
    'test_glob_hidden_files_explicitly': GLOBS,
    'test_glob_with_character_class': GLOBS,
    'test_glob_with_question_mark': GLOBS,
}


def running(command: str) -> bool:
    for process in psutil.process_iter():
        try:
            if command in ' '.join(process.cmdline()):
                return True
        except psutil.Error:  # it has gone meanwhile
            continue
    return False


@pytest.mark.filterwarnings('ignore::pytest.PytestRemovedIn10Warning')  # of how it has fixtures
class TestSuite(SandboxIntegrationTests):
    """LangChain's own suite for backends."""

    @property
    def sandbox_root_dir(self) -> str:
        return str(ROOT)

    @pytest.fixture(scope='class')
    def sandbox(self) -> Iterator[SandboxBackend]:
        yield SandboxBackend(LocalSandbox())
        shutil.rmtree(ROOT)


for _name, _reason in STALE.items():
    _stale = pytest.mark.xfail(strict=True, reason=_reason)
    setattr(TestSuite, _name, _stale(getattr(SandboxIntegrationTests, _name)))


def test_output_of_both_streams_comes_with_the_exit_code(tmp_path: Path) -> None:
    backend = SandboxBackend(LocalSandbox(cwd=str(tmp_path)))

    done = backend.execute('pwd; sleep 0.1; echo err >&2; exit 3')

    assert (done.output, done.exit_code, done.truncated) == (f'{tmp_path}\nerr\n', 3, False)


def test_what_goes_wrong_is_an_answer(tmp_path: Path) -> None:
    backend = SandboxBackend(LocalSandbox(cwd=str(tmp_path)))

    late = backend.execute(f'echo out; exec {NAP}', timeout=1)
    wrong = backend.execute('echo \0')
    answers = backend.download_files(['/no/such/file', '/', 'relative', '/dev/null/x'])

    assert (late.output, late.exit_code) == ('out\n\n[Command timed out after 1.0s]', 124)
    assert (wrong.output[:8], wrong.exit_code) == ('[Error: ', 1)
    assert [answer.content for answer in answers] == [None] * 4
    assert [answer.error for answer in answers][:3] == [
        'file_not_found', 'is_directory', 'invalid_path',
    ]  # fmt: skip
    assert not running(NAP)


async def test_cancelling_ends_the_command(tmp_path: Path) -> None:
    backend = SandboxBackend(LocalSandbox(cwd=str(tmp_path)))

    with pytest.raises(TimeoutError):
        await asyncio.wait_for(backend.aexecute(f'exec {NAP}'), 0.7)

    assert not running(NAP)


@pytest.mark.parametrize('way', ['invoke', 'ainvoke'])
async def test_deep_agent_runs_in_it_and_is_judged(tmp_path: Path, way: str) -> None:
    script = [
        [('write_file', {'file_path': f'{tmp_path}/note', 'content': 'hello'})],
        [('execute', {'command': 'cat note; exit 3'})],
        [('execute', {'command': 'rm note'})],
        'Done.',
    ]
    with OpenAIServer(script) as server:
        agent: Any = create_deep_agent(
            ChatOpenAI(model='any', base_url=server.base_url, api_key='any'),  # pyright: ignore[reportArgumentType]
            backend=SandboxBackend(LocalSandbox(cwd=str(tmp_path))),
            middleware=[ShellPolicy(Policy.from_lists(denied_commands=['rm']), tools=['execute'])],
        )
        asked = {'messages': [('user', 'Go.')]}
        if way == 'invoke':
            agent.invoke(asked)
        else:
            await agent.ainvoke(asked)

    _, shown, denied = server.tool_results()
    assert 'hello' in shown
    assert '3' in shown
    assert denied.startswith("Command 'rm' is denied.")
    assert (tmp_path / 'note').read_text() == 'hello'
