"""One executor behind a line protocol: `worker.py NAME`, a JSON request per line in, a JSON answer per line out.

Each executor has a process and an environment of its own, since the frameworks can't share one, and stays up through
all rounds, as it would in an agent. Only the class that is named imports its framework.
"""

# ruff: noqa: PLC0415 - an environment holds one framework: only the class that is named imports its own
import asyncio
import contextlib
import importlib.metadata
import itertools
import json
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

VOLUME_SECONDS = 30
"""The time limit of a command with much output."""

JOB = 'sleep 3600'
END = 'the very end'
LINE = 'All work and no play makes Jack a dull boy. All work and no play makes Jack a dull boy.'


def volume(size: int) -> str:
    """A command that writes so many bytes of text, and then a line that must not be lost."""
    return f"yes '{LINE}' | head -c {size}; echo '{END}'"


class Executor:
    """What is measured. Every method is timed as a whole."""

    packages: tuple[str, ...] = ()

    async def open(self) -> None:
        """Make it ready; not measured."""

    async def call(self, command: str, timeout: float = 30) -> str:
        """Run a command and return what a model, or code, gets."""
        raise NotImplementedError

    async def at_once(self, command: str, count: int) -> list[str]:
        return await asyncio.gather(*(self.call(command) for _ in range(count)))

    async def start(self, command: str) -> object:
        raise NotImplementedError

    async def check(self, job: object) -> str:
        raise NotImplementedError

    async def stop(self, job: object) -> str:
        raise NotImplementedError

    async def close(self) -> None:
        """End everything."""


