"""Pydantic AI's part of the demo."""

from openai import AsyncOpenAI
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from pydantic_ai_anyshell import Shell


async def run(model_base_url: str, workdir: str, prompt: str) -> str:
    """Let an agent do it."""
    client = AsyncOpenAI(base_url=model_base_url, api_key='any')
    provider = OpenAIProvider(openai_client=client)
    model = OpenAIChatModel('any', provider=provider)
    agent = Agent(model, capabilities=[Shell(cwd=workdir)])
    result = await agent.run(prompt)
    return result.output
