"""The class that the spec describes: its helpers, its errors, and where it does better than its origin."""

import asyncio
import contextlib
import shlex
import shutil
import tempfile
import time
from pathlib import Path

import psutil
import pytest

from anyshell import (
    ExecutionResult,
    LocalSandbox,
    PosixShellSandbox,
    SandboxPathNotFoundError,
    SandboxTimeoutError,
    ShellOptions,
    ShellSession,
    StreamChunk,
    build_shell_env_prefix,
    run_sync,
    validate_env_keys,
)


class Short(PosixShellSandbox):
    """Takes commands that fit in one argument only, as `docker exec` and `ssh` do, and counts them."""

    def __init__(self, cwd) -> None:
        self.machine = LocalSandbox(cwd=cwd)
        self.lengths: list[int] = []

    async def execute_streaming(self, command, **options):
        self.lengths.append(len(command.encode()))
        assert self.lengths[-1] < 128 * 1024, 'E2BIG'
        async with contextlib.aclosing(
            self.machine.execute_streaming(command, **options)
        ) as chunks:
            async for chunk in chunks:
                yield chunk


@pytest.fixture
def short(tmp_path):
    sandbox = Short(tmp_path)
    yield sandbox
    run_sync(sandbox.machine.aclose())


def test_a_prefix_without_variables_is_empty():
    assert (build_shell_env_prefix(), build_shell_env_prefix({})) == ('', '')


def test_a_prefix_exports_and_fails_fast():
    assert build_shell_env_prefix({'A': '1', 'B_2': 'x y'}) == "export A=1 B_2='x y' && "


def test_a_prefix_quotes_values():
    assert build_shell_env_prefix({'A': "it's $(id)"}) == """export A='it'"'"'s $(id)' && """


@pytest.mark.parametrize('name', ['1A', 'A-B', 'A B', 'A=B', '', 'A\n', 'é', 'A;id'])
def test_a_name_that_no_shell_exports_is_refused(name):
    with pytest.raises(ValueError, match='Invalid environment variable name'):
        validate_env_keys({name: 'x'})
    with pytest.raises(ValueError, match='Invalid environment variable name'):
        build_shell_env_prefix({name: 'x'})


def test_a_value_with_a_nul_is_refused():
    with pytest.raises(ValueError, match='NUL'):
        build_shell_env_prefix({'A': 'x\0y'})


def test_names_of_posix_are_valid():
    validate_env_keys({'A': '', '_': '', 'a1_B': ''})


async def test_a_file_of_any_size_goes_in_pieces(short):
    content = bytes(range(256)) * 2000
    await short.write_file('big', content)

    assert await short.read_file('big') == content
    assert max(short.lengths) < 64 * 1024 * 1.5
    assert [entry.name for entry in await short.list_files('.')] == ['big']


async def test_code_of_any_size_goes_in_pieces_and_leaves_nothing(short, tmp_path):
    code = f'x = "{"y" * 300_000}"\nprint(len(x))\n'
    result = await short.execute_code(code, 'python3')

    assert result.stdout == '300000\n'
    assert list(tmp_path.iterdir()) == []


async def test_a_command_of_any_size_goes_in_pieces(short):
    async with ShellSession(sandbox=short) as session:
        result = await session.run(f'echo {"z" * 240_000} | wc -c')

    assert result.stdout == '240001\n'


async def test_a_write_that_is_cancelled_leaves_the_old_file(short, tmp_path):
    await short.write_file('a', b'old')
    task = asyncio.create_task(short.write_file('a', b'n' * 3_000_000))
    while len(short.lengths) < 6:
        await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert [path.name for path in tmp_path.iterdir()] == ['a']
    assert (tmp_path / 'a').read_bytes() == b'old'


async def test_errors_of_files_are_precise(short, tmp_path):
    (tmp_path / 'd').mkdir()

    with pytest.raises(FileNotFoundError) as missing:
        await short.read_file('none')
    assert not isinstance(missing.value, IsADirectoryError)
    for operation in (short.read_file, short.remove_file):
        with pytest.raises(FileNotFoundError) as directory:
            await operation('d')
        assert isinstance(directory.value, IsADirectoryError)
    with pytest.raises(IsADirectoryError):
        await short.write_file('d', b'')
    with pytest.raises(SandboxPathNotFoundError, match='Path not found: none'):
        await short.list_files('none')


