"""Commands and files in a container and over SSH, side by side with the sandboxes of Strands, in one run.

    python benchmarks/sandboxes.py [docker] [ssh]

Needs what the tests of the sandboxes need. Strands is measured when `strands-agents` is installed here, or in the
environment whose Python ANYSHELL_BENCH_STRANDS names.
"""

import asyncio
import importlib.util
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent
SIZE = 100_000_000
REPEATS = 30
TEMPORARY = '/tmp'  # noqa: S108 - on the far side


def peak() -> int:
    """The most memory that this process has had, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


async def small(sandbox) -> float:
    """The median time of a small command, in milliseconds."""
    await sandbox.execute('true')
    times = []
    for _ in range(REPEATS):
        begin = time.perf_counter()
        result = await sandbox.execute('echo hi')
        times.append(time.perf_counter() - begin)
        assert result.stdout == 'hi\n'
    return statistics.median(times) * 1000


async def in_session(sandbox) -> float:
    """The median time of a small command of a session, in milliseconds."""
    from anyshell import ShellSession  # noqa: PLC0415 - the other process has no anyshell

    async with ShellSession(sandbox=sandbox) as session:
        await session.run('true')
        times = []
        for _ in range(REPEATS):
            begin = time.perf_counter()
            await session.run('echo hi')
            times.append(time.perf_counter() - begin)
    return statistics.median(times) * 1000


async def files(sandbox, path: str) -> dict:
    """The speed of a large file, in MB/s, and the memory that it took on top of its own, in MB."""
    content = os.urandom(SIZE)
    base = peak()
    begin = time.perf_counter()
    await sandbox.write_file(path, content)
    written = time.perf_counter() - begin
    writing = peak() - base
    begin = time.perf_counter()
    found = await sandbox.read_file(path)
    read = time.perf_counter() - begin
    assert found == content
    # Reading makes one more copy of the file: the one that is returned.
    reading = peak() - base - SIZE
    await sandbox.remove_file(path)
    return {
        'write MB/s': SIZE / written / 1e6,
        'read MB/s': SIZE / read / 1e6,
        'write, memory beside the file, MB': writing / 1e6,
        'read, memory beside the file, MB': reading / 1e6,
    }


async def ours(place: dict) -> dict:
    from anyshell import DockerSandbox, SshSandbox  # noqa: PLC0415 - as above

    sandbox = (
        DockerSandbox(place['container']) if 'container' in place else SshSandbox(**place['ssh'])
    )
    async with sandbox:
        begin = time.perf_counter()
        await sandbox.execute('true')
        first = (time.perf_counter() - begin) * 1000
        return {
            'first command, ms': first,
            'small command, ms': await small(sandbox),
            'small command of a session, ms': await in_session(sandbox),
            **await files(sandbox, f'{TEMPORARY}/anyshell-bench'),
        }


async def theirs(place: dict) -> dict:
    if 'container' in place:
        from strands.sandbox.docker import DockerSandbox  # noqa: PLC0415 - this process has no strands

        sandbox = DockerSandbox(place['container'])
    else:
        from strands.sandbox.ssh import SshSandbox  # noqa: PLC0415 - as above

        options = place['ssh']
        sandbox = SshSandbox(
            options['host'],
            working_dir=TEMPORARY,
            port=options['port'],
            identity_file=options['identity_file'],
            ssh_options=options['ssh_options'],
            allow_unsafe_ssh_options=True,
        )
    found = {'small command, ms': await small(sandbox)}
    try:
        found |= await files(sandbox, f'{TEMPORARY}/strands-bench')
    except OSError as error:
        found['write MB/s'] = f'fails: {str(error) or type(error).__name__}'[:60]
    return found


def measure(who: str, place: dict, python: str) -> dict:
    """Measure in a process of its own, so that its memory is its own."""
    done = subprocess.run(
        [python, __file__, f'--{who}', json.dumps(place)],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    if done.returncode:
        return {'failed': done.stderr.strip().splitlines()[-1][:120]}
    return json.loads(done.stdout)


def main() -> None:
    sys.path.insert(0, str(ROOT / 'tests/sandboxes'))
    from conftest import SshServer, make_gnu_image  # noqa: PLC0415 - found by the line above

    wanted = sys.argv[1:] or ['docker', 'ssh']
    strands = os.environ.get('ANYSHELL_BENCH_STRANDS') or (
        sys.executable if importlib.util.find_spec('strands') else ''
    )
    places: dict[str, dict] = {}
    with tempfile.TemporaryDirectory() as folder:
        server = container = None
        try:
            if 'ssh' in wanted:
                server = SshServer(Path(folder))
                server.start()
                places['ssh'] = {'ssh': server.arguments()}
            if 'docker' in wanted:
                (Path(folder) / 'image').mkdir()
                image = make_gnu_image(Path(folder) / 'image')
                run = ['docker', 'run', '-d', '--network=none', image, 'sleep', '100000']
                container = subprocess.run(
                    run, capture_output=True, text=True, check=True, timeout=60
                ).stdout.strip()
                places['docker'] = {'container': container}
            for name, place in places.items():
                rows = {'anyshell': measure('ours', place, sys.executable)}
                if strands:
                    rows['strands'] = measure('theirs', place, strands)
                show(name, rows)
        finally:
            if server is not None:
                server.kill()
            if container is not None:
                subprocess.run(
                    ['docker', 'rm', '-f', container], capture_output=True, check=False, timeout=60
                )


def show(name: str, rows: dict[str, dict]) -> None:
    keys = list(dict.fromkeys(key for row in rows.values() for key in row))
    print(f'\n{name:36}' + ''.join(f'{who:>16}' for who in rows))
    for key in keys:
        cells = [row.get(key, '-') for row in rows.values()]
        print(
            f'{key:36}'
            + ''.join(
                f'{cell:16.1f}' if isinstance(cell, float) else f'{cell!s:>16}' for cell in cells
            )
        )


if __name__ == '__main__':
    if sys.argv[1:2] in (['--ours'], ['--theirs']):
        work = ours if sys.argv[1] == '--ours' else theirs
        print(json.dumps(asyncio.run(work(json.loads(sys.argv[2])))))
    else:
        main()
