"""The adapter for LangChain."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_openai import ChatOpenAI

from anyshell.testing.adapter_contract import AdapterContract
from langchain_anyshell import ShellToolkit

TURNS = {'recursion_limit': 99}


def model(base_url: str, **settings: Any) -> ChatOpenAI:
    if 'stream_chunk_timeout' in ChatOpenAI.model_fields:
        # With its own limit it waits for a chunk in a task that closing the stream does not reach.
        settings = {'stream_chunk_timeout': None, **settings}
    return ChatOpenAI(model='any', base_url=base_url, api_key='any', max_retries=0, **settings)  # pyright: ignore[reportArgumentType]


def asked(prompt: str) -> dict[str, Any]:
    return {'messages': [('user', prompt)]}


class TestContract(AdapterContract):
    settings: dict[str, Any] = {}

    def agent(self, base_url: str, **keywords: Any) -> Any:
        return create_agent(model(base_url, **self.settings), ShellToolkit(**keywords).get_tools())

    async def run(self, agent: Any, prompt: str) -> str:
        answer = await agent.ainvoke(asked(prompt), TURNS)
        return answer['messages'][-1].text

    def run_sync(self, agent: Any, prompt: str) -> str:
        return agent.invoke(asked(prompt), TURNS)['messages'][-1].text

    async def stream(self, agent: Any, prompt: str) -> AsyncGenerator[object]:
        async with aclosing(agent.astream(asked(prompt), TURNS, stream_mode='messages')) as events:
            async for event in events:
                yield event