async def test_a_listing_has_no_sizes(short, tmp_path):
    (tmp_path / 'f').write_text('x')

    assert [(entry.name, entry.is_dir, entry.size) for entry in await short.list_files('.')] == [
        ('f', False, None)
    ]


async def test_local_listings_have_sizes_and_an_order(tmp_path):
    for name in ('b', 'a', 'c'):
        (tmp_path / name).write_text(name * 3)
    async with LocalSandbox(cwd=tmp_path) as sandbox:
        found = await sandbox.list_files('.')

    assert [(entry.name, entry.size) for entry in found] == [('a', 3), ('b', 3), ('c', 3)]


async def test_a_stream_without_a_result_is_an_error():
    class Broken(PosixShellSandbox):
        async def execute_streaming(self, _command, **_options):
            yield StreamChunk('half')

    with pytest.raises(RuntimeError, match='did not yield an ExecutionResult'):
        await Broken().execute('true')
    with pytest.raises(RuntimeError, match='did not yield an ExecutionResult'):
        await Broken().read_file('x')


async def test_a_class_that_gives_results_only_is_enough(tmp_path):
    class Plain(PosixShellSandbox):
        async def execute_streaming(self, command, *, timeout=None, cwd=None, env=None):
            async with LocalSandbox(cwd=cwd or tmp_path) as machine:
                yield await machine.execute(command, timeout=timeout, env=env)

    sandbox = Plain()
    await sandbox.write_file('a', b'\x00\xff')

    assert await sandbox.read_file('a') == b'\x00\xff'
    assert (await sandbox.execute_code('echo $V', 'sh', env={'V': '1'})).stdout == '1\n'


def test_the_class_can_not_be_used_without_its_method():
    with pytest.raises(TypeError, match='execute_streaming'):
        PosixShellSandbox()


async def test_a_timeout_error_has_its_parts(tmp_path):
    async with LocalSandbox(cwd=tmp_path) as sandbox:
        with pytest.raises(SandboxTimeoutError) as caught:
            await sandbox.execute('echo a; echo b >&2; sleep 30', timeout=0.5)

    assert (caught.value.seconds, caught.value.stdout, caught.value.stderr) == (0.5, 'a\n', 'b\n')
    assert str(caught.value) == 'Execution timed out after 0.5 seconds'


async def test_a_limit_holds_when_the_shell_has_gone_and_a_child_keeps_the_output(tmp_path):
    begin = time.monotonic()
    async with LocalSandbox(cwd=tmp_path) as sandbox:
        result = await sandbox.execute('sleep 20 & exit 3', timeout=5)

    assert (result.exit_code, time.monotonic() - begin < 4) == (3, True)


async def test_a_session_over_one_method_keeps_its_directory(short, tmp_path):
    options = ShellOptions(persist_cwd=True, unresolved='allow')
    async with ShellSession(options, sandbox=short) as session:
        await session.run('mkdir -p deep/er && cd deep/er')
        result = await session.run('pwd')

    assert result.stdout == f'{tmp_path}/deep/er\n'


async def test_a_short_command_of_a_session_is_one_request_more_than_its_end(short):
    async with ShellSession(ShellOptions(unresolved='allow'), sandbox=short) as session:
        await session.run('true')
        before = len(short.lengths)
        await session.run('echo x')

        assert len(short.lengths) - before <= 2  # the command, and the removal of its files


async def test_a_result_is_plain_data():
    result = ExecutionResult(0, 'a', 'b')

    assert (result.output_files, result.truncated) == ([], False)


