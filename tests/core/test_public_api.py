"""The public names: importable, documented, light, and free of frameworks."""

import inspect
import subprocess
import sys

import pytest

import anyshell

FRAMEWORKS = (
    'agents',
    'langchain',
    'langchain_core',
    'langgraph',
    'pydantic_ai',
    'strands',
    'openai',
)
ERRORS = {
    'CommandDenied': (anyshell.CommandError, PermissionError),
    'ApprovalRequired': (anyshell.CommandError, PermissionError),
    'InvalidCommand': (anyshell.CommandError, ValueError),
    'UnknownCommandID': (anyshell.CommandError, LookupError),
    'JobsRefused': (anyshell.CommandError, RuntimeError),
    'WorkingDirectoryGone': (anyshell.CommandError, FileNotFoundError),
    'OptionError': (anyshell.AnyshellError, ValueError),
    'PolicyError': (anyshell.AnyshellError, ValueError),
    'SessionClosed': (anyshell.AnyshellError, RuntimeError),
    'SandboxError': (anyshell.AnyshellError, OSError),
    'SandboxClosed': (anyshell.SessionClosed, anyshell.SandboxError),
    'SandboxUnavailable': (anyshell.SandboxError,),
    'SandboxTimeoutError': (anyshell.SandboxError, TimeoutError),
    'SandboxPathNotFoundError': (anyshell.SandboxError, FileNotFoundError),
}


def loaded_after(code: str) -> set[str]:
    """The modules that a fresh interpreter has loaded after some code."""
    run = subprocess.run(
        [sys.executable, '-c', f'{code}\nimport sys; print(*sys.modules)'],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return set(run.stdout.split())


@pytest.mark.parametrize('name', anyshell.__all__)
def test_every_public_name_is_there_and_documented(name) -> None:
    value = getattr(anyshell, name)
    if inspect.isclass(value) or inspect.isroutine(value):
        assert inspect.getdoc(value)


def test_the_list_of_names_is_sorted_and_has_none_twice() -> None:
    assert list(anyshell.__all__) == sorted(
        set(anyshell.__all__), key=lambda name: (not name.isupper(), name[0].islower(), name)
    )


@pytest.mark.parametrize('name', anyshell.__all__)
def test_every_public_method_is_documented(name) -> None:
    value = getattr(anyshell, name)
    if not inspect.isclass(value) or not value.__module__.startswith('anyshell'):
        return
    members = {
        key: inspect.getattr_static(value, key) for key in vars(value) if not key.startswith('_')
    }
    undocumented = [
        key
        for key, member in members.items()
        if (inspect.isroutine(member) or isinstance(member, property))
        and not inspect.getdoc(getattr(value, key) if not isinstance(member, property) else member)
    ]

    assert undocumented == []


def test_importing_loads_no_framework_and_nothing_slow() -> None:
    loaded = loaded_after('import anyshell')

    assert loaded & {*FRAMEWORKS, 'click', 'yaml', 'anyshell.cli', 'anyshell.testing'} == set()


def test_a_star_import_gives_the_public_names() -> None:
    names: dict[str, object] = {}
    exec('from anyshell import *', names)  # noqa: S102 - that is the statement

    assert names.keys() - {'__builtins__'} == set(anyshell.__all__)


@pytest.mark.parametrize('name', ERRORS)
def test_each_error_is_also_the_builtin_that_it_resembles(name) -> None:
    assert issubclass(getattr(anyshell, name), ERRORS[name])


def test_the_tree_of_errors_is_complete() -> None:
    errors = {
        name
        for name in anyshell.__all__
        if inspect.isclass(getattr(anyshell, name))
        and issubclass(getattr(anyshell, name), BaseException)
    }

    assert errors == ERRORS.keys() | {'AnyshellError', 'CommandError'}
    tree = sys.modules['anyshell.errors'].__doc__ or ''
    assert [name for name in errors if name not in tree] == []


def test_an_approval_tells_a_person_what_there_is_to_decide() -> None:
    verdict = anyshell.Verdict(
        anyshell.Decision.ASK, 'Pushes code.', 'ask_commands', 'git push', (0, 8)
    )
    error = anyshell.ApprovalRequired(verdict)

    assert error.request('run_command', {'command': 'git push origin'}) == {
        'tool': 'run_command',
        'arguments': {'command': 'git push origin'},
        'command': 'git push origin',
        'part': 'git push',
        'reason': 'Pushes code.',
        'rule': 'ask_commands',
    }
    assert (
        error.refused('not today')
        == 'A person denied this command: not today\nIt has not run; ask before you try it another way.'
    )
    assert (
        error.refused()
        == 'A person denied this command.\nIt has not run; ask before you try it another way.'
    )
    assert (
        error.unanswered()
        == 'Pushes code. Nobody is there to approve it, so it is denied; do it another way.'
    )


def test_a_timeout_of_a_sandbox_carries_what_there_was() -> None:
    error = anyshell.SandboxTimeoutError(2.0, 'out', 'err')

    assert (str(error), error.seconds, error.stdout, error.stderr) == (
        'Execution timed out after 2.0 seconds',
        2.0,
        'out',
        'err',
    )


def test_a_missing_path_is_named() -> None:
    error = anyshell.SandboxPathNotFoundError('/x')

    assert (str(error), error.path) == ('Path not found: /x', '/x')
