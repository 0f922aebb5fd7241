"""OpenAI Agents SDK: the contract, and what only this framework has."""

from collections.abc import AsyncGenerator
from typing import Any

import agents
from agents import Agent, OpenAIResponsesModel, Runner
from openai import AsyncOpenAI

from anyshell.testing import AdapterContract
from openai_agents_anyshell import ShellTools

agents.set_tracing_disabled(True)


def agent(base_url: str, shell: ShellTools, kind: Any = OpenAIResponsesModel) -> Agent:
    client = AsyncOpenAI(base_url=base_url, api_key='any')
    return Agent(name='Tester', model=kind('gpt-5.2', client), tools=shell.tools())


class TestContract(AdapterContract):
    def agent(self, base_url: str, **keywords: Any) -> Any:
        agent(base_url, ShellTools(**keywords))  # what is not allowed is refused here
        return base_url, keywords

    async def run(self, agent_: Any, prompt: str) -> str:
        base_url, keywords = agent_
        async with ShellTools(**keywords) as shell:
            result = await Runner.run(agent(base_url, shell), prompt, max_turns=12)
            return result.final_output

    def run_sync(self, agent_: Any, prompt: str) -> str:
        base_url, keywords = agent_
        with ShellTools(**keywords) as shell:
            return Runner.run_sync(agent(base_url, shell), prompt, max_turns=12).final_output

    async def stream(self, agent_: Any, prompt: str) -> AsyncGenerator[object]:
        base_url, keywords = agent_
        async with ShellTools(**keywords) as shell:
            result = Runner.run_streamed(agent(base_url, shell), prompt, max_turns=12)
            try:
                async for event in result.stream_events():
                    yield event
            finally:
                result.cancel()
