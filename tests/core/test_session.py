"""A session: the flow of a call, the words and facts of it, many loops and threads, the audit, and the end."""

import asyncio
import contextlib
import contextvars
import json
import logging
import math
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from anyshell import (
    ApprovalRequired,
    CommandDenied,
    CommandError,
    CommandResult,
    Decision,
    DockerSandbox,
    InvalidCommand,
    LocalSandbox,
    OptionError,
    Policy,
    SessionClosed,
    ShellOptions,
    ShellSession,
    Verdict,
    run_sync,
)


class Fixed:
    """A policy that always gives one verdict."""

    def __init__(self, decision: Decision, reason: str = 'Because.') -> None:
        self.verdict = Verdict(decision, reason, 'a_rule', 'part', (0, 4))
        self.asked: list[str] = []

    def check(self, command: str) -> Verdict:
        self.asked.append(command)
        return self.verdict


def tool(session: ShellSession, name: str):
    return next(tool for tool in session.tools if tool.name == name)


async def test_a_run_gives_the_facts(shell, tmp_path) -> None:
    async with shell(cwd=tmp_path) as session:
        result = await session.run('echo out; echo err >&2; exit 3')

        assert result == CommandResult(
            command='echo out; echo err >&2; exit 3',
            exit_code=3,
            stdout='out\n',
            stderr='err\n',
            output_bytes=8,
            duration=result.duration,
            cwd=str(tmp_path),
            decision='allow',
        )
        assert result.duration > 0


@pytest.mark.parametrize(
    ('line', 'text'),
    [
        ('true', '(no output)'),
        ('echo hi', '[stdout]\nhi\n'),
        ('printf hi', '[stdout]\nhi'),
        ('echo e >&2', '[stderr]\ne\n'),
        ('echo o; echo e >&2; exit 2', '[stdout]\no\n\n[stderr]\ne\n\n[exit code: 2]'),
        ('false', '(no output)\n[exit code: 1]'),
        ('kill -9 $$', '(no output)\n[exit code: 137]'),
        ("printf '[exit code: 0]\\n'; exit 1", '[stdout]\n[exit code: 0]\n\n[exit code: 1]'),
    ],
)
async def test_a_model_reads(line, text, shell) -> None:
    async with shell() as session:
        assert await session.run_command(line) == text


async def test_a_model_reads_the_partial_output_of_a_timeout(shell) -> None:
    async with shell(kill_grace=0.1) as session:
        line = 'echo part; echo err >&2; sleep 86400'
        reply = await tool(session, 'run_command').call({'command': line, 'timeout_seconds': 0.5})

        assert reply.text == '[stdout]\npart\n\n[stderr]\nerr\n\n[Command timed out after 0.5s]'
        assert (reply.facts['timed_out'], reply.facts['exit_code'], reply.is_error) == (
            True,
            None,
            False,
        )


async def test_the_default_timeout_is_that_of_the_options(shell) -> None:
    async with shell(default_timeout=0.2, kill_grace=0.1) as session:
        assert await session.run_command('sleep 86400') == '[Command timed out after 0.2s]'


@pytest.mark.parametrize('seconds', [None, 60.0])
async def test_max_timeout_bounds_what_a_model_may_ask_for(seconds, shell) -> None:
    async with shell(max_timeout=0.2, kill_grace=0.1) as session:
        text = await session.run_command('sleep 86400', timeout_seconds=seconds)

        assert text == '[Command timed out after 0.2s]'


async def test_cut_output_keeps_the_tail_and_counts_the_joined_sections(shell) -> None:
    async with shell(max_output_chars=20, tool_set='spec') as session:
        text = await session.run_command('seq 1000; echo err >&2; exit 1')

        assert text == (
            '[... output truncated, showing last 20 chars]\n'
            + '999\n1000\n\n[stderr]\nerr\n'[-20:]
            + '\n[exit code: 1]'
        )


async def test_the_session_is_usable_after_a_timeout(shell) -> None:
    async with shell(kill_grace=0.1) as session:
        await session.run('echo old; sleep 86400', timeout=0.2)

        assert await session.run_command('echo new') == '[stdout]\nnew\n'