class Raw(Executor):
    """`subprocess.run`: what a command costs without any tool around it."""

    def __init__(self, *argv: str) -> None:
        self.argv = argv
        self.pool = ThreadPoolExecutor(32)

    def run(self, command: str, timeout: float) -> str:  # noqa: ARG002 - the executors' common signature
        # Without its `timeout`, with which it looks for the end in growing pauses: that would cost it up to a millisecond.
        done = subprocess.run(
            [*self.argv, command],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
        return done.stdout.decode()

    async def call(self, command: str, timeout: float = 30) -> str:
        return self.run(command, timeout)

    async def at_once(self, command: str, count: int) -> list[str]:
        loop = asyncio.get_running_loop()
        runs = (loop.run_in_executor(self.pool, self.run, command, 30) for _ in range(count))
        return await asyncio.gather(*runs)

    async def start(self, command: str) -> object:
        return subprocess.Popen(
            [*self.argv, command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )

    async def check(self, job: object) -> str:
        assert isinstance(job, subprocess.Popen)
        return 'running' if job.poll() is None else 'finished'

    async def stop(self, job: object) -> str:
        assert isinstance(job, subprocess.Popen)
        os.killpg(job.pid, signal.SIGTERM)
        job.communicate()
        return 'stopped'


class Ours(Executor):
    """anyshell: the bare run (`session.run`, nothing to judge or to render), or the whole tool call."""

    packages = ('anyshell',)

    def __init__(self, shell: str, *, bare: bool) -> None:
        self.shell = shell
        self.bare = bare

    async def open(self) -> None:
        from anyshell import Decision, ShellOptions, ShellSession, Verdict

        class AllowAll:
            def check(self, command: str) -> Verdict:
                del command
                return Verdict(Decision.ALLOW)

        options = ShellOptions(shell=self.shell, max_jobs=500, max_output_chars=50_000)
        self.session = ShellSession(options, policy=AllowAll() if self.bare else None)
        self.tools = {tool.name: tool for tool in self.session.tools}

    async def call(self, command: str, timeout: float = 30) -> str:
        if self.bare:
            self.last = (await self.session.run(command, timeout=timeout)).stdout
            return self.last
        return await self.tool('run_command', command=command, timeout_seconds=timeout)

    async def tool(self, name: str, **arguments: object) -> str:
        return (await self.tools[name].call(arguments)).text

    async def start(self, command: str) -> object:
        return (await self.tool('start_command', command=command)).rpartition('ID: ')[2]

    async def check(self, job: object) -> str:
        return await self.tool('check_command', command_id=job)

    async def stop(self, job: object) -> str:
        return await self.tool('stop_command', command_id=job)

    async def close(self) -> None:
        await self.session.aclose()


class Harness(Executor):
    """pydantic-ai-harness: the tools of its `Shell`, called as its agent calls them."""

    packages = ('pydantic-ai-harness', 'pydantic-ai-slim')

    async def open(self) -> None:
        from pydantic_ai.workspaces import Workspace
        from pydantic_ai.workspaces.local import LocalWorkspaceBackend
        from pydantic_ai_harness.shell import Shell

        self.workspace = Workspace(LocalWorkspaceBackend(os.getcwd()))
        self.numbers = itertools.count()
        self.toolset = await Shell().get_toolset().for_run(self.context())
        await self.toolset.__aenter__()
        self.tools = await self.toolset.get_tools(self.context())

    def context(self):
        from pydantic_ai import RunContext
        from pydantic_ai.models.test import TestModel
        from pydantic_ai.usage import RunUsage

        return RunContext(
            deps=None,
            model=TestModel(),
            usage=RunUsage(),
            run_id='run',
            tool_call_id=f'call-{next(self.numbers)}',
            workspace=self.workspace,
        )

    async def tool(self, name: str, **arguments: object) -> str:
        return await self.toolset.call_tool(name, arguments, self.context(), self.tools[name])

    async def call(self, command: str, timeout: float = 30) -> str:
        return await self.tool('run_command', command=command, timeout_seconds=timeout)

    async def start(self, command: str) -> object:
        return (await self.tool('start_command', command=command)).rpartition('ID: ')[2].strip()

    async def check(self, job: object) -> str:
        return await self.tool('check_command', command_id=job)

    async def stop(self, job: object) -> str:
        return await self.tool('stop_command', command_id=job)

    async def close(self) -> None:
        await self.toolset.__aexit__(None, None, None)


class Strands(Executor):
    """Strands: `NotASandboxLocalEnvironment.execute`, below the framework's tool."""

    packages = ('strands-agents',)

    async def open(self) -> None:
        from strands.sandbox.not_a_sandbox_local_environment import NotASandboxLocalEnvironment

        self.sandbox = NotASandboxLocalEnvironment()

    async def call(self, command: str, timeout: float = 30) -> str:
        return (await self.sandbox.execute(command, timeout=timeout)).stdout


class LangChain(Executor):
    """LangChain: `ShellToolMiddleware` on the host, one shell for all commands."""

    packages = ('langchain', 'langchain-core')

    async def open(self) -> None:
        from langchain.agents.middleware import HostExecutionPolicy, ShellToolMiddleware

        self.policy = HostExecutionPolicy(command_timeout=30, max_output_lines=10**9)
        self.middleware = ShellToolMiddleware(
            workspace_root=os.getcwd(), env=dict(os.environ), execution_policy=self.policy
        )
        self.resources = self.middleware._get_or_create_resources({})

    async def call(self, command: str, timeout: float = 30) -> str:
        return await asyncio.to_thread(self.run, command, timeout)

    def run(self, command: str, timeout: float) -> str:
        self.policy.command_timeout = timeout
        arguments = {'command': command}
        message = self.middleware._run_shell_tool(self.resources, arguments, tool_call_id='call')
        return message.content

    async def close(self) -> None:
        self.middleware.after_agent({'shell_session_resources': self.resources}, None)


class DeepAgents(Executor):
    """deepagents: `LocalShellBackend.aexecute`, below the framework's tool."""

    packages = ('deepagents',)

    async def open(self) -> None:
        from deepagents.backends.local_shell import LocalShellBackend

        self.backend = LocalShellBackend(os.getcwd(), virtual_mode=False, inherit_env=True)

    async def call(self, command: str, timeout: float = 30) -> str:
        return (await self.backend.aexecute(command, timeout=int(timeout))).output


class OpenAIAgents(Executor):
    """OpenAI Agents: the local sandbox' `exec`, below the framework's tool."""

    packages = ('openai-agents',)

    async def open(self) -> None:
        from agents.sandbox.manifest import Manifest
        from agents.sandbox.sandboxes.unix_local import UnixLocalSandboxClient

        self.sandbox = await UnixLocalSandboxClient().create(manifest=Manifest(root=os.getcwd()))
        await self.sandbox.start()

    async def call(self, command: str, timeout: float = 30) -> str:
        return (await self.sandbox.exec(command, timeout=timeout)).stdout.decode('utf-8', 'replace')

    async def close(self) -> None:
        await self.sandbox.aclose()


EXECUTORS = {
    'raw-bash': lambda: Raw('bash', '-p', '-c'),
    'raw-sh': lambda: Raw('sh', '-c'),
    'run-bash': lambda: Ours('bash', bare=True),
    'run-sh': lambda: Ours('sh', bare=True),
    'tool-bash': lambda: Ours('bash', bare=False),
    'tool-sh': lambda: Ours('sh', bare=False),
    'pydantic-ai-harness': Harness,
    'strands': Strands,
    'langchain': LangChain,
    'deepagents': DeepAgents,
    'openai-agents': OpenAIAgents,
}


def helpers() -> list[int]:
    """The processes that this one has started and that live between commands."""
    return [
        pid
        for pid in map(int, filter(str.isdecimal, os.listdir('/proc')))
        if _stat(pid)[1:2] == [str(os.getpid())]
    ]


def _stat(pid: int) -> list[str]:
    with contextlib.suppress(OSError), open(f'/proc/{pid}/stat') as file:
        return file.read().rpartition(')')[2].split()
    return []


def cpu(pids: list[int]) -> float:
    """Seconds of processor time that processes have used."""
    ticks = sum(int(fields[11]) + int(fields[12]) for pid in pids if (fields := _stat(pid)))
    return ticks / os.sysconf('SC_CLK_TCK')


def memory(pid: int, line: str) -> int:
    """A line of a process' status, in bytes."""
    with contextlib.suppress(OSError), open(f'/proc/{pid}/status') as file:
        return next(int(text.split()[1]) << 10 for text in file if text.startswith(f'{line}:'))
    return 0  # a helper that its executor has replaced


class Worker:
    """The requests."""

    def __init__(self, executor: Executor) -> None:
        self.executor = executor

    async def do_versions(self) -> dict[str, str]:
        return {name: importlib.metadata.version(name) for name in self.executor.packages}

    async def do_calls(self, count: int) -> list[float]:
        times: list[float] = []
        for _ in range(count):
            begin = time.perf_counter()
            text = await self.executor.call('echo hello')
            times.append(time.perf_counter() - begin)
            assert 'hello' in text, text
        return times

    async def do_volume(self, size: int, seconds: float) -> dict[str, object]:
        await self.executor.call('echo hello')  # helper processes have been started
        pids = [os.getpid(), *helpers()]
        for pid in pids:
            with open(f'/proc/{pid}/clear_refs', 'w') as file:
                file.write('5')  # the peak begins anew
        before = [memory(pid, 'VmRSS') for pid in pids]
        begin = time.perf_counter()
        error = ''
        try:
            text = await self.executor.call(volume(size), seconds)
        except Exception as failure:  # noqa: BLE001 - whatever a framework raises is its answer
            text, error = '', f'{type(failure).__name__}: {failure}'
        taken = time.perf_counter() - begin
        grown = [memory(pid, 'VmHWM') - rss for pid, rss in zip(pids, before, strict=True)]
        whole = END in text[-200:]
        return {
            'seconds': taken,
            'owner': grown[0],
            'all': sum(grown),
            'whole': whole,
            'said': '' if whole else error or text[-300:],
        }

    async def do_at_once(self, count: int) -> float:
        begin = time.perf_counter()
        texts = await self.executor.at_once('echo hello', count)
        taken = time.perf_counter() - begin
        assert all('hello' in text for text in texts)
        return taken

    async def do_jobs(self, count: int) -> dict[str, float]:
        times = [time.perf_counter()]
        jobs = [await self.executor.start(JOB) for _ in range(count)]
        times.append(time.perf_counter())
        for job in jobs:
            assert 'running' in await self.executor.check(job)
        times.append(time.perf_counter())
        for job in jobs:
            await self.executor.stop(job)
        times.append(time.perf_counter())
        parts = [end - begin for begin, end in itertools.pairwise(times)]
        return dict(zip(('started', 'checked', 'stopped'), parts, strict=True))

    async def do_idle(self, count: int, seconds: float) -> float:
        """The share of a processor that idle jobs cost the owner and its helpers."""
        await self.executor.call('echo hello')
        pids = [os.getpid(), *helpers()]
        jobs = [await self.executor.start(JOB) for _ in range(count)]
        await asyncio.sleep(0.5)
        before = cpu(pids)
        await asyncio.sleep(seconds)
        share = (cpu(pids) - before) / seconds
        for job in jobs:
            await self.executor.stop(job)
        return share

    async def do_bounds(self, size: int) -> dict[str, object]:
        """What a command with endless output costs: memory, disk, and whether the tail is exact."""
        assert isinstance(self.executor, Ours)
        most = 0
        over = threading.Event()

        def look() -> None:
            nonlocal most
            while not over.wait(0.02):
                most = max(most, disk(self.executor.session._processes._directory))

        looker = threading.Thread(target=look)
        looker.start()
        try:
            answer = await self.do_volume(size, 600)
        finally:
            over.set()
            looker.join()
        block = f'{LINE}\n'
        tail = (block * 2000)[: 1000 * len(block) + size % len(block)] + f'{END}\n'
        return {**answer, 'disk': most, 'exact': self.executor.last.endswith(tail[-50_000:])}


def disk(directory: str) -> int:
    """The bytes that the files of a directory take."""
    total = 0
    for folder, _, names in os.walk(directory):
        for name in names:
            with contextlib.suppress(OSError):
                total += os.stat(os.path.join(folder, name)).st_blocks * 512
    return total


async def main() -> None:
    answers = os.fdopen(os.dup(1), 'w')
    os.dup2(2, 1)  # what a framework prints is no answer
    worker = Worker(EXECUTORS[sys.argv[1]]())
    await worker.executor.open()
    while request := sys.stdin.readline():
        name, *arguments = json.loads(request)
        try:
            answer = {'is': await getattr(worker, f'do_{name}')(*arguments)}
        except Exception as error:  # noqa: BLE001 - reported, and the rounds go on
            answer = {'error': f'{type(error).__name__}: {error}'}
        print(json.dumps(answer), file=answers, flush=True)
    await worker.executor.close()


if __name__ == '__main__':
    asyncio.run(main())
