"""Command lines that work on their own shell, on its descriptors and on its neighbours, and output of any shape."""

import asyncio
import shlex
import sys

import pytest


@pytest.fixture(params=['bash', 'sh'])
def shell(request) -> str:
    return request.param


@pytest.mark.parametrize(
    ('line', 'stdout', 'stderr', 'code'),
    [
        # the shell replaces itself, or its descriptors
        ('exec echo replaced', 'replaced\n', '', 0),
        ('exec >&2; echo there', '', 'there\n', 0),
        ('exec 1>&- 2>&-; echo nowhere; exit 6', '', '', 6),
        ('exec 3>&1 1>/dev/null; echo a; echo b >&3', 'b\n', '', 0),
        ('exec 0</dev/null; cat; echo read', 'read\n', '', 0),
        ('exec no-such-program-of-ours 2>/dev/null; echo after', '', '', 127),
        # the output by its other names
        ('echo out >/dev/stdout; echo err >/dev/stderr', 'out\n', 'err\n', 0),
        ('echo out >/proc/self/fd/1; echo err >/proc/$$/fd/2', 'out\n', 'err\n', 0),
        ('echo a; echo b >>/dev/stdout; echo c', 'a\nb\nc\n', '', 0),
        ('echo x | tee /dev/stderr', 'x\n', 'x\n', 0),
        # limits and masks are its own
        ('ulimit -n 20; ulimit -n', '20\n', '', 0),
        ('ulimit -f 0; trap "" XFSZ; echo long >file || echo refused', 'refused\n', None, 0),
        ('umask 077; >made; ls -l made | cut -c1-10', '-rw-------\n', '', 0),
        # waiting and jobs
        ('(exit 3) & wait $!', '', '', 3),
        ('sleep 0 & sleep 0 & wait; echo both', 'both\n', '', 0),
        ('set -m; (exit 4) & wait $!', '', None, 4),
        # signals to itself and to its group
        ('kill -TERM $$', '', '', 143),
        ('kill -KILL $$; echo never', '', '', 137),
        ("trap 'echo caught; exit 9' USR1; kill -USR1 $$; echo never", 'caught\n', '', 9),
        ("trap '' TERM; kill -TERM 0; echo lives", 'lives\n', '', 0),
        ('kill -KILL 0; echo never', '', '', 137),
        ('kill -PIPE $$', '', '', 141),
        ('sh -c "kill -SEGV \\$\\$"; exit $?', '', None, 139),
        # the parent is not theirs to end: this machine's init, or the host
        ('[ "$PPID" -gt 0 ] && kill -0 $PPID && echo there', 'there\n', '', 0),
        # traps and options stay inside
        ('set -e; false; echo never', '', '', 1),
        ('set -u; echo "$no_such_variable_of_ours"; echo never', '', None, None),
        ("trap 'echo bye' EXIT; echo hi", 'hi\nbye\n', '', 0),
        ("trap 'exit 5' EXIT; true", '', '', 5),
        ('set -n; echo never', '', '', 0),
        ('alias ls=no; unset -f cd; cd / && pwd', '/\n', '', 0),
        ('readonly PATH; readonly IFS; echo fine', 'fine\n', '', 0),
        ('PATH=/nowhere; command -v nothing; echo $?', '127\n', '', None),
        # it asks for its arguments
        ('echo "$#"', '0\n', '', 0),
        ('set -- a b; shift; echo "$1$#"', 'b1\n', '', 0),
        # many directories down
        (
            'for i in 1 2 3 4 5 6 7 8 9; do mkdir dddddddddd && cd dddddddddd; done; pwd | tr -cd d | wc -c',
            None,
            '',
            0,
        ),
    ],
)
async def test_a_line_may_do_what_a_shell_lets_it(
    session, shell, line, stdout, stderr, code
) -> None:
    async with session(shell=shell) as one:
        result = await one.run(line)

        assert result.timed_out is None
        if stdout is not None and not line.startswith('PATH'):
            assert result.stdout == stdout
        if stderr is not None:
            assert result.stderr == stderr
        if code is not None:
            assert result.exit_code == code
        # and the next one has a shell of its own
        assert (await one.run('echo "$PWD"; umask; ulimit -n >/dev/null')).stderr == ''


