"""Which variables a command sees: the rules as values, and what really arrives."""

import contextlib
import os
import shlex
from pathlib import Path

import pytest

from anyshell import LLM_API_KEY_ENV_PATTERNS, LocalSandbox, ShellOptions, ShellSession
from anyshell.environment import NONINTERACTIVE_ENV, visible

BASE = {'PATH': '/bin', 'OPENAI_API_KEY': 'k', 'openai_lower': 'x', 'AWS_A': '1', 'A.B': 'odd'}


@pytest.mark.parametrize(
    ('patterns', 'gone'),
    [
        ([], set()),
        (['OPENAI_*'], {'OPENAI_API_KEY'}),
        (['PATH'], {'PATH'}),
        (['PAT'], set()),
        (['*'], set(BASE)),
        (['AWS_?'], {'AWS_A'}),
        (['[!A-Z]*'], {'openai_lower'}),
        (['A.B'], {'A.B'}),
        (['A?B', 'AWS_*'], {'A.B', 'AWS_A'}),
    ],
)
def test_patterns_take_variables_away(patterns, gone) -> None:
    assert visible(BASE, denied_patterns=patterns) == {
        name: value for name, value in BASE.items() if name not in gone
    }


def test_defaults_fill_what_is_not_set_and_are_filtered_too() -> None:
    found = visible({'A': '1'}, denied_patterns=['C'], defaults={'A': '2', 'B': '3', 'C': '4'})

    assert found == {'A': '1', 'B': '3'}


def test_provider_patterns_are_those_of_the_spec() -> None:
    patterns = (
        'ANTHROPIC_* OPENAI_* OPENROUTER_* GOOGLE_* GEMINI_* GATEWAY_* PYDANTIC_AI_GATEWAY_API_KEY'
    )

    assert tuple(patterns.split()) == LLM_API_KEY_ENV_PATTERNS


SHELLS_OWN = {'PWD', 'OLDPWD', 'SHLVL', '_'}


async def _seen(session: ShellSession) -> dict[str, str]:
    result = await session.run(f'{shlex.quote(_ENV)} -0')
    pairs = (entry.partition('=') for entry in result.stdout.split('\0') if entry)
    return {name: value for name, _, value in pairs if name not in SHELLS_OWN}


_ENV = next(f'{folder}/env' for folder in os.defpath.split(':') if os.path.exists(f'{folder}/env'))


@pytest.mark.parametrize('name', ['bash', 'sh'])
async def test_an_explicit_environment_is_exact(shell, name, monkeypatch) -> None:
    monkeypatch.setenv('ANYSHELL_TEST_SECRET', 'x')
    env = {'PATH': '/bin', 'EMPTY': '', 'ODD': 'a b\'c"d$HOME`id`\\n\n\nline é ;&|\n'}
    async with shell(env=env, shell=name) as session:
        assert await _seen(session) == env


async def test_an_empty_environment_is_exact_too(shell) -> None:
    async with shell(env={}) as session:
        assert await _seen(session) == {}


async def test_by_default_commands_inherit_the_variables_of_now(shell, monkeypatch) -> None:
    async with shell() as session:
        monkeypatch.setenv('ANYSHELL_TEST_LATER', 'x')

        assert (await _seen(session))['ANYSHELL_TEST_LATER'] == 'x'
        # Python's readline module sets these two behind the back of `os.environ`.
        sizes = {'LINES', 'COLUMNS'}
        assert set(await _seen(session)) - sizes == set(os.environ) - SHELLS_OWN - sizes


async def test_patterns_filter_the_inherited_environment(shell, monkeypatch) -> None:
    monkeypatch.setenv('ANTHROPIC_API_KEY', 'x')
    monkeypatch.setenv('ANYSHELL_TEST_KEPT', 'y')
    async with shell(denied_env_patterns=LLM_API_KEY_ENV_PATTERNS) as session:
        seen = await _seen(session)

    assert 'ANTHROPIC_API_KEY' not in seen
    assert seen['ANYSHELL_TEST_KEPT'] == 'y'


async def test_patterns_filter_an_explicit_environment_too(shell) -> None:
    async with shell(env={'A_KEY': '1', 'B': '2'}, denied_env_patterns=['*_KEY']) as session:
        assert await _seen(session) == {'B': '2'}


async def test_patterns_hold_for_jobs(shell, until, tmp_path) -> None:
    async with shell(
        env={'A_KEY': '1', 'B': '2'}, denied_env_patterns=['*_KEY'], cwd=tmp_path
    ) as session:
        await session.start_command(f'{_ENV} >seen; : >done')
        await until((tmp_path / 'done').exists, 'the job to end')

    assert 'A_KEY' not in (tmp_path / 'seen').read_text()


async def test_a_sandboxs_environment_is_what_a_session_inherits(monkeypatch) -> None:
    monkeypatch.setenv('ANYSHELL_TEST_SECRET', 'x')
    async with LocalSandbox(env={'A_KEY': '1', 'B': '2'}) as sandbox:
        options = ShellOptions(denied_env_patterns=['A_*'])
        async with ShellSession(options, sandbox=sandbox) as session:
            assert await _seen(session) == {'B': '2'}


async def test_values_are_in_no_arguments_of_any_process(shell, sleeper) -> None:
    env = {'PATH': os.environ['PATH'], 'KEY': 'value-that-is-secret'}
    async with shell(env=env, persist_cwd=True) as session:
        await session.start_command(sleeper.command)
        await sleeper.started()
        arguments = _arguments_of_all()

    assert not any(b'value-that-is-secret' in line for line in arguments)


def _arguments_of_all() -> list[bytes]:
    found = []
    for path in Path('/proc').glob('[0-9]*/cmdline'):
        with contextlib.suppress(OSError):  # it has gone meanwhile
            found.append(path.read_bytes())
    return found


async def test_startup_files_and_exported_functions_are_ignored(shell, tmp_path) -> None:
    (tmp_path / 'startup').write_text('echo from a startup file\n')
    env = {
        'PATH': os.environ['PATH'],
        'BASH_ENV': str(tmp_path / 'startup'),
        'ENV': str(tmp_path / 'startup'),
        'SHELLOPTS': 'noexec',
        'BASHOPTS': 'extdebug',
        'BASH_FUNC_echo%%': '() { printf spoofed; }',
    }
    for name in ('bash', 'sh'):
        async with shell(env=env, shell=name) as session:
            assert (await session.run('echo plain')).stdout == 'plain\n'


async def test_noninteractive_defaults_fill_what_is_unset(shell) -> None:
    env = {'PATH': os.environ['PATH'], 'PAGER': 'mine'}
    async with shell(env=env, noninteractive_env=True) as session:
        assert await _seen(session) == {**NONINTERACTIVE_ENV, **env}


async def test_a_variable_that_the_system_refuses_is_a_sentence(shell) -> None:
    async with shell(env={'PATH': '/bin', 'BIG': 'x' * 3_000_000}) as session:
        assert await session.run_command('true') == (
            '[Error: the environment is too big for the system (E2BIG); pass fewer or shorter variables]'
        )
