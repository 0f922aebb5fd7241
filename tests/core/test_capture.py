"""Output and exit codes are exact, however much there is and however its bytes are cut into pieces."""

import asyncio
import os
import sys
from pathlib import Path

import pytest

from anyshell import ExecutionResult, LocalSandbox, SandboxTimeoutError, StreamChunk
from anyshell.sandbox.capture import Decoder, Tail, decode_tail


def test_a_character_that_is_cut_waits_for_its_rest() -> None:
    decoder = Decoder()
    data = 'é€😀'.encode()
    pieces = [decoder.decode('stdout', data[n : n + 1]) for n in range(len(data))]

    assert pieces == ['', 'é', '', '', '€', '', '', '', '😀']
    assert decoder.decode('stdout', b'', final=True) == ''


def test_the_streams_are_decoded_apart() -> None:
    decoder = Decoder()

    assert decoder.decode('stdout', b'\xc3') == ''
    assert decoder.decode('stderr', b'\xa9') == '\ufffd'
    assert decoder.decode('stdout', b'\xa9') == 'é'


def test_a_character_that_stays_cut_becomes_a_replacement() -> None:
    decoder = Decoder()

    assert decoder.decode('stdout', b'a\xe2\x82') == 'a'
    assert decoder.decode('stdout', b'', final=True) == '\ufffd'


@pytest.mark.parametrize(
    ('data', 'cut', 'text'),
    [
        (b'abc', True, 'abc'),
        ('€'.encode()[1:] + b'abc', True, 'abc'),
        ('😀'.encode()[1:] + b'abc', True, 'abc'),
        ('€'.encode()[1:] + b'abc', False, '\ufffd\ufffdabc'),
        (b'\x80\x80\x80\x80abc', True, '\ufffdabc'),
        (b'\x80', True, ''),
        (b'', True, ''),
        (b'ab\xff', True, 'ab\ufffd'),
    ],
)
def test_a_tail_begins_with_a_whole_character(data, cut, text) -> None:
    assert decode_tail(data, cut=cut) == text


def test_a_tail_keeps_the_last_bytes() -> None:
    tail = Tail(4)
    for piece in (b'ab', b'cd', b'', b'efg', b'hijklmnop', b'q'):
        tail.add(piece)

    assert (tail.text(), tail.total, tail.cut) == ('nopq', 17, True)


def test_a_tail_that_is_not_full_is_not_cut() -> None:
    tail = Tail(4)
    tail.add(b'abcd')

    assert (tail.text(), tail.total, tail.cut) == ('abcd', 4, False)


# -- what commands write

SHELLS = pytest.mark.parametrize('name', ['bash', 'sh'])


@SHELLS
@pytest.mark.parametrize(
    ('line', 'code'),
    [
        ('true', 0),
        ('false', 1),
        ('exit 7', 7),
        ('(exit 255)', 255),
        ('exit 256', 0),
        ('false; true', 0),
        ('no-such-program-at-all', 127),
        ('./plain', 126),
        ('kill -9 $$', 137),
        ('kill -TERM $$', 143),
        ("sh -c 'kill -KILL $$'", 137),
        ('set -e; false; exit 0', 1),
        ('', 0),
        ('# nothing', 0),
    ],
)
async def test_exit_codes_are_the_shells(line, code, name, shell, tmp_path) -> None:
    (tmp_path / 'plain').write_text('x')
    async with shell(cwd=tmp_path, shell=name) as session:
        result = await session.run(line, timeout=20)

        assert (result.exit_code, result.timed_out, result.stdout) == (code, None, '')


@SHELLS
@pytest.mark.parametrize(
    ('line', 'stdout'),
    [
        ('printf abc', 'abc'),
        ("printf 'a\\r\\nb'", 'a\r\nb'),
        ("printf 'a\\000b'", 'a\0b'),
        ("printf 'caf\\303\\251'", 'café'),
        ("printf 'x\\377y'", 'x\ufffdy'),
        ("printf 'x\\342\\202'", 'x\ufffd'),
        ("printf '\\357\\273\\277bom'", '\ufeffbom'),
        ("printf '\\355\\240\\275'", '\ufffd' * 3),
        ('printf "%s" "日本 é 😀"', '日本 é 😀'),
        ('echo a; (echo b); { echo c; }', 'a\nb\nc\n'),
        ('echo a |\ncat', 'a\n'),
        ('echo one\necho two\n', 'one\ntwo\n'),
    ],
)
async def test_output_is_exact(line, stdout, name, shell) -> None:
    async with shell(shell=name) as session:
        result = await session.run(line, timeout=20)

        assert (result.stdout, result.stderr) == (stdout, '')
        assert (result.exit_code, result.truncated) == (0, False)


