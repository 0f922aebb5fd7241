"""The live oracle: runs command lines under a real shell and says which programs started.

Every program is a stub that records its name; the programs that run others (env, xargs, …) are the real ones. Hundreds
of lines share one bubblewrap sandbox with no network and nothing to write to but a throwaway directory per line. This
file is also the program that runs inside.
"""

# ruff: noqa: S108  # /tmp is the private one of the sandbox

from __future__ import annotations

import contextlib
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

# Programs that lines may name: stubs, and those that really run what they are given.
STUBS = (
    'rm', 'rmdir', 'mkfs', 'dd', 'format', 'shutdown', 'reboot', 'halt', 'poweroff', 'init', 'ls', 'cat', 'rg', 'zap',
    'git', 'grep', 'sed', 'awk', 'wc', 'sort', 'head', 'tail', 'tee', 'touch', 'cp', 'mv', 'python3', 'make', 'sleep',
    'date', 'vim', 'less', 'docker', 'npm', 'curl', 'jq', 'a', 'b', 'x', 'foo', 'esac', 'fi', 'done', 'if', 'then', 'do',
    'in', 'case', 'for', 'time', 'function', 'select', 'coproc', '2', 'A=1', 'hi', 'EOF',
)  # fmt: skip
REAL = ('env', 'nice', 'nohup', 'timeout', 'setsid', 'stdbuf', 'xargs', 'find', 'sh', 'dash', 'bash', 'busybox', 'ionice',
        'taskset', 'flock', 'chrt', 'setarch', 'linux64', 'prlimit', 'setpriv', 'script', 'unshare', 'printf')  # fmt: skip
SECONDS = 1.0
# What the shells say of a program that is not there; it would have run, too.
_MISSING = re.compile(
    r'^.*?: (?:line \d+: ([\w./-]+): command not found|\d+: ([\w./-]+): not found)$', re.MULTILINE
)
_NOT_PARSED = re.compile(
    r'syntax error|[Ss]yntax error|unexpected (?:EOF|token|argument)|conditional (?:binary|unary) operator|: expected `'
)


@dataclass(frozen=True, slots=True)
class Run:
    """What a shell did with a line."""

    programs: frozenset[str]
    finished: bool
    accepted: bool | None
    errors: str


def run(lines: list[str], *, shell: str, accepted: bool = False) -> list[Run]:
    """Run lines under `bash -p -c` or `dash -c`; with `accepted` also ask whether the shell parses them."""
    results: list[Run] = []
    while len(results) < len(lines):
        batch = lines[len(results) : len(results) + 400]
        found = _sandbox(batch, shell, accepted=accepted)
        results += found
        if len(found) < len(batch):
            # The line ended the sandbox (`kill -9 -1`): it is left out, the next one goes on.
            results.append(
                Run(frozenset(), finished=False, accepted=None, errors='the sandbox ended')
            )
    return results


def _sandbox(lines: list[str], shell: str, *, accepted: bool) -> list[Run]:
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory)
        stubs = folder / 'stubs'
        stubs.mkdir()
        stub = stubs / '.stub'
        stub.write_text('#!/bin/dash\necho "${0##*/}" >>/tmp/ran\n')
        stub.chmod(0o755)
        for name in STUBS:
            (stubs / name).symlink_to('.stub')
        for name in REAL:
            if path := shutil.which(name):
                (stubs / name).unlink(missing_ok=True)
                (stubs / name).symlink_to(path)
        (folder / 'lines').write_text(json.dumps([shell, accepted, lines]))
        done = subprocess.run(
            [
                'bwrap', '--unshare-all', '--die-with-parent', '--new-session', '--ro-bind', '/', '/', '--dev', '/dev',
                '--proc', '/proc', '--tmpfs', '/tmp', '--ro-bind', directory, '/tmp/in',
                '--ro-bind', str(Path(__file__).resolve()), '/tmp/oracle.py', '--clearenv',
                '--setenv', 'PATH', '/tmp/in/stubs', '--setenv', 'LC_ALL', 'C.UTF-8', '--chdir', '/tmp',
                os.path.realpath(sys.executable), '-I', '/tmp/oracle.py',
            ],
            stdout=subprocess.PIPE,
            timeout=60 + len(lines) * 2 * SECONDS,
            check=False,
        )  # fmt: skip
    runs: list[Run] = []
    for row in done.stdout.splitlines():
        try:
            programs, finished, parsed, errors = json.loads(row)
        except ValueError:
            break
        runs.append(Run(frozenset(programs), finished, parsed, errors))
    return runs


def _inside() -> None:
    """Run the lines, one after the other, and print a result for each."""
    shell, accepted, lines = json.loads(Path('/tmp/in/lines').read_text())
    out = os.fdopen(os.dup(1), 'w')
    ran = Path('/tmp/ran')
    work = Path('/tmp/work')
    program = shutil.which(shell) or shell
    options = ['-p', '-c'] if shell == 'bash' else ['-c']
    # Inherited by every line: braces may expand far, loops may write for ever.
    resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 22, 1 << 22))
    for line in lines:
        ran.write_text('')
        if not work.is_dir() or sorted(os.listdir(work)) != ['a b', 'f', 'x.py']:
            shutil.rmtree(work, ignore_errors=True)
            work.mkdir()
            for name in ('f', 'a b', 'x.py'):
                (work / name).touch()
        argument = line.encode('utf-8', 'surrogateescape')
        finished, errors = _one([program, *options], argument, work)
        parsed = None
        if accepted:
            # Code that the shell parses only when it gets there, such as back-ticks, fails while the line runs.
            done = subprocess.run(
                [program, '-n', '-c', argument],
                capture_output=True,
                check=False,
                timeout=10,
                stdin=subprocess.DEVNULL,
            )
            parsed = not (
                done.returncode or _NOT_PARSED.search(done.stderr.decode(errors='replace') + errors)
            )
        programs = {name for name in ran.read_text(errors='replace').split('\n') if name}
        programs |= {(one or two).rsplit('/', 1)[-1] for one, two in _MISSING.findall(errors)}
        out.write(json.dumps([sorted(programs), finished, parsed, errors[-300:]]) + '\n')
        out.flush()


def _one(command: list[str], argument: bytes, work: Path) -> tuple[bool, str]:
    process = subprocess.Popen(
        [*command, argument],
        cwd=work,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    # The pipe ends when the last process of the line has: what runs in the background is seen too.
    try:
        _, errors = process.communicate(timeout=SECONDS)
        finished = True
    except subprocess.TimeoutExpired:
        _kill(process)
        try:
            _, errors = process.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            errors = b''
        finished = False
    _kill(process)
    return finished, errors.decode('utf-8', 'replace')


def _kill(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(OSError):
        os.killpg(process.pid, signal.SIGKILL)


if __name__ == '__main__':
    _inside()