async def test_a_coprocess_is_a_background_child(session, sleep) -> None:
    async with session(shell='bash') as one:
        result = await one.run(
            f'coproc {sleep.command}; coproc C {{ cat; }} 2>/dev/null; echo asked >&"${{C[1]}}"; read -r answer <&"${{C[0]}}"; echo "$answer"'
        )

        assert (result.stdout, result.exit_code) == ('asked\n', 0)
    assert sleep.ends()


async def test_a_process_substitution_says_its_last_words(session) -> None:
    async with session(shell='bash') as one:
        result = await one.run('exec > >(tee copy); echo kept; diff <(echo a) <(echo a)')

        assert (result.stdout, result.exit_code) == ('kept\n', 0)


async def test_a_fork_in_the_middle_of_a_command_writes_once(session) -> None:
    code = 'import os; os.write(1, b"before\\n"); os.fork() or os._exit(0); os.wait(); os.write(1, b"after\\n")'
    async with session() as one:
        result = await one.run(f'{sys.executable} -c {shlex.quote(code)}')

        assert result.stdout == 'before\nafter\n'


async def test_what_a_child_says_after_the_end_is_in_no_later_result(session) -> None:
    async with session() as one:
        await one.run(
            '(until [ -e go ]; do sleep 0.01; done; echo late; echo late >&2; >said) & echo early'
        )
        result = await one.run('>go; until [ -e said ]; do sleep 0.01; done; echo mine')

        assert (result.stdout, result.stderr) == ('mine\n', '')


@pytest.mark.parametrize('size', [65_535, 65_536, 65_537, 262_144, 1_048_577, 5_000_000])
async def test_one_line_of_any_length_is_exact(session, size) -> None:
    async with session(max_output_chars=6_000_000) as one:
        result = await one.run(f'head -c {size} /dev/zero | tr "\\0" x; exit 3')

        assert result.stdout == 'x' * size
        assert result.exit_code == 3


async def test_every_byte_comes_out_as_text(session) -> None:
    code = 'import sys; sys.stdout.buffer.write(bytes(range(256)) * 300)'
    async with session(max_output_chars=200_000) as one:
        result = await one.run(f'{sys.executable} -c {shlex.quote(code)}')

        assert result.stdout == (bytes(range(256)) * 300).decode('utf-8', 'replace')


async def test_a_command_that_ends_its_own_group_leaves_nothing(session, sleep) -> None:
    async with session() as one:
        result = await one.run(f'setsid {sleep.command} & {sleep.command} & sleep 0.2; kill -9 0')

        assert result.exit_code == 137
    assert sleep.ends()


async def test_a_command_that_stops_itself_is_ended_in_time(session, sleep) -> None:
    async with session(kill_grace=0.2) as one:
        result = await one.run(f'{sleep.command} & kill -STOP $$; echo never', timeout=2)

        assert (result.stdout, result.timed_out) == ('', 2.0)
        assert sleep.ends()


async def test_a_command_takes_its_mark_off_in_vain_while_its_group_is_known(
    session, sleep
) -> None:
    # Whoever works against us as the same user can; a line that raises all limits must not by accident.
    async with session(kill_grace=0.2) as one:
        result = await one.run(f'ulimit -S -x unlimited; {sleep.command}', timeout=2)

        assert result.timed_out == 2.0
        assert sleep.ends()


async def test_a_session_inside_a_command_works(session) -> None:
    code = f"""
import sys
sys.path[:0] = {sys.path!r}
from anyshell import ShellOptions, ShellSession
with ShellSession(ShellOptions(persist_cwd=True)) as inner:
    print(inner.run_sync('cd / && echo "in $PWD"').stdout, inner.cwd)
"""
    async with session() as outer:
        result = await outer.run(f'{sys.executable} -c {shlex.quote(code)}')

        assert (result.stdout, result.stderr) == ('in /\n /\n', '')


async def test_a_directory_of_four_thousand_characters_is_worked_in(session) -> None:
    async with session(persist_cwd=True) as one:
        for _ in range(12):
            await one.run('d=$(printf %0250d 0); mkdir "$d" && cd "$d"')
        deep = await one.run('pwd | wc -c; echo x >file; cat file')

        assert deep.stdout.split()[1:] == ['x']
        assert int(deep.stdout.split()[0]) > 3000
        task = asyncio.create_task(one.run('sleep 1000'))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