async def test_each_stream_has_its_own_text_in_order(shell) -> None:
    line = 'i=0; while [ $i -lt 1500 ]; do i=$((i+1)); echo o$i; echo e$i >&2; done'
    async with shell() as session:
        result = await session.run(line)

        assert result.stdout == ''.join(f'o{i}\n' for i in range(1, 1501))
        assert result.stderr == ''.join(f'e{i}\n' for i in range(1, 1501))


@pytest.mark.parametrize('count', [100_000, 400_000])
async def test_multibyte_output_survives_every_border(count, shell, python) -> None:
    # One odd byte first, so that no power of two falls between two characters.
    line = python(f"import sys; sys.stdout.buffer.write(b'x' + '€'.encode() * {count})")
    async with shell(max_output_chars=1_000_000) as session:
        pieces: list[str] = []
        result = await session.run(line, on_output=lambda chunk: pieces.append(chunk.data))

        assert result.stdout == 'x' + '€' * count
        assert ''.join(pieces) == result.stdout


@pytest.mark.parametrize('limit', [1, 3, 1000, 4001])
async def test_cut_output_begins_with_a_whole_character(limit, shell, python) -> None:
    async with shell(max_output_chars=limit) as session:
        result = await session.run(
            python("import sys; sys.stdout.buffer.write('a€é😀'.encode() * 9000)")
        )

        assert result.stdout == ('a€é😀' * 9000)[-limit:]
        assert result.truncated


async def test_on_output_gets_every_piece_to_the_last(shell) -> None:
    line = "echo out; echo err >&2; printf 'half \\342\\202'"
    chunks: list[StreamChunk] = []
    async with shell() as session:
        result = await session.run(line, on_output=chunks.append)

    texts = {
        name: ''.join(chunk.data for chunk in chunks if chunk.stream_type == name)
        for name in ('stdout', 'stderr')
    }
    assert texts == {'stdout': 'out\nhalf \ufffd', 'stderr': 'err\n'}
    assert result.stdout == texts['stdout']


async def test_on_output_is_called_while_the_command_runs(shell, tmp_path) -> None:
    def proceed(chunk: StreamChunk) -> None:
        (tmp_path / chunk.data.strip()).touch()

    async with shell(cwd=tmp_path) as session:
        line = 'echo one; until [ -e one ]; do sleep 0.01; done; echo two; until [ -e two ]; do sleep 0.01; done'

        assert (await session.run(line, on_output=proceed)).stdout == 'one\ntwo\n'


async def test_on_output_may_be_a_coroutine_in_the_callers_own_task(shell) -> None:
    tasks = []

    async def take(_chunk: StreamChunk) -> None:
        await asyncio.sleep(0)
        tasks.append(asyncio.current_task())

    async with shell() as session:
        await session.run('echo hi', on_output=take)

    assert tasks == [asyncio.current_task()]


async def test_a_slow_listener_gets_each_byte_once_and_in_order(shell) -> None:
    numbers: list[str] = []

    async def take(chunk: StreamChunk) -> None:
        numbers.append(chunk.data)
        await asyncio.sleep(0.01)

    async with shell() as session:
        result = await session.run('seq 200000', on_output=take, timeout=55)

    assert result.exit_code == 0
    assert ''.join(numbers) == ''.join(f'{n}\n' for n in range(1, 200_001))


async def test_a_listener_that_the_log_cap_overtakes_gets_nothing_twice(shell) -> None:
    seen: list[str] = []

    async def take(chunk: StreamChunk) -> None:
        seen.append(chunk.data)
        await asyncio.sleep(0.05)

    async with shell(max_log_bytes=400_000) as session:
        await session.run('seq 1000000', on_output=take, timeout=55)

    # What was dropped leaves a torn line where the rest goes on, and a line that says so.
    lines = [line for piece in seen for line in piece.split('\n')[1:-1] if line]
    numbers = [int(line) for line in lines if line.isdecimal()]
    assert all('bytes of output are lost' in line for line in lines if not line.isdecimal())
    assert numbers == sorted(set(numbers))
    assert numbers[-1] == 1_000_000


