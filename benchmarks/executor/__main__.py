"""Measure the executor beside its peers and raw `subprocess.run`, in turn, and write benchmarks/RESULTS.md.

    nox -s bench -- executor

The session makes an environment for each peer and calls `python benchmarks/executor NAME=PYTHON …`. Each executor is
a worker process (worker.py); rounds go through all of them in turn, so that a machine that slows down slows them all.
What counts are ratios of one round's figures; absolute times are of one machine.
"""

import contextlib
import json
import os
import select
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from report import PEERS, written

HERE = Path(__file__).parent
OURS = ('run-bash', 'run-sh', 'tool-bash', 'tool-sh')
RAW = ('raw-bash', 'raw-sh')
ROUNDS, CALLS = 40, 10
ANSWER_SECONDS = 900
AT_ONCE, JOBS, IDLE = 200, 200, 50
VOLUME, BOUND = 10**9, 10**10
IMPORTS = 6
IMPORTED = {
    'anyshell': 'import anyshell',
    'pydantic-ai-harness': 'from pydantic_ai_harness.shell import Shell',
    'strands': 'from strands.sandbox.not_a_sandbox_local_environment import NotASandboxLocalEnvironment',
    'langchain': 'from langchain.agents.middleware import ShellToolMiddleware',
    'deepagents': 'from deepagents.backends.local_shell import LocalShellBackend',
    'openai-agents': 'from agents.sandbox.sandboxes.unix_local import UnixLocalSandboxClient',
}
NEEDED = """
import sys, anyshell
print(' '.join(name for name in sys.modules if name.partition('.')[0] not in {'anyshell', '__main__'}))
"""
BEFORE = """
import contextlib, importlib
for name in {}:
    with contextlib.suppress(ImportError):  # some names in sys.modules are aliases that nothing finds
        importlib.import_module(name)
"""


