"""Pydantic AI: the contract, and what only this framework has."""

from collections.abc import AsyncGenerator
from typing import Any

from openai import AsyncOpenAI
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from anyshell.testing import AdapterContract
from pydantic_ai_anyshell import Shell


def model(base_url: str, kind: Any = OpenAIChatModel) -> Any:
    return kind(
        'gpt-5.2',
        provider=OpenAIProvider(openai_client=AsyncOpenAI(base_url=base_url, api_key='any')),
    )


class TestContract(AdapterContract):
    def agent(self, base_url: str, **keywords: Any) -> Agent:
        return Agent(model(base_url), capabilities=[Shell(**keywords)])

    async def run(self, agent: Agent, prompt: str) -> str:
        return (await agent.run(prompt)).output

    def run_sync(self, agent: Agent, prompt: str) -> str:
        return agent.run_sync(prompt).output

    async def stream(self, agent: Agent, prompt: str) -> AsyncGenerator[object]:
        async with agent.run_stream_events(prompt) as events:
            async for event in events:
                yield event