async def test_a_slow_listener_does_not_put_off_the_limit(shell) -> None:
    async def take(_chunk: StreamChunk) -> None:
        await asyncio.sleep(0.1)

    async with shell(max_log_bytes=20_000_000) as session:
        result = await asyncio.wait_for(session.run('yes', on_output=take, timeout=2), 30)

        assert result.timed_out == 2.0


@pytest.mark.parametrize('size', [200_000, 1_000_000])
@SHELLS
async def test_a_line_of_any_length_comes_through(size, name, shell) -> None:
    async with shell(max_output_chars=2_000_000, shell=name) as session:
        result = await session.run(f"head -c {size} /dev/zero | tr '\\0' a; echo; echo END")

        assert result.stdout == 'a' * size + '\nEND\n'


@pytest.mark.parametrize('size', [131_071, 131_072, 200_000, 1_000_000])
@SHELLS
async def test_a_command_of_any_length_runs(size, name, shell, tmp_path) -> None:
    head, tail = "cat >big <<'E'\n", '\nE\ncat; echo "rest $#"'
    body = ('0123456789' * 9 + 'é€\n') * (size // 90)
    body = body[: size - len((head + tail).encode())]
    async with shell(cwd=tmp_path, shell=name) as session:
        result = await session.run(head + body + tail)

        assert (result.stdout, result.stderr, result.exit_code) == ('rest 0\n', '', 0)
        assert (tmp_path / 'big').read_text() == body + '\n'


@SHELLS
async def test_a_long_command_needs_no_path(name, shell) -> None:
    async with shell(env={'PATH': '/nonexistent'}, shell=name) as session:
        assert (await session.run(f': {"a" * 200_000}\necho ran')).stdout == 'ran\n'


@SHELLS
async def test_a_long_command_keeps_its_last_newlines_and_backslashes(name, shell) -> None:
    async with shell(shell=name) as session:
        result = await session.run(f'# {"a" * 200_000}\ncat <<E\nbody\n\n\nE\necho x \\')

        assert result.stdout == 'body\n\n\nx \\\n'


@SHELLS
@pytest.mark.parametrize(
    'line', ['cat', 'read -r x; echo "got $x $?"; cat', f': {"a" * 200_000}\ncat']
)
async def test_standard_input_is_at_its_end(line, name, shell) -> None:
    async with shell(shell=name) as session:
        result = await session.run(f'{line}; echo end', timeout=20)

        assert result.timed_out is None
        assert result.stdout in {'end\n', 'got  1\nend\n'}


async def test_there_is_no_controlling_terminal(shell) -> None:
    async with shell() as session:
        result = await session.run('(: </dev/tty) 2>/dev/null || echo none; ps -o tty= -p $$')

        assert result.stdout.split() == ['none', '?']


async def test_a_command_has_a_session_of_its_own(shell) -> None:
    async with shell() as session:
        result = await session.run('ps -o sid=,pgid= -p $$; echo $$')
        sid, pgid, pid = map(int, result.stdout.split())

        assert sid == pgid == pid


async def test_commands_have_default_signals_and_only_three_descriptors(shell, python) -> None:
    keep = os.dup2(0, 77, inheritable=True)
    line = python("import os; print(sorted(os.listdir('/proc/self/fd'), key=int)[:-1])")
    try:
        async with shell() as session:
            status = await session.run("grep -E 'Sig(Ign|Blk)' /proc/self/status")
            descriptors = await session.run(line)
    finally:
        os.close(keep)

    masks = [int(row.split()[1], 16) for row in status.stdout.splitlines()]
    assert [mask & (1 << 12) for mask in masks] == [0, 0]  # SIGPIPE
    assert descriptors.stdout == "['0', '1', '2']\n"


async def test_parallel_commands_keep_their_output_and_codes_apart(shell) -> None:
    async with shell() as session:
        results = await asyncio.gather(
            *(session.run(f'echo a{n}; sleep 0.05; echo b{n} >&2; exit {n}') for n in range(30))
        )

    assert [(r.stdout, r.stderr, r.exit_code) for r in results] == [
        (f'a{n}\n', f'b{n}\n', n) for n in range(30)
    ]


# -- bounds


async def test_a_hundred_megabytes_cost_little_memory_and_keep_their_tail(driver) -> None:
    program = driver("""
        import resource
        def peak():
            return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        shell = session()
        shell.run_sync('head -c 2000000 /dev/zero')
        before = peak()
        result = shell.run_sync('yes 0123456789abcdef | head -c 100000000; echo; echo LAST; exit 3', timeout=60)
        say(result.exit_code, result.truncated, repr(result.stdout[-6:]), len(result.stdout))
        say(peak() - before)
        shell.close()
    """)
    said, growth = program.output().splitlines()

    assert said == r"3 True '\nLAST\n' 50000"
    assert int(growth) < 30


@pytest.mark.parametrize('cap', [1_000, 100_000, 3_000_000])
async def test_the_log_never_takes_more_than_its_cap(cap, shell, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr('tempfile.tempdir', str(tmp_path))
    most = 0
    async with shell(max_log_bytes=cap, max_output_chars=500) as session:
        await session.start_command('yes 0123456789abcdef; :')
        for _ in range(100):
            most = max(most, _bytes_in(tmp_path))
            await asyncio.sleep(0.005)
        text = await session.stop_command('j1')

    assert 0 < most <= cap
    assert text.endswith(('0123456789abcdef\n' * 30)[-500:]) or cap < 500


def _bytes_in(folder: Path) -> int:
    total = 0
    for path in folder.rglob('*'):
        try:
            total += path.stat().st_size if path.is_file() else 0
        except OSError:
            continue
    return total


async def test_the_tail_of_a_capped_log_is_exact(shell) -> None:
    async with shell(max_log_bytes=50_000, max_output_chars=20_000) as session:
        await session.start_command('seq 1000000')
        while '[status: running]' in (text := await session.check_command('j1')):
            await asyncio.sleep(0.01)

        expected = '[stdout]\n' + ''.join(f'{n}\n' for n in range(990_000, 1_000_001))
        assert text.endswith(expected[-20_000:])
        assert text.startswith(
            '[status: finished]\n[exit code: 0]\n[... output truncated, showing last 20000 chars]\n'
        )


async def test_a_job_that_nobody_looks_at_stays_within_its_cap(
    shell, tmp_path, monkeypatch, until
) -> None:
    (tmp_path / 'tmp').mkdir()
    monkeypatch.setattr('tempfile.tempdir', str(tmp_path / 'tmp'))
    async with shell(max_log_bytes=1_000_000, cwd=tmp_path) as session:
        await session.start_command('head -c 60000000 /dev/zero; touch done')
        await until((tmp_path / 'done').exists, '60 MB')

        assert _bytes_in(tmp_path / 'tmp') <= 1_000_000


async def test_any_size_of_output_may_be_asked_for(shell) -> None:
    async with shell(max_output_chars=sys.maxsize) as session:
        result = await session.run('head -c 1000000 /dev/zero')
        text = await session.run_command('seq 100000')

        assert (len(result.stdout), result.truncated) == (1_000_000, False)
        assert text == '[stdout]\n' + ''.join(f'{n}\n' for n in range(1, 100_001))


# -- a sandbox used directly


async def _all(stream) -> tuple[list[StreamChunk], ExecutionResult]:
    *chunks, result = [item async for item in stream]
    return chunks, result


async def test_a_sandbox_streams_every_chunk_then_the_result() -> None:
    async with LocalSandbox() as sandbox:
        chunks, result = await _all(sandbox.execute_streaming('echo a; echo b >&2; exit 4'))

    assert sorted((chunk.stream_type, chunk.data) for chunk in chunks) == [
        ('stderr', 'b\n'),
        ('stdout', 'a\n'),
    ]
    assert result == ExecutionResult(4, 'a\n', 'b\n')


async def test_a_sandboxs_result_holds_the_tail_and_its_chunks_all() -> None:
    async with LocalSandbox() as sandbox:
        sandbox.max_result_bytes = 1000
        chunks, result = await _all(sandbox.execute_streaming('seq 20000'))

    everything = ''.join(f'{n}\n' for n in range(1, 20_001))
    assert ''.join(chunk.data for chunk in chunks) == everything
    assert (result.stdout, result.truncated) == (everything[-1000:], True)


async def test_a_sandboxs_limit_raises_with_the_partial_output(sleeper) -> None:
    async with LocalSandbox() as sandbox:
        with pytest.raises(
            SandboxTimeoutError, match=r'^Execution timed out after 0\.5 seconds$'
        ) as caught:
            await sandbox.execute(f'echo part; echo err >&2; {sleeper.command}', timeout=0.5)

        assert (caught.value.stdout, caught.value.stderr) == ('part\n', 'err\n')
        assert isinstance(caught.value, TimeoutError)
        assert sleeper.pids == []
