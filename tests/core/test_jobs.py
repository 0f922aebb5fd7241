"""Background commands: started, looked at, waited for and stopped, also by another loop or thread than the one before."""

import asyncio
import os
import re
import socket
import threading

from anyshell import run_sync


async def started(session, command: str, **arguments: object) -> str:
    """Start a command and return its ID."""
    reply = await tool(session, 'start_command').call({'command': command, **arguments})
    return re.search(r'^ID: (\S+)$', reply.text, re.MULTILINE)[1]


def tool(session, name: str):
    return next(tool for tool in session.tools if tool.name == name)


async def finished(session, command_id: str = 'j1') -> str:
    """Wait for its end and return what a plain check says then."""
    reply = await tool(session, 'check_command').call(
        {'command_id': command_id, 'wait_seconds': 30}
    )
    assert '[status: finished]' in reply.text
    return await session.check_command(command_id)


async def test_the_life_of_a_job_reads_as_the_spec_says(shell, tmp_path) -> None:
    line = 'echo "it\'s up"; until [ -e go ]; do sleep 0.01; done; echo err >&2; exit 3'
    async with shell(cwd=tmp_path) as session:
        assert await session.start_command(line) == f'Started background command: {line!r}\nID: j1'
        while (text := await session.check_command('j1')) == '[status: running]\n(no output yet)':
            await asyncio.sleep(0.01)
        assert text == "[status: running]\n[stdout]\nit's up\n"
        (tmp_path / 'go').touch()
        after = "[exit code: 3]\n[stdout]\nit's up\n\n[stderr]\nerr\n"

        assert await finished(session) == f'[status: finished]\n{after}'
        assert await session.stop_command('j1') == f'[stopped: {line!r}]\n{after}'


async def test_stopping_says_how_the_job_ended(shell) -> None:
    async with shell() as session:
        await session.start_command('sleep 86400')

        assert (
            await session.stop_command('j1')
            == "[stopped: 'sleep 86400']\n[exit code: 143]\n(no output)"
        )


async def test_stopping_again_and_checking_afterwards_say_the_same(shell) -> None:
    async with shell() as session:
        await session.start_command('sleep 86400')
        first = await session.stop_command('j1')

        assert await session.stop_command('j1') == first
        assert (
            await session.check_command('j1')
            == '[status: finished]\n[exit code: 143]\n(no output yet)'
        )


async def test_an_unknown_id_is_a_sentence_that_names_the_known_ones(shell) -> None:
    async with shell() as session:
        assert await session.check_command('j1') == (
            "[Error: unknown command ID 'j1']\nstart_command has not been called yet, so there are none."
        )
        await session.start_command('true')
        await session.start_command('true')

        for call in (session.check_command, session.stop_command):
            assert await call('x\0') == "[Error: unknown command ID 'x\\x00']\nKnown IDs: j1, j2."


async def test_a_job_is_finished_though_a_child_of_it_lives(shell, sleeper) -> None:
    async with shell() as session:
        await session.start_command(f'{sleeper.command} & echo done; exit 3')

        assert await finished(session) == '[status: finished]\n[exit code: 3]\n[stdout]\ndone\n'
        assert len(await sleeper.started()) == 1
        await session.stop_command('j1')
        assert sleeper.pids == []


async def test_a_job_that_something_else_kills_is_finished(shell, tmp_path) -> None:
    async with shell(cwd=tmp_path) as session:
        await session.start_command('echo $$ >pid.new; mv pid.new pid; sleep 86400; :')
        async with asyncio.timeout(20):
            while not (tmp_path / 'pid').exists():
                await asyncio.sleep(0.01)
        os.killpg(int((tmp_path / 'pid').read_text()), 9)

        assert await finished(session) == '[status: finished]\n[exit code: 137]\n(no output yet)'


async def test_checks_and_stops_at_the_same_time_agree(shell, sleeper) -> None:
    async with shell() as session:
        await session.start_command(f'echo up; {sleeper.command}')
        await sleeper.started()
        checks = [session.check_command('j1') for _ in range(10)]
        stops = [session.stop_command('j1') for _ in range(3)]
        replies = await asyncio.gather(*checks, *stops)

        assert set(replies[10:]) == {
            f"[stopped: 'echo up; {sleeper.command}']\n[exit code: 143]\n[stdout]\nup\n"
        }
        assert all('[stdout]\nup\n' in reply for reply in replies[:10])
        assert sleeper.pids == []