async def test_facts_are_plain_data_without_output(shell, tmp_path) -> None:
    async with shell(cwd=tmp_path) as session:
        reply = await tool(session, 'run_command').call({'command': 'echo secret; exit 1'})
        duration = reply.facts.pop('duration_seconds')

        assert json.loads(json.dumps(reply.facts)) == {
            'exit_code': 1,
            'timed_out': False,
            'cancelled': False,
            'truncated': False,
            'output_bytes': 7,
            'cwd': str(tmp_path),
            'job_id': None,
            'decision': 'allow',
            'rule': None,
        }
        assert isinstance(duration, float)


async def test_terminal_codes_are_folded_for_models_and_kept_for_code(shell) -> None:
    line = "printf '\\033[31mred\\033[0m 10%%\\r100%%\\n'"
    async with shell() as session:
        assert await session.run_command(line) == '[stdout]\n100%10%\n'
        assert (await session.run(line)).stdout == '\x1b[31mred\x1b[0m 10%\r100%\n'
    async with shell(clean_output=False) as session:
        assert await session.run_command(line) == '[stdout]\n\x1b[31mred\x1b[0m 10%\r100%\n'


# -- the policy's part


@pytest.mark.parametrize('name', ['run_command', 'start_command'])
async def test_a_denied_command_does_not_run(name, tmp_path) -> None:
    policy = Fixed(Decision.DENY)
    async with ShellSession(ShellOptions(cwd=tmp_path), policy=policy) as session:
        for call in (
            tool(session, name).call({'command': 'touch ran'}),
            tool(session, name).call({'command': 'touch ran'}, approved=True),
            getattr(session, name)('touch ran'),
        ):
            with pytest.raises(CommandDenied, match=r'^Because\.$') as caught:
                await call
            assert caught.value.verdict == policy.verdict
        with pytest.raises(PermissionError):
            await session.run('touch ran')

    assert policy.asked == ['touch ran'] * 4
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize('name', ['run_command', 'start_command'])
async def test_a_command_that_needs_an_approval_runs_with_one(name, tmp_path) -> None:
    async with ShellSession(ShellOptions(cwd=tmp_path), policy=Fixed(Decision.ASK)) as session:
        with pytest.raises(ApprovalRequired, match=r'^Because\.$'):
            await tool(session, name).call({'command': 'echo >ran'})
        assert list(tmp_path.iterdir()) == []
        reply = await tool(session, name).call({'command': 'echo >ran'}, approved=True)

        assert reply.facts['decision'] == 'ask'


async def test_where_nobody_is_to_ask_asking_is_denying() -> None:
    options = ShellOptions(on_ask='deny')
    async with ShellSession(options, policy=Fixed(Decision.ASK)) as session:
        with pytest.raises(CommandDenied, match=r'^Because\. Nobody is there to approve it'):
            await session.run('true')
        reply = await tool(session, 'run_command').call({'command': 'true'}, approved=True)
        assert reply.text == '(no output)'


async def test_the_spec_denial_reads_to_the_letter() -> None:
    async with ShellSession() as session:
        with pytest.raises(CommandDenied) as caught:
            await session.run_command('rm -rf x')

    assert str(caught.value).startswith("Command 'rm' is denied.")


# -- what a model can get wrong comes back as a sentence

