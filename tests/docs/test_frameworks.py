"""docs/frameworks.md and docs/security.md: every test that they name is there, and every row has all four frameworks."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [*sorted(ROOT.glob('docs/**/*.md')), ROOT / 'README.md', ROOT / 'SECURITY.md']
CONTRACTS = {
    'contract': 'core/src/anyshell/testing/adapter_contract.py',
    'sandbox-contract': 'core/src/anyshell/testing/sandbox_contract.py',
}
FRAMEWORKS = ['Pydantic AI', 'LangChain', 'Strands', 'OpenAI Agents SDK']


def in_file(path: Path) -> set[str]:
    """The names of a file's tests and classes of tests."""
    if not path.exists():
        return set()
    return {
        node.name
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        and node.name.lower().startswith('test')
    }


def place(name: str) -> Path:
    """The file that a page means by a name."""
    if name in CONTRACTS:
        return ROOT / CONTRACTS[name]
    if '/' in name:
        return ROOT / name
    return next(ROOT.glob(f'tests/*/{name}'), ROOT / name)


@pytest.mark.parametrize('page', PAGES, ids=lambda page: page.name)
def test_every_test_that_a_page_names_is_there(page: Path) -> None:
    named = re.findall(r'`([\w./-]+)::([Tt]est\w+)`', page.read_text())

    assert [f'{name}::{test}' for name, test in named if test not in in_file(place(name))] == []


@pytest.mark.parametrize('page', PAGES, ids=lambda page: page.name)
def test_every_file_of_tests_that_a_page_names_is_there(page: Path) -> None:
    named = re.findall(r'`?((?:tests|core|examples|docs)/[\w./-]+\.(?:py|md))`?', page.read_text())

    assert [name for name in named if not (ROOT / name).exists()] == []


def test_every_row_says_something_of_each_framework_and_what_shows_it() -> None:
    page = (ROOT / 'docs/frameworks.md').read_text()
    sections = re.split(r'^## ', page, flags=re.MULTILINE)[1:]

    for section in sections:
        rows = re.findall(r'^\| ([A-Z].*?) \| (.*?) \| (.*?) ?\|$', section, re.MULTILINE)
        assert [name for name, _, _ in rows] == FRAMEWORKS, section
        for name, what, shown in rows:
            assert ('::' in shown) == (what != 'not yet'), f'{name}: {what}'


def test_errors_of_sandboxes_that_the_page_explains_are_in_the_code() -> None:
    page = (ROOT / 'docs/howto/remote.md').read_text().partition('| you see | do |')[2]
    code = ''.join(path.read_text() for path in ROOT.glob('core/src/anyshell/sandbox/*.py'))
    # Names are filled in there.
    known = re.sub(r'\{[^{}]*\}', '*', code)

    for said in re.findall(r'^\| `(.+?)` \|', page, re.MULTILINE):
        text = re.sub(r"^(?:docker|ssh) |'x'|\(…\)", '*', said).strip('* ')
        parts = [part.strip() for part in text.split('*') if part.strip()]
        assert [part for part in parts if part not in known] == [], said


def test_what_the_demo_shows_of_an_agent_fits_a_terminal() -> None:
    for agent in ROOT.glob('examples/demo/*_agent.py'):
        shown = agent.read_text().partition('async def run')[2]
        assert max(map(len, shown.splitlines())) <= 78, agent


def test_every_framework_has_two_examples_of_at_most_forty_lines() -> None:
    for adapter in ROOT.glob('adapters/*/pyproject.toml'):
        for kind in ('shell', 'session'):
            example = ROOT / 'examples' / f'{adapter.parent.name}_{kind}.py'
            assert len(example.read_text().splitlines()) <= 40, example
