"""The adapter for Strands."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from strands import Agent
from strands.models.openai import OpenAIModel

from anyshell.testing.adapter_contract import AdapterContract
from strands_anyshell import ShellPlugin


def model(base_url: str) -> OpenAIModel:
    return OpenAIModel(
        client_args={'base_url': base_url, 'api_key': 'any', 'max_retries': 0}, model_id='any'
    )


class TestContract(AdapterContract):
    """An agent of Strands is one conversation and refuses a second run at the same time: one plugin, an agent a run."""

    def agent(self, base_url: str, **keywords: Any) -> Any:
        plugin = ShellPlugin(**keywords)
        return lambda: Agent(model=model(base_url), plugins=[plugin], callback_handler=None)

    async def run(self, agent: Any, prompt: str) -> str:
        return str(await agent().invoke_async(prompt)).strip()

    def run_sync(self, agent: Any, prompt: str) -> str:
        return str(agent()(prompt)).strip()

    async def stream(self, agent: Any, prompt: str) -> AsyncGenerator[object]:
        async with aclosing(agent().stream_async(prompt)) as events:
            async for event in events:
                yield event