NUL = 'contains a NUL character, which can not be passed on; send it again without'
HALF = (
    "the command contains half a character (a lone surrogate, '\\ud83d') at position 5; "
    'send it again with whole Unicode characters'
)
SECONDS = (
    'timeout_seconds must be a number of seconds above 0, not {}; leave it out for the default'
)
WAIT = 'wait_seconds must be a number of seconds, 0 or more, not {}; 0 looks at once'
NOWHERE = "workdir '/no/such' is no directory (seen from '/'); nothing was run. Name one that is there, or leave it out"
LINES = "lines must be a range such as '1-200', '200-' or '-50' for the last 50, not 'x'"
BAD = [
    ('run_command', {'command': 'echo a\0b'}, f'the command {NUL}'),
    ('run_command', {'command': 'echo \ud83d'}, HALF),
    ('run_command', {'command': 'true', 'timeout_seconds': -1}, SECONDS.format('-1.0')),
    ('run_command', {'command': 'true', 'timeout_seconds': 0}, SECONDS.format('0.0')),
    ('run_command', {'command': 'true', 'timeout_seconds': float('nan')}, SECONDS.format('nan')),
    ('run_command', {'command': 'true', 'timeout_seconds': float('inf')}, SECONDS.format('inf')),
    ('check_command', {'command_id': 'j1', 'wait_seconds': -1}, WAIT.format('-1.0')),
    ('check_command', {'command_id': 'j1', 'wait_seconds': float('nan')}, WAIT.format('nan')),
    (
        'start_command',
        {'command': 'true', 'ready_timeout': 0},
        SECONDS.replace('timeout_seconds', 'ready_timeout').format('0.0'),
    ),
    ('start_command', {'command': '\0'}, f'the command {NUL}'),
    ('run_command', {'command': 'true', 'workdir': 'a\0'}, f'the workdir {NUL}'),
    ('run_command', {'command': 'true', 'workdir': '/no/such'}, NOWHERE),
    ('check_command', {'command_id': 'j1', 'lines': 'x'}, LINES),
]


@pytest.mark.parametrize(('name', 'arguments', 'sentence'), BAD)
async def test_what_a_model_gets_wrong_is_a_sentence(name, arguments, sentence, shell) -> None:
    async with shell(cwd='/') as session:
        reply = await tool(session, name).call(arguments)

        assert (reply.text, reply.is_error) == (f'[Error: {sentence}]', True)


async def test_code_gets_the_same_as_an_error(shell) -> None:
    async with shell() as session:
        for command, timeout in (('a\0', None), ('true', -1.0), ('true', True), ('\udcff', None)):
            with pytest.raises(InvalidCommand) as caught:
                await session.run(command, timeout=timeout)
            assert isinstance(caught.value, CommandError | ValueError)


@pytest.mark.parametrize(
    ('arguments', 'line'),
    [
        ({}, None),
        ({'wait_seconds': 0, 'since': 'start'}, None),
        ({'wait_seconds': 5, 'until': 'exit'}, 'wait_seconds and until'),
        ({'lines': '1-2'}, 'lines'),
    ],
)
async def test_arguments_without_an_id_are_said_to_have_no_effect(arguments, line, shell) -> None:
    async with shell() as session:
        text = (await tool(session, 'check_command').call(arguments)).text

    said = f'[{line} had no effect: without command_id all commands are listed]\n' if line else ''
    assert text == f'{said}(no background commands)'


async def test_arguments_beside_lines_are_said_to_have_no_effect(shell) -> None:
    async with shell() as session:
        await session.start_command('echo hi', ready_when='exit')
        text = await session.check_command('j1', lines='1-1', since='last')

    assert text == '[since had no effect: lines shows what is there now]\n[stdout]\nhi'


async def test_code_can_say_what_a_model_can(shell, tmp_path) -> None:
    (tmp_path / 'sub').mkdir()
    async with shell(cwd=tmp_path) as session:
        ran = await session.run_command('pwd', workdir='sub')
        started = await session.start_command(
            'pwd; cat', workdir='sub', ready_when='output:sub', ready_timeout=20, stdin=True
        )
        await session.send_input('j1', 'hello\n')
        waited = await session.check_command('j1', wait_seconds=20, until='output:hello')
        listed = await session.check_command()
        line = await session.check_command('j1', lines='2-2')

    assert ran == f'[stdout]\n{tmp_path}/sub\n'
    assert started.splitlines()[1:3] == ['ID: j1', '[ready: output:sub]']
    assert waited == f'[ready: output:hello]\n[status: running]\n[stdout]\n{tmp_path}/sub\nhello\n'
    assert listed.startswith('j1: running for')
    assert line == '[stdout]\nhello'


