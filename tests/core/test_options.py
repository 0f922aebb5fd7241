"""The settings: their defaults, and what is refused at construction with which words."""

import dataclasses
import inspect
import math
import os
from pathlib import Path
from typing import get_type_hints

import pytest

from anyshell import (
    AnyshellError,
    BubblewrapSandbox,
    CommandResult,
    Decision,
    DockerSandbox,
    LocalSandbox,
    OptionError,
    Sessions,
    ShellKeywords,
    ShellOptions,
    ShellSession,
    SshSandbox,
    Verdict,
)
from anyshell.options import option_names
from anyshell.policy import DEFAULT_DENIED_COMMANDS

SPEC = {
    'cwd': '.',
    'allowed_commands': [],
    'denied_commands': [
        *('rm', 'rmdir', 'mkfs', 'dd', 'format'),
        *('shutdown', 'reboot', 'halt', 'poweroff', 'init'),
    ],
    'denied_operators': [],
    'default_timeout': 30.0,
    'max_output_chars': 50_000,
    'persist_cwd': False,
    'allow_interactive': False,
    'env': None,
    'denied_env_patterns': [],
}
"""The keywords and defaults of pydantic-ai-harness' `Shell`, in its order."""

OURS = {
    'ask_commands': (),
    'unresolved': 'deny',
    'on_ask': 'ask',
    'shell': None,
    'on_timeout': 'kill',
    'max_timeout': None,
    'max_log_bytes': 100_000_000,
    'max_jobs': 64,
    'clean_output': True,
    'noninteractive_env': False,
    'tool_set': 'full',
    'kill_grace': 2.0,
    'on_command': None,
}


def test_the_specs_keywords_come_first_with_its_defaults() -> None:
    options = ShellOptions()
    values = {name: getattr(options, name) for name in option_names()[: len(SPEC)]}

    assert {
        name: list(value) if isinstance(value, tuple) else value for name, value in values.items()
    } == SPEC
    assert list(values) == list(SPEC)


def test_our_keywords_follow_with_their_defaults() -> None:
    assert {name: getattr(ShellOptions(), name) for name in option_names()[len(SPEC) :]} == OURS


def test_every_keyword_of_the_spec_can_be_given_at_once() -> None:
    options = ShellOptions(
        cwd=Path('/srv'),
        allowed_commands=[],
        denied_commands=['rm'],
        denied_operators=['>', '>>', '|'],
        default_timeout=5,
        max_output_chars=1000,
        persist_cwd=True,
        allow_interactive=True,
        env={'PATH': '/bin'},
        denied_env_patterns=['AWS_*'],
    )

    assert dataclasses.asdict(options) == {
        **OURS,
        'cwd': Path('/srv'),
        'allowed_commands': (),
        'denied_commands': ('rm',),
        'denied_operators': ('>', '>>', '|'),
        'default_timeout': 5,
        'max_output_chars': 1000,
        'persist_cwd': True,
        'allow_interactive': True,
        'env': {'PATH': '/bin'},
        'denied_env_patterns': ('AWS_*',),
    }


def test_options_are_keyword_only_and_can_be_changed() -> None:
    with pytest.raises(TypeError):
        ShellOptions('.')  # type: ignore[misc] - that is what is refused
    options = ShellOptions()
    options.default_timeout = 1.0

    assert options.default_timeout == 1.0


@pytest.mark.parametrize(
    ('make', 'keyword', 'said'),
    [
        (ShellOptions, 'allowed_comands', "'allowed_comands': did you mean 'allowed_commands'?"),
        (ShellOptions, 'timeout', "'timeout': did you mean 'on_timeout' or 'max_timeout' or 'default_timeout'?"),
        (ShellOptions, 'sesion', "'sesion': did you mean 'session'?"),
        (ShellOptions, 'nonesuch', f"'nonesuch': there are {', '.join(option_names())}"),
        (ShellOptions, 'sandbox', "'sandbox' here: it goes beside the settings, as in ShellSession(ShellOptions(…), sandbox=…)"),
        (ShellSession, 'cwd', "'cwd' here: settings go into ShellOptions, as in ShellSession(ShellOptions(cwd=…))"),
        (ShellSession, 'polcy', "'polcy': did you mean 'policy'?"),
        (ShellSession, 'nonesuch', "'nonesuch': there are options, sandbox, policy"),
        (LocalSandbox, 'workdir', "'workdir': there are cwd, env"),
        (BubblewrapSandbox, 'memmory', "'memmory': did you mean 'memory'?"),
        (DockerSandbox, 'imge', "'imge': did you mean 'image'?"),
        (lambda **given: SshSandbox('host', **given), 'prot', "'prot': did you mean 'port'?"),
        (lambda **given: Sessions(given), 'sandbx', "'sandbx': did you mean 'sandbox'?"),
        (lambda **given: Sessions(given), 'nonesuch', f"'nonesuch': there are {', '.join((*option_names(), 'session', 'sandbox', 'policy'))}"),
    ],
)  # fmt: skip
def test_unknown_keyword_is_answered_with_the_one_that_was_meant(make, keyword, said) -> None:
    with pytest.raises(TypeError) as caught:
        make(**{keyword: 1})

    assert str(caught.value) == f'unknown option {said}'


