"""A `cd` holds for the next calls, whatever the line looks like, and nothing else moves the session."""

import asyncio
import os
import shlex
import shutil
import threading
from pathlib import Path

import pytest

from anyshell import LocalSandbox, ShellOptions, ShellSession, WorkingDirectoryGone
from anyshell.cwd import last_directory

SHELLS = pytest.mark.parametrize('name', ['bash', 'sh'])

STAYS, MOVES = '', 'sub'
FORMS = [
    ('cd sub', MOVES),
    ('cd sub; true', MOVES),
    ('cd sub;', MOVES),
    ('cd sub && ls', MOVES),
    ('cd sub # comment', MOVES),
    ('# comment\ncd sub', MOVES),
    ('cd sub\n', MOVES),
    ('cd sub\n\n  \n', MOVES),
    ('cd sub; cat <<EOF\nbody\nEOF', MOVES),
    ('cd sub; cat <<EOF\nbody\nEOF\n', MOVES),
    ('cd sub; cat <<EOF\nthe end is missing', MOVES),
    ('cd sub; echo hi \\', MOVES),
    ('cd sub; exit 0', MOVES),
    ('cd sub; exit', MOVES),
    ('cd sub; true & wait', MOVES),
    ('cd sub; sleep 0 >/dev/null 2>&1 &', MOVES),
    ('{ cd sub; }', MOVES),
    ('f() { cd sub; }; f', MOVES),
    ('if true; then cd sub; fi', MOVES),
    ('eval "cd sub"', MOVES),
    ('set -e; cd sub', MOVES),
    ('set -u; cd sub', MOVES),
    ('set -x; cd sub', MOVES),
    ('set -f; cd sub', MOVES),
    ('set -C; cd sub', MOVES),
    ('set -eux; cd sub; exit 0', MOVES),
    ('set -- a b; cd sub', MOVES),
    ('IFS=/; cd sub', MOVES),
    ('PATH=; cd sub', MOVES),
    ('umask 777; cd sub', MOVES),
    ('cd sub; PWD=/', MOVES),
    ('cd sub; unset PWD', MOVES),
    ('cd sub; exec >/dev/null 2>&1', MOVES),
    ('cd sub; exec 3>f3 4>f4 5>f5 6>f6 7>f7 8>f8 9>f9', MOVES),
    ('cd sub; exec 1>&- 2>&-', MOVES),
    ('pwd() { echo /; }; cd sub', MOVES),
    ('printf() { echo /; }; cd sub', MOVES),
    ('alias pwd=false; cd sub', MOVES),
    ("trap 'echo bye' EXIT; cd sub", MOVES),
    ("cd sub; trap 'echo bye' EXIT", MOVES),
    ("cd sub; trap 'echo bye' 0", MOVES),
    ("trap 'cd sub' EXIT", MOVES),
    ("trap 'exit 0' EXIT; cd sub", MOVES),
    ("cd sub; trap -- 'echo bye' EXIT", MOVES),
    ("cd sub; trap 'echo a' EXIT; trap - EXIT", MOVES),
    ("cd sub; trap '' EXIT", MOVES),
    ("cd sub; trap 'echo x' INT TERM", MOVES),
    ('cd sub; trap', MOVES),
    ('cd sub; (cd ../other)', MOVES),
    ('cd sub; (cd ../other; exit 0)', MOVES),
    ('cd other; cd ../sub', MOVES),
    ('cd sub; { cd ../other; } | cat', MOVES),
    ('cd sub; x=$(cd ../other; pwd)', MOVES),
    ('cd sub; (cd ../other; sleep 0.05) >/dev/null 2>&1 &', MOVES),
    ('cd $(echo sub)', MOVES),
    ('cd ./sub/../sub', MOVES),
    ('(cd sub)', STAYS),
    ('cd sub | cat', STAYS),
    ('cd sub &', STAYS),
    ("sh -c 'cd sub'", STAYS),
    ('cd sub; false', STAYS),
    ('cd sub; exit 3', STAYS),
    ('cd sub; set -e; false', STAYS),
    ('cd sub; kill -9 $$', STAYS),
    ('cd sub; kill $$', STAYS),
    ("cd sub; trap 'exit 4' EXIT", STAYS),
    ('cd nowhere', STAYS),
    ('cd sub; exec true', STAYS),
    ('echo "unbalanced', STAYS),
    ('cd sub; if', STAYS),
    ('', STAYS),
    ("printf '/\\n\\0'; printf '/\\n\\0' >&2", STAYS),
]