async def test_a_workdir_is_for_one_call(shell, tmp_path) -> None:
    (tmp_path / 'sub').mkdir()
    async with shell(cwd=tmp_path, persist_cwd=True) as session:
        reply = await tool(session, 'run_command').call({'command': 'pwd; cd /', 'workdir': 'sub'})

        assert reply.text == f'[stdout]\n{tmp_path}/sub\n'
        assert session.cwd == str(tmp_path)


# -- loops and threads


def test_one_session_works_in_many_loops_in_turn(shell) -> None:
    session = shell(persist_cwd=True)

    assert [asyncio.run(session.run(f'echo {n}')).stdout for n in range(4)] == [
        f'{n}\n' for n in range(4)
    ]


def test_one_session_works_in_many_threads_at_once(shell) -> None:
    session = shell()

    def work(number: int) -> str:
        return asyncio.run(
            session.run(f'sleep 0.1; echo {number}; head -c 300000 /dev/zero >&2')
        ).stdout

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(work, range(16))) == [f'{n}\n' for n in range(16)]


async def test_a_loop_in_a_thread_of_a_running_loop_works(shell) -> None:
    session = shell()
    mine = asyncio.create_task(session.run('sleep 0.2; echo mine'))
    other = await asyncio.to_thread(lambda: asyncio.run(session.run('echo other')))

    assert (other.stdout, (await mine).stdout) == ('other\n', 'mine\n')


def test_synchronous_use_works_without_a_running_loop() -> None:
    with ShellSession(ShellOptions(unresolved='allow')) as session:
        assert session.run_sync('echo hi').stdout == 'hi\n'

    assert session.closed


async def test_synchronous_use_works_inside_a_running_loop() -> None:
    with ShellSession(ShellOptions(unresolved='allow')) as session:
        assert session.run_sync('echo hi').stdout == 'hi\n'

    assert session.closed


async def test_synchronous_use_hands_errors_on(shell) -> None:
    session = shell()
    with pytest.raises(InvalidCommand):
        session.run_sync('\0')


def test_synchronous_use_hands_errors_on_without_a_loop_too(shell) -> None:
    session = shell()
    with pytest.raises(InvalidCommand):
        session.run_sync('\0')


def test_synchronous_use_can_carry_an_approval() -> None:
    with ShellSession(ShellOptions(ask_commands=['echo'])) as session:
        with pytest.raises(ApprovalRequired):
            session.run_sync('echo hi')

        assert session.run_sync('echo hi', approved=True).stdout == 'hi\n'


def test_no_thread_and_no_task_outlives_a_call(shell) -> None:
    session = shell()
    before = threading.active_count()

    async def calls() -> int:
        await session.run('echo hi; head -c 300000 /dev/zero')
        await session.start_command('sleep 86400')
        await session.check_command('j1')
        session.run_sync('true')
        return len(asyncio.all_tasks())

    assert asyncio.run(calls()) == 1
    assert threading.active_count() == before


@pytest.mark.parametrize(
    'run', ['asyncio.run', 'asyncio.new_event_loop().run_until_complete'], ids=['run', 'loop']
)
async def test_ctrl_c_in_a_synchronous_call_inside_a_loop_ends_its_command(
    run, driver, sleeper
) -> None:
    program = driver(
        """
        async def main():
            shell = session()
            await shell.run('true')
            say('ready')
            try:
                shell.run_sync(sys.argv[1], timeout=600)
            except KeyboardInterrupt:
                say('interrupted')
        signal.signal(signal.SIGINT, signal.default_int_handler)
        """
        + run
        + '(main())',
        sleeper.command,
    )
    assert program.line() == 'ready'
    await sleeper.started()
    program.process.send_signal(2)

    assert program.line() == 'interrupted'
    await sleeper.gone()
    assert program.end() == 0


# -- the audit


