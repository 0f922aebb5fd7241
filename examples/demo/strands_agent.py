"""Strands' part of the demo."""

from strands import Agent
from strands.models.openai import OpenAIModel

from strands_anyshell import ShellPlugin


async def run(model_base_url: str, workdir: str, prompt: str) -> str:
    """Let an agent do it."""
    client = {'base_url': model_base_url, 'api_key': 'any'}
    model = OpenAIModel(client_args=client, model_id='any')
    plugins = [ShellPlugin(cwd=workdir)]
    agent = Agent(model=model, plugins=plugins, callback_handler=None)
    return str(await agent.invoke_async(prompt))