def test_subclass_knows_its_own_keywords() -> None:
    @dataclasses.dataclass(kw_only=True)
    class More(ShellOptions):
        colour: str = 'red'

    with pytest.raises(TypeError, match=r"did you mean 'colour'\?"):
        More(color='blue')  # type: ignore[call-arg] - that is the mistake

    assert More(colour='blue', max_jobs=3) == dataclasses.replace(More(), colour='blue', max_jobs=3)


def test_subclass_that_takes_any_keyword_decides_itself() -> None:
    class Loose(ShellSession):
        def __init__(self, **given: object) -> None:
            super().__init__()
            self.given = given

    with Loose(anything=1) as session:
        assert session.given == {'anything': 1}


def test_constructors_show_their_own_signatures() -> None:
    assert tuple(inspect.signature(ShellOptions).parameters) == option_names()
    assert tuple(inspect.signature(ShellSession).parameters) == ('options', 'sandbox', 'policy')


def test_the_keyword_type_has_every_option() -> None:
    fields = get_type_hints(ShellOptions)

    assert get_type_hints(ShellKeywords) == {name: fields[name] for name in option_names()}


def test_every_option_is_described() -> None:
    described = inspect.getdoc(ShellOptions) or ''

    assert [name for name in option_names() if f'\n    {name}: ' not in described] == []


NUMBER = 'a number of seconds above 0'
STRINGS = "a list of strings, such as ['git', 'ls']"
VARIABLES = 'None or a mapping of variable names to str values'
NAMES = f'{VARIABLES}; a name is not empty and has no "=" and no NUL'
REFUSED = [
    ('cwd', '', 'the path of a directory, as a str or a Path'),
    ('cwd', None, 'the path of a directory, as a str or a Path'),
    ('cwd', b'/tmp', 'the path of a directory, as a str or a Path'),
    ('cwd', 'a\0b', 'the path of a directory, as a str or a Path'),
    ('allowed_commands', 'git', STRINGS),
    ('allowed_commands', {'git'}, STRINGS),
    ('allowed_commands', None, STRINGS),
    ('denied_commands', 'rm', STRINGS),
    ('denied_commands', [1], STRINGS),
    ('denied_commands', b'rm', STRINGS),
    ('denied_operators', '>', STRINGS),
    ('denied_env_patterns', 'AWS_*', STRINGS),
    ('ask_commands', 7, STRINGS),
    ('default_timeout', 0, NUMBER),
    ('default_timeout', -1.5, NUMBER),
    ('default_timeout', math.nan, NUMBER),
    ('default_timeout', math.inf, NUMBER),
    ('default_timeout', '30', NUMBER),
    ('default_timeout', True, NUMBER),
    ('default_timeout', None, NUMBER),
    ('max_timeout', 0, f'None or {NUMBER}'),
    ('max_timeout', math.nan, f'None or {NUMBER}'),
    ('kill_grace', -1, 'a number of seconds, 0 or more'),
    ('kill_grace', math.inf, 'a number of seconds, 0 or more'),
    ('max_output_chars', 0, 'a whole number of characters, 1 or more'),
    ('max_output_chars', 1.5, 'a whole number of characters, 1 or more'),
    ('max_output_chars', None, 'a whole number of characters, 1 or more'),
    ('max_log_bytes', 0, 'a whole number of bytes, 1 or more'),
    ('max_jobs', -1, 'a whole number of jobs, 1 or more'),
    ('max_jobs', False, 'a whole number of jobs, 1 or more'),
    ('persist_cwd', 1, 'True or False'),
    ('allow_interactive', None, 'True or False'),
    ('clean_output', 'yes', 'True or False'),
    ('noninteractive_env', 0, 'True or False'),
    ('unresolved', 'maybe', "'deny', 'ask' or 'allow'"),
    ('on_ask', 'allow', "'ask' or 'deny'"),
    ('shell', 'zsh', "'bash', 'sh' or None"),
    ('on_timeout', 'ignore', "'kill' or 'background'"),
    ('tool_set', 'none', "'full' or 'spec'"),
    (
        'on_command',
        'print',
        'None or a callable, not an async one, that takes a Verdict and a CommandResult or None',
    ),
    ('allowed_commands', b'ls', "a list of strings, such as ['git', 'ls']"),
]


@pytest.mark.parametrize(('name', 'value', 'allowed'), REFUSED)
def test_an_error_names_the_field_the_value_and_what_is_allowed(name, value, allowed) -> None:
    with pytest.raises(OptionError) as caught:
        ShellOptions(**{name: value})

    assert str(caught.value) == f'{name}={value!r} is not allowed: it must be {allowed}'
    assert (caught.value.option, caught.value.value) == (name, value)
    assert isinstance(caught.value, ValueError)
    assert isinstance(caught.value, AnyshellError)


def test_a_number_beyond_any_float_is_refused_like_infinity() -> None:
    with pytest.raises(OptionError, match=r'^default_timeout=10+ is not allowed'):
        ShellOptions(default_timeout=10**400)