def test_a_job_lives_on_from_loop_to_loop_and_thread_to_thread(shell, sleeper) -> None:
    session = shell()
    said: list[str] = []

    def work() -> None:
        said.append(asyncio.run(session.check_command('j1')))

    asyncio.run(session.start_command(f'echo up; {sleeper.command}'))
    asyncio.run(sleeper.started())
    for _ in range(3):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join(30)
    stopped = run_sync(session.stop_command('j1'))

    assert said == ['[status: running]\n[stdout]\nup\n'] * 3
    assert stopped.startswith('[stopped: ')
    assert sleeper.pids == []


async def test_no_more_than_max_jobs_run_at_a_time(shell) -> None:
    async with shell(max_jobs=2) as session:
        await session.start_command('sleep 86400')
        await session.start_command('sleep 86400')

        assert await session.start_command('true') == (
            '[Error: 2 background commands are running, which is the limit (max_jobs=2); '
            'stop one with stop_command first. Running: j1, j2]'
        )
        await session.stop_command('j1')
        assert (await session.start_command('true')).endswith('ID: j3')


async def test_commands_whose_time_is_up_count_among_max_jobs(shell, sleeper) -> None:
    async with shell(max_jobs=1, on_timeout='background', kill_grace=0.1) as session:
        first = await session.run_command(sleeper.command, timeout_seconds=0.2)
        second = await session.run_command(sleeper.command, timeout_seconds=0.2)

        assert first.startswith('[status: running]')
        assert second == '[Command timed out after 0.2s]'
        assert len(sleeper.pids) == 1


async def test_ended_jobs_stay_readable_up_to_max_jobs(shell) -> None:
    async with shell(max_jobs=2) as session:
        for number in range(1, 6):
            await started(session, f'echo {number}')
            await finished(session, f'j{number}')

        assert 'unknown command ID' in await session.check_command('j2')
        assert '[stdout]\n4\n' in await session.check_command('j4')


async def test_another_command_with_the_same_call_id_starts_too(shell, tmp_path) -> None:
    async with shell(cwd=tmp_path) as session:
        start = next(tool for tool in session.tools if tool.name == 'start_command')
        first = await start.call({'command': 'sleep 60'}, call_id='call_0')
        second = await start.call({'command': 'sleep 61'}, call_id='call_0')

        assert (first.facts['job_id'], second.facts['job_id']) == ('j1', 'j2')


async def test_starting_twice_with_one_call_id_starts_once(shell, tmp_path) -> None:
    async with shell(cwd=tmp_path) as session:
        start = tool(session, 'start_command')
        arguments = {'command': 'echo x >>started; sleep 86400'}
        replies = await asyncio.gather(
            *(start.call(arguments, call_id='c1') for _ in range(5)),
            start.call(arguments, call_id='c2'),
            start.call(arguments),
            start.call(arguments),
        )

        assert [reply.facts['job_id'] for reply in replies] == ['j1'] * 5 + ['j2', 'j3', 'j4']
        async with asyncio.timeout(20):
            while (
                not (tmp_path / 'started').exists() or len((tmp_path / 'started').read_text()) < 8
            ):
                await asyncio.sleep(0.01)
        assert (tmp_path / 'started').read_text() == 'x\n' * 4


async def test_a_command_whose_time_is_up_goes_on_when_that_is_asked_for(shell, tmp_path) -> None:
    line = 'seq 3; until [ -e go ]; do sleep 0.01; done; seq 4 6; exit 5'
    async with shell(cwd=tmp_path, on_timeout='background') as session:
        reply = await tool(session, 'run_command').call({'command': line, 'timeout_seconds': 0.5})

        assert reply.text == (
            '[status: running] The command is still running after 0.5s and goes on in the background; it has not failed.\n'
            'ID: j1\n'
            "Next: check_command(command_id='j1') for its output and exit code, "
            "or stop_command(command_id='j1') to end it.\n"
            '[stdout]\n1\n2\n3\n'
        )
        assert (reply.facts['job_id'], reply.facts['timed_out']) == ('j1', True)
        (tmp_path / 'go').touch()
        assert await finished(session) == (
            '[status: finished]\n[exit code: 5]\n[stdout]\n1\n2\n3\n4\n5\n6\n'
        )


