"""The reference names all that is public, and nothing else; llms.txt and the navigation name all pages."""

import ast
import html
import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / 'docs'
PACKAGES = {
    'anyshell': ROOT / 'core/src/anyshell',
    'anyshell.policy': ROOT / 'core/src/anyshell/policy',
    'anyshell.testing': ROOT / 'core/src/anyshell/testing',
    **{path.name: path for path in sorted(ROOT.glob('adapters/*/src/*_anyshell'))},
}
BESIDE = {
    'anyshell.errors',  # the module, whose docstring draws the tree of errors
    # What needs more than the framework's smallest package is not imported by the adapter's.
    'langchain_anyshell.deepagents.SandboxBackend',
    'langchain_anyshell.guard.ShellPolicy',
    'openai_agents_anyshell.sandbox.SandboxClient',
}


def public(package: Path) -> set[str]:
    """What `__all__` of a package lists; read, not imported, since no environment has all frameworks."""
    for node in ast.parse((package / '__init__.py').read_text()).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == '__all__':
            return set(ast.literal_eval(node.value))
    raise AssertionError(f'{package} has no __all__')


def referred() -> set[str]:
    """What the pages of the reference show."""
    return {
        name
        for page in DOCS.glob('reference/*.md')
        for name in re.findall(r'^::: (\S+)$', page.read_text(), re.MULTILINE)
    }


def pages_of_navigation() -> list[str]:
    return re.findall(r'^ +- .+: (\S+\.md)$', (ROOT / 'mkdocs.yml').read_text(), re.MULTILINE)


@pytest.mark.parametrize('package', PACKAGES)
def test_every_public_name_is_in_the_reference(package: str) -> None:
    # What `anyshell` itself gives is shown as that.
    above = public(PACKAGES['anyshell']) if package.startswith('anyshell.') else set[str]()
    names = {f'{package}.{name}' for name in public(PACKAGES[package]) - above}

    assert sorted(names - referred()) == []


def test_the_reference_shows_public_names_only() -> None:
    names = {f'{package}.{name}' for package, path in PACKAGES.items() for name in public(path)}

    assert sorted(referred() - names - BESIDE) == []


@pytest.mark.parametrize('page', sorted(DOCS.glob('reference/*.md')), ids=lambda page: page.stem)
def test_each_page_says_what_it_holds_and_where_that_is_described(page: Path) -> None:
    """For who reads it in the repository, where nothing fills in the docstrings."""
    text = page.read_text()
    names = re.findall(r'^::: (\S+)$', text, re.MULTILINE)
    rows = dict(re.findall(r'^\| `([\w.]+)` \| .+ \| `(\S+\.py)` \|$', text, re.MULTILINE))

    assert list(rows) == [name for name in names if name != 'anyshell.errors']
    for name, file in rows.items():
        last = name.rpartition('.')[2]
        source = (ROOT / file).read_text()
        assert re.search(rf'^(?:class |def |async def )?{last}\b', source, re.MULTILINE), name


def test_every_page_is_in_the_navigation() -> None:
    pages = sorted(str(page.relative_to(DOCS)) for page in DOCS.glob('**/*.md'))

    assert sorted(pages_of_navigation()) == pages


def test_llms_txt_is_made_from_the_navigation() -> None:
    spec = importlib.util.spec_from_file_location('llms', DOCS / 'llms.py')
    assert spec is not None
    assert spec.loader is not None
    llms = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(llms)

    assert (DOCS / 'llms.txt').read_text() == llms.text(), 'run: python docs/llms.py'


def test_the_picture_of_the_demo_is_whole_and_loads_nothing() -> None:
    picture = html.unescape((DOCS / 'assets/demo.svg').read_text()).replace('\xa0', ' ')

    for text in ('run_command', "Command 'rm' is denied.", 'Started background command'):
        assert text in picture
    assert re.findall(r'url\((?!#)|@import|href=', picture) == []


def test_pages_name_no_places_that_nobody_else_has() -> None:
    for page in [*DOCS.glob('**/*.md'), ROOT / 'README.md', ROOT / 'core/README.md']:
        found = re.findall(r'/(?:root|home|work|tmp/(?!\w*\b)[a-z]+)/\S*', page.read_text())
        assert found == [], page
