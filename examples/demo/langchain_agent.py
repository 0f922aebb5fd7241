"""LangChain's part of the demo."""

from langchain.agents import create_agent
from langchain_openai import ChatOpenAI

from langchain_anyshell import ShellToolkit


async def run(model_base_url: str, workdir: str, prompt: str) -> str:
    """Let an agent do it."""
    model = ChatOpenAI(model='any', base_url=model_base_url, api_key='any')
    agent = create_agent(model, ShellToolkit(cwd=workdir).get_tools())
    answer = await agent.ainvoke({'messages': [('user', prompt)]})
    return answer['messages'][-1].text