@pytest.fixture
def base(tmp_path) -> str:
    """A directory with the directories `sub` and `other`."""
    for name in ('sub', 'other'):
        (tmp_path / name).mkdir()
    return str(tmp_path)


@SHELLS
@pytest.mark.parametrize(('line', 'where'), FORMS)
async def test_a_line_moves_the_session_or_not(line, where, name, shell, base) -> None:
    async with shell(cwd=base, persist_cwd=True, shell=name) as session:
        await session.run(line, timeout=20)

        assert session.cwd == os.path.join(base, where).rstrip('/')


@pytest.mark.parametrize(('line', 'where'), FORMS)
async def test_a_bash_that_the_environment_makes_posix_moves_the_session_too(
    line, where, shell, base, monkeypatch
) -> None:
    monkeypatch.setenv('POSIXLY_CORRECT', 'as it was')
    async with shell(cwd=base, persist_cwd=True, shell='bash') as session:
        await session.run(line, timeout=20)

        assert session.cwd == os.path.join(base, where).rstrip('/')
        seen = await session.run('echo "$POSIXLY_CORRECT"; [[ -o posix ]] && trap "echo bye" EXIT')
        assert seen.stdout == 'as it was\nbye\n'


@pytest.mark.parametrize(
    ('line', 'where'),
    [
        ('pushd sub', MOVES),
        ('cd sub; [[ -d . ]]', MOVES),
        ('cd sub; set -o pipefail', MOVES),
        ('cd sub; shopt -s extglob nullglob failglob', MOVES),
        ('cd sub; set -o posix', MOVES),
        ("cd sub; trap 'true' ERR DEBUG RETURN", MOVES),
        ('function f { cd sub; }; f', MOVES),
        ('builtin cd sub', MOVES),
        ('cd() { builtin cd sub; }; cd x', MOVES),
        ('exec {fd}>file; cd sub', MOVES),
        ('cd sub > >(cat)', MOVES),
        ('coproc sleep 0; cd sub', MOVES),
        ('cd sub; (cd ../other; exec bash -c true)', MOVES),
        ('exec -a name sleep 0', STAYS),
    ],
)
async def test_forms_of_bash_move_the_session_too(line, where, shell, base) -> None:
    async with shell(cwd=base, persist_cwd=True, shell='bash') as session:
        await session.run(line, timeout=20)

        assert session.cwd == os.path.join(base, where).rstrip('/')


@SHELLS
@pytest.mark.parametrize(
    ('line', 'stdout', 'stderr', 'code'),
    [
        ('echo hi \\', 'hi \\\n', '', 0),  # as `bash -c` and `dash -c` print it
        ('cat <<EOF\nbody\nEOF', 'body\n', '', 0),
        ("trap 'echo bye' EXIT; echo hi", 'hi\nbye\n', '', 0),
        ("trap 'echo bye' EXIT; exit 7", 'bye\n', '', 7),
        ("trap 'echo $?' EXIT; (exit 5)", '5\n', '', 5),
        ("trap 'echo one' EXIT; trap 'echo two' EXIT", 'two\n', '', 0),
        ("trap 'echo one' EXIT; trap - EXIT", '', '', 0),
        ("trap 'echo got' TERM; kill $$; echo on", 'got\non\n', '', 0),
        ('set -e; false; echo survived', '', '', 1),
        ('echo $#', '0\n', '', 0),
        ('echo "$0"', '{name}\n', '', 0),
        ('(exit 9)', '', '', 9),
        ('exit 300', '', '', 44),
    ],
)
async def test_following_the_directory_changes_nothing_else(
    line, stdout, stderr, code, name, shell, base
) -> None:
    async with shell(cwd=base, persist_cwd=True, shell=name) as session:
        result = await session.run(line, timeout=20)

        assert (result.stdout, result.stderr, result.exit_code) == (
            stdout.format(name=name),
            stderr,
            code,
        )