class Worker:
    """An executor's process."""

    def __init__(self, name: str, python: str) -> None:
        self.name = name
        self.process = subprocess.Popen(
            [python, str(HERE / 'worker.py'), name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def ask(self, *request: object):
        """Send a request and wait for the answer; `None` when there is none."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(json.dumps(request) + '\n')
            self.process.stdin.flush()
        if not select.select([self.process.stdout], [], [], ANSWER_SECONDS)[0]:
            self.process.kill()
        answer = json.loads(self.process.stdout.readline() or '{"error": "the worker has ended"}')
        if 'error' in answer:
            print(f'{self.name}: {request[0]}: {answer["error"]}', file=sys.stderr)
        return answer.get('is')

    def close(self) -> None:
        self.process.communicate('', timeout=60)


@contextlib.contextmanager
def workers(pythons: dict[str, str], names: tuple[str, ...]) -> Iterator[dict[str, Worker]]:
    """One worker for each name whose environment there is."""
    found = {name: Worker(name, pythons[name]) for name in names if name in pythons}
    try:
        yield found
    finally:
        for worker in found.values():
            worker.close()


def in_turn(
    found: dict[str, Worker], rounds: int, ask: Callable[[Worker], object]
) -> dict[str, list]:
    """Ask each worker once a round, every round beginning with another one; answers that failed are left out."""
    answers: dict[str, list] = {name: [] for name in found}
    names = list(found)
    for number in range(rounds):
        first = number % len(names)
        for name in names[first:] + names[:first]:
            if (answer := ask(found[name])) is not None:
                answers[name].append(answer)
    return answers


def raw_of(name: str) -> str:
    """The raw executor of the same shell."""
    return 'raw-bash' if name.endswith('bash') or name == 'langchain' else 'raw-sh'


def calls(found: dict[str, Worker]) -> dict[str, dict[str, float]]:
    """Latency: the median of each batch, and its ratio to the raw batch of the same round."""
    in_turn(found, 1, lambda worker: worker.ask('calls', CALLS))  # a warm-up
    batches = in_turn(found, ROUNDS, lambda worker: statistics.median(worker.ask('calls', CALLS)))
    result: dict[str, dict[str, float]] = {}
    for name, times in batches.items():
        raw = batches[raw_of(name)]
        ratios = sorted(mine / its for mine, its in zip(times, raw, strict=True))
        result[name] = {
            'milliseconds': 1000 * statistics.median(times),
            'ratio': statistics.median(ratios),
            'low': ratios[len(ratios) // 4],
            'high': ratios[3 * len(ratios) // 4],
        }
    # Peers against our tool call in the same shell, pair by pair.
    for name in set(PEERS) & set(batches):
        pairs = zip(batches['tool-sh'], batches[name], strict=True)
        result[name]['ours'] = statistics.median(mine / its for mine, its in pairs)
    return result


def at_once(found: dict[str, Worker]) -> dict[str, float]:
    slow = {name: worker for name, worker in found.items() if name == 'langchain'}
    fast = {name: worker for name, worker in found.items() if name not in slow}
    answers = in_turn(fast, 5, lambda worker: worker.ask('at_once', AT_ONCE))
    if slow:
        answers |= in_turn(slow, 1, lambda worker: worker.ask('at_once', AT_ONCE))
    return {name: statistics.median(times) for name, times in answers.items() if times}


def jobs(pythons: dict[str, str]) -> dict[str, dict[str, float]]:
    """Milliseconds per job. The harness takes 1.7 s to stop one, so it gets fewer."""
    result: dict[str, dict[str, float]] = {}
    with workers(pythons, (*RAW, 'tool-bash', 'tool-sh', 'pydantic-ai-harness')) as found:
        for name, worker in found.items():
            count = 10 if name == 'pydantic-ai-harness' else JOBS
            if (times := worker.ask('jobs', count)) is not None:
                result[name] = {what: 1000 * taken / count for what, taken in times.items()}
                result[name]['count'] = count
    return result


def volume(pythons: dict[str, str]) -> dict[str, dict]:
    """One gigabyte of text, in fresh processes, since what a process holds afterwards differs."""
    answers: dict[str, list[dict]] = {}
    for _ in range(2):
        for name in ('raw-sh', 'tool-bash', 'tool-sh', *PEERS):
            if answers.get(name) and not answers[name][0]['whole']:
                continue  # it does not get through; once is enough
            with workers(pythons, (name,)) as found:
                for worker in found.values():
                    if (answer := worker.ask('volume', VOLUME, 30)) is not None:
                        answers.setdefault(name, []).append(answer)
    return {
        name: {
            'seconds': min(answer['seconds'] for answer in found),
            'owner': max(answer['owner'] for answer in found),
            'all': max(answer['all'] for answer in found),
            'whole': found[0]['whole'],
            'said': found[0]['said'],
        }
        for name, found in answers.items()
    }


def imports(pythons: dict[str, str]) -> dict[str, float]:
    """Processor time of an import in a fresh interpreter, and our own share: the rest has been imported before."""
    timed = (
        'import time; begin = time.process_time(); {}; print(1000 * (time.process_time() - begin))'
    )
    ours = pythons['tool-sh']
    before = BEFORE.format(_output(ours, NEEDED).split())
    programs = {
        name: (pythons[name if name != 'anyshell' else 'tool-sh'], timed.format(statement))
        for name, statement in IMPORTED.items()
        if name == 'anyshell' or name in pythons
    }
    programs['own'] = (ours, before + timed.format('import anyshell'))
    times: dict[str, list[float]] = {name: [] for name in programs}
    for _ in range(IMPORTS):
        for name, (python, program) in programs.items():
            times[name].append(float(_output(python, program)))
    return {name: statistics.median(found[1:]) for name, found in times.items()}


def _output(python: str, program: str) -> str:
    command = [python, '-c', program]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, timeout=120)
    return done.stdout.strip().rpartition('\n')[2]


def main() -> None:
    # Modules are compiled once, as they are for users: the warm-up of each measurement does it.
    os.environ.pop('PYTHONDONTWRITEBYTECODE', None)
    given = dict(argument.split('=', 1) for argument in sys.argv[1:])
    pythons = {**dict.fromkeys((*RAW, *OURS), sys.executable), **given}
    begin = time.monotonic()

    def done(what: str) -> None:
        print(f'{time.monotonic() - begin:6.1f} s  {what}', flush=True)

    found: dict = {
        'when': time.strftime('%Y-%m-%d'),
        'load': os.getloadavg()[0],
        'rounds': ROUNDS,
    }
    with workers(pythons, (*RAW, *OURS, *PEERS)) as running:
        versions = in_turn(running, 1, lambda worker: worker.ask('versions'))
        found['versions'] = {name: version[0] for name, version in versions.items() if version}
        found['calls'] = calls(running)
        done('calls')
        found['at_once'] = at_once(running)
        done(f'{AT_ONCE} at once')
    found['jobs'] = jobs(pythons)
    done(f'{JOBS} jobs')
    found['volume'] = volume(pythons)
    done('1 GB of output')
    with workers(pythons, ('tool-sh',)) as running:
        found['idle'] = running['tool-sh'].ask('idle', IDLE, 5)
        done(f'{IDLE} idle jobs')
    with workers(pythons, ('run-sh',)) as running:
        found['bounds'] = running['run-sh'].ask('bounds', BOUND)
        done('10 GB of output')
    found['import'] = imports(pythons)
    done('imports')
    text = written(found)
    (HERE.parent / 'RESULTS.md').write_text(text)
    print(text)


if __name__ == '__main__':
    main()
