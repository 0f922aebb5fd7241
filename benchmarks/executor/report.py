# ruff: noqa: RUF001 - a dash is what stands for nothing
"""Turn what was measured into benchmarks/RESULTS.md: tables, and the goals with met or not."""

import os
import platform
import subprocess

NAMES = {
    'raw-bash': '`subprocess.run`, `bash -p -c`',
    'raw-sh': '`subprocess.run`, `sh -c`',
    'run-bash': '**anyshell**, bare run, `bash`',
    'run-sh': '**anyshell**, bare run, `sh`',
    'tool-bash': '**anyshell**, tool call, `bash`',
    'tool-sh': '**anyshell**, tool call, `sh`',
    'pydantic-ai-harness': 'pydantic-ai-harness `Shell`',
    'strands': 'Strands `NotASandboxLocalEnvironment`',
    'langchain': 'LangChain `ShellToolMiddleware`',
    'deepagents': 'deepagents `LocalShellBackend`',
    'openai-agents': 'OpenAI Agents, local sandbox',
}
PEERS = ('pydantic-ai-harness', 'strands', 'langchain', 'deepagents', 'openai-agents')
NO_JOBS = {
    'strands': 'it has no background commands',
    'langchain': 'it has no background commands',
    'deepagents': 'it has no background commands',
    'openai-agents': 'it can start and look at one, but not stop one',
}
HEAD = """\
# How fast, how big

Written by `nox -s bench -- executor`; don't edit. Ratios are what counts: each is taken within one round, in which all
executors had their turn, and the median of {rounds} rounds is shown. The times are those of one machine.

- A *bare run* is `ShellSession.run` with a policy that allows everything. A *tool call* is all that an adapter calls:
  arguments validated, the default policy, the command, the words for the model.
- pydantic-ai-harness and LangChain are called as their agents call them. Of the other peers, the call below their
  framework's tool is measured, which is to their advantage.
- Peers use `sh` (LangChain: one `bash` for all commands), so `sh` is what to compare with; `bash` alone costs
  {bash:.1f}x of `sh` here.
"""


def written(found: dict) -> str:
    """The whole page."""
    parts = [
        HEAD.format(rounds=found['rounds'], bash=_bash_alone(found)),
        _machine(found),
        '## A small command\n\nMilliseconds for `echo hello`, one call after the other, and times raw `subprocess.run` of '
        'the same shell with the middle half of the rounds in brackets.\n\n' + _calls(found),
        '## 200 commands at once\n\nSeconds for all; LangChain runs one after the other.\n\n'
        + _at_once(found),
        '## Background commands\n\nMilliseconds each, of 200 `sleep 3600` (of the harness 10).\n\n'
        + _jobs(found),
        '## 1 GB of output\n\nText through a pipe. Memory is the growth of the peak of the owning process, and of '
        'all processes that stay up between commands (our watcher). *Whole* is whether the last line came through.\n\n'
        + _volume(found),
        '## Import\n\nMilliseconds of processor time in a fresh interpreter.\n\n' + _imports(found),
        '## Goals\n\n' + _goals(found),
    ]
    return '\n\n'.join(part.strip() for part in parts) + '\n'


def _bash_alone(found: dict) -> float:
    return found['calls']['raw-bash']['milliseconds'] / found['calls']['raw-sh']['milliseconds']


def _machine(found: dict) -> str:
    versions = ', '.join(
        f'{name} {version}'
        for name, version in sorted(
            {name: v for known in found['versions'].values() for name, v in known.items()}.items()
        )
    )
    return (
        f'{found["when"]}: {_processor()}, {len(os.sched_getaffinity(0))} processors, '
        f'Linux {platform.release().split("-")[0]}, Python {platform.python_version()}, {_bash()}; '
        f'load at the beginning {found["load"]:.1f}.\n\n{versions}.'
    )


def _processor() -> str:
    with open('/proc/cpuinfo') as file:
        models = [line.partition(':')[2].strip() for line in file if line.startswith('model name')]
    return models[0] if models else platform.machine()


def _bash() -> str:
    command = ['bash', '-c', 'echo "bash $BASH_VERSION"']
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    return done.stdout.strip().partition('(')[0] + ', sh is ' + os.path.realpath('/bin/sh')


def _table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ['---', *['---:'] * (len(head) - 1)], *rows]
    return '\n'.join(f'| {" | ".join(line)} |' for line in lines)


