"""The OpenAI Agents SDK's part of the demo."""

from agents import Agent, OpenAIResponsesModel, Runner, set_tracing_disabled
from openai import AsyncOpenAI

from openai_agents_anyshell import ShellTools


async def run(model_base_url: str, workdir: str, prompt: str) -> str:
    """Let an agent do it."""
    set_tracing_disabled(True)  # traces go to OpenAI, which wants a key
    client = AsyncOpenAI(base_url=model_base_url, api_key='any')
    async with ShellTools(cwd=workdir) as shell:
        model = OpenAIResponsesModel('any', client)
        agent = Agent(name='Helper', model=model, tools=shell.tools())
        result = await Runner.run(agent, prompt)
        return result.final_output
