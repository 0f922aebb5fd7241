"""What every adapter must do, whatever its framework: a class of tests that an adapter's own tests inherit.

    class TestMyAdapter(AdapterContract):
        def agent(self, base_url, **keywords):
            shell = MyShell(**keywords)                        # the adapter under test
            return MyAgent(OpenAIModel('any', base_url=base_url, api_key='any'), tools=shell.tools)

        async def run(self, agent, prompt):
            return (await agent.run(prompt)).text

        async def stream(self, agent, prompt):
            async for event in agent.stream(prompt):
                yield event

        async def ask(self, agent, prompt):
            return paused(await agent.run(prompt))             # a `Paused`: what the framework needs, what is asked

        async def answer(self, paused, said):
            return paused(await paused.state.resume(said))

A rule says what the model does, as a script for `OpenAIServer`, and looks at what it got to read, over real HTTP and
with the framework's own client. What is expected is what core says to the same calls. After each rule nothing may be
left of it, neither a process nor a file.

The module needs nothing but pytest's way of finding tests: no plugin, no fixture.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
import inspect
import itertools
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Any, TypeAlias, TypeVar, cast

from anyshell.errors import ApprovalRequired, CommandDenied, OptionError
from anyshell.options import ShellOptions
from anyshell.policy import Policy
from anyshell.sandbox import LocalSandbox
from anyshell.session import ShellSession
from anyshell.testing.openai_script import Answer, Failure, Hang, Script
from anyshell.testing.openai_server import OpenAIServer
from anyshell.testing.openai_wire import ModelRequest

T = TypeVar('T')
Call: TypeAlias = tuple[str, Mapping[str, object]]

ASKED = ('mkdir',)
"""What has to be approved in the rules about that."""

LIMIT_SECONDS = 45
"""A guard against hanging; no statement about speed."""

GONE_SECONDS = 5
"""How long the end of a run may take to be seen in `ps`."""

IMPORT_SECONDS = 100
"""How long a program may take to import a framework and to run its first command."""

INTERRUPTED = """
import runpy
import sys
from anyshell import interruptible
from anyshell.testing import OpenAIServer

file, name, workdir, command = sys.argv[1:]
contract = runpy.run_path(file)[name]()
with OpenAIServer([[('run_command', {'command': command})], 'Done.']) as server, interruptible():
    contract.run_sync(contract.agent(server.base_url, cwd=workdir), 'Go.')
"""
"""A synchronous program, from the contract's own class."""

_numbers = itertools.count(1)


@dataclass(frozen=True, slots=True)
class Paused:
    """A run that waits for a person, or has ended.

    Attributes:
        state: What `answer` needs to go on. Where the framework can keep it, it went through JSON.
        requests: What is asked, each as `ApprovalRequired.request` says it; empty when the run has ended.
    """

    state: Any = None
    requests: Sequence[Mapping[str, Any]] = ()


@dataclass(frozen=True, slots=True)
class Said:
    """What a person answers to one request.

    Attributes:
        yes: Whether the command may run.
        message: Why not, for the model.
        command: What is to run instead; `None` for the model's own.
    """

    yes: bool
    message: str = ''
    command: str | None = None


YES = Said(yes=True)


