"""What every sandbox has to do, as tests.

Derive a class from `SandboxContract` and give it one fixture:

    class TestMySandbox(SandboxContract):
        @pytest.fixture(scope='class')
        @classmethod
        def sandbox(cls):
            sandbox = MySandbox()
            yield sandbox
            run_sync(sandbox.aclose())

It needs pytest alone, no plugin. Each rule runs in an event loop of its own, so that a sandbox which keeps something of
a loop is found out. Programs that the rules use inside: `sh` and what POSIX has beside it.
"""

from __future__ import annotations

import asyncio
import functools
import secrets
import shlex
import threading
import time
from typing import TYPE_CHECKING, Any, ParamSpec

import pytest

from anyshell.options import ShellOptions
from anyshell.sandbox.base import ExecutionResult, Sandbox, StreamChunk
from anyshell.session import ShellSession, run_sync

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Generator

P = ParamSpec('P')

BOUND = 60
"""Seconds that one rule may take."""


def rule(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """Run an async test in a loop of its own, for a minute at most."""

    @functools.wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        asyncio.run(asyncio.wait_for(test(*args, **kwargs), BOUND))

    return run


class Rules:
    """What the groups of rules share.

    Attributes:
        temporary: A directory inside the sandbox in which the rules make theirs.
        keeps_jobs: Whether background commands work; if not, they have to be refused.
        hides_values: Whether variables of a session stay out of every process's arguments, where all users of the
            machine could read them. With `execute_streaming` alone they can't: they are in the command.
    """

    temporary = '/tmp'  # noqa: S108 - the directory made in it has a random name
    keeps_jobs = True
    hides_values = True

    @pytest.fixture
    def sandbox(self) -> Sandbox:
        """The sandbox under test; a subclass gives it, in the scope that it likes."""
        raise NotImplementedError(
            'give your subclass of SandboxContract a fixture called "sandbox"'
        )

    @pytest.fixture
    def place(self, sandbox: Sandbox) -> Generator[str]:
        """An empty directory inside the sandbox."""
        path = f'{self.temporary}/anyshell-contract-{secrets.token_hex(8)}'
        run_sync(sandbox.execute(f'mkdir {path}'))
        yield path
        run_sync(sandbox.execute(f'chmod -R u+rwx {path}; rm -rf {path}'))

    def session(self, sandbox: Sandbox, **options: Any) -> ShellSession:
        """A session without a policy that could be in the way."""
        options = {'denied_commands': (), 'unresolved': 'allow', **options}
        return ShellSession(ShellOptions(**options), sandbox=sandbox)


async def running(sandbox: Sandbox, seconds: str) -> int:
    """How many processes inside the sandbox are `sleep SECONDS`."""
    # The brackets keep the searching shell, whose arguments hold the pattern, from finding itself.
    script = (
        "for _p in /proc/[0-9]*/cmdline; do tr '\\0' ' ' <$_p 2>/dev/null && echo; done 2>/dev/null "
        f"| grep -c '^[^ ]*[s]leep {seconds} ' ; :"
    )
    return int((await sandbox.execute(script)).stdout.strip() or 0)


async def until(condition: Callable[[], Awaitable[bool]], seconds: float = 10) -> bool:
    """Wait for a condition; whether it came true."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if await condition():
            return True
        await asyncio.sleep(0.02)
    return await condition()


def sleeper() -> str:
    """A number of seconds that no other process sleeps."""
    return str(50_000 + secrets.randbelow(900_000))


async def gone(sandbox: Sandbox, seconds: str) -> bool:
    """Whether no `sleep SECONDS` is left, now or in a moment."""

    async def none() -> bool:
        return await running(sandbox, seconds) == 0

    return await until(none, 3)


async def there(sandbox: Sandbox, seconds: str) -> bool:
    """Whether a `sleep SECONDS` runs, now or in a moment."""

    async def some() -> bool:
        return await running(sandbox, seconds) > 0

    return await until(some)


async def chunks(
    sandbox: Sandbox, command: str, **arguments: Any
) -> tuple[list[StreamChunk], ExecutionResult]:
    """All that a command yields."""
    found: list[StreamChunk] = []
    async for chunk in sandbox.execute_streaming(command, **arguments):
        if isinstance(chunk, ExecutionResult):
            return found, chunk
        found.append(chunk)
    raise AssertionError('no ExecutionResult came')


class RunRules(Rules):
    """One command after the other."""

    @rule
    async def test_the_output_comes_back(self, sandbox: Sandbox) -> None:
        result = await sandbox.execute('echo hello')

        assert (result.exit_code, result.stdout, result.stderr) == (0, 'hello\n', '')

    @rule
    async def test_the_two_streams_stay_apart(self, sandbox: Sandbox) -> None:
        result = await sandbox.execute('echo out; echo err >&2')

        assert (result.stdout, result.stderr) == ('out\n', 'err\n')

    @rule
    async def test_an_exit_code_is_a_result(self, sandbox: Sandbox) -> None:
        assert (await sandbox.execute('exit 42')).exit_code == 42

    @rule
    async def test_a_missing_program_ends_with_127(self, sandbox: Sandbox) -> None:
        result = await sandbox.execute('no-such-program-anywhere')

        assert result.exit_code == 127
        assert 'no-such-program-anywhere' in result.stderr

    @rule
    async def test_a_signal_ends_with_128_and_its_number(self, sandbox: Sandbox) -> None:
        assert (await sandbox.execute('kill -TERM $$')).exit_code == 128 + 15

    @rule
    async def test_standard_input_is_at_its_end(self, sandbox: Sandbox) -> None:
        result = await sandbox.execute('cat; read x; echo "$?"', timeout=10)

        assert (result.exit_code, result.stdout) == (0, '1\n')

    @rule
    async def test_a_trailing_backslash_harms_nothing(self, sandbox: Sandbox) -> None:
        assert (await sandbox.execute('echo a\\')).stdout in {'a\n', 'a\\\n'}

    @rule
    async def test_a_line_may_hold_a_here_document_and_end_in_a_comment(
        self, sandbox: Sandbox
    ) -> None:
        result = await sandbox.execute('cat <<E\nx\nE\necho y # comment')

        assert result.stdout == 'x\ny\n'

    @rule
    async def test_quotes_and_metacharacters_arrive(self, sandbox: Sandbox) -> None:
        text = r"""a 'b' "c" $d `e` \f ; & | < > ( ) { } * ? ~ ! é 😀"""

        assert (await sandbox.execute(f'printf %s {shlex.quote(text)}')).stdout == text

    @rule
    async def test_a_syntax_error_is_a_result(self, sandbox: Sandbox) -> None:
        result = await sandbox.execute('if then')

        assert result.exit_code != 0
        assert result.stderr != ''

    @rule
    async def test_a_child_left_behind_is_not_waited_for(self, sandbox: Sandbox) -> None:
        seconds = sleeper()
        begin = time.monotonic()
        async with self.session(sandbox) as session:
            result = await session.run(f'sleep {seconds} & echo hi')

            assert result.stdout == 'hi\n'
            assert time.monotonic() - begin < 10
        assert await gone(sandbox, seconds)

    @rule
    async def test_calls_at_the_same_time_do_not_mix(self, sandbox: Sandbox) -> None:
        results = await asyncio.gather(
            *(sandbox.execute(f'echo {n}; echo {n} >&2; exit {n}') for n in range(6))
        )

        assert [(r.exit_code, r.stdout, r.stderr) for r in results] == [
            (n, f'{n}\n', f'{n}\n') for n in range(6)
        ]

    @rule
    async def test_it_works_from_another_loop_and_thread(self, sandbox: Sandbox) -> None:
        def work() -> str:
            return asyncio.run(sandbox.execute('echo thread')).stdout

        found = await asyncio.gather(asyncio.to_thread(work), asyncio.to_thread(work))

        assert found == ['thread\n', 'thread\n']

    @rule
    async def test_the_line_is_not_in_its_own_arguments(self, sandbox: Sandbox) -> None:
        async with self.session(sandbox) as session:
            assert (await session.run('echo "$#"')).stdout == '0\n'


class StreamRules(Rules):
    """Output as it comes."""

    @rule
    async def test_the_result_comes_last_and_once(self, sandbox: Sandbox) -> None:
        found = [chunk async for chunk in sandbox.execute_streaming('echo a; echo b')]

        assert [isinstance(chunk, ExecutionResult) for chunk in found].count(True) == 1
        assert isinstance(found[-1], ExecutionResult)

    @rule
    async def test_the_chunks_are_the_result(self, sandbox: Sandbox) -> None:
        found, result = await chunks(sandbox, 'seq 1000 2>/dev/null || echo; echo e >&2')

        assert ''.join(c.data for c in found if c.stream_type == 'stdout') == result.stdout
        assert ''.join(c.data for c in found if c.stream_type == 'stderr') == result.stderr

    @rule
    async def test_output_comes_before_the_end(self, sandbox: Sandbox) -> None:
        stream = sandbox.execute_streaming('echo a; sleep 2; echo b')
        times = [time.monotonic() async for chunk in stream if isinstance(chunk, StreamChunk)]

        assert times[-1] - times[0] > 1

    @rule
    async def test_a_character_is_never_cut(self, sandbox: Sandbox) -> None:
        found, result = await chunks(sandbox, "printf '\\303'; sleep 0.3; printf '\\251'")

        assert ''.join(chunk.data for chunk in found) == result.stdout == 'é'

    @rule
    async def test_many_wide_characters_stay_whole(self, sandbox: Sandbox) -> None:
        script = (
            "i=0; while [ $i -lt 3000 ]; do printf '%s' 'x€😀éx€😀éx€😀éx€😀é'; i=$((i+1)); done"
        )
        result = await sandbox.execute(script)

        assert result.stdout == 'x€😀é' * 12_000

    @rule
    async def test_bytes_that_are_no_text_become_replacement_characters(
        self, sandbox: Sandbox
    ) -> None:
        assert (await sandbox.execute("printf 'a\\377b'")).stdout == 'a\ufffdb'

    @rule
    async def test_much_output_arrives_whole(self, sandbox: Sandbox) -> None:
        found, result = await chunks(sandbox, 'head -c 3000000 /dev/zero | tr "\\0" x')

        assert sum(len(chunk.data) for chunk in found) == 3_000_000
        assert result.exit_code == 0

    @rule
    async def test_much_output_on_both_streams_does_not_block(self, sandbox: Sandbox) -> None:
        line = 'head -c 500000 /dev/zero | tr "\\0" e >&2; head -c 500000 /dev/zero | tr "\\0" o'
        result = await sandbox.execute(line, timeout=30)

        assert (len(result.stdout), len(result.stderr)) == (500_000, 500_000)

    @rule
    async def test_output_without_a_newline_comes_back_as_it_is(self, sandbox: Sandbox) -> None:
        assert (await sandbox.execute('printf abc')).stdout == 'abc'

    @rule
    async def test_a_session_hands_on_live_output(self, sandbox: Sandbox) -> None:
        found: list[StreamChunk] = []
        async with self.session(sandbox) as session:
            await session.run('echo a; echo b >&2', on_output=found.append)

        assert sorted((chunk.stream_type, chunk.data) for chunk in found) == [
            ('stderr', 'b\n'),
            ('stdout', 'a\n'),
        ]


class TimeoutRules(Rules):
    """Time limits."""

    @rule
    async def test_a_limit_ends_the_command(self, sandbox: Sandbox) -> None:
        seconds = sleeper()
        with pytest.raises(TimeoutError):
            await sandbox.execute(f'sleep {seconds}', timeout=0.5)

        assert await gone(sandbox, seconds)

    @rule
    async def test_a_limit_holds_the_whole_call(self, sandbox: Sandbox) -> None:
        begin = time.monotonic()
        with pytest.raises(TimeoutError):
            await sandbox.execute('sleep 40', timeout=0.5)

        assert time.monotonic() - begin < 10

    @rule
    async def test_the_error_has_what_was_written(self, sandbox: Sandbox) -> None:
        with pytest.raises(TimeoutError) as caught:
            await sandbox.execute('echo before; echo problem >&2; sleep 40', timeout=1.5)

        assert getattr(caught.value, 'stdout', None) == 'before\n'
        assert getattr(caught.value, 'stderr', None) == 'problem\n'

    @rule
    async def test_a_command_within_its_limit_is_not_slowed(self, sandbox: Sandbox) -> None:
        begin = time.monotonic()
        result = await sandbox.execute('echo quick', timeout=50)

        assert (result.stdout, time.monotonic() - begin < 10) == ('quick\n', True)

    @rule
    async def test_children_end_with_the_command(self, sandbox: Sandbox) -> None:
        seconds = sleeper()
        with pytest.raises(TimeoutError):
            await sandbox.execute(f'(sleep {seconds} & wait) & wait', timeout=1)

        assert await gone(sandbox, seconds)

    @rule
    async def test_who_ignores_the_first_signal_is_killed(self, sandbox: Sandbox) -> None:
        seconds = sleeper()
        async with self.session(sandbox, kill_grace=0.2) as session:
            result = await session.run(f"trap '' TERM; sleep {seconds}", timeout=1)

            assert result.timed_out == 1
        assert await gone(sandbox, seconds)

    @rule
    async def test_a_command_hears_of_its_end_once(self, sandbox: Sandbox, place: str) -> None:
        # Built-in commands only, so that it hears at once and a second time would show.
        tidy_up = "trap 'echo x >>heard' TERM; until [ -s heard ]; do :; done; sleep 0.5 && echo tidied >>heard"
        async with self.session(sandbox, kill_grace=5, cwd=place) as session:
            await session.run(tidy_up, timeout=1)

        assert (await sandbox.execute('cat heard', cwd=place)).stdout == 'x\ntidied\n'

    @rule
    async def test_a_long_farewell_is_heard_out(self, sandbox: Sandbox) -> None:
        farewell = 'head -c 700000 /dev/zero | tr "\\0" x && echo saved; exit'
        async with self.session(sandbox, kill_grace=10) as session:
            begin = time.monotonic()
            result = await session.run(f"trap '{farewell}' TERM; sleep 40 & wait", timeout=1)

        assert result.stdout.endswith('xsaved\n')
        assert time.monotonic() - begin < 10

    @rule
    async def test_a_session_reports_a_limit(self, sandbox: Sandbox) -> None:
        async with self.session(sandbox) as session:
            result = await session.run('echo early; sleep 40', timeout=1)

        assert (result.timed_out, result.exit_code, result.stdout) == (1, None, 'early\n')

    @rule
    async def test_the_next_command_works(self, sandbox: Sandbox) -> None:
        with pytest.raises(TimeoutError):
            await sandbox.execute('sleep 40', timeout=0.3)

        assert (await sandbox.execute('echo next')).stdout == 'next\n'


class CancelRules(Rules):
    """Cancellation."""

    @rule
    async def test_cancelling_ends_the_command(self, sandbox: Sandbox) -> None:
        seconds = sleeper()
        task = asyncio.create_task(sandbox.execute(f'sleep {seconds}'))
        assert await there(sandbox, seconds)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

        assert await gone(sandbox, seconds)

    @rule
    async def test_closing_the_stream_ends_the_command(self, sandbox: Sandbox) -> None:
        seconds = sleeper()
        stream = sandbox.execute_streaming(f'echo go; sleep {seconds}')
        first = await anext(stream)
        await stream.aclose()

        assert isinstance(first, StreamChunk)
        assert await gone(sandbox, seconds)

    @rule
    async def test_cancelling_a_session_call_ends_its_children(self, sandbox: Sandbox) -> None:
        seconds = sleeper()
        async with self.session(sandbox) as session:
            task = asyncio.create_task(session.run(f'(sleep {seconds} & wait) & wait'))
            assert await there(sandbox, seconds)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

            assert await gone(sandbox, seconds)
            assert (await session.run('echo on')).stdout == 'on\n'

    @rule
    async def test_closing_a_session_ends_all(self, sandbox: Sandbox) -> None:
        seconds = sleeper()
        session = self.session(sandbox)
        await session.run(f'sleep {seconds} >/dev/null 2>&1 &')
        assert await there(sandbox, seconds)
        await session.aclose()
        await session.aclose()

        assert await gone(sandbox, seconds)

    @rule
    async def test_a_cancelled_call_leaves_the_others(self, sandbox: Sandbox) -> None:
        other = asyncio.create_task(sandbox.execute('sleep 1.5; echo whole'))
        task = asyncio.create_task(sandbox.execute('sleep 40'))
        await asyncio.sleep(0.5)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

        assert (await other).stdout == 'whole\n'


class CwdRules(Rules):
    """Working directories."""

    @rule
    async def test_a_command_starts_where_it_is_told(self, sandbox: Sandbox, place: str) -> None:
        assert (await sandbox.execute('pwd', cwd=place)).stdout == f'{place}\n'

    @rule
    async def test_a_missing_directory_stops_the_command(
        self, sandbox: Sandbox, place: str
    ) -> None:
        ran = f'{place}/ran'
        try:
            code = (await sandbox.execute(f'echo a; echo b >{ran}', cwd=f'{place}/none')).exit_code
        except OSError:
            code = 1

        assert code != 0
        assert (await sandbox.execute(f'[ ! -e {ran} ]')).exit_code == 0

    @rule
    async def test_a_directory_may_have_any_name(self, sandbox: Sandbox, place: str) -> None:
        name = f'{place}/-a b\'c"$d'
        await sandbox.execute(f'mkdir -- {shlex.quote(name)}')

        assert (await sandbox.execute('pwd', cwd=name)).stdout == f'{name}\n'

    @rule
    async def test_a_cd_does_not_reach_the_next_command(self, sandbox: Sandbox, place: str) -> None:
        async with self.session(sandbox, cwd=place) as session:
            await session.run('cd /')

            assert (await session.run('pwd')).stdout == f'{place}\n'

    @rule
    async def test_a_cd_lasts_when_it_shall(self, sandbox: Sandbox, place: str) -> None:
        async with self.session(sandbox, cwd=place, persist_cwd=True) as session:
            await session.run('mkdir -p sub/dir; cd sub; cd dir')

            assert (await session.run('pwd')).stdout == f'{place}/sub/dir\n'
            assert session.cwd == f'{place}/sub/dir'

    @rule
    async def test_a_cd_of_a_failed_command_is_forgotten(
        self, sandbox: Sandbox, place: str
    ) -> None:
        async with self.session(sandbox, cwd=place, persist_cwd=True) as session:
            await session.run('cd /; false')

            assert (await session.run('pwd')).stdout == f'{place}\n'

    @rule
    async def test_a_cd_of_a_subshell_is_its_own(self, sandbox: Sandbox, place: str) -> None:
        async with self.session(sandbox, cwd=place, persist_cwd=True) as session:
            await session.run('(cd /)')

            assert (await session.run('pwd')).stdout == f'{place}\n'

    @rule
    async def test_a_directory_that_goes_is_told(self, sandbox: Sandbox, place: str) -> None:
        async with self.session(sandbox, cwd=place, persist_cwd=True) as session:
            await session.run('mkdir sub && cd sub')
            await sandbox.execute(f'rmdir {place}/sub')
            answer = await session.run_command('pwd')

            assert 'sub' in answer
            assert 'nothing was run' in answer
            assert (await session.run('pwd')).stdout == f'{place}\n'


class EnvRules(Rules):
    """Variables."""

    @rule
    async def test_a_variable_arrives(self, sandbox: Sandbox) -> None:
        assert (
            await sandbox.execute('echo "$GREETING"', env={'GREETING': 'hi there'})
        ).stdout == 'hi there\n'

    @rule
    async def test_a_value_is_never_evaluated(self, sandbox: Sandbox) -> None:
        value = '$(echo no) `echo no` "quoted" \'single\' \\ \n line two é'

        assert (await sandbox.execute('printf %s "$V"', env={'V': value})).stdout == value

    @rule
    async def test_a_variable_holds_for_one_command(self, sandbox: Sandbox) -> None:
        await sandbox.execute('true', env={'ONCE': '1'})

        assert (await sandbox.execute('echo "[$ONCE]"')).stdout == '[]\n'

    @rule
    async def test_a_bad_name_is_refused(self, sandbox: Sandbox) -> None:
        for name in ('1A', 'A-B', 'A B', 'A\n', '', 'A;x'):
            with pytest.raises(ValueError, match='environment variable name'):
                await sandbox.execute('true', env={name: 'x'})

    @rule
    async def test_the_other_variables_stay(self, sandbox: Sandbox) -> None:
        assert (await sandbox.execute('echo "${PATH:+set}"', env={'A': '1'})).stdout == 'set\n'

    @rule
    async def test_a_session_sees_exactly_its_variables(self, sandbox: Sandbox) -> None:
        path = (await sandbox.execute('printf %s "$PATH"')).stdout
        async with self.session(sandbox, env={'PATH': path, 'ONLY': 'a=b'}) as session:
            names = (await session.run('env')).stdout

        found = {line.split('=')[0] for line in names.splitlines()}
        assert found - {'PWD', 'OLDPWD', 'SHLVL', '_'} == {'PATH', 'ONLY'}

    @rule
    async def test_a_session_hides_variables_by_pattern(self, sandbox: Sandbox) -> None:
        path = (await sandbox.execute('printf %s "$PATH"')).stdout
        env = {'PATH': path, 'A_KEY': 'x', 'B_KEY': 'y'}
        async with self.session(sandbox, env=env, denied_env_patterns=('A_*',)) as session:
            assert (await session.run('echo "[${A_KEY-}${B_KEY-}]"')).stdout == '[y]\n'

    @rule
    async def test_a_variable_that_is_too_long_is_refused_with_a_sentence(
        self, sandbox: Sandbox
    ) -> None:
        path = (await sandbox.execute('printf %s "$PATH"')).stdout
        async with self.session(sandbox, env={'PATH': path, 'LONG': 'v' * 3_000_000}) as session:
            told = await session.run_command('echo ran')

        assert told.startswith('[Error: ')
        assert 'variable' in told

    @rule
    async def test_a_value_is_in_no_arguments(self, sandbox: Sandbox) -> None:
        secret = f'secret{secrets.token_hex(8)}'
        env = {'PATH': (await sandbox.execute('printf %s "$PATH"')).stdout, 'SECRET': secret}
        # Looks at every process while one with the variable runs; the pattern does not match its own text.
        pattern = f'{secret[:-1]}[{secret[-1]}]'
        script = f"for p in /proc/[0-9]*/cmdline; do cat $p; done 2>/dev/null | tr '\\0' '\\n' | grep -c '{pattern}'; :"
        async with self.session(sandbox, env=env) as session:
            found = (await session.run(script)).stdout

        assert (found == '0\n') == self.hides_values


class FileRules(Rules):
    """Files."""

    @rule
    async def test_text_goes_there_and_back(self, sandbox: Sandbox, place: str) -> None:
        await sandbox.write_text(f'{place}/a', 'héllo\nwörld')

        assert await sandbox.read_text(f'{place}/a') == 'héllo\nwörld'

    @rule
    async def test_every_byte_goes_there_and_back(self, sandbox: Sandbox, place: str) -> None:
        await sandbox.write_file(f'{place}/a', bytes(range(256)) * 3)

        assert await sandbox.read_file(f'{place}/a') == bytes(range(256)) * 3

    @rule
    async def test_an_empty_file_stays_empty(self, sandbox: Sandbox, place: str) -> None:
        await sandbox.write_file(f'{place}/a', b'')

        assert await sandbox.read_file(f'{place}/a') == b''

    @rule
    async def test_content_of_any_size_goes_there_and_back(
        self, sandbox: Sandbox, place: str
    ) -> None:
        content = secrets.token_bytes(400_000)
        await sandbox.write_file(f'{place}/a', content)

        assert await sandbox.read_file(f'{place}/a') == content

    @rule
    async def test_missing_directories_are_made(self, sandbox: Sandbox, place: str) -> None:
        await sandbox.write_file(f'{place}/x/y z/a', b'1')

        assert await sandbox.read_file(f'{place}/x/y z/a') == b'1'

    @rule
    async def test_a_file_is_replaced_as_a_whole_and_keeps_its_mode(
        self, sandbox: Sandbox, place: str
    ) -> None:
        await sandbox.write_file(f'{place}/a', b'long content')
        await sandbox.execute(f'chmod 751 {place}/a')
        await sandbox.write_file(f'{place}/a', b'new')

        assert await sandbox.read_file(f'{place}/a') == b'new'
        assert (await sandbox.execute(f'ls -l {place}/a')).stdout.startswith('-rwxr-x--x')

    @rule
    async def test_a_symbolic_link_stays_one(self, sandbox: Sandbox, place: str) -> None:
        await sandbox.execute(f'echo old >{place}/a; ln -s a {place}/link')
        await sandbox.write_file(f'{place}/link', b'new')

        assert await sandbox.read_file(f'{place}/a') == b'new'
        assert (await sandbox.execute(f'[ -h {place}/link ]')).exit_code == 0

    @rule
    async def test_nothing_but_the_file_is_left(self, sandbox: Sandbox, place: str) -> None:
        await sandbox.write_file(f'{place}/a', b'1' * 100_000)
        await sandbox.write_file(f'{place}/a', b'2')

        assert [entry.name for entry in await sandbox.list_files(place)] == ['a']

    @rule
    async def test_a_file_may_have_a_name_that_is_hard_to_quote(
        self, sandbox: Sandbox, place: str
    ) -> None:
        names = ['a b', '-rf', "it's", 'tab\there', 'new\nline', '$HOME', '`x`', '*', 'é', '"']
        for name in names:
            await sandbox.write_file(f'{place}/{name}', name.encode())
        found = {entry.name for entry in await sandbox.list_files(place)}
        contents = [await sandbox.read_file(f'{place}/{name}') for name in names]

        assert found == set(names)
        assert contents == [name.encode() for name in names]

    @rule
    async def test_a_relative_path_with_a_leading_dash_is_no_option(self, sandbox: Sandbox) -> None:
        name = f'-anyshell-{secrets.token_hex(4)}'
        await sandbox.write_file(name, b'1')
        content = await sandbox.read_file(name)
        await sandbox.remove_file(name)

        assert content == b'1'
        with pytest.raises(FileNotFoundError):
            await sandbox.read_file(name)

    @rule
    async def test_reading_what_is_not_there_is_a_file_not_found_error(
        self, sandbox: Sandbox, place: str
    ) -> None:
        with pytest.raises(FileNotFoundError):
            await sandbox.read_file(f'{place}/none')

    @rule
    async def test_reading_a_directory_is_an_error_that_says_so(
        self, sandbox: Sandbox, place: str
    ) -> None:
        with pytest.raises(FileNotFoundError) as caught:
            await sandbox.read_file(place)

        assert isinstance(caught.value, IsADirectoryError)

    @rule
    async def test_reading_a_named_pipe_is_an_error_that_comes_at_once(
        self, sandbox: Sandbox, place: str
    ) -> None:
        await sandbox.execute(f'mkfifo {place}/pipe')
        with pytest.raises(FileNotFoundError, match='Not a regular file'):
            await asyncio.wait_for(sandbox.read_file(f'{place}/pipe'), 10)

    @rule
    async def test_a_directory_is_not_written_over(self, sandbox: Sandbox, place: str) -> None:
        with pytest.raises(OSError, match=r'.'):
            await sandbox.write_file(place, b'1')

        assert await sandbox.list_files(place) == []

    @rule
    async def test_writing_where_no_directory_can_be_is_an_error_and_changes_nothing(
        self, sandbox: Sandbox, place: str
    ) -> None:
        await sandbox.write_file(f'{place}/a', b'1')
        with pytest.raises(OSError, match=r'.'):
            await sandbox.write_file(f'{place}/a/b', b'1')

        assert await sandbox.read_file(f'{place}/a') == b'1'

    @rule
    async def test_a_removed_file_is_gone_and_can_not_be_removed_again(
        self, sandbox: Sandbox, place: str
    ) -> None:
        await sandbox.write_file(f'{place}/a', b'1')
        await sandbox.remove_file(f'{place}/a')

        assert await sandbox.list_files(place) == []
        with pytest.raises(FileNotFoundError):
            await sandbox.remove_file(f'{place}/a')

    @rule
    async def test_a_directory_is_not_removed_as_a_file(self, sandbox: Sandbox, place: str) -> None:
        await sandbox.write_file(f'{place}/d/a', b'1')
        with pytest.raises(FileNotFoundError) as caught:
            await sandbox.remove_file(f'{place}/d')

        assert isinstance(caught.value, IsADirectoryError)
        assert await sandbox.read_file(f'{place}/d/a') == b'1'

    @rule
    async def test_a_listing_has_hidden_entries_and_says_what_each_is(
        self, sandbox: Sandbox, place: str
    ) -> None:
        await sandbox.execute(f'cd {place}; mkdir d .h; echo >f; ln -s d l; ln -s none broken')
        found = {entry.name: entry.is_dir for entry in await sandbox.list_files(place)}

        assert found == {'d': True, '.h': True, 'f': False, 'l': False, 'broken': False}

    @rule
    async def test_a_listing_of_what_is_no_directory_is_a_file_not_found_error(
        self, sandbox: Sandbox, place: str
    ) -> None:
        await sandbox.write_file(f'{place}/a', b'1')
        for path in (f'{place}/a', f'{place}/none'):
            with pytest.raises(FileNotFoundError):
                await sandbox.list_files(path)


class CodeRules(Rules):
    """Source code."""

    @rule
    async def test_code_arrives_to_the_letter(self, sandbox: Sandbox) -> None:
        code = 'print("a" \'b\' $HOME `x` \\ \n\n# é 😀\n'

        assert (await sandbox.execute_code(code, 'cat')).stdout == code

    @rule
    async def test_code_of_any_size_arrives_whole(self, sandbox: Sandbox) -> None:
        code = 'x' * 300_000

        assert (await sandbox.execute_code(code, 'cat')).stdout == code

    @rule
    async def test_shell_code_has_its_standard_input_at_the_end(self, sandbox: Sandbox) -> None:
        result = await sandbox.execute_code('read x; echo "$?"\necho after\n', 'sh', timeout=20)

        assert (result.exit_code, result.stdout) == (0, '1\nafter\n')

    @rule
    async def test_long_shell_code_has_its_standard_input_at_the_end_too(
        self, sandbox: Sandbox
    ) -> None:
        code = ': ' + 'x' * 150_000 + '\ncat\necho done\nexit 7\n'
        result = await sandbox.execute_code(code, 'sh', timeout=30)

        assert (result.exit_code, result.stdout) == (7, 'done\n')

    @rule
    async def test_variables_and_the_directory_reach_the_code(
        self, sandbox: Sandbox, place: str
    ) -> None:
        result = await sandbox.execute_code('echo "$V"; pwd', 'sh', env={'V': 'a b'}, cwd=place)

        assert result.stdout == f'a b\n{place}\n'

    @rule
    async def test_a_missing_interpreter_ends_with_127(self, sandbox: Sandbox) -> None:
        assert (await sandbox.execute_code('x', 'no-such.interpreter-1')).exit_code == 127

    @rule
    async def test_a_language_is_a_plain_name(self, sandbox: Sandbox) -> None:
        for language in ('sh -c', 'sh;id', '../sh', 'sh\n', '', '$(id)'):
            with pytest.raises(ValueError, match='language'):
                await sandbox.execute_code('x', language)

    @rule
    async def test_a_limit_ends_code(self, sandbox: Sandbox) -> None:
        seconds = sleeper()
        with pytest.raises(TimeoutError):
            await sandbox.execute_code(f'sleep {seconds}', 'sh', timeout=1)

        assert await gone(sandbox, seconds)


class JobRules(Rules):
    """Background commands, or a refusal that says why."""

    @pytest.fixture(autouse=True)
    def _needs_jobs(self, request: pytest.FixtureRequest) -> None:
        name = request.function.__name__
        if not self.keeps_jobs and hasattr(JobRules, name) and not hasattr(Rules, name):
            if name.endswith('with_the_reason'):
                return
            pytest.skip('this sandbox keeps no background commands')

    @rule
    async def test_background_commands_are_kept_or_refused_with_the_reason(
        self, sandbox: Sandbox
    ) -> None:
        async with self.session(sandbox) as session:
            answer = await session.start_command('sleep 40')

        assert ('Started background command' in answer) == self.keeps_jobs
        assert ('keeps no background commands' in answer) != self.keeps_jobs

    @rule
    async def test_a_start_returns_at_once(self, sandbox: Sandbox) -> None:
        begin = time.monotonic()
        async with self.session(sandbox) as session:
            await session.start_command('sleep 40')

            assert time.monotonic() - begin < 10

    @rule
    async def test_a_check_shows_the_output_so_far(self, sandbox: Sandbox) -> None:
        async with self.session(sandbox) as session:
            await session.start_command('echo first; echo problem >&2; sleep 40')

            async def shown() -> bool:
                answer = await session.check_command('j1')
                return 'running' in answer and 'first' in answer and 'problem' in answer

            assert await until(shown)

    @rule
    async def test_a_check_shows_the_end(self, sandbox: Sandbox) -> None:
        async with self.session(sandbox) as session:
            await session.start_command('echo only; exit 3')

            async def shown() -> bool:
                return (
                    await session.check_command('j1')
                    == '[status: finished]\n[exit code: 3]\n[stdout]\nonly\n'
                )

            assert await until(shown), await session.check_command('j1')

    @rule
    async def test_a_job_that_writes_much_is_not_disturbed(self, sandbox: Sandbox) -> None:
        many = 'i=0; while [ $i -lt 3000 ]; do echo line $i; i=$((i+1)); done'
        much = 'head -c 2000000 /dev/zero | tr "\\0" x; echo end'
        async with self.session(sandbox, max_output_chars=100) as session:
            await session.start_command(f'{many}; {much}')

            async def finished() -> bool:
                return 'finished' in await session.check_command('j1')

            assert await until(finished, 30)
            answer = await session.check_command('j1')

        assert '[exit code: 0]' in answer
        assert answer.endswith('xend\n')

    @rule
    async def test_a_stop_ends_it_with_its_children(self, sandbox: Sandbox) -> None:
        seconds = sleeper()
        async with self.session(sandbox) as session:
            await session.start_command(f'echo up; (sleep {seconds} & wait) & wait')
            assert await there(sandbox, seconds)
            answer = await session.stop_command('j1')

            assert answer.startswith('[stopped: ')
            assert 'up' in answer
            assert await gone(sandbox, seconds)

    @rule
    async def test_a_stop_ends_who_lives_on_by_forking(self, sandbox: Sandbox, place: str) -> None:
        async def beats() -> int:
            return int((await sandbox.execute(f'cat {place}/beats 2>/dev/null | wc -l')).stdout)

        async def begun() -> bool:
            return await beats() > 0

        async with self.session(sandbox, cwd=place) as session:
            # Each process of the chain ends as soon as it has started the next one: its number is never old.
            await session.start_command('f() { echo >>beats && f & }; f; sleep 40')
            assert await until(begun)
            await session.stop_command('j1')
            before = await beats()
            await asyncio.sleep(0.5)
            after = await beats()
            # A directory in its place ends a chain that got away.
            await sandbox.execute(f'cd {place} && rm -f beats && mkdir beats')

        assert after == before

    @rule
    async def test_a_stop_twice_harms_nothing(self, sandbox: Sandbox) -> None:
        async with self.session(sandbox) as session:
            await session.start_command('sleep 40')
            first = await session.stop_command('j1')
            second = await session.stop_command('j1')

        assert first == second

    @rule
    async def test_jobs_end_with_the_session(self, sandbox: Sandbox) -> None:
        seconds = sleeper()
        async with self.session(sandbox) as session:
            await session.start_command(f'setsid sleep {seconds} & sleep {seconds}')
            assert await there(sandbox, seconds)

        assert await gone(sandbox, seconds)

    @rule
    async def test_a_second_close_waits_for_the_first(self, sandbox: Sandbox) -> None:
        async def closing() -> bool:
            return session.closed

        seconds = sleeper()
        session = self.session(sandbox, kill_grace=1)
        await session.start_command(f"trap '' TERM; while :; do sleep {seconds}; done")
        assert await there(sandbox, seconds)
        first = threading.Thread(target=session.close)
        first.start()
        assert await until(closing)
        await session.aclose()
        left = await running(sandbox, seconds)
        await asyncio.to_thread(first.join)

        assert left == 0

    @rule
    async def test_jobs_run_beside_commands(self, sandbox: Sandbox, place: str) -> None:
        async with self.session(sandbox, cwd=place) as session:
            await session.start_command('until [ -e go ]; do sleep 0.1; done; echo went')
            await session.run('echo >go')

            async def went() -> bool:
                return 'went' in await session.check_command('j1')

            assert await until(went)

    @rule
    async def test_a_job_outlives_the_loop_that_started_it(self, sandbox: Sandbox) -> None:
        session = self.session(sandbox)

        def start() -> str:
            return asyncio.run(session.start_command('echo here; sleep 40'))

        try:
            await asyncio.to_thread(start)

            async def shown() -> bool:
                return 'here' in await session.check_command('j1')

            assert await until(shown)
        finally:
            await session.aclose()

    @rule
    async def test_a_limit_can_leave_a_job(self, sandbox: Sandbox) -> None:
        seconds = sleeper()
        async with self.session(sandbox, on_timeout='background') as session:
            result = await session.run(f'echo so far; sleep {seconds}', timeout=1)

            assert (result.job_id, result.timed_out, result.stdout) == ('j1', 1, 'so far\n')
            assert await running(sandbox, seconds) == 1
            assert 'so far' in await session.stop_command('j1')
            assert await gone(sandbox, seconds)

    @rule
    async def test_a_child_left_behind_may_write_later(self, sandbox: Sandbox, place: str) -> None:
        line = f'(sleep 1; echo late; echo $? >{place}/code) & echo hi'
        async with self.session(sandbox) as session:
            await session.run(line)

            async def said() -> bool:
                return (await sandbox.execute(f'cat {place}/code')).stdout == '0\n'

            assert await until(said)

    @rule
    async def test_a_job_in_a_missing_directory_is_told(self, sandbox: Sandbox, place: str) -> None:
        async with self.session(sandbox, cwd=f'{place}/none') as session:
            answer = await session.start_command('echo never')

        assert 'none' in answer
        assert 'Started' not in answer

    @rule
    async def test_a_closed_session_starts_nothing(self, sandbox: Sandbox) -> None:
        session = self.session(sandbox)
        await session.run('true')
        await session.aclose()

        assert 'closed' in await session.start_command('echo never')


class LimitRules(Rules):
    """What is bounded."""

    @rule
    async def test_a_result_holds_the_tail_and_says_so(self, sandbox: Sandbox) -> None:
        size = 12_000_000
        total = 0
        result: ExecutionResult | None = None
        line = f'head -c {size} /dev/zero | tr "\\0" x; echo end'
        async for chunk in sandbox.execute_streaming(line):
            if isinstance(chunk, ExecutionResult):
                result = chunk
            else:
                total += len(chunk.data)

        assert result is not None
        assert total == size + 4
        assert result.truncated == (len(result.stdout) < size + 4)
        assert result.stdout.endswith('xend\n')

    @rule
    async def test_a_session_holds_the_tail(self, sandbox: Sandbox) -> None:
        async with self.session(sandbox, max_output_chars=100) as session:
            result = await session.run('head -c 2000000 /dev/zero | tr "\\0" x; echo end')

        assert result.truncated
        assert result.stdout == 'x' * 96 + 'end\n'

    @rule
    async def test_the_log_of_a_job_is_bounded(self, sandbox: Sandbox, place: str) -> None:
        if not self.keeps_jobs:
            pytest.skip('this sandbox keeps no background commands')
        async with self.session(sandbox, max_log_bytes=1_000_000, max_output_chars=100) as session:
            await session.start_command(
                f'head -c 4000000 /dev/zero | tr "\\0" x; echo end; touch {place}/done'
            )

            async def done() -> bool:
                return 'finished' in await session.check_command('j1')

            assert await until(done, 30)
            assert (await session.check_command('j1')).endswith('xend\n')

    @rule
    async def test_a_line_may_be_longer_than_an_argument(self, sandbox: Sandbox) -> None:
        async with self.session(sandbox) as session:
            result = await session.run(f'echo {"y" * 200_000} | wc -c')

        assert result.stdout.strip() == '200001'

    @rule
    async def test_many_commands_leave_nothing(self, sandbox: Sandbox) -> None:
        count = 'set -- /tmp/anyshell-*; echo $#'
        async with self.session(sandbox) as session:
            await session.run('true')
            before = (await sandbox.execute(count)).stdout
            for _ in range(10):
                await session.run('echo x')
            after = (await sandbox.execute(count)).stdout

        assert int(after) <= int(before) + 1


class SandboxContract(
    RunRules,
    StreamRules,
    TimeoutRules,
    CancelRules,
    CwdRules,
    EnvRules,
    FileRules,
    CodeRules,
    JobRules,
    LimitRules,
):
    """All rules; see the module's text for how to run them."""
