"""Pydantic AI: the contract, and what only this framework has."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

from openai import AsyncOpenAI
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai_anyshell import Shell

from anyshell.testing import AdapterContract


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
        loop = (
            asyncio.new_event_loop()
        )  # `run_sync` would make one for this thread and leave it open
        asyncio.set_event_loop(loop)
        try:
            return agent.run_sync(prompt).output
        finally:
            asyncio.set_event_loop(None)
            loop.close()

    async def stream(self, agent: Agent, prompt: str) -> AsyncGenerator[object]:
        async with agent.run_stream_events(prompt) as events:
            async for event in events:
                yield event
