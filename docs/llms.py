# ruff: noqa: INP001 - a script beside the pages
"""Write llms.txt, the list of pages for models that read these docs: `python docs/llms.py`. A test holds it to this.

A line for each page of the navigation: its title, where it is (as Markdown, beside this file), and its first sentence.
"""

import re
from pathlib import Path

DOCS = Path(__file__).parent
HEAD = """\
# anyshell

> One shell tool for AI agents, in any framework (Pydantic AI, LangChain, Strands, OpenAI Agents SDK) and any sandbox.
> Install `pydantic-ai-anyshell`, `langchain-anyshell`, `strands-anyshell`, `openai-agents-anyshell`, or `anyshell` alone.
"""


def first_sentence(page: Path) -> str:
    """The first sentence of a page's first paragraph, without links and on one line."""
    paragraphs = re.split(r'\n\s*\n', page.read_text())
    for paragraph in paragraphs[1:]:
        if re.match(r'[A-Za-z`*\[]', paragraph):
            text = re.sub(r'\[(.*?)\]\(.*?\)', r'\1', ' '.join(paragraph.split()))
            return re.split(r'(?<=[.?])\s(?=[A-Z`])', text)[0]
    return ''


def text() -> str:
    """The whole of llms.txt."""
    lines = [HEAD]
    navigation = (DOCS.parent / 'mkdocs.yml').read_text().partition('\nnav:\n')[2]
    for indent, title, page in re.findall(
        r'^( *)- (.+?):(?: (\S+\.md))?$', navigation, re.MULTILINE
    ):
        if not page and len(indent) == 2:
            lines.append(f'\n## {title}\n')
        elif page:
            said = first_sentence(DOCS / page)
            if len(indent) == 2 and page != 'index.md':
                lines.append('')
            lines.append(f'- [{title}]({page})' + (f': {said}' if said else ''))
    return re.sub(r'\n{3,}', '\n\n', '\n'.join(lines)) + '\n'


if __name__ == '__main__':
    (DOCS / 'llms.txt').write_text(text())