async def test_no_byte_is_lost_when_a_command_goes_on(shell) -> None:
    async with shell(on_timeout='background', max_output_chars=10_000_000) as session:
        await session.run('i=0; while [ $i -lt 20000 ]; do i=$((i+1)); echo $i; done', timeout=0.05)
        text = await finished(session)

        assert text.partition('[stdout]\n')[2] == ''.join(f'{n}\n' for n in range(1, 20_001))


# -- waiting


async def test_a_start_waits_until_its_output_says_ready(shell) -> None:
    async with shell() as session:
        reply = await tool(session, 'start_command').call(
            {
                'command': 'echo boot; sleep 0.2; echo ready; sleep 86400',
                'ready_when': 'output:^ready$',
            }
        )

        assert reply.text == (
            "Started background command: 'echo boot; sleep 0.2; echo ready; sleep 86400'\nID: j1\n"
            '[ready: output:^ready$]\n[status: running]\n[stdout]\nboot\nready\n'
        )


async def test_a_start_waits_for_a_port(shell, python) -> None:
    with socket.socket() as free:
        free.bind(('127.0.0.1', 0))
        port = free.getsockname()[1]
    server = python(f"""
        import socket, time
        time.sleep(0.2)
        server = socket.create_server(('127.0.0.1', {port}))
        time.sleep(86400)
    """)
    async with shell() as session:
        reply = await tool(session, 'start_command').call(
            {'command': server, 'ready_when': f'port:{port}'}
        )

        assert f'[ready: port:{port}]' in reply.text.splitlines()
        socket.create_connection(('127.0.0.1', port), timeout=5).close()
        again = await tool(session, 'start_command').call(
            {'command': server, 'ready_when': f'port:{port}'}
        )
        assert again.text == (
            f'[Error: something already listens on port {port}, so nothing was started; stop that first, or use another port]'
        )


async def test_a_start_whose_command_ends_first_says_so(shell) -> None:
    async with shell() as session:
        reply = await tool(session, 'start_command').call(
            {'command': 'echo failed >&2; exit 2', 'ready_when': 'output:ready'}
        )

        assert reply.text.splitlines()[2:] == [
            '[not ready: the command ended before output:ready came]',
            '[status: finished]',
            '[exit code: 2]',
            '[stderr]',
            'failed',
        ]


async def test_a_start_that_is_not_ready_in_time_goes_on(shell, sleeper) -> None:
    async with shell() as session:
        reply = await tool(session, 'start_command').call(
            {'command': sleeper.command, 'ready_when': 'output:x', 'ready_timeout': 0.2}
        )

        assert reply.text.splitlines()[2:] == [
            '[not ready: output:x has not come yet]',
            '[status: running]',
            '(no output yet)',
        ]
        assert len(sleeper.pids) == 1


async def test_a_check_waits_for_the_end(shell) -> None:
    async with shell() as session:
        await session.start_command('sleep 0.3; echo end')
        reply = await tool(session, 'check_command').call({'command_id': 'j1', 'wait_seconds': 30})

        assert reply.text == '[status: finished]\n[exit code: 0]\n[stdout]\nend\n'


async def test_since_last_shows_only_what_is_new(shell, tmp_path) -> None:
    async with shell(cwd=tmp_path) as session:
        check = tool(session, 'check_command')
        await session.start_command(
            'printf "one\\342\\202"; until [ -e go ]; do sleep 0.01; done; printf "\\254two"; sleep 86400'
        )
        first = await check.call(
            {'command_id': 'j1', 'since': 'last', 'wait_seconds': 30, 'until': 'output:one'}
        )
        nothing = await check.call({'command_id': 'j1', 'since': 'last'})
        (tmp_path / 'go').touch()
        second = await check.call(
            {'command_id': 'j1', 'since': 'last', 'wait_seconds': 30, 'until': 'output:two'}
        )

        assert first.text == '[ready: output:one]\n[status: running]\n[stdout]\none'
        assert nothing.text == '[status: running]\n(no new output)'
        assert second.text == '[ready: output:two]\n[status: running]\n[stdout]\n€two'
        assert await session.check_command('j1') == '[status: running]\n[stdout]\none€two'