async def test_the_audit_hook_sees_verdict_and_result_of_what_ran(shell) -> None:
    seen: list[tuple[Verdict, CommandResult | None]] = []
    async with shell(on_command=lambda *facts: seen.append(facts)) as session:
        result = await session.run('echo hi; exit 3')
        await session.start_command('true')

    assert seen[0] == (Verdict(Decision.ALLOW), result)
    assert (seen[1][1].command, seen[1][1].job_id, len(seen)) == ('true', 'j1', 2)


@pytest.mark.parametrize('how', ['cancelled', 'failed'])
async def test_the_audit_hook_sees_what_ran_though_nobody_got_its_result(how, shell) -> None:
    seen: list[tuple[Verdict, CommandResult | None]] = []
    up = asyncio.Event()

    def take(_chunk) -> None:
        up.set()
        if how == 'failed':
            raise LookupError

    async with shell(on_command=lambda *facts: seen.append(facts), cwd='/') as session:
        call = asyncio.create_task(session.run('echo up; sleep 86400', on_output=take))
        await asyncio.wait_for(up.wait(), 20)
        call.cancel()
        await asyncio.wait({call})

    ran = CommandResult(
        command='echo up; sleep 86400', exit_code=None, cancelled=True, cwd='/', decision='allow'
    )
    assert seen == [(Verdict(Decision.ALLOW), ran)]


async def test_the_audit_hook_sees_what_could_not_run(shell, tmp_path) -> None:
    seen: list[tuple[Verdict, CommandResult | None]] = []
    options = {'on_command': lambda *facts: seen.append(facts), 'cwd': tmp_path / 'gone'}
    async with shell(**options) as session:
        await session.run_command('true')
        await session.start_command('true')

    assert seen == [(Verdict(Decision.ALLOW), None)] * 2


async def test_the_audit_hook_sees_what_needs_an_approval() -> None:
    seen: list[tuple] = []
    options = ShellOptions(on_command=lambda *facts: seen.append(facts), ask_commands=['touch'])
    async with ShellSession(options) as session:
        with pytest.raises(ApprovalRequired) as asked:
            await session.run('touch x')

    assert seen == [(asked.value.verdict, None)]


async def test_the_audit_hook_sees_what_was_denied() -> None:
    seen: list[tuple[Verdict, CommandResult | None]] = []
    policy = Fixed(Decision.DENY)
    options = ShellOptions(on_command=lambda *facts: seen.append(facts))
    async with ShellSession(options, policy=policy) as session:
        with pytest.raises(CommandDenied):
            await session.run('echo hi')

    assert seen == [(policy.verdict, None)]


@pytest.mark.parametrize('on_ask', ['ask', 'deny'])
async def test_the_audit_hook_gets_the_whole_line_of_each_verdict(on_ask, tmp_path) -> None:
    lines: list[tuple[str, str, str]] = []
    options = ShellOptions(
        cwd=tmp_path,
        ask_commands=['touch'],
        on_ask=on_ask,
        on_command=lambda verdict, _: lines.append(
            (verdict.decision.name, verdict.line, verdict.command)
        ),
    )
    async with ShellSession(options) as session:
        await session.run_command('true; ls')
        for line in ('ls; touch x', 'ls | xargs rm'):
            with pytest.raises((ApprovalRequired, CommandDenied)) as caught:
                await session.run_command(line)
            assert caught.value.verdict.line == line

    asked = 'ASK' if on_ask == 'ask' else 'DENY'
    assert lines == [
        ('ALLOW', 'true; ls', ''),
        (asked, 'ls; touch x', 'touch x'),
        ('DENY', 'ls | xargs rm', 'rm …'),
    ]


async def test_logging_shows_codes_and_rules_but_no_command_text(shell, caplog) -> None:
    caplog.set_level(logging.DEBUG, logger='anyshell')
    async with shell(env={'KEY': 'secret-value'}) as session:
        await session.run('echo secret-text; exit 3')
        await session.start_command('echo secret-text')
        await session.check_command('secret-text')
    async with ShellSession(policy=Fixed(Decision.DENY, 'secret-text')) as session:
        with pytest.raises(CommandDenied):
            await session.run('echo secret-text')
    async with ShellSession(policy=Fixed(Decision.ASK, 'secret-text')) as session:
        with pytest.raises(ApprovalRequired):
            await session.run('echo secret-text')

    said = [record.getMessage() for record in caplog.records if record.name == 'anyshell']
    assert any('exit code 3' in line for line in said)
    assert 'a command was denied (rule a_rule)' in said
    assert 'a command needs an approval (rule a_rule)' in said
    assert 'secret' not in caplog.text