def _text(path: str) -> str:
    return Path(path).read_text()


@SHELLS
async def test_a_trace_shows_the_lines_own_commands_only(name, shell, base) -> None:
    async with shell(cwd=base, persist_cwd=True, shell=name) as session:
        result = await session.run('set -x; cd sub')

        assert result.stderr.lstrip('+') == ' cd sub\n'


@SHELLS
async def test_descriptors_that_a_line_opens_are_its_own(name, shell, base) -> None:
    async with shell(cwd=base, persist_cwd=True, shell=name) as session:
        await session.run('exec 3>f3 4>f4 5>f5 6>f6 7>f7 8>f8 9>f9; echo mine >&9; cd sub')

    found = {number: _text(f'{base}/f{number}') for number in range(3, 10)}
    assert found == {**dict.fromkeys(range(3, 9), ''), 9: 'mine\n'}


NAMES = [
    'a b',
    'it\'s "q" $HOME `id` $(id)',
    '日本 é',
    '-n',
    '-',
    'two\nlines',
    'ends in a newline\n',
    '\n',
    ' lead and trail ',
    '*?[a]',
    'back\\slash\\',
    '~',
    os.fsdecode(b'not utf-8 \xff'),
]


@SHELLS
@pytest.mark.parametrize('folder', NAMES)
async def test_any_name_is_followed_exactly(folder, name, shell, base) -> None:
    path = os.path.join(base, folder)
    os.mkdir(path)
    os.mkdir(os.path.join(path, 'inside'))
    os.symlink(path, os.path.join(base, 'way'))
    async with shell(cwd=base, persist_cwd=True, shell=name) as session:
        await session.run('cd -P way')
        listing = await session.run('ls')

        assert (session.cwd, listing.stdout) == (path, 'inside\n')


async def test_symbolic_links_stay_in_the_path_as_in_a_terminal(shell, base) -> None:
    os.symlink('sub', f'{base}/link')
    async with shell(cwd=base, persist_cwd=True) as session:
        await session.run('cd link')
        where = await session.run('pwd; pwd -P')

        assert session.cwd == f'{base}/link'
        assert where.stdout == f'{base}/link\n{os.path.realpath(base)}/sub\n'


async def test_without_persist_cwd_every_call_starts_in_the_same_directory(shell, base) -> None:
    async with shell(cwd=base) as session:
        await session.run('cd sub')

        assert (await session.run('pwd')).stdout == f'{base}\n'
        assert session.cwd == base


async def test_a_job_starts_where_the_session_is_and_does_not_move_it(shell, base, until) -> None:
    async with shell(cwd=base, persist_cwd=True) as session:
        await session.run('cd sub')
        await session.start_command('pwd >where; cd ../other; : >done')
        await until(lambda: os.path.exists(f'{base}/other/done'), 'the job to end')

        assert session.cwd == f'{base}/sub'
        assert _text(f'{base}/sub/where') == f'{base}/sub\n'


async def test_a_timeout_leaves_the_directory_as_it_was(shell, base) -> None:
    async with shell(cwd=base, persist_cwd=True, kill_grace=0.1) as session:
        await session.run('cd sub')
        await session.run('cd ../other; sleep 60', timeout=0.3)

        assert session.cwd == f'{base}/sub'


async def test_a_cancelled_call_leaves_the_directory_and_the_turn(shell, base) -> None:
    async with shell(cwd=base, persist_cwd=True) as session:
        running = asyncio.create_task(session.run('cd sub; sleep 60'))
        waiting = asyncio.create_task(session.run('cd other; sleep 60'))
        await asyncio.sleep(0.1)
        waiting.cancel()
        running.cancel()
        await asyncio.wait({running, waiting})

        assert (await session.run('pwd', timeout=20)).stdout == f'{base}\n'


