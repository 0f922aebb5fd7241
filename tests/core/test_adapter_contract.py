"""The contract of adapters, run with the smallest agent there is: it needs no framework."""

import asyncio
import contextlib
import itertools
import json
import urllib.error
import urllib.request
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import pytest

from anyshell import ApprovalRequired, CommandDenied, ShellOptions, ShellSession
from anyshell.testing import AdapterContract, Paused, Said, adapter_contract


def urlopen(request: urllib.request.Request) -> Any:
    try:
        return urllib.request.urlopen(request, timeout=30)
    except urllib.error.HTTPError as error:
        error.close()  # it holds the connection
        raise


def close(opening: asyncio.Future[Any]) -> None:
    if not opening.cancelled() and opening.exception() is None:
        opening.result().close()


class SmallestAgent:
    """A loop around Chat Completions; what an adapter's tests take from a framework."""

    numbers = itertools.count(1)  # of runs, of all agents

    def __init__(
        self,
        base_url: str,
        *,
        session: Any = None,
        sandbox: Any = None,
        policy: Any = None,
        **options: Any,
    ) -> None:
        self.url = f'{base_url}/chat/completions'
        self.handed_in = session
        self.person: Callable[[list[Any]], Awaitable[Sequence[Said]]] = self.nobody
        self.settings = ShellOptions(**options), sandbox, policy

    async def nobody(self, requests: list[Any]) -> Sequence[Said]:
        return [Said(yes=False, message='Nobody is here.') for _ in requests]

    def made(self) -> ShellSession:
        options, sandbox, policy = self.settings
        return ShellSession(options, sandbox=sandbox, policy=policy)

    def session(self) -> Any:
        return nullcontext(self.handed_in) if self.handed_in else self.made()

    async def events(self, prompt: str) -> AsyncGenerator[str]:
        """Run to the end; gives the pieces of the model's texts as they come."""
        self.number = next(self.numbers)
        async with self.session() as session:
            tools = {tool.name: tool for tool in session.tools}
            messages: list[dict[str, Any]] = [{'role': 'user', 'content': prompt}]
            while True:
                calls: list[dict[str, Any]] = []
                async for delta in self.ask(messages, tools):
                    for piece in delta.get('tool_calls', ()):
                        if 'id' in piece:
                            calls.append(piece)
                        else:
                            new = piece['function']['arguments']
                            calls[piece['index']]['function']['arguments'] += new
                    yield delta.get('content') or ''
                if not calls:
                    return
                messages.append({'role': 'assistant', 'tool_calls': calls})
                texts = await self.results(tools, calls)
                for call, text in zip(calls, texts, strict=True):
                    answer = {'role': 'tool', 'tool_call_id': call['id'], 'content': text}
                    messages.append(answer)

    async def results(self, tools: Any, calls: list[dict[str, Any]]) -> list[str]:
        """Call the tools; when all that need no answer have run, a person is asked about the others at once."""
        found = await asyncio.gather(*(self.call(tools, call) for call in calls))
        asked = {n: ask for n, ask in enumerate(found) if isinstance(ask, dict)}
        said = await self.person(list(asked.values())) if asked else []
        for (n, request), one in zip(asked.items(), said, strict=True):
            if not one.yes:
                found[n] = one.message
                continue
            command = one.command or request['command']
            try:
                reply = await tools[request['tool']].call({'command': command}, approved=True)
                changed = one.command is not None
                found[n] = ApprovalRequired.edited(command, reply.text) if changed else reply.text
            except CommandDenied as denied:
                found[n] = str(denied)
        return found

    async def ask(self, messages: Any, tools: dict[str, Any]) -> AsyncGenerator[dict[str, Any]]:
        functions = [
            {
                'name': tool.name,
                'description': tool.description,
                'parameters': tool.arguments.model_json_schema(),
            }
            for tool in tools.values()
        ]
        offered = [{'type': 'function', 'function': function} for function in functions]
        body = json.dumps({'messages': messages, 'tools': offered, 'stream': True}).encode()
        request = urllib.request.Request(self.url, body)
        opening = asyncio.get_running_loop().run_in_executor(None, urlopen, request)
        try:
            response = await asyncio.shield(opening)
        except asyncio.CancelledError:
            opening.add_done_callback(
                close
            )  # the thread goes on, and nobody else gets what it opens
            raise
        with response:
            while line := await asyncio.to_thread(response.readline):
                if line.startswith(b'data: {'):
                    yield json.loads(line[6:])['choices'][0]['delta']

    def id_of(self, call: dict[str, Any]) -> str | None:
        return f'{self.number}:{call["id"]}'

    async def call(self, tools: Any, call: dict[str, Any]) -> Any:
        """The text for the model, or what a person is to be asked."""
        name, arguments = call['function']['name'], json.loads(call['function']['arguments'])
        try:
            reply = await tools[name].call(arguments, call_id=self.id_of(call))
        except CommandDenied as denied:
            return str(denied)
        except ApprovalRequired as ask:
            return ask.request(name, arguments)
        return reply.text