class Failing(Short):
    """Fails in some calls, before or after the command has run."""

    def __init__(self, cwd, calls: range, *, after: bool = False) -> None:
        super().__init__(cwd)
        self.calls, self.after = calls, after

    async def execute_streaming(self, command, **options):
        fails = len(self.lengths) in self.calls
        if fails and not self.after:
            self.lengths.append(0)
            raise ConnectionError('gone')
        async for chunk in super().execute_streaming(command, **options):
            if fails and isinstance(chunk, ExecutionResult):
                raise ConnectionError('gone')
            yield chunk


@pytest.mark.parametrize('after', [False, True])
@pytest.mark.parametrize('number', range(5))
async def test_what_fails_in_any_piece_leaves_nothing(tmp_path, number, after):
    sandbox = Failing(tmp_path, range(number, number + 1), after=after)
    with pytest.raises(ConnectionError, match='gone'):
        await sandbox.write_file('a', b'n' * 130_000)
    sandbox.calls = range(len(sandbox.lengths) + number, len(sandbox.lengths) + number + 1)
    with pytest.raises(ConnectionError, match='gone'):
        await sandbox.execute_code(f'# {"n" * 200_000}\n', 'python3')
    await sandbox.machine.aclose()

    assert {path.name for path in tmp_path.iterdir()} <= {'a'}


@pytest.mark.parametrize('number', range(2, 5))
async def test_what_a_place_that_fails_keeps_is_removed_when_it_is_back(tmp_path, number):
    sandbox = Failing(tmp_path, range(number, 100))
    with pytest.raises(ConnectionError, match='gone'):
        await sandbox.write_file('a', b'n' * 130_000)
    kept = [path.name for path in tmp_path.iterdir()]
    sandbox.calls = range(0)
    await sandbox.write_file('b', b'x')
    await sandbox.machine.aclose()

    assert kept
    assert [path.name for path in tmp_path.iterdir()] == ['b']


class Terminal(Short):
    """Runs commands at a terminal, which turns newlines into two characters and has one stream only."""

    async def execute_streaming(self, command, **options):
        async for chunk in super().execute_streaming(command, **options):
            if isinstance(chunk, ExecutionResult):
                yield ExecutionResult(chunk.exit_code, '', '')
            else:
                yield StreamChunk(chunk.data.replace('\n', '\r\n'))


async def test_a_place_behind_a_terminal_gives_exact_files_and_sessions(tmp_path):
    terminal = Terminal(tmp_path)
    content = b'a\nb\r\nc\r' * 20_000
    await terminal.write_file('f', content)
    (tmp_path / 'd').mkdir()

    assert await terminal.read_file('f') == content
    assert {entry.name for entry in await terminal.list_files('.')} == {'d', 'f'}
    options = ShellOptions(persist_cwd=True, unresolved='allow')
    async with ShellSession(options, sandbox=terminal) as session:
        result = await session.run("cd d; printf 'a\\nb\\r\\n'; echo err >&2; exit 0")
        where = await session.run('pwd')
        await session.start_command('echo up; sleep 0.1; exit 4')
        job = await session.tools[2].call({'command_id': 'j1', 'wait_seconds': 20})
    await terminal.machine.aclose()

    assert (result.stdout, result.stderr) == ('a\nb\r\n', 'err\n')
    assert where.stdout == f'{tmp_path}/d\n'
    assert job.text == '[status: finished]\n[exit code: 4]\n[stdout]\nup\n'


async def test_a_place_that_alters_output_is_told_so(tmp_path):
    class Altered(Terminal):
        async def execute_streaming(self, command, **options):
            async for chunk in super().execute_streaming(command, **options):
                if isinstance(chunk, StreamChunk):
                    chunk.data = chunk.data.replace('\n', ' ')
                yield chunk

    altered = Altered(tmp_path)
    async with ShellSession(sandbox=altered) as session:
        answer = await session.run_command('true')
    await altered.machine.aclose()

    assert answer == (
        '[Error: the answer of the sandbox is incomplete: its output is cut or altered on the way. '
        'See what it passes through: every byte has to arrive as it was written]'
    )