async def test_a_call_that_is_taken_back_while_it_waits_for_its_turn_comes_back_at_once(
    shell, base
) -> None:
    async with shell(cwd=base, persist_cwd=True) as session:
        running = asyncio.create_task(session.run('cd sub; echo up >up; sleep 60'))
        cancelled = threading.Event()
        waiting = asyncio.create_task(
            session.tools[0].call({'command': f'touch {base}/ran'}, cancelled=cancelled)
        )
        await asyncio.sleep(0.1)
        assert not waiting.done()
        cancelled.set()
        reply = await asyncio.wait_for(waiting, 5)
        later = asyncio.create_task(session.run('pwd'))
        await asyncio.sleep(0.1)
        still_runs = not running.done() and not later.done()
        running.cancel()
        await asyncio.wait({running})

        assert (reply.text, reply.facts['cancelled']) == ('[Command cancelled]', True)
        assert still_runs
        assert (await later).stdout == f'{base}\n'
        assert not os.path.exists(f'{base}/ran')


GONE = "[Error: the working directory '{}' does not exist; nothing was run. {}]"


@pytest.mark.parametrize('tool', ['run_command', 'start_command'])
async def test_a_directory_that_has_gone_is_said_and_the_next_call_starts_in_the_first(
    tool, shell, base
) -> None:
    async with shell(cwd=base, persist_cwd=True) as session:
        await session.run('cd sub')
        os.rmdir(f'{base}/sub')
        refused = await getattr(session, tool)(f'touch {base}/ran')

        assert refused == GONE.format(f'{base}/sub', f"The next command starts in '{base}'")
        assert not os.path.exists(f'{base}/ran')
        assert (await session.run('pwd')).stdout == f'{base}\n'


@pytest.mark.parametrize('persist', [True, False])
async def test_a_first_directory_that_has_gone_is_said_until_it_is_back(
    persist, shell, base
) -> None:
    async with shell(cwd=f'{base}/sub', persist_cwd=persist) as session:
        assert await session.run_command('echo hi') == '[stdout]\nhi\n'
        os.rmdir(f'{base}/sub')
        for line in ('true; touch ../ran', 'false || touch ../ran', 'true & touch ../ran'):
            assert await session.run_command(line) == GONE.format(
                f'{base}/sub', 'That has to be put right first, outside this tool'
            )
        with pytest.raises(WorkingDirectoryGone):
            await session.run('true')
        os.mkdir(f'{base}/sub')

        assert not os.path.exists(f'{base}/ran')
        assert await session.run_command('echo hi') == '[stdout]\nhi\n'


async def test_something_else_in_the_place_of_the_directory_is_no_directory(shell, base) -> None:
    async with shell(cwd=f'{base}/sub') as session:
        os.rmdir(f'{base}/sub')
        os.mkfifo(f'{base}/sub')

        assert (await session.run_command('true')).startswith('[Error: the working directory')


async def test_parallel_calls_are_served_in_call_order(shell, base) -> None:
    async with shell(cwd=base, persist_cwd=True) as session:
        first = asyncio.create_task(session.run('sleep 0.3; cd sub'))
        later = [
            asyncio.create_task(session.run(f'pwd; echo {n} >>{base}/order')) for n in range(8)
        ]
        await first
        results = await asyncio.gather(*later)

        assert {result.stdout for result in results} == {f'{base}/sub\n'}
        assert _text(f'{base}/order') == ''.join(f'{n}\n' for n in range(8))


def test_parallel_calls_of_many_threads_and_loops_take_turns(shell, base) -> None:
    session = shell(cwd=base, persist_cwd=True)
    line = 'n=$(cat n); sleep 0.01; echo $((n + 1)) >n'
    Path(base, 'n').write_text('0\n')

    def work() -> None:
        for _ in range(5):
            session.run_sync(line, timeout=60)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)

    assert _text(f'{base}/n') == '20\n'