class TestSmallestAgent(AdapterContract):
    def agent(self, base_url: str, **keywords: Any) -> SmallestAgent:
        return SmallestAgent(base_url, **keywords)

    async def run(self, agent: SmallestAgent, prompt: str) -> str:
        return ''.join([piece async for piece in agent.events(prompt)])

    async def stream(self, agent: SmallestAgent, prompt: str) -> AsyncGenerator[object]:
        async with contextlib.aclosing(agent.events(prompt)) as events:
            async for event in events:
                yield event

    async def ask(self, agent: SmallestAgent, prompt: str) -> Paused:
        return await self._go(agent, asyncio.create_task(self.run(agent, prompt)))

    async def answer(self, paused: Paused, said: Sequence[Said]) -> Paused:
        agent, running, answered = paused.state
        going = self._go(agent, running)
        answered.set_result(said)
        return await going

    async def _go(self, agent: SmallestAgent, running: asyncio.Task[str]) -> Paused:
        loop = asyncio.get_running_loop()
        asked, answered = loop.create_future(), loop.create_future()

        async def person(requests: list[Any]) -> Sequence[Said]:
            asked.set_result(requests)
            return await answered

        agent.person = person
        await asyncio.wait({running, asked}, return_when=asyncio.FIRST_COMPLETED)
        return Paused((agent, running, answered), asked.result()) if asked.done() else Paused()


class Leaky(SmallestAgent):
    """Never ends its sessions."""

    def session(self) -> Any:
        return nullcontext(self.handed_in or self.made())


class Sharing(SmallestAgent):
    """Has one session for all runs."""

    def __init__(self, base_url: str, **keywords: Any) -> None:
        super().__init__(base_url, **keywords)
        self.handed_in = self.handed_in or self.made()


class Closing(SmallestAgent):
    """Ends a session that was handed in."""

    def session(self) -> Any:
        return self.handed_in or self.made()


class Mute(SmallestAgent):
    """Hides why something was denied."""

    async def call(self, tools: Any, call: dict[str, Any]) -> str:
        text = await super().call(tools, call)
        return 'Error.' if 'denied' in text else text


class Renaming(SmallestAgent):
    """Has words of its own."""

    async def ask(self, messages: Any, tools: Any) -> AsyncGenerator[dict[str, Any]]:
        tools = {name: replace(tool, description='Runs a command.') for name, tool in tools.items()}
        async for delta in super().ask(messages, tools):
            yield delta


class Stripping(SmallestAgent):
    """Changes what the model reads a little."""

    async def call(self, tools: Any, call: dict[str, Any]) -> str:
        return (await super().call(tools, call)).strip()


class GivingUp(SmallestAgent):
    """Ends the run at the third denial."""

    denials = 0

    async def call(self, tools: Any, call: dict[str, Any]) -> str:
        text = await super().call(tools, call)
        self.denials += 'denied' in text
        assert self.denials < 3
        return text


class Vague(SmallestAgent):
    """Says of wrong arguments no more than that they are wrong."""

    async def call(self, tools: Any, call: dict[str, Any]) -> str:
        text = await super().call(tools, call)
        return 'wrong arguments for run_command' if 'invalid arguments' in text else text


class Strict(SmallestAgent):
    """Takes null for a value of a wrong type."""

    async def call(self, tools: Any, call: dict[str, Any]) -> Any:
        null = ': null' in call['function']['arguments']
        return 'Error: null is no value.' if null else await super().call(tools, call)