async def test_a_check_without_an_id_lists_all_jobs(shell) -> None:
    async with shell() as session:
        check = tool(session, 'check_command')
        assert (await check.call({})).text == '(no background commands)'
        await session.start_command('exit 3')
        await finished(session)
        await session.start_command('sleep 86400')
        reply = await check.call({})

        assert re.fullmatch(
            r"j1: finished, exit code 3: 'exit 3'\nj2: running for \d+s: 'sleep 86400'", reply.text
        )
        assert reply.facts == {
            'jobs': [{'job_id': 'j1', 'exit_code': 3}, {'job_id': 'j2', 'exit_code': None}]
        }


async def test_input_reaches_a_job_that_was_started_with_one(shell) -> None:
    async with shell() as session:
        send = tool(session, 'send_input')
        await started(session, 'while read -r x; do echo "got $x"; done', stdin=True)
        reply = await send.call({'command_id': 'j1', 'text': 'é a\nb\n'})

        assert reply.text == '[status: running]\n[stdout]\ngot é a\ngot b\n'


async def test_a_job_has_its_input_at_the_end_unless_asked_otherwise(shell) -> None:
    async with shell() as session:
        await session.start_command('cat; sleep 86400')
        reply = await tool(session, 'send_input').call({'command_id': 'j1', 'text': 'x'})

        assert reply.is_error
        assert reply.text.startswith('[Error: ')


async def test_the_whole_of_cut_output_stays_readable(shell) -> None:
    async with shell(max_output_chars=100) as session:
        text = await session.run_command('seq 5000')
        check = tool(session, 'check_command')
        first = await check.call({'command_id': 'j1', 'lines': '1-3'})
        last = await check.call({'command_id': 'j1', 'lines': '-2'})
        beyond = await check.call({'command_id': 'j1', 'lines': '6000-'})

        # The origin's text, to the letter; the tool's description says how to read the rest.
        tail = ('[stdout]\n' + ''.join(f'{i}\n' for i in range(1, 5001)))[-100:]
        assert text == f'[... output truncated, showing last 100 chars]\n{tail}'
        assert first.text == '[stdout]\n1\n2\n3'
        assert last.text == '[stdout]\n4999\n5000'
        assert beyond.text == '(no such lines)'


async def test_many_cut_outputs_do_not_slow_the_next_call_down(shell) -> None:
    async with shell(max_output_chars=10) as session:
        for _ in range(150):
            await session.run('seq 100')
        calls = []
        tell = type(session._processes)._sync

        async def counted(self, process) -> None:
            calls.append(process)
            await tell(self, process)

        session._processes._sync = counted.__get__(session._processes)
        await session.run('seq 100')

        assert len(calls) < 10


async def test_kept_output_takes_no_more_than_max_log_bytes(shell) -> None:
    async with shell(max_output_chars=10, max_log_bytes=2000) as session:
        for _ in range(10):
            await session.run('seq 200')  # 692 bytes

        assert session._jobs.ids == ('j9', 'j10')


async def test_lines_of_a_log_without_its_head_say_so(shell) -> None:
    """A model that asks for lines 1-2 must not take later ones for them."""
    async with shell(max_log_bytes=400_000, max_output_chars=100) as session:
        check = next(tool for tool in session.tools if tool.name == 'check_command')
        await session.run_command('seq 1 200000')
        reply = await check.call({'command_id': 'last', 'lines': '1-2'})

    notice, label, first, second = reply.text.splitlines()
    assert notice == (
        f'[the first {reply.facts["dropped_bytes"]} bytes of the output are no longer kept; '
        'lines are counted from what is]'
    )
    assert (label, reply.facts['dropped_bytes'] > 0) == ('[stdout]', True)
    assert 1 < int(second) < 200000
    assert first != '1'


async def test_commands_that_run_out_of_time_together_are_no_more_jobs_than_may_be(shell) -> None:
    async with shell(max_jobs=3, on_timeout='background', kill_grace=0.1) as session:
        answers = await asyncio.gather(
            *(session.run_command('sleep 60', timeout_seconds=0.05) for _ in range(12))
        )

    assert sum(answer.startswith('[status: running]') for answer in answers) == 3
    assert answers.count('[Command timed out after 0.05s]') == 9
