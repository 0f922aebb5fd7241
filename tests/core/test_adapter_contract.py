"""The contract of adapters, run with the smallest agent there is: it needs no framework."""

import asyncio
import contextlib
import json
import urllib.request
from collections.abc import AsyncGenerator
from contextlib import nullcontext
from typing import Any

from anyshell import CommandDenied, ShellOptions, ShellSession
from anyshell.testing import AdapterContract


class SmallestAgent:
    """A loop around Chat Completions; what an adapter's tests take from a framework."""

    def __init__(
        self,
        base_url: str,
        *,
        session: Any = None,
        sandbox: Any = None,
        policy: Any = None,
        **options: Any,
    ):
        self.url = f'{base_url}/chat/completions'
        self.handed_in = session
        self.made = lambda: ShellSession(ShellOptions(**options), sandbox=sandbox, policy=policy)
        ShellOptions(**options)

    async def events(self, prompt: str) -> AsyncGenerator[str]:
        """Run to the end; gives the pieces of the model's texts as they come."""
        async with nullcontext(self.handed_in) if self.handed_in else self.made() as session:
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
                texts = [asyncio.create_task(self.call(tools, call)) for call in calls]
                for call, text in zip(calls, texts, strict=True):
                    answer = {'role': 'tool', 'tool_call_id': call['id'], 'content': await text}
                    messages.append(answer)

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
        with await asyncio.to_thread(urllib.request.urlopen, request, timeout=30) as response:
            while line := await asyncio.to_thread(response.readline):
                if line.startswith(b'data: {'):
                    yield json.loads(line[6:])['choices'][0]['delta']

    async def call(self, tools: Any, call: dict[str, Any]) -> str:
        function = call['function']
        try:
            reply = await tools[function['name']].call(
                json.loads(function['arguments']), call_id=call['id']
            )
        except CommandDenied as denied:
            return str(denied)
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