class Untold(SmallestAgent):
    """Does not say that a person has changed the command."""

    async def results(self, tools: Any, calls: list[dict[str, Any]]) -> list[str]:
        found = await super().results(tools, calls)
        return [text.partition(']\n')[2] if 'changed' in text else text for text in found]


class Trusting(SmallestAgent):
    """Takes one approval for all that come."""

    approved = False

    async def results(self, tools: Any, calls: list[dict[str, Any]]) -> list[str]:
        if self.approved:
            self.person = self.everybody
        found = await super().results(tools, calls)
        self.approved = True
        return found

    async def everybody(self, requests: list[Any]) -> Sequence[Said]:
        return [Said(yes=True) for _ in requests]


class Confusing(SmallestAgent):
    """Knows by the ID alone what it has asked about."""

    def __init__(self, base_url: str, **keywords: Any) -> None:
        super().__init__(base_url, **keywords)
        self.known: set[str] = set()

    async def call(self, tools: Any, call: dict[str, Any]) -> Any:
        found = await super().call(tools, call)
        if not isinstance(found, dict):
            return found
        if call['id'] in self.known:
            return (await tools[found['tool']].call(found['arguments'], approved=True)).text
        self.known.add(call['id'])
        return found


class Repeating(SmallestAgent):
    """Calls all tools of a turn again after a pause."""

    async def results(self, tools: Any, calls: list[dict[str, Any]]) -> list[str]:
        found = await super().results(tools, calls)
        for call in calls:
            await self.call(tools, call)
        return found


class Counting(SmallestAgent):
    """Takes an ID for one and the same call in all runs."""

    def id_of(self, call: dict[str, Any]) -> str:
        return call['id']


class Forgetting(Repeating):
    """And does not say that these are the same calls."""

    def id_of(self, call: dict[str, Any]) -> None:
        del call


@pytest.mark.parametrize(
    ('broken', 'rule'),
    [
        (Leaky, 'test_run_that_succeeds_leaves_nothing'),
        (Leaky, 'test_run_that_is_cancelled_leaves_nothing'),
        (Leaky, 'test_stream_that_is_closed_early_leaves_nothing'),
        (Sharing, 'test_two_runs_at_once_share_neither_directory_nor_jobs'),
        (Sharing, 'test_next_run_starts_afresh'),
        (Closing, 'test_session_that_is_handed_in_outlives_the_run'),
        (Mute, 'test_denial_reaches_the_model_with_its_reason'),
        (Renaming, 'test_tools_are_those_of_core'),
        (Stripping, 'test_texts_are_those_of_core'),
        (GivingUp, 'test_ten_denials_in_a_row_do_not_end_the_run'),
        (Vague, 'test_wrong_arguments_are_explained_and_do_not_end_the_run'),
        (Strict, 'test_null_stands_for_an_argument_that_is_left_out'),
        (Untold, 'test_command_that_a_person_changed_runs_and_the_model_is_told'),
        (Trusting, 'test_approval_is_for_one_call'),
        (Confusing, 'test_answer_is_for_one_call_also_when_ids_repeat'),
        (Repeating, 'test_several_questions_of_one_turn_are_answered_one_by_one'),
        (Forgetting, 'test_job_that_was_started_beside_a_question_was_started_once'),
        (Counting, 'test_session_that_is_handed_in_starts_again_what_a_later_run_starts'),
    ],
)
def test_broken_adapter_is_caught(broken: type[SmallestAgent], rule: str, monkeypatch: Any) -> None:
    monkeypatch.setattr(adapter_contract, 'GONE_SECONDS', 0.5)
    sessions: list[ShellSession] = []
    made = broken.made

    def noted(self: SmallestAgent) -> ShellSession:
        sessions.append(made(self))
        return sessions[-1]

    monkeypatch.setattr(broken, 'made', noted)

    class Contract(TestSmallestAgent):
        def agent(self, base_url: str, **keywords: Any) -> SmallestAgent:
            return broken(base_url, **keywords)

    contract = Contract()
    contract.setup_method()
    try:
        with pytest.raises(AssertionError):
            getattr(contract, rule)()
    finally:
        for session in sessions:
            session.close()
        contract.teardown_method()
