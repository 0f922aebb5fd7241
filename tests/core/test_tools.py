"""The tools as a framework sees them: names, descriptions, schemas, and calls with whatever a model makes up."""

import asyncio
from typing import Any

import pytest
from pydantic import BaseModel

from anyshell import Policy, Reply, ShellOptions, ShellSession
from anyshell.tools import tools


def described(**options: Any) -> dict[str, str]:
    return {tool.name: tool.description for tool in ShellSession(ShellOptions(**options)).tools}


def schema(tool_set: str) -> dict[str, Any]:
    """The schemas as they are compared: without titles and descriptions."""
    found = {}
    for tool in ShellSession(ShellOptions(tool_set=tool_set)).tools:
        properties = tool.arguments.model_json_schema()['properties']
        found[tool.name] = {
            name: {
                key: value for key, value in about.items() if key not in {'title', 'description'}
            }
            for name, about in properties.items()
        }
    return found


TEXT = {'type': 'string'}
MAYBE_TEXT = {'anyOf': [{'type': 'string'}, {'type': 'null'}], 'default': None}
SECONDS = {'anyOf': [{'type': 'number'}, {'type': 'null'}], 'default': None}


def test_the_specs_tools_have_the_specs_arguments_only() -> None:
    assert schema('spec') == {
        'run_command': {'command': TEXT, 'timeout_seconds': SECONDS},
        'start_command': {'command': TEXT},
        'check_command': {'command_id': TEXT},
        'stop_command': {'command_id': TEXT},
    }


def test_the_full_tools_add_to_these() -> None:
    assert schema('full') == {
        'run_command': {'command': TEXT, 'timeout_seconds': SECONDS, 'workdir': MAYBE_TEXT},
        'start_command': {
            'command': TEXT,
            'workdir': MAYBE_TEXT,
            'ready_when': MAYBE_TEXT,
            'ready_timeout': {'type': 'number', 'default': 30.0},
            'stdin': {'type': 'boolean', 'default': False},
        },
        'check_command': {
            'command_id': MAYBE_TEXT,
            'wait_seconds': {'type': 'number', 'default': 0.0},
            'until': MAYBE_TEXT,
            'since': {'type': 'string', 'enum': ['start', 'last'], 'default': 'start'},
            'lines': MAYBE_TEXT,
        },
        'stop_command': {'command_id': TEXT},
        'send_input': {'command_id': TEXT, 'text': TEXT},
    }


@pytest.mark.parametrize('tool_set', ['spec', 'full'])
def test_every_argument_is_described_and_none_is_constrained(tool_set) -> None:
    for tool in ShellSession(ShellOptions(tool_set=tool_set)).tools:
        about = tool.arguments.model_json_schema()
        assert 'additionalProperties' not in about
        assert all(argument.get('description') for argument in about['properties'].values())
        words = str(about)
        assert not any(word in words for word in ('minimum', 'maxLength', 'minLength', 'exclusive'))


def test_equal_options_give_equal_descriptions() -> None:
    assert described(persist_cwd=True) == described(persist_cwd=True)


DEFAULT_RUN = (
    'Run a shell command and return its output. It is read by bash. '
    'It may take 30 seconds unless timeout_seconds says otherwise; after that it is ended and you get what it wrote. '
    'For servers and other long work use start_command. '
    'Every call starts in the same directory: a cd holds for that call only. '
    'Standard input is empty and there is no terminal. A non-zero exit code is shown as [exit code: N]. '
    "When output is cut, check_command(command_id='last', lines='1-200') reads the rest of it. "
    'These commands are denied: rm, rmdir, mkfs, dd, format, shutdown, reboot, halt, poweroff, init.'
)


def test_the_default_description_reads_so() -> None:
    assert described(shell='bash')['run_command'] == DEFAULT_RUN


@pytest.mark.parametrize(
    ('options', 'part'),
    [
        ({'shell': 'sh'}, 'It is read by a POSIX sh, not by bash.'),
        ({'default_timeout': 2.5}, 'It may take 2.5 seconds unless'),
        ({'max_timeout': 90}, 'It may take 30 seconds unless timeout_seconds says otherwise (at most 90);'),
        ({'max_timeout': 9}, 'It may take 9 seconds unless timeout_seconds says otherwise (at most 9);'),
        ({'on_timeout': 'background'}, 'after that it goes on in the background and you get its ID.'),
        ({'persist_cwd': True}, 'A cd holds for later calls when the command succeeds; variables do not.'),
        ({'allowed_commands': ['ls', 'git status']}, 'Only these commands are allowed: ls, git status.'),
        ({'denied_commands': ['curl']}, 'These commands are denied: curl.'),
        ({'denied_operators': ['>', '|']}, 'These shell operators are not allowed: > |'),
        ({'ask_commands': ['git push']}, "These need a person's approval: git push."),
    ],
)  # fmt: skip
def test_a_description_says_what_the_options_mean(options, part) -> None:
    assert part in described(**options)['run_command']