async def test_a_file_that_comes_back_altered_is_an_error_that_names_it():
    class Bare(PosixShellSandbox):
        async def execute_streaming(self, _command, **_options):
            yield ExecutionResult(0, 'Welcome!', '')

    with pytest.raises(
        OSError, match=r'Failed to decode base64 contents of file: a\.bin'
    ) as caught:
        await Bare().read_file('a.bin')

    assert not isinstance(caught.value, FileNotFoundError)


async def test_operations_on_files_go_through_an_execute_of_the_subclass(tmp_path):
    class Counting(Short):
        count = 0

        async def execute(self, command, **options):
            self.count += 1
            return await super().execute(command, **options)

    counting = Counting(tmp_path)
    await counting.write_file('d/a', b'content')
    content = await counting.read_file('d/a')
    entries = await counting.list_files('d')
    await counting.remove_file('d/a')
    with pytest.raises(FileNotFoundError):
        await counting.read_file('d/a')
    await counting.machine.aclose()

    assert (content, [entry.name for entry in entries]) == (b'content', ['a'])
    assert counting.count == len(counting.lengths) == 5


async def test_a_place_without_linux_is_told_so(tmp_path):
    class Elsewhere(Short):
        async def execute_streaming(self, command, **options):
            async for chunk in super().execute_streaming(
                command.replace('/proc/self/limits', '/nowhere'), **options
            ):
                yield chunk

    elsewhere = Elsewhere(tmp_path)
    async with ShellSession(sandbox=elsewhere) as session:
        answer = await session.run_command('true')
    await elsewhere.machine.aclose()

    assert answer.startswith('[Error: sessions need a Linux /proc in the sandbox')


async def test_a_command_whose_files_are_gone_is_no_reason_to_refuse_others(short):
    options = ShellOptions(unresolved='allow', kill_grace=0.2)
    async with ShellSession(options, sandbox=short) as session:
        await session.start_command('sleep 60')
        shutil.rmtree(session._processes._directory)
        lost = await session.check_command('j1')
        started = await session.start_command('echo up; exit 3')
        await session.tools[2].call({'command_id': 'j2', 'wait_seconds': 20})
        listing = await session.tools[2].call({})
        again = await session.check_command('j1')

    assert lost.startswith('[Error: the sandbox no longer has the files of this command')
    assert again == lost
    assert started.endswith('ID: j2')
    assert (
        listing.text
        == "j1: ended and lost: 'sleep 60'\nj2: finished, exit code 3: 'echo up; exit 3'"
    )


async def test_half_an_answer_is_a_sentence(tmp_path):
    class Full(Short):
        """Can start no more processes for `_as_show`."""

        async def execute_streaming(self, command, **options):
            async for chunk in super().execute_streaming(
                command.replace('_as_show() {', '_as_show() { return 0;'), **options
            ):
                yield chunk

    full = Full(tmp_path)
    async with ShellSession(ShellOptions(unresolved='allow'), sandbox=full) as session:
        answer = await session.run_command('echo hi')
    await full.machine.aclose()

    assert answer.startswith('[Error: the sandbox gave half an answer')


class Prefixed(PosixShellSandbox):
    """Puts `cd … && <prefix>` in front of a command, as the text of `build_shell_env_prefix` has it."""

    def __init__(self, cwd, machine) -> None:
        self.cwd, self.machine = cwd, machine

    async def execute_streaming(self, command, **options):
        prefix = build_shell_env_prefix(options.pop('env', None))
        options.pop('cwd', None)
        async with contextlib.aclosing(
            self.machine.execute_streaming(f'cd {self.cwd} && {prefix}{command}', **options)
        ) as chunks:
            async for chunk in chunks:
                yield chunk


@pytest.mark.parametrize(
    'operation',
    [
        lambda place: place.remove_file('precious'),
        lambda place: place.write_file('stray', b'x'),
        lambda place: place.write_file('stray', b'x' * 200_000),
        lambda place: place.read_file('precious'),
        lambda place: place.list_files('.'),
        lambda place: place.execute_code('echo x > stray', 'sh'),
    ],
    ids=['remove', 'write', 'write much', 'read', 'list', 'code'],
)
async def test_nothing_happens_elsewhere_when_the_directory_of_the_place_is_missing(
    operation, tmp_path
):
    (tmp_path / 'precious').write_text('x')
    async with LocalSandbox(cwd=tmp_path) as machine:
        place = Prefixed(tmp_path / 'missing', machine)

        try:
            result = await operation(place)
        except OSError:
            result = None

    assert not isinstance(result, (bytes, list))
    assert [path.name for path in tmp_path.iterdir()] == ['precious']