async def test_a_session_over_a_sandbox_starts_in_its_own_directory_inside_it(base) -> None:
    async with LocalSandbox(cwd=base) as sandbox:
        async with ShellSession(ShellOptions(cwd='sub'), sandbox=sandbox) as session:
            assert session.cwd == f'{base}/sub'
            assert (await session.run('pwd')).stdout == f'{base}/sub\n'
        async with ShellSession(sandbox=sandbox) as session:
            assert (await session.run('pwd')).stdout == f'{base}\n'


async def test_a_relative_directory_is_relative_to_the_process_at_construction(
    shell, base, monkeypatch
) -> None:
    monkeypatch.chdir(base)
    session = shell(cwd='sub')
    monkeypatch.chdir('/')

    assert session.cwd == f'{base}/sub'
    assert (await session.run('pwd')).stdout == f'{base}/sub\n'


@pytest.mark.parametrize(
    ('record', 'directory'),
    [
        (b'', None),
        (b'/a', None),
        (b'/a\n\0', '/a'),
        (b'/a\n\0/b\n\0', '/b'),
        (b'/a\n\0/cut off', '/a'),
        (b'/ends\n\n\0', '/ends\n'),
        (b'relative\n\0', None),
        (b'\0', None),
        (b'\0\0', None),
        (b'/\xff\n\0', '/\udcff'),
    ],
)
def test_the_last_complete_entry_of_a_record_counts(record, directory) -> None:
    assert last_directory(record) == directory


@pytest.mark.parametrize('kind', ['a link', 'a pipe', 'a directory', 'no directory', 'noise'])
async def test_a_record_that_a_command_tampers_with_moves_nothing(kind, shell, base) -> None:
    # A line can read our functions, so it can find the record.
    find = "f=$(declare -f __anyshell_cwd | grep -o '/[^ ;]*[.]cwd'); trap - EXIT; builtin trap - EXIT; rm -f $f; "
    tamper = {
        'a link': f"printf '{base}/sub\\n\\0' >x; ln -s $PWD/x $f",
        'a pipe': 'mkfifo $f',
        'a directory': 'mkdir $f',
        'no directory': "printf '/no/such/directory\\n\\0' >$f",
        'noise': 'head -c 100000 /dev/urandom >$f',
    }[kind]
    async with shell(cwd=base, persist_cwd=True, shell='bash') as session:
        result = await session.run(find + tamper, timeout=20)

        assert (result.exit_code, result.timed_out, session.cwd) == (0, None, base)
        assert (await session.run('cd sub')).exit_code == 0


async def test_a_very_deep_directory_is_followed(shell, base) -> None:
    folder = '/'.join(['d' * 200] * 15)
    os.makedirs(f'{base}/{folder}')
    async with shell(cwd=base, persist_cwd=True) as session:
        await session.run(f'cd {shlex.quote(folder)}')

        assert session.cwd == f'{base}/{folder}'
    shutil.rmtree(f'{base}/{"d" * 200}')


async def test_records_do_not_pile_up() -> None:
    """Each call leaves one file in the session's private directory; it goes when it was read."""
    async with ShellSession(ShellOptions(persist_cwd=True)) as session:
        for line in ('cd /', 'cd /usr; false', 'true'):
            await session.run(line)
        directory = await session._processes.directory()

        assert list(Path(directory).iterdir()) == []


@pytest.mark.parametrize('name', ['bash', 'sh'])
async def test_lines_are_counted_from_the_first_one_of_the_command(name) -> None:
    """What comes before the line is not the model's: a message must name the model's own line."""
    texts = []
    for persist in (False, True):
        options = ShellOptions(persist_cwd=persist, shell=name)
        async with ShellSession(options) as session:
            texts.append(await session.run('true\n\necho $LINENO\nno-such-program'))

    plain, lasting = texts
    assert (lasting.stdout, lasting.stderr) == (plain.stdout, plain.stderr)
