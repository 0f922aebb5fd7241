"""Who may know whom (CONTRIBUTING.md): read from the imports in the sources."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CORE = ROOT / 'core/src/anyshell'
ADAPTERS = sorted(path.parent.name for path in ROOT.glob('adapters/*/pyproject.toml'))
FRAMEWORKS = {
    'agents',
    'deepagents',
    'langchain',
    'langchain_core',
    'langgraph',
    'openai',
    'pydantic_ai',
    'strands',
}

# Each layer -> the other layers that it may import. `testing`, `cli`, `command_line` and the package itself may import all.
LAYERS: dict[str, set[str]] = {
    'errors': set(),
    'keywords': set(),
    'result': set(),
    'environment': {'errors'},
    'output': {'errors'},
    'policy': {'errors'},
    'sandbox': {'errors', 'keywords', 'synchronous'},
    'waiting': {'errors', 'sandbox'},
    'cwd': {'errors', 'sandbox'},
    'jobs': {'cwd', 'errors', 'result', 'sandbox', 'waiting'},
    'options': {'errors', 'keywords', 'policy', 'result'},
    'interrupt': {'sandbox'},
    'synchronous': set(),
    'live': {'sandbox'},
    'trace': set(),
    'guard': {'errors', 'policy'},
    'tools': {'errors', 'live', 'output', 'trace'},
    'replies': {'errors', 'output', 'tools'},
}
LAYERS['session'] = {*LAYERS}
LAYERS['sessions'] = {'errors', 'keywords', 'options', 'policy', 'session'}


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """All nodes below, without what only a type checker reads."""
    for child in ast.iter_child_nodes(node):
        if not (isinstance(child, ast.If) and 'TYPE_CHECKING' in ast.unparse(child.test)):
            yield child
            yield from statements(child)


def imports(path: Path, package: str) -> set[str]:
    """The modules that a file imports at run time, as absolute names."""
    found: set[str] = set()
    for node in statements(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            parts = package.split('.')
            base = parts[: len(parts) - node.level + 1] if node.level else []
            origin = '.'.join([*base, *([node.module] if node.module else [])])
            found |= {origin} | {f'{origin}.{alias.name}' for alias in node.names}
    return found


def core_files() -> list[Path]:
    return sorted(CORE.rglob('*.py'))


def package_of(path: Path) -> str:
    return '.'.join(['anyshell', *path.parent.relative_to(CORE).parts])


def layer_of(path: Path) -> str:
    return path.relative_to(CORE).parts[0].removesuffix('.py')


@pytest.mark.parametrize('path', core_files(), ids=lambda path: str(path.relative_to(CORE)))
def test_core_module_imports_only_lower_layers(path: Path) -> None:
    layer = layer_of(path)
    if layer in {'__init__', '__main__', 'cli', 'command_line', 'testing'}:
        return
    assert layer in LAYERS, f'{layer} is new: say in LAYERS what it may import'

    layers = {
        name.split('.')[1]
        for name in imports(path, package_of(path))
        if name.startswith('anyshell.')
    }

    modules = {entry.name.removesuffix('.py') for entry in CORE.iterdir()}
    assert layers & modules - {layer, 'py.typed'} <= LAYERS[layer]


def test_contributing_names_every_layer_and_no_other() -> None:
    page = (ROOT / 'CONTRIBUTING.md').read_text()
    told = page.partition('In `core/src/anyshell/`:\n')[2].partition('\n## ')[0]
    entries = re.findall(r'^    (\S.*?)(?:  |$)', told, re.MULTILINE)
    named = {name.rstrip('/') for entry in entries for name in entry.split(', ')}

    assert named == {*LAYERS, 'cli', 'command_line', 'testing'}


@pytest.mark.parametrize('path', core_files(), ids=lambda path: str(path.relative_to(CORE)))
def test_core_imports_no_framework(path: Path) -> None:
    assert not {name.split('.')[0] for name in imports(path, package_of(path))} & FRAMEWORKS


@pytest.mark.parametrize('path', core_files(), ids=lambda path: str(path.relative_to(CORE)))
def test_core_does_not_import_its_testing_package(path: Path) -> None:
    if layer_of(path) == 'testing':
        return

    assert not {
        name for name in imports(path, package_of(path)) if name.startswith('anyshell.testing')
    }


@pytest.mark.parametrize('adapter', ADAPTERS)
def test_adapter_imports_public_names_of_core_and_no_other_adapter(adapter: str) -> None:
    source = ROOT / 'adapters' / adapter / 'src' / f'{adapter}_anyshell'
    others = {f'{other}_anyshell' for other in ADAPTERS} - {f'{adapter}_anyshell'}
    public = set(_public_names())

    for path in sorted(source.rglob('*.py')):
        for name in imports(path, f'{adapter}_anyshell'):
            top, _, rest = name.partition('.')
            assert top not in others, f'{path.name} imports {name}'
            if top == 'anyshell' and rest:
                assert rest in public, f'{path.name} imports {name}, which core does not export'


def _public_names() -> list[str]:
    import anyshell  # noqa: PLC0415  (the other tests need only the sources)

    return list(anyshell.__all__)


def test_importing_anyshell_asks_for_no_framework() -> None:
    # Also a guarded import counts, so look at what is asked for, not at what is installed.
    program = f"""
import sys
asked = set()
class Finder:
    def find_spec(self, name, path=None, target=None):
        asked.add(name.split('.')[0])
sys.meta_path.insert(0, Finder())
import anyshell
print(sorted(asked & {FRAMEWORKS!r}))
"""
    done = subprocess.run(
        [sys.executable, '-c', program], capture_output=True, text=True, check=True, timeout=60
    )

    assert done.stdout == '[]\n'


def test_a_scripted_model_needs_no_pytest() -> None:
    program = """
import sys
sys.modules['pytest'] = None  # importing it fails
from anyshell.testing import AdapterContract, FakeSandbox, OpenAIServer
"""
    subprocess.run([sys.executable, '-c', program], check=True, timeout=60)
