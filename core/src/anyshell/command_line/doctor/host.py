"""What every command needs of this host: a shell, processes that can be found and ended, a place for output.

Nothing is concluded from a version number that can be tried: a command is run, a child is left behind and looked for.
"""

from __future__ import annotations

import os
import platform
import re
import shlex
import shutil
import signal
import sys
import tempfile
import time

from anyshell.command_line.doctor.checks import Check, ask
from anyshell.errors import AnyshellError
from anyshell.options import ShellOptions
from anyshell.sandbox import marks
from anyshell.session import ShellSession
from anyshell.synchronous import run_sync


def system() -> Check:
    """The operating system."""
    name = f'{platform.system()} {platform.release()} ({platform.machine()})'
    if sys.platform.startswith('linux'):
        return Check(name='system', area='commands', works=True, found=name, required=True)
    if sys.platform == 'darwin':
        found = f'{name}; a program that leaves its process group can outlive its command here'
        return Check(name='system', area='commands', works=True, found=found, required=True)
    return Check(
        name='system',
        area='commands',
        works=False,
        found=f'{name} has no POSIX processes',
        fix='run the agent on Linux, on macOS, or on Windows in WSL',
        required=True,
    )


def shell() -> Check:
    """The shell that reads commands."""
    if bash := shutil.which('bash'):
        answer = ask(bash, '-p', '-c', 'echo "$BASH_VERSION"')
        if answer.code == 0:
            found = f'bash {answer.first_line} ({bash})'
            return Check(name='shell', area='commands', works=True, found=found, required=True)
    if sh := shutil.which('sh'):
        return Check(
            name='shell',
            area='commands',
            works=True,
            found=f'no bash: commands are read by {sh}, and syntax that only bash has is refused',
            fix='install bash, which models write',
            required=True,
        )
    return Check(
        name='shell',
        area='commands',
        works=False,
        found='neither bash nor sh is on PATH',
        fix='install bash, or put its directory on PATH',
        required=True,
    )


def temporary_directory() -> Check:
    """Where output that does not fit into memory goes."""
    wanted = ShellOptions().max_log_bytes
    try:
        folder = tempfile.gettempdir()
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(b'x' * 65536)
        free = shutil.disk_usage(folder).free
    except OSError as error:
        return Check(
            name='temporary-directory',
            area='commands',
            works=False,
            found=f'no temporary file can be written ({error.strerror or error})',
            fix='make room, or let TMPDIR name a directory that can be written',
            required=True,
        )
    found, fix = f'{folder}, {free / 1e9:.1f} GB free', ''
    if free < wanted:
        fix = f'make room: one stream of one command may take {wanted / 1e6:.0f} MB (max_log_bytes)'
    # Of one that can not be used Python says nothing: it takes the next one, or /tmp.
    variable = next((name for name in ('TMPDIR', 'TEMP', 'TMP') if os.environ.get(name)), None)
    if variable is not None:
        named = os.environ[variable]
        try:
            with tempfile.TemporaryFile(dir=named) as file:
                file.write(b'x')
        except OSError as error:
            reason = error.strerror or error
            found = f'{found}; {variable}={named} is ignored, since nothing can be written there ({reason})'
            fix = fix or f'let {variable} name a directory that can be written, or unset it'
    return Check(name='temporary-directory', area='commands', works=not fix, found=found, fix=fix)


def process_descriptors() -> Check:
    """Whether the kernel gives descriptors for processes (Linux 5.3)."""
    try:
        os.close(os.pidfd_open(os.getpid()))
    except (AttributeError, OSError):
        return Check(
            name='pidfd',
            area='commands',
            works=sys.platform == 'darwin',  # macOS has none and does without
            found='pidfd_open is not there',
            fix=''
            if sys.platform == 'darwin'
            else 'use Linux 5.3 or later; in an old container runtime, a seccomp profile that knows pidfd_open',
            required=sys.platform.startswith('linux'),
        )
    return Check(name='pidfd', area='commands', works=True, found='pidfd_open works', required=True)


def engine() -> Check:
    """Whether a command runs, and what it leaves behind ends with its session, after `setsid` too."""
    start = time.monotonic()
    try:
        left = run_sync(_leave_a_child())
    except (AnyshellError, OSError) as error:
        return Check(
            name='engine',
            area='commands',
            works=False,
            found=f'no command can be run: {error}',
            fix='mend what the message names; commands need processes, a temporary directory and /proc',
            required=True,
        )
    took = f'in {1000 * (time.monotonic() - start):.0f} ms'
    if left:
        return Check(
            name='engine',
            area='commands',
            works=False,
            found=f'a child that called setsid outlived its session (process {left})',
            fix=_fix_of_marks(),
            required=sys.platform.startswith('linux'),
        )
    return Check(
        name='engine',
        area='commands',
        works=True,
        found=f'a command ran, and a child that it left behind with setsid was ended, {took}',
        required=True,
    )


def _fix_of_marks() -> str:
    if not marks.LINUX:
        return 'mount /proc: without it only process groups can be ended'
    if (most := marks.lowered()) is not None:
        return f'leave the hard limit on file locks alone, which is {most} here (ulimit -H -x, LimitLOCKS= of systemd): it carries the marks by which processes are found'
    return 'mount /proc without hidepid, where processes are found by their mark'


_CHILD = 'import os, time; os.setsid(); print("child", os.getpid(), flush=True); time.sleep(600)'


async def _leave_a_child() -> int:
    """Leave a child behind that is a session leader of its own; its process ID if it is still there, else 0."""
    options = ShellOptions(denied_commands=(), unresolved='allow', kill_grace=0.2)
    async with ShellSession(options) as session:
        tools = {tool.name: tool for tool in session.tools}
        command = f'{shlex.join([sys.executable, "-S", "-c", _CHILD])} & wait'
        arguments = {'command': command, 'ready_when': r'output:child \d+\n', 'ready_timeout': 10}
        reply = await tools['start_command'].call(arguments)
        match = re.search(r'child (\d+)', reply.text.partition('[stdout]')[2])
        if match is None:
            raise AnyshellError(reply.text.replace('\n', ' '))
    child = int(match[1])
    if not _lives(child):
        return 0
    os.kill(child, signal.SIGKILL)
    return child


def _lives(pid: int) -> bool:
    """Whether a process is there and has not ended; one that nobody has reaped yet has."""
    if not marks.LINUX:  # with a /proc there is often no `ps`, in slim images for example
        answer = ask('ps', '-o', 'stat=', '-p', str(pid))
        return answer.code == 0 and not answer.first_line.startswith('Z')
    try:
        with open(f'/proc/{pid}/stat', 'rb') as file:
            return file.read().rpartition(b')')[2].split()[0] != b'Z'
    except OSError:
        return False


def first_process() -> Check:
    """Whether process 1 reaps orphans, which in a container is often a program that does not."""
    answer = ask('sh', '-c', 'sleep 0.1 >/dev/null & echo $!')
    end = time.monotonic() + 3
    while answer.first_line.isdecimal() and time.monotonic() < end:
        try:
            os.kill(int(answer.first_line), 0)
        except ProcessLookupError:
            return Check(name='init', area='commands', works=True, found='process 1 reaps orphans')
        time.sleep(0.05)
    return Check(
        name='init',
        area='commands',
        works=False,
        found='process 1 does not reap orphans, so ended children of commands stay as zombies',
        fix='in a container: start it with an init (docker run --init, or tini as its first program)',
    )