async def test_who_runs_the_agent_is_warned_when_no_call_can_succeed(shell, caplog) -> None:
    missing = ShellSession(sandbox=DockerSandbox('web', program='nonesuch-docker'))
    ended = shell()
    await ended.aclose()
    replies = [
        await session.tools[0].call({'command': 'echo secret-text'}) for session in (missing, ended)
    ]
    await missing.aclose()

    assert all(reply.is_error for reply in replies)
    records = [record for record in caplog.records if record.name == 'anyshell']
    assert {record.levelno for record in records} == {logging.WARNING}
    said = [record.getMessage().removeprefix('no command can run: ') for record in records]
    assert [f'[Error: {line}]' for line in said] == [reply.text for reply in replies]


# -- the end


async def test_a_closed_session_refuses_every_call_with_a_sentence(shell) -> None:
    session = shell()
    await session.start_command('sleep 86400')
    await session.aclose()
    await session.aclose()
    session.close()
    arguments = {'command': 'true', 'command_id': 'j1', 'text': 'x'}
    replies = [await tool.call(arguments) for tool in session.tools]

    closed = '[Error: this session is closed and nothing was run; open a new one to run commands]'
    assert [reply.text for reply in replies] == [closed] * 5
    assert all(reply.is_error for reply in replies)
    with pytest.raises(SessionClosed):
        await session.run('true')


@pytest.mark.parametrize('how', ['async with', 'with', 'error'])
async def test_every_way_out_closes(how, sleeper) -> None:
    session = ShellSession(ShellOptions(unresolved='allow'))
    entered = contextlib.nullcontext() if how != 'error' else pytest.raises(LookupError)
    with entered:
        async with contextlib.AsyncExitStack() as stack:
            if how == 'with':
                stack.enter_context(session)
            else:
                await stack.enter_async_context(session)
            run_sync(session.start_command(sleeper.command))
            await sleeper.started()
            if how == 'error':
                raise LookupError

    assert (session.closed, sleeper.pids) == (True, [])


async def test_closing_ends_calls_that_other_threads_wait_for(shell, sleeper, until) -> None:
    session = shell(kill_grace=0.2)
    line = f'echo part; {sleeper.command}; :'
    heard: list[str] = []

    def take(chunk) -> None:
        heard.append(chunk.data)

    def call() -> CommandResult:
        return session.run_sync(line, timeout=50, on_output=take)

    with ThreadPoolExecutor(3) as pool:
        calls = [pool.submit(call) for _ in range(3)]
        await until(lambda: len(heard) == 3, 'three commands to run')
        await session.aclose()
        results = [await asyncio.wrap_future(call) for call in calls]

    assert {(result.stdout, result.exit_code) for result in results} == {('part\n', 143)}
    assert sleeper.pids == []


async def test_a_session_leaves_a_sandbox_that_was_handed_in_open(sleeper) -> None:
    async with LocalSandbox() as sandbox:
        async with ShellSession(ShellOptions(unresolved='allow'), sandbox=sandbox) as session:
            await session.start_command(sleeper.command)
            await sleeper.started()
        assert sleeper.pids == []

        assert (await sandbox.execute('echo still')).stdout == 'still\n'


async def test_sessions_over_one_sandbox_share_neither_jobs_nor_directory(tmp_path) -> None:
    options = ShellOptions(persist_cwd=True, unresolved='allow')
    async with LocalSandbox(cwd=tmp_path) as sandbox:
        first, second = (ShellSession(options, sandbox=sandbox) for _ in range(2))
        async with first, second:
            await first.start_command('sleep 86400')
            await first.run('cd /')

            assert second.cwd == str(tmp_path)
            assert 'unknown command ID' in await second.check_command('j1')
            await second.aclose()
            assert '[status: running]' in await first.check_command('j1')