def _rows(values: dict, cells, missing: dict[str, str] | None = None) -> list[list[str]]:
    rows = []
    for name, label in NAMES.items():
        if name in values:
            rows.append([label, *cells(name, values[name])])
        elif missing and name in missing:
            width = len(cells('', None))
            rows.append([label, f'– ({missing[name]})', *[''] * (width - 1)])
    return rows


def _calls(found: dict) -> str:
    rows = _rows(
        found['calls'],
        lambda _, value: [
            f'{value["milliseconds"]:.2f}',
            f'{value["ratio"]:.2f} ({value["low"]:.2f}–{value["high"]:.2f})',
            f'{value["ours"]:.2f}' if 'ours' in value else '',
        ],
    )
    return _table(
        ['', 'ms', 'times raw', 'our `sh` tool call takes, of its time'],
        rows,
    )


def _at_once(found: dict) -> str:
    return _table(['', 's'], _rows(found['at_once'], lambda _, value: [f'{value:.2f}']))


def _jobs(found: dict) -> str:
    def cells(_: str, value: dict | None) -> list[str]:
        whats = ('started', 'checked', 'stopped')
        return [''] * 3 if value is None else [f'{value[what]:.1f}' for what in whats]

    return _table(['', 'start', 'check', 'stop'], _rows(found['jobs'], cells, NO_JOBS))


def _volume(found: dict) -> str:
    def cells(_: str, value: dict) -> list[str]:
        mb = [f'{max(0, value[what]) / 1e6:.0f}' for what in ('owner', 'all')]
        if not value['whole'] and value['seconds'] < 0.1:
            return [f'– (“{_short(value["said"])}”)', *mb, 'no']
        if not value['whole'] and value['seconds'] > 29:
            return ['– (not within 30 s)', *mb, 'no']
        return [f'{1000 / value["seconds"]:.0f}', *mb, 'yes' if value['whole'] else 'no']

    head = ['', 'MB/s', 'owner, MB', 'with helpers, MB', 'whole']
    return _table(head, _rows(found['volume'], cells))


def _short(text: str) -> str:
    line = text.strip().split('\n')[-1].replace('|', '/')
    return line if len(line) < 80 else line[:80] + '…'


def _imports(found: dict) -> str:
    rows = [
        ['`import anyshell`', f'{found["import"]["anyshell"]:.0f}'],
        ["– anyshell's own share", f'{found["import"]["own"]:.0f}'],
        *(
            [NAMES[name], f'{found["import"][name]:.0f}']
            for name in PEERS
            if name in found['import']
        ),
    ]
    return _table(['', 'ms'], rows)


def _goals(found: dict) -> str:
    calls, volume, bounds = found['calls'], found['volume'], found['bounds']
    rows = [
        *(
            _goal(
                f'a bare run in `{shell}` is within 1.3x of raw',
                calls[f'run-{shell}']['ratio'],
                1.3,
            )
            for shell in ('bash', 'sh')
        ),
        *(
            _goal(
                f'a tool call in `{shell}` is within 1.7x of raw',
                calls[f'tool-{shell}']['ratio'],
                1.7,
            )
            for shell in ('bash', 'sh')
        ),
        *(
            _goal(
                f'our `sh` tool call is ahead of {name}, as a share of its time',
                calls[name]['ours'],
                1,
            )
            for name in PEERS
            if name in calls
        ),
    ]
    whole = {n: v['seconds'] for n, v in volume.items() if n in PEERS and v['whole']}
    if whole:
        best = min(whole, key=lambda name: whole[name])
        ours = min(volume['tool-sh']['seconds'], volume['tool-bash']['seconds'])
        what = f'1 GB takes no longer than with the fastest peer that brings it through ({best}), as a share'
        rows.append(_goal(what, ours / whole[best], 1))
    if bounds is not None:
        size = '10 GB through `run`'
        rows += [
            _goal(f'{size}: MB of memory, owner and watcher', bounds['all'] / 1e6, 30),
            _goal(f'{size}: times `max_log_bytes` on disk', bounds['disk'] / 1e8, 2),
            [f'{size}: the tail is exact', '', '', 'met' if bounds['exact'] else '**not met**'],
        ]
    rows += [
        _goal('50 idle jobs: % of a processor, owner and watcher', 100 * found['idle'], 2),
        _goal("anyshell's own share of its import, ms", found['import']['own'], 40),
    ]
    return _table(['goal', 'at most', 'is', ''], rows)


def _goal(what: str, value: float, most: float) -> list[str]:
    verdict = 'met' if value <= most else f'**not met**, {value / most:.2f}x of the goal'
    return [what, f'{most:g}', f'{value:.2f}', verdict]