class AdapterContract(ABC):
    """The rules. Give `agent`, `run`, `stream`, `ask` and `answer`; override `run_sync` where the framework has a synchronous way.

    Attributes:
        workdir: An empty directory of the rule; commands start in it.
        nap: A command that takes a day, and that no other test uses.
    """

    # -- what an adapter gives

    @abstractmethod
    def agent(self, base_url: str, **keywords: Any) -> Any:
        """An agent of the framework with the adapter's shell.

        Args:
            base_url: Where its model is; OpenAI's Chat Completions or Responses, any key, any model name.
            keywords: For the shell: those of `ShellOptions`, `policy`, `sandbox`, `session`. What is not allowed is an
                error here already.
        """

    @abstractmethod
    async def run(self, agent: Any, prompt: str) -> str:
        """Run the agent once, to its end, and return its answer. It may run twice at the same time.

        At least twelve turns of the model must be allowed. Errors of the framework pass through.
        """

    @abstractmethod
    def stream(self, agent: Any, prompt: str) -> AsyncGenerator[object]:
        """Run the agent once and yield the framework's events as they come, those of the model's text among them.

        It is closed early by `aclose()`; do then what the framework tells its users to do.
        """

    @abstractmethod
    async def ask(self, agent: Any, prompt: str) -> Paused:
        """Run the agent once, until it waits for a person or to its end. It was made with `ask_commands`."""

    @abstractmethod
    async def answer(self, paused: Paused, said: Sequence[Said]) -> Paused:
        """Go on with answers to all requests, in their order, until the run waits again or to its end."""

    def run_sync(self, agent: Any, prompt: str) -> str:
        """Run the agent from code without a loop, as the framework's users do that."""
        return asyncio.run(self.run(agent, prompt))

    # -- rules: what the model is offered and what it reads

    def test_tools_are_those_of_core(self) -> None:
        """Names, descriptions and parameters; for equal options equal in every framework."""
        limited = {
            'persist_cwd': True,
            'allowed_commands': ['git status', 'ls'],
            'max_timeout': 5.0,
        }
        choices: list[dict[str, Any]] = [{}, limited]
        for options in choices:
            server = self.play(['Hello.'], **options)
            with self.session(**options) as session:
                expected = {
                    tool.name: (tool.description, bare(tool.arguments.model_json_schema()))
                    for tool in session.tools
                }

            (request,) = server.requests
            offered = request.tools
            assert {
                name: (tool.get('description'), bare(tool['parameters']))
                for name, tool in offered.items()
            } == expected

    def test_texts_are_those_of_core(self) -> None:
        """To the letter, also for what goes wrong in the shell: a result is not an error of the tool."""
        calls: list[Call] = [
            run('echo out; echo err >&2'),
            run('true'),
            run('echo before; exit 3'),
            run('no-such-program'),
            run('cat no-such-file | wc -l'),
            self.work(),
            self.wait(),
            check('j1'),
            stop('j1'),
        ]

        server = self.play([*([call] for call in calls), 'Done.'])

        assert server.tool_results() == self.core(calls)

    def test_texts_for_calls_that_can_not_be_are_those_of_core(self) -> None:
        """Each says what to do next."""
        calls: list[Call] = [
            ('check_command', {'command_id': 'no-such-id'}),
            ('stop_command', {'command_id': 'no-such-id'}),
            run('echo never', timeout_seconds=-1),
            run('echo \0'),
            run(''),
        ]

        server = self.play([*([call] for call in calls), 'Done.'])

        assert server.tool_results() == self.core(calls)

    def test_long_output_keeps_its_tail(self) -> None:
        """The cap is the option's."""
        calls = [run('seq 1000')]

        server = self.play([calls, 'Done.'], max_output_chars=50)

        assert server.tool_results() == self.core(calls, max_output_chars=50)
        assert server.tool_results()[0].endswith('\n999\n1000\n')

    def test_time_limit_keeps_partial_output(self) -> None:
        """What the command wrote is there, the command is not."""
        began = time.monotonic()

        server = self.play([[run(f'echo before; {self.nap}', timeout_seconds=0.5)], 'Done.'])

        assert server.tool_results() == ('[stdout]\nbefore\n\n[Command timed out after 0.5s]',)
        assert time.monotonic() - began < LIMIT_SECONDS / 2
        assert self.gone()

    def test_several_calls_in_one_turn_each_get_their_result(self) -> None:
        """Also when the first one takes longest."""
        calls = [run('sleep 0.3; echo first'), run('echo second'), run('echo third')]

        server = self.play([calls, 'Done.'])

        assert server.tool_results() == self.core(calls)

    def test_several_calls_in_one_turn_are_served_in_order_when_cd_persists(self) -> None:
        """A `cd` holds for the calls after it, not for those before it."""
        Path(self.workdir, 'below').mkdir()
        calls = [run('sleep 0.2; pwd'), run('cd below'), run('pwd')]

        server = self.play([calls, 'Done.'], persist_cwd=True)

        assert server.tool_results() == self.core(calls, persist_cwd=True)

    # -- rules: denials and wrong calls end no run

    def test_denial_reaches_the_model_with_its_reason(self) -> None:
        """And the command does not run."""
        Path(self.workdir, 'kept').touch()

        server = self.play([[run('rm kept')], [start('rm kept')], [run('ls')], 'Done.'])

        (reason, _) = self.core([run('rm kept'), start('rm kept')])
        denied, denied_start, listed = server.tool_results()
        assert reason in denied
        assert reason in denied_start
        assert listed == '[stdout]\nkept\n'

    def test_ten_denials_in_a_row_do_not_end_the_run(self) -> None:
        """A model that keeps trying gets its twelve turns."""
        script: list[Answer] = [[run('rm kept')] for _ in range(10)]

        server = self.play([*script, [run('echo recovered')], 'Done.'])

        *denied, last = server.tool_results()
        assert len(denied) == 10
        assert last == '[stdout]\nrecovered\n'

    def test_wrong_arguments_are_explained_and_do_not_end_the_run(self) -> None:
        """In the words of core; a missing argument nine times, then one of a wrong type."""
        wrong: list[Call] = [
            *[('run_command', {'line': 'ls'})] * 9,
            ('check_command', {'command_id': ['j1']}),
        ]

        server = self.play([*([call] for call in wrong), [run('echo recovered')], 'Done.'])

        *explained, last = server.tool_results()
        assert tuple(explained) == self.core(wrong)
        assert last == '[stdout]\nrecovered\n'

    def test_null_stands_for_an_argument_that_is_left_out(self) -> None:
        """Many models write it so."""
        calls: list[Call] = [
            run('pwd', timeout_seconds=None, workdir=None),
            ('start_command', {'command': 'true', 'ready_timeout': None, 'stdin': None}),
            ('check_command', {'command_id': 'j1', 'wait_seconds': 20, 'since': None}),
            ('run_command', {'command': None}),
        ]

        server = self.play([*([call] for call in calls), 'Done.'])

        plain = [
            (name, {key: value for key, value in arguments.items() if value is not None})
            for name, arguments in calls
        ]
        assert server.tool_results() == self.core(plain)

    def test_arguments_that_are_no_object_do_not_end_the_run(self) -> None:
        """What some models send for a call without arguments."""
        server = self.play(
            [
                [('run_command', '[]')],
                [('run_command', 'null')],
                [run('echo recovered')],
                'Done.',
            ]
        )

        *explained, last = server.tool_results()
        assert tuple(explained) == self.core([('run_command', {})]) * 2
        assert last == '[stdout]\nrecovered\n'

    def test_nobody_to_ask_is_a_denial(self) -> None:
        """With `on_ask='deny'` a run without a person goes on."""
        options: dict[str, Any] = {'ask_commands': ['git push'], 'on_ask': 'deny'}
        calls = [run('git push')]

        server = self.play([calls, [run('echo recovered')], 'Done.'], **options)

        (reason,) = self.core(calls, **options)
        denied, last = server.tool_results()
        assert reason in denied
        assert last == '[stdout]\nrecovered\n'

    def test_takes_every_option_and_says_at_once_what_is_not_allowed(self) -> None:
        """The keywords are those of `ShellOptions`."""
        keywords = {
            field.name: field.default if field.default is not MISSING else None
            for field in fields(ShellOptions)
        }
        with OpenAIServer([]) as server:
            self.agent(server.base_url, **keywords)
            try:
                self.agent(server.base_url, default_timeout=-1)
            except OptionError as error:
                refused = str(error)
            else:
                refused = ''

        assert 'default_timeout=-1' in refused

    def test_unknown_option_is_answered_with_the_one_that_was_meant(self) -> None:
        """As a `TypeError`, as Python's own for such a call."""
        with OpenAIServer([]) as server:
            try:
                self.agent(server.base_url, allowed_comands=['ls'])
            except TypeError as error:
                refused = str(error)
            else:
                refused = ''

        assert "did you mean 'allowed_commands'?" in refused

    def test_policy_that_is_handed_in_judges(self) -> None:
        """In place of the one that the options describe."""
        policy = Policy.from_lists(denied_commands=['ls'])

        server = self.play([[run('ls')], [run('rm -f x; echo ran')], 'Done.'], policy=policy)

        denied, ran = server.tool_results()
        assert "'ls' is denied" in denied
        assert ran == '[stdout]\nran\n'

    # -- rules: a person is asked, about `mkdir`

    def test_person_sees_what_is_asked_and_nothing_has_run(self) -> None:
        """The same plain data in every framework."""
        arguments = {'command': 'ls; mkdir it'}
        verdict = Policy.from_lists(ask_commands=ASKED).check(arguments['command'])
        expected = ApprovalRequired(verdict).request('run_command', arguments)

        server, asked = self.converse(
            [[('run_command', arguments)], 'Done.'], [YES], meanwhile=lambda: self.files() == []
        )

        ((request,),) = asked
        assert {name: request[name] for name in expected} == expected
        assert self.files() == ['it']
        assert server.tool_results() == ('(no output)',)

    def test_approved_command_finds_the_directory_and_the_jobs_from_before_the_pause(self) -> None:
        """A pause is no end; the end is one."""
        Path(self.workdir, 'below').mkdir()
        turns = [
            [run('cd below')],
            [self.work()],
            [self.wait()],
            [run('mkdir it')],
            [run('ls')],
            [check('j1')],
            'Done.',
        ]

        server, _ = self.converse(
            turns, [YES], persist_cwd=True, meanwhile=lambda: not self.gone(within=0)
        )

        assert server.tool_results()[-3:] == (
            '(no output)',
            '[stdout]\nheard\nit\n',
            '[status: running]\n[stdout]\nworking\n',
        )
        assert self.gone()

    def test_refusal_reaches_the_model_with_its_message(self) -> None:
        """And the command does not run."""
        server, _ = self.converse(
            [[run('mkdir it')], 'Then not.'], [Said(yes=False, message='Not on a Friday.')]
        )

        (text,) = server.tool_results()
        assert 'Not on a Friday.' in text
        assert self.files() == []

    def test_command_that_a_person_changed_runs_and_the_model_is_told(self) -> None:
        """In place of its own."""
        changed = 'mkdir other; echo made'

        server, _ = self.converse([[run('mkdir it')], 'Done.'], [Said(yes=True, command=changed)])

        assert server.tool_results() == (ApprovalRequired.edited(changed, '[stdout]\nmade\n'),)
        assert self.files() == ['other']

    def test_command_that_a_person_changed_is_judged_again(self) -> None:
        """Deny beats an approval."""
        Path(self.workdir, 'kept').touch()

        server, _ = self.converse(
            [[run('mkdir it')], 'Done.'],
            [Said(yes=True, command='rm kept')],
            denied_commands=['rm'],
        )

        (text,) = server.tool_results()
        assert "Command 'rm' is denied." in text
        assert self.files() == ['kept']

    def test_several_questions_of_one_turn_are_answered_one_by_one(self) -> None:
        """What needs no answer runs once, whatever the framework does again after the pause."""
        calls = [run('mkdir a'), run('echo ran >> free'), run('mkdir b')]

        server, asked = self.converse(
            [calls, 'Done.'], {'mkdir a': YES, 'mkdir b': Said(yes=False, message='No b.')}
        )

        assert {request['command'] for request in asked[0]} == {'mkdir a', 'mkdir b'}
        assert len(server.tool_results()) == 3
        assert any('No b.' in text for text in server.tool_results())
        assert self.files() == ['a', 'free']
        assert Path(self.workdir, 'free').read_text() == 'ran\n'

    def test_job_that_was_started_beside_a_question_was_started_once(self) -> None:
        """Whatever the framework does again after the pause."""
        ended = ('check_command', {'command_id': 'j1', 'wait_seconds': 20})

        server, _ = self.converse(
            [
                [start('echo began >> log'), run('mkdir it')],
                [ended],
                [('check_command', {})],
                'Done.',
            ],
            [YES],
        )

        assert Path(self.workdir, 'log').read_text() == 'began\n'
        assert 'j2' not in server.tool_results()[-1]

    def test_person_is_asked_about_a_shell_that_takes_input(self) -> None:
        """What is written to it later is judged by nobody."""
        call = ('start_command', {'command': 'sh', 'stdin': True})
        policy = Policy.from_lists(ask_commands=ASKED, unresolved='ask')
        verdict = policy.check('sh', open_input=True)
        expected = ApprovalRequired(verdict).request(*call)

        server, asked = self.converse(
            [[call], 'Done.'], [Said(yes=False, message='Not this.')], unresolved='ask'
        )

        ((request,),) = asked
        assert {name: request[name] for name in expected} == expected
        assert 'Not this.' in server.tool_results()[0]

    def test_approval_is_for_one_call(self) -> None:
        """The same command asks again."""
        server, asked = self.converse(
            [[run('mkdir it')], [run('mkdir it')], 'Done.'],
            [YES],
            [Said(yes=False, message='Once.')],
        )

        assert [request['command'] for requests in asked for request in requests] == [
            'mkdir it',
            'mkdir it',
        ]
        assert 'Once.' in server.tool_results()[1]

    def test_answer_is_for_one_call_also_when_ids_repeat(self) -> None:
        """Neither a yes nor a no to the call before is one to this; some providers count IDs from 0 in every answer."""
        no = Said(yes=False, message='No.')

        _, asked = self.converse(
            [
                [(*start('mkdir one'), 'call_0')],
                [(*run('mkdir two'), 'call_0')],
                [(*run('mkdir three'), 'call_0')],
                'Done.',
            ],
            [no],
            [YES],
            [no],
        )

        assert [request['command'] for requests in asked for request in requests] == [
            'mkdir one',
            'mkdir two',
            'mkdir three',
        ]
        assert self.files() == ['two']

    # -- rules: jobs, loops and threads

    def test_synchronous_run_keeps_its_job_and_its_directory(self) -> None:
        """In a thread of its own, whatever loops the framework makes for the calls."""
        Path(self.workdir, 'below').mkdir()
        calls = [run('cd below'), self.work(), self.wait(), check('j1'), run('pwd'), stop('j1')]

        server = self.play([*([call] for call in calls), 'Done.'], sync=True, persist_cwd=True)

        assert server.tool_results() == self.core(calls, persist_cwd=True)
        assert self.gone()

    def test_job_is_checked_from_another_loop_and_thread(self) -> None:
        """The session was handed in; each run has a thread and a loop of its own."""
        with self.session() as session:
            started = self.play([[self.work()], [self.wait()], 'Done.'], sync=True, session=session)
            checked = self.play([[check('j1')], [stop('j1')], 'Done.'], sync=True, session=session)

        expected = self.core([self.work(), self.wait(), check('j1'), stop('j1')])
        assert started.tool_results() + checked.tool_results() == expected

    def test_two_runs_at_once_share_neither_directory_nor_jobs(self) -> None:
        """One agent, run twice at the same time."""
        for name in ('left', 'right'):
            Path(self.workdir, name).mkdir()
        together = threading.Barrier(2)

        def script(request: ModelRequest) -> Answer:
            together.wait(LIMIT_SECONDS)  # no run is ahead of the other
            turns: list[Answer] = [
                [run(f'cd {request.prompt}')],
                [self.work(f'job of {request.prompt}')],
                [self.wait()],
                [run('pwd')],
                [check('j1')],
                'Done.',
            ]
            return turns[len(request.calls)]

        with OpenAIServer(script) as server:
            agent = self.agent(server.base_url, cwd=self.workdir, persist_cwd=True)

            async def both() -> None:
                await asyncio.gather(self.run(agent, 'left'), self.run(agent, 'right'))

            bounded(both())
        for name in ('left', 'right'):
            last = [request for request in server.requests if request.prompt == name][-1]
            *_, directory, job = last.tool_results.values()
            assert directory == f'[stdout]\n{os.path.join(self.workdir, name)}\n'
            assert job == f'[status: running]\n[stdout]\njob of {name}\n'
        assert self.gone()

    # -- rules: endings

    def test_run_that_succeeds_leaves_nothing(self) -> None:
        """A job that the model forgot ends with the run."""
        server = self.play([[start(self.nap)], [run(self.is_up())], 'Done.'])

        assert server.tool_results()[1] == '[stdout]\nup\n'
        assert self.gone()

    def test_next_run_starts_afresh(self) -> None:
        """In the first directory, with no job of the run before."""
        Path(self.workdir, 'below').mkdir()
        turns = [
            [run('cd below; pwd')],
            [start(self.nap)],
            'Done.',
            [run('pwd')],
            [check('j1')],
            'Done.',
        ]
        with OpenAIServer(turns) as server:
            agent = self.agent(server.base_url, cwd=self.workdir, persist_cwd=True)
            bounded(self.run(agent, 'First.'))
            assert self.gone()
            bounded(self.run(agent, 'Second.'))

        *_, directory, job = server.tool_results()
        assert directory == f'[stdout]\n{self.workdir}\n'
        assert job.startswith("[Error: unknown command ID 'j1'")

    def test_run_whose_model_fails_leaves_nothing(self) -> None:
        """The error is the framework's."""
        failed = False
        try:
            self.play([[start(self.nap)], [run(self.is_up())], Failure(500, 'The model is down.')])
        except Exception:  # noqa: BLE001 - each framework has its own
            failed = True

        assert failed
        assert self.gone()

    def test_run_with_a_tool_that_raises_leaves_nothing(self) -> None:
        """Whether the framework goes on or not."""

        def fail_on_boom(verdict: object, result: Any) -> None:
            del verdict
            if result is not None and result.command == 'echo boom':
                raise ZeroDivisionError

        with contextlib.suppress(Exception):  # some go on, others raise an error of their own
            self.play(
                [[start(self.nap)], [run(self.is_up())], [run('echo boom')], 'Done.'],
                on_command=fail_on_boom,
            )

        assert self.gone()

    def test_run_that_is_cancelled_leaves_nothing(self) -> None:
        """While a command runs and a job too."""
        turns: list[Answer] = [
            [start(self.nap)],
            [run(self.is_up())],
            [run(f'touch begun; {self.nap}')],
            'Done.',
        ]
        with OpenAIServer(turns) as server:
            agent = self.agent(server.base_url, cwd=self.workdir)

            async def cancel_halfway() -> bool:
                task = asyncio.create_task(self.run(agent, 'Go.'))
                await until(Path(self.workdir, 'begun').exists, task)
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await task
                return await asyncio.to_thread(self.gone)

            assert bounded(cancel_halfway())

    def test_stream_that_is_closed_early_leaves_nothing(self) -> None:
        """While the model is still speaking."""
        turns: list[Answer] = [
            [start(self.nap)],
            [run(self.is_up())],
            Hang(after='And now I will tell you all. ' * 9),
        ]
        with OpenAIServer(turns) as server:
            agent = self.agent(server.base_url, cwd=self.workdir)

            async def close_halfway() -> bool:
                events = self.stream(agent, 'Go.')
                async for _ in events:
                    if len(server.exchanges) == len(turns):
                        break
                await events.aclose()
                return await asyncio.to_thread(self.gone)

            assert bounded(close_halfway())
        assert len(server.tool_results()) == 2

    def test_ctrl_c_in_a_synchronous_program_ends_the_command(self) -> None:
        """And the program says no more than that it was interrupted; `run_sync` is called inside `interruptible`."""
        command = f'touch begun; exec {self.nap}'
        arguments = [inspect.getfile(type(self)), type(self).__name__, self.workdir, command]
        program = subprocess.Popen(
            [sys.executable, '-c', INTERRUPTED, *arguments], stderr=subprocess.PIPE, text=True
        )
        try:
            deadline = time.monotonic() + IMPORT_SECONDS
            while not Path(self.workdir, 'begun').exists() and program.poll() is None:
                assert time.monotonic() < deadline
                time.sleep(0.05)
            sent = time.monotonic()
            program.send_signal(signal.SIGINT)
            _, said = program.communicate(timeout=LIMIT_SECONDS)
            took = time.monotonic() - sent
        finally:
            program.kill()

        assert said.endswith('KeyboardInterrupt\n'), said
        assert not re.search('was destroyed|ignored in|never retrieved|never awaited', said), said
        assert took < 8, 'the command would have taken a day'
        assert self.gone()

    # -- rules: what is handed in stays open

    def test_session_that_is_handed_in_outlives_the_run(self) -> None:
        """With its directory and its jobs."""
        Path(self.workdir, 'below').mkdir()
        with self.session(persist_cwd=True) as session:
            self.play(
                [[run('cd below')], [start(self.nap)], [run(self.is_up())], 'Done.'],
                session=session,
            )
            alive = not self.gone(within=0)
            server = self.play([[run('pwd')], [check('j1')], 'Done.'], session=session)
            closed = session.closed

        assert alive
        assert not closed
        assert server.tool_results() == (
            f'[stdout]\n{self.workdir}/below\n',
            '[status: running]\n(no output yet)',
        )

    def test_session_that_is_handed_in_starts_again_what_a_later_run_starts(self) -> None:
        """Also when the call has the ID of one before; some providers count IDs from 0 in every answer."""
        began = start('echo began >> log')
        with self.session() as session:
            for job in ('j1', 'j2'):
                ended = ('check_command', {'command_id': job, 'wait_seconds': 20})
                server = self.play([[(*began, 'call_0')], [ended], 'Done.'], session=session)

        assert Path(self.workdir, 'log').read_text() == 'began\nbegan\n'
        assert server.tool_results() == self.core([began, began, ended])[1:]

    def test_session_that_is_handed_in_outlives_an_error(self) -> None:
        """The caller decides when it ends."""
        with self.session() as session:
            with contextlib.suppress(Exception):  # each framework has its own
                self.play([[run('true')], Failure(500)], session=session)
            result = session.run_sync('echo alive')

        assert result.stdout == 'alive\n'

    def test_sandbox_that_is_handed_in_stays_open(self) -> None:
        """The jobs of the run end all the same."""
        sandbox = LocalSandbox(cwd=self.workdir)

        async def execute_and_close() -> str:
            result = await sandbox.execute('echo alive')
            await sandbox.aclose()
            return result.stdout

        server = self.play(
            [[start(self.nap)], [run(self.is_up())], [run('pwd')], 'Done.'],
            cwd='.',
            sandbox=sandbox,
        )

        assert server.tool_results()[1:] == ('[stdout]\nup\n', f'[stdout]\n{self.workdir}\n')
        assert self.gone()
        assert bounded(execute_and_close()) == 'alive\n'

    # -- how the rules are played

    workdir: str
    nap: str

    def setup_method(self) -> None:
        """Give the rule directories of its own; temporary files of this process go there too."""
        self._folder = tempfile.TemporaryDirectory(prefix='adapter-contract-')
        home = os.path.realpath(self._folder.name)
        self.workdir = os.path.join(home, 'work')
        self._temporary = Path(home, 'tmp')
        self._before = tempfile.tempdir
        Path(self.workdir).mkdir()
        self._temporary.mkdir()
        tempfile.tempdir = str(self._temporary)
        self.nap = f'sleep {86_400 + os.getpid()}.{next(_numbers)}'

    def teardown_method(self) -> None:
        """See that nothing is left, whatever the rule was about."""
        tempfile.tempdir = self._before
        try:
            assert self.gone(), 'a process or a file of this rule is left'
        finally:
            self._folder.cleanup()

    def play(self, script: Script, *, sync: bool = False, **keywords: Any) -> OpenAIServer:
        """Run a new agent against a script, to the end, and return the server, which knows what the model read."""
        if 'session' not in keywords:
            keywords = {'cwd': self.workdir, **keywords}
        with OpenAIServer(script) as server:
            agent = self.agent(server.base_url, **keywords)
            if sync:
                with ThreadPoolExecutor(1) as thread:
                    thread.submit(self._in_thread, agent).result(LIMIT_SECONDS)
            else:
                bounded(self.run(agent, 'Go.'))
        return server

    def converse(
        self,
        script: Script,
        *answers: Sequence[Said] | Mapping[str, Said],
        meanwhile: Callable[[], bool] = lambda: True,
        **keywords: Any,
    ) -> tuple[OpenAIServer, list[Sequence[Mapping[str, Any]]]]:
        """Run a new agent that has to ask about `mkdir`, with a person who answers, to the end.

        Args:
            script: What the model does.
            answers: What the person says at each pause; by the command where the order of the requests is not known.
            meanwhile: What has to be so while the run waits.
            keywords: For the shell.

        Returns:
            The server, and what was asked at each pause.
        """
        asked: list[Sequence[Mapping[str, Any]]] = []
        with OpenAIServer(script) as server:
            agent = self.agent(server.base_url, cwd=self.workdir, ask_commands=ASKED, **keywords)

            async def go_on() -> None:
                paused = await self.ask(agent, 'Go.')
                for said in answers:
                    assert paused.requests, 'the run does not wait for a person'
                    asked.append(paused.requests)
                    assert await asyncio.to_thread(meanwhile)
                    one_by_one = (
                        [said[request['command']] for request in paused.requests]
                        if isinstance(said, Mapping)
                        else said
                    )
                    paused = await self.answer(paused, one_by_one)
                assert not paused.requests

            bounded(go_on())
        return server, asked

    def files(self) -> list[str]:
        """The names of what is in the rule's directory."""
        return sorted(os.listdir(self.workdir))

    def _in_thread(self, agent: Any) -> None:
        # Some frameworks make a loop for a thread that has none, and leave it open: a warning later on.
        loop = asyncio.new_event_loop()
        asyncio.set_event_loop(loop)
        try:
            self.run_sync(agent, 'Go.')
        finally:
            asyncio.set_event_loop(None)
            loop.close()

    def session(self, **options: Any) -> ShellSession:
        """A session of core in the rule's directory."""
        keywords: dict[str, Any] = {'cwd': self.workdir, **options}
        return ShellSession(ShellOptions(**keywords))

    def core(self, calls: Sequence[Call], **options: Any) -> tuple[str, ...]:
        """What core itself says to these calls."""

        async def one_by_one() -> tuple[str, ...]:
            async with self.session(**options) as session:
                tools = {tool.name: tool for tool in session.tools}
                texts: list[str] = []
                for name, arguments in calls:
                    try:
                        texts.append((await tools[name].call(arguments)).text)
                    except CommandDenied as denied:
                        texts.append(str(denied))
                return tuple(texts)

        return bounded(one_by_one())

    def work(self, text: str = 'working') -> Call:
        """A call that starts a job which says something, leaves a file, and goes on for a day."""
        return start(f'echo {text}; touch said; exec {self.nap}')

    def wait(self) -> Call:
        """A call that waits until such a job has said it."""
        return run('for _ in $(seq 200); do mv said heard 2>&- && break; sleep 0.05; done')

    def is_up(self) -> str:
        """A command that waits until `nap` is seen in `ps`, then says `up`."""
        pattern = f'[s]{self.nap[1:]}'  # which does not match this command itself
        return f'for _ in $(seq 100); do ps -A -o args= | grep -q "^{pattern}" && echo up && break; sleep 0.05; done'

    def gone(self, *, within: float | None = None) -> bool:
        """Whether no process of this rule is left, and no file, after at most `within` seconds (`GONE_SECONDS`)."""
        end = time.monotonic() + (GONE_SECONDS if within is None else within)
        while True:
            listed = subprocess.run(
                ['ps', '-A', '-o', 'args='], capture_output=True, text=True, check=True, timeout=30
            )
            if self.nap not in listed.stdout and not any(self._temporary.iterdir()):
                return True
            if time.monotonic() >= end:
                return False
            time.sleep(0.05)