def test_a_description_promises_nothing_that_is_not_so() -> None:
    assert 'denied' not in described(denied_commands=[])['run_command']
    assert 'denied' not in described(allowed_commands=['ls'])['run_command']
    assert 'rm,' not in described(ask_commands=['rm'])['run_command']


def test_an_unknown_shell_is_described_as_unknown() -> None:
    run = tools(ShellSession(), ShellOptions(), None)[0]

    assert 'It is read by bash where there is one, otherwise by a POSIX sh.' in run.description


WRONG = [
    ('run_command', {}, 'command: Field required'),
    ('run_command', {'command': None}, 'command: Field required'),
    ('run_command', {'command': ['ls']}, 'command: Input should be a valid string'),
    (
        'run_command',
        {'command': 'ls', 'timeout_seconds': 'soon'},
        'timeout_seconds: Input should be a valid number, unable to parse string as a number',
    ),
    (
        'run_command',
        {'command': 'ls', 'timeout_seconds': 10**400},
        'timeout_seconds: Input should be a valid number',
    ),
    ('stop_command', {'command_id': 7}, 'command_id: Input should be a valid string'),
]
WANTED = {
    'run_command': 'command, timeout_seconds (optional), workdir (optional)',
    'stop_command': 'command_id',
}


@pytest.mark.parametrize(('name', 'arguments', 'what'), WRONG)
async def test_wrong_arguments_are_a_sentence_that_says_which_are_right(
    name, arguments, what, shell
) -> None:
    tool = next(tool for tool in shell().tools if tool.name == name)
    text = f'[Error: invalid arguments for {name}: {what}. Call it again with: {WANTED[name]}]'

    assert await tool.call(arguments) == Reply(text, is_error=True)


@pytest.mark.parametrize('arguments', [None, 'ls', [], 3])
async def test_what_is_no_object_is_answered_as_a_call_without_arguments(arguments, shell) -> None:
    tool = shell().tools[0]

    assert await tool.call(arguments) == await tool.call({})


async def test_null_stands_for_an_argument_that_is_left_out(shell) -> None:
    start_command, check_command = shell().tools[1:3]
    nulls = {'ready_timeout': None, 'ready_when': None, 'stdin': None, 'workdir': None}

    started = await start_command.call({'command': 'true', **nulls})
    listed = await check_command.call({'command_id': None, 'wait_seconds': None, 'since': None})

    assert started.text == "Started background command: 'true'\nID: j1"
    assert 'j1' in listed.text


async def test_unknown_arguments_are_let_through(shell) -> None:
    reply = await shell().tools[0].call({'command': 'echo hi', 'runtime': object()})

    assert reply.text == '[stdout]\nhi\n'


async def test_arguments_may_be_a_model_of_ours_or_of_a_framework(shell) -> None:
    class Theirs(BaseModel):
        command: str
        more: int = 3

    tool = shell().tools[0]
    replies = [
        await tool.call(tool.arguments(command='echo hi')),
        await tool.call(Theirs(command='echo hi')),
    ]

    assert [reply.text for reply in replies] == ['[stdout]\nhi\n'] * 2


async def test_numbers_may_come_as_text_as_some_models_write_them(shell) -> None:
    async with shell(kill_grace=0.1) as session:
        reply = await session.tools[0].call({'command': 'sleep 86400', 'timeout_seconds': '0.2'})

    assert reply.text == '[Command timed out after 0.2s]'


async def test_live_output_and_the_reply_agree(shell) -> None:
    pieces: list[str] = []
    async with shell() as session:
        reply = await session.tools[0].call(
            {'command': 'echo a; sleep 0.1; echo b'},
            on_output=lambda chunk: pieces.append(chunk.data),
        )

    assert ''.join(pieces) == 'a\nb\n'
    assert reply.text == '[stdout]\na\nb\n'


def test_a_policy_of_the_callers_is_not_described_by_the_lists() -> None:
    """A model must not be told rules that do not hold."""
    with ShellSession(policy=Policy.from_lists(denied_commands=['curl'])) as session:
        assert 'denied' not in session.tools[0].description


def test_a_command_that_is_asked_about_is_not_said_to_be_denied_as_well() -> None:
    assert (
        'These commands are denied'
        not in described(denied_commands=['curl'], ask_commands=['curl'])['run_command']
    )


async def test_a_listener_may_be_a_coroutine() -> None:
    heard: list[str] = []

    async def listen(chunk) -> None:
        await asyncio.sleep(0)
        heard.append(chunk.data)

    async with ShellSession() as session:
        reply = await session.tools[0].call({'command': 'echo hi'}, on_output=listen)

    assert (reply.text, ''.join(heard)) == ('[stdout]\nhi\n', 'hi\n')


def test_arguments_that_are_a_model_already_stay_as_they_are() -> None:
    run = ShellSession().tools[0]
    given = run.arguments(command='ls')

    assert run.arguments.model_validate(given) is given