class Recorded(Short):
    """Keeps the limits that it was given."""

    async def execute_streaming(self, command, **options):
        self.limits = [*getattr(self, 'limits', []), options.get('timeout')]
        async with contextlib.aclosing(super().execute_streaming(command, **options)) as chunks:
            async for chunk in chunks:
                yield chunk


@pytest.mark.parametrize('code', ['echo hi', f'# {"x" * 200_000}\nsleep 30'], ids=['short', 'long'])
async def test_the_limit_of_code_is_handed_on_and_told_as_it_was_given(code, tmp_path):
    place = Recorded(tmp_path)

    if code == 'echo hi':
        await place.execute_code(code, 'sh', timeout=1.5)
        assert place.limits == [1.5]
    else:
        with pytest.raises(SandboxTimeoutError, match=r'after 1\.5 seconds') as passed:
            await place.execute_code(code, 'sh', timeout=1.5)
        assert passed.value.seconds == 1.5
    await place.machine.aclose()


async def test_long_code_that_never_ran_is_not_left_behind(tmp_path):
    before = set(Path(tempfile.gettempdir()).iterdir())
    async with LocalSandbox(cwd=tmp_path) as machine:
        place = Prefixed(tmp_path, machine)
        stream = place.execute_code_streaming(f'# {"x" * 200_000}', 'no-such-program')

        chunks = [chunk async for chunk in stream]
        left = set(Path(tempfile.gettempdir()).iterdir()) - before

    assert chunks[-1].exit_code == 127
    assert not [path for path in left if path.is_file()]


class Strict(Short):
    """Runs commands in a shell whose options are not the usual ones."""

    def __init__(self, cwd, options) -> None:
        super().__init__(cwd)
        self.options = options

    async def execute_streaming(self, command, **options):
        inner = f'sh {self.options} -c {shlex.quote(command)}'
        async with contextlib.aclosing(self.machine.execute_streaming(inner, **options)) as chunks:
            async for chunk in chunks:
                yield chunk


@pytest.mark.parametrize('options', ['-e', '-f', '-u', '-ef'])
async def test_options_of_the_places_shell_change_nothing_for_sessions(options, tmp_path):
    place = Strict(tmp_path, options)
    async with ShellSession(ShellOptions(), sandbox=place) as session:
        assert await session.run_command('echo hi; false') == '[stdout]\nhi\n\n[exit code: 1]'
        assert 'timed out' in await session.run_command('sleep 86402', timeout_seconds=0.5)
        assert 'ID: j1' in await session.start_command('sleep 86402')
    assert not [
        process
        for process in psutil.process_iter(['cmdline'])
        if process.info['cmdline'] == ['sleep', '86402']
    ]
    await place.machine.aclose()


@pytest.mark.needs('bubblewrap')
async def test_commands_run_where_calls_share_no_files():
    class Apart(Short):
        async def execute_streaming(self, command, **options):
            options.pop('cwd', None)
            inner = f'bwrap --bind / / --dev /dev --proc /proc --tmpfs /tmp --die-with-parent sh -c {shlex.quote(command)}'
            async with contextlib.aclosing(
                self.machine.execute_streaming(inner, **options)
            ) as chunks:
                async for chunk in chunks:
                    yield chunk

    place = Apart('/')
    async with ShellSession(ShellOptions(), sandbox=place) as session:
        assert await session.run_command('echo hi; exit 3') == '[stdout]\nhi\n\n[exit code: 3]'
        assert 'do not share one file system' in await session.start_command('sleep 5')
        assert await session.run_command('echo again') == '[stdout]\nagain\n'
    await place.machine.aclose()