async def test_two_hundred_commands_at_once_end_well(shell) -> None:
    async with shell() as session:
        results = await asyncio.gather(*(session.run(f'echo {n}', timeout=55) for n in range(200)))

    assert [result.stdout for result in results] == [f'{n}\n' for n in range(200)]


@pytest.mark.parametrize('line', ['bash', 'cat && sh -s', 'env -i bash -x', 'exec dash'])
async def test_a_shell_that_would_be_told_what_to_run_is_judged_as_unknown(line) -> None:
    """`send_input` could run anything in it; with empty input the same line is harmless."""
    async with ShellSession() as session:
        (start,) = [tool for tool in session.tools if tool.name == 'start_command']
        with pytest.raises(CommandDenied) as denied:
            await start.call({'command': line, 'stdin': True})

        assert denied.value.verdict.rule == 'unresolved'
        assert not (await start.call({'command': line})).is_error


async def test_other_programs_may_be_written_to() -> None:
    async with ShellSession() as session:
        (start,) = [tool for tool in session.tools if tool.name == 'start_command']

        assert not (await start.call({'command': 'cat', 'stdin': True})).is_error


@pytest.mark.parametrize('change', [{'denied_commands': ['ls']}, {'default_timeout': 'soon'}])
async def test_options_that_change_later_change_no_session_that_is_open(change, tmp_path) -> None:
    options = ShellOptions(cwd=tmp_path)
    async with ShellSession(options) as session:
        for name, value in change.items():
            setattr(options, name, value)

        assert await session.run_command('ls') == '(no output)'


def test_options_that_were_changed_are_checked_when_a_session_opens() -> None:
    options = ShellOptions()
    options.default_timeout = 'soon'  # type: ignore[assignment]

    with pytest.raises(OptionError, match='default_timeout'):
        ShellSession(options)


@pytest.mark.parametrize('timeout', [0, -1, math.nan, '5', True])
async def test_code_that_names_a_wrong_time_limit_is_told_which(shell, timeout) -> None:
    with pytest.raises(InvalidCommand, match=r'^timeout must be a number of seconds above 0'):
        await shell().run('ls', timeout=timeout)


@pytest.mark.parametrize('command', [None, ['ls', '-l'], b'ls'])
async def test_a_command_that_is_no_text_is_the_developers_error(shell, command) -> None:
    with pytest.raises(TypeError, match='the command must be a str'):
        await shell().run(command)


async def test_a_time_limit_is_told_though_output_was_cut(shell) -> None:
    line = 'yes | head -c 60000; sleep 60'

    text = await shell().run_command(line, timeout_seconds=1)
    result = await shell().run(line, timeout=0.5)

    assert text.startswith('[... output truncated, showing last 50000 chars]\n')
    assert text.endswith('\n[Command timed out after 1.0s]')
    assert (result.timed_out, result.running, result.exit_code) == (0.5, False, None)


async def test_whether_a_command_runs_is_a_fact(shell) -> None:
    started = await shell().run('ls')

    assert not started.running


async def test_synchronous_use_in_a_loop_sees_the_callers_context(tmp_path) -> None:
    seen = []
    variable = contextvars.ContextVar('variable', default='none')
    options = ShellOptions(cwd=tmp_path, on_command=lambda *_: seen.append(variable.get()))
    variable.set('mine')

    with ShellSession(options) as session:
        session.run_sync('true')

    assert seen == ['mine']


async def test_the_audit_hook_hears_of_a_directory_that_is_not_there(tmp_path) -> None:
    heard = []
    options = ShellOptions(cwd=tmp_path, on_command=lambda _, result: heard.append(result))
    async with ShellSession(options) as session:
        text = await session.run_command('ls', workdir='nowhere')

    assert 'is no directory' in text
    assert heard == [None]


def test_a_class_is_no_policy() -> None:
    with pytest.raises(OptionError, match=r'^policy='):
        ShellSession(policy=Policy)  # type: ignore[arg-type]