def run(command: str, **arguments: object) -> Call:
    """A call of `run_command`."""
    return 'run_command', {'command': command, **arguments}


def start(command: str) -> Call:
    """A call of `start_command`."""
    return 'start_command', {'command': command}


def check(command_id: str) -> Call:
    """A call of `check_command`."""
    return 'check_command', {'command_id': command_id}


def stop(command_id: str) -> Call:
    """A call of `stop_command`."""
    return 'stop_command', {'command_id': command_id}


def bare(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A schema without what frameworks add or take away and no model minds."""
    found = copy.deepcopy(dict(schema))
    found.pop('description', None)
    found.pop('additionalProperties', None)
    if not found.get('required'):
        found.pop('required', None)
    return _untitled(found)


def bounded(work: Coroutine[Any, Any, T]) -> T:
    """Run it in a loop of its own, not for ever."""
    return asyncio.run(asyncio.wait_for(work, LIMIT_SECONDS))


async def until(true: Callable[[], bool], task: asyncio.Task[Any]) -> None:
    """Wait until something is so; an error of the task is raised here."""
    while not true():
        if task.done():
            raise AssertionError(f'the run ended too early: {task.result()!r}')
        await asyncio.sleep(0.02)


def _untitled(value: Any) -> Any:
    if isinstance(value, dict):
        items = cast('dict[str, Any]', value)
        # A property may be called `title`; its value is a schema then, not a text.
        return {
            key: _untitled(item)
            for key, item in items.items()
            if key != 'title' or not isinstance(item, str)
        }
    if isinstance(value, list):
        parts = cast('list[Any]', value)
        return [_untitled(part) for part in parts]
    return value