@pytest.mark.parametrize(
    ('env', 'said'),
    [
        (['A'], f"env=['A'] is not allowed: it must be {VARIABLES}"),
        (['A=secret'], f"env=['A=…'] is not allowed: it must be {VARIABLES}"),
        (('B', 1, b'secret'), f"env=['B', 1, <class 'bytes'>] is not allowed: it must be {VARIABLES}"),
        ('A=secret', f"env='A=…' is not allowed: it must be {VARIABLES}"),
        ({'': 'x'}, f"env='' is not allowed: it must be {NAMES}"),
        ({'A=B': 'x'}, f"env='A=…' is not allowed: it must be {NAMES}"),
        ({'A\0': 'x'}, f"env='A\\x00' is not allowed: it must be {NAMES}"),
        ({1: 'x'}, f'env=1 is not allowed: it must be {NAMES}'),
        ({'A': 1}, "env['A']=<class 'int'> is not allowed: it must be a str without NUL characters"),
        ({'A': 'secret\ud800'}, "env['A']='…' is not allowed: it must be text that can be encoded; it holds half a character (a lone surrogate)"),
        ({'A\ud800': 'secret'}, "env['A\\ud800']='…' is not allowed: it must be text that can be encoded; it holds half a character (a lone surrogate)"),
        ({'A': 'secret\0'}, "env['A']='…' is not allowed: it must be a str without NUL characters"),
    ],
)  # fmt: skip
def test_an_error_about_variables_repeats_no_value_of_them(env, said) -> None:
    with pytest.raises(OptionError) as caught:
        ShellOptions(env=env)

    assert str(caught.value) == said


def test_allow_and_deny_lists_exclude_each_other() -> None:
    with pytest.raises(OptionError) as caught:
        ShellOptions(allowed_commands=['ls'], denied_commands=['rm'])

    assert str(caught.value) == (
        "denied_commands=['rm'] is not allowed: it must be empty, since allowed_commands is given. "
        'Specify allowed_commands or denied_commands, not both.'
    )


def test_the_default_deny_list_steps_back_before_an_allow_list() -> None:
    policy = ShellOptions(allowed_commands=['rm', 'ls']).policy()

    assert policy.check('rm x').decision is Decision.ALLOW
    assert policy.check('cat x').decision is Decision.DENY


def test_an_empty_deny_list_may_stand_beside_an_allow_list() -> None:
    assert ShellOptions(allowed_commands=['ls'], denied_commands=[]).denied_commands == ()


def test_the_default_deny_list_denies_its_ten() -> None:
    policy = ShellOptions().policy()

    assert len(DEFAULT_DENIED_COMMANDS) == 10
    assert {name: policy.check(f'{name} x').decision for name in DEFAULT_DENIED_COMMANDS} == (
        dict.fromkeys(DEFAULT_DENIED_COMMANDS, Decision.DENY)
    )


def test_an_empty_deny_list_denies_none() -> None:
    assert ShellOptions(denied_commands=[]).policy().check('rm x').decision is Decision.ALLOW


def test_a_copy_with_an_allow_list_still_has_the_default_deny_list_step_back() -> None:
    options = dataclasses.replace(ShellOptions(), allowed_commands=['ls'])

    assert options.policy().check('ls').decision is Decision.ALLOW


def test_the_default_deny_list_is_known_as_such_in_a_copy() -> None:
    """`asdict`, pickle and JSON keep values, not identities; the default still steps back."""
    copied = ShellOptions(
        **{**dataclasses.asdict(ShellOptions()), 'allowed_commands': ['rm', 'ls']}
    )

    assert copied.policy().check('rm x').decision is Decision.ALLOW


async def _async_hook(verdict: Verdict, result: CommandResult | None) -> None: ...


class _AsyncHook:
    async def __call__(self, verdict: Verdict, result: CommandResult | None) -> None: ...


@pytest.mark.parametrize('hook', [_async_hook, _AsyncHook()], ids=['function', 'object'])
def test_an_audit_hook_that_nobody_would_await_is_refused(hook: object) -> None:
    with pytest.raises(OptionError, match='not an async one'):
        ShellOptions(on_command=hook)  # type: ignore[arg-type]


def test_variables_are_taken_as_they_are_now_and_not_shown() -> None:
    env = {'NAME': 'secret'}
    options = ShellOptions(env=env)
    env['NAME'] = 'other'

    assert options.env == {'NAME': 'secret'}
    assert 'secret' not in repr(options)


def test_a_variable_may_hold_bytes_of_any_encoding() -> None:
    value = os.fsdecode(b'x\xffy')

    assert ShellOptions(env={'A': value}).env == {'A': value}


def test_a_policy_is_for_the_shell_of_the_options() -> None:
    line = '[[ a || rm ]]'  # one test to bash; a dash runs rm

    assert ShellOptions().policy().check(line).decision is Decision.ALLOW
    assert ShellOptions(shell='sh').policy().check(line).decision is Decision.DENY
    assert ShellOptions(shell='sh').policy('bash').check(line).decision is Decision.ALLOW
