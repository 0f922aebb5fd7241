"""Every piece of code in README.md and docs/ does what the page says: it is run here, with a scripted model, or says why not.

What a fence is decides how it is run; a comment in front of it (readers don't see those) says more:

    ```python       run in a folder of its own; the frameworks talk to a scripted model. Without more, that calls `ls`.
    ```sh           run by bash
    ```console      lines with `$` are run by bash; what is below them is what they print
    ```text         only with a comment: what the fence above prints, or a transcript
    ```yaml, ```json    only with a comment

    <!-- snippet: continues -->         the fence goes on where the one above it ended
    <!-- snippet: model NAME -->        another script of the model: MODELS, below
    <!-- snippet: output -->            what the Python above prints; `…` stands for anything
    <!-- snippet: transcript SETTINGS -->   tool calls, `▸ run_command(command='ls')`, and the words that a model gets
    <!-- snippet: setup COMMAND -->     run by bash before, in the same folder
    <!-- snippet: needs NAME -->        what the machine must have (tests/conftest.py)
    <!-- snippet: package NAME -->      a package that has to be there; otherwise it is left out
    <!-- snippet: policy -->            a policy file; it is loaded
    <!-- snippet: agent spec -->        Pydantic AI loads it
    <!-- snippet: skip REASON -->       not run

A page can hold code for each of the four frameworks, of which an environment has one: what is not there is left out here, and
`nox -s examples` goes through all environments.
"""

import ast
import asyncio
import contextlib
import gc
import importlib
import importlib.util
import io
import os
import re
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from anyshell import ApprovalRequired, CommandDenied, ShellOptions, ShellSession
from anyshell.testing import ModelRequest, OpenAIServer

ROOT = Path(__file__).parents[2]
PAGES = (ROOT / 'README.md', ROOT / 'core/README.md', *sorted(ROOT.glob('docs/**/*.md')))
ADAPTERS = sorted(path.parent.name for path in ROOT.glob('adapters/*/pyproject.toml'))
VERBS = (
    'agent spec', 'continues', 'model', 'needs', 'output', 'package', 'policy', 'setup', 'skip', 'transcript',
)  # fmt: skip
FENCE = re.compile(r'^( *)```(\w*)[^\n]*\n(.*?)^\1```$', re.DOTALL | re.MULTILINE)
COMMENT = re.compile(r'<!-- snippet: (.*?) -->')


@dataclass
class Fence:
    """A piece of code on a page.

    Attributes:
        place: Page and line.
        language: What stands behind the back-ticks.
        text: The code.
        verbs: What the comments in front of it say.
    """

    place: str
    language: str
    text: str
    verbs: dict[str, str] = field(default_factory=dict)

    @property
    def adapter(self) -> str | None:
        """The adapter that the code imports, if any."""
        for name in ADAPTERS:
            if re.search(rf'^\s*(?:from|import) {name}_anyshell\b', self.text, re.MULTILINE):
                return name
        return None


def fences(page: Path) -> list[Fence]:
    """The fences of a page."""
    source = page.read_text()
    found: list[Fence] = []
    end = 0
    for match in FENCE.finditer(source):
        # The comments between the text before and this fence.
        before = re.search(r'((?: *<!-- snippet: .*? -->\n\s*)*)\Z', source[end : match.start()])
        verbs: dict[str, str] = {}
        for said in COMMENT.findall(before[0] if before else ''):
            verb = next((verb for verb in VERBS if said.startswith(verb)), None)
            if verb is None:
                raise ValueError(f'{page}: no such thing as <!-- snippet: {said} -->')
            verbs[verb] = said.removeprefix(verb).strip()
        line = source.count('\n', 0, match.start()) + 1
        place = f'{page.relative_to(ROOT)}:{line}'
        found.append(Fence(place, match[2], textwrap.dedent(match[3]), verbs))
        end = match.end()
    return found


def chains() -> Iterator[list[Fence]]:
    """Fences that belong together: each of its own, apart from those that go on or show an output."""
    for page in PAGES:
        chain: list[Fence] = []
        for fence in fences(page):
            if chain and not fence.verbs.keys() & {'continues', 'output'}:
                yield chain
                chain = []
            chain.append(fence)
        if chain:
            yield chain


def runnable(chain: list[Fence]) -> bool:
    """Whether this environment has the framework that the code is for."""
    adapter = adapter_of(chain)
    return adapter is None or importlib.util.find_spec(f'{adapter}_anyshell') is not None


def adapter_of(chain: list[Fence]) -> str | None:
    """The one adapter that a chain is about."""
    if 'agent spec' in chain[0].verbs:
        return 'pydantic_ai'
    (adapter,) = {fence.adapter for fence in chain if fence.adapter} or {None}
    return adapter


ALL = list(chains())
ONLY = os.environ.get('ANYSHELL_SNIPPETS')  # 'core' or an adapter: only what is about that
HERE = [
    chain
    for chain in ALL
    if runnable(chain) and (not ONLY or (adapter_of(chain) or 'core') == ONLY)
]


# -- what the model does


def look_around(request: ModelRequest) -> object:
    """Call the shell once, then answer."""
    if request.tool_results:
        return 'There is one file: hello.txt.'
    return [('run_command', {'command': 'ls'})]


def push(request: ModelRequest) -> object:
    """Do what needs an approval, then answer."""
    if request.tool_results:
        return 'Done.'
    return [('run_command', {'command': 'git push'})]


def delete(request: ModelRequest) -> object:
    """Try what is denied, then answer."""
    if request.tool_results:
        return 'I may not delete it.'
    return [('run_command', {'command': 'rm hello.txt'})]


def count(request: ModelRequest) -> object:
    """Run what writes a line now and then, then answer."""
    if request.tool_results:
        return 'It counts to three.'
    return [('run_command', {'command': 'for i in 1 2 3; do echo line $i; sleep 0.2; done'})]


def exec_command(request: ModelRequest) -> object:
    """Call the shell of a `SandboxAgent`, then answer."""
    if request.tool_results:
        return 'There is one file: hello.txt.'
    return [('exec_command', {'cmd': 'ls'})]


def execute(request: ModelRequest) -> object:
    """Call the shell of a deep agent, then answer."""
    if request.tool_results:
        return 'There is one file: hello.txt.'
    return [('execute', {'command': 'ls'})]


def move(request: ModelRequest) -> object:
    """In each run, change the directory or say where it is; `sub` is there."""
    if request.history[-1].get('role') == 'tool' or request.history[-1].get('output'):
        return list(request.tool_results.values())[-1]
    command = 'mkdir -p sub && cd sub' if 'sub' in request.prompt else 'basename "$PWD"'
    return [('run_command', {'command': command})]


MODELS: dict[str, Callable[[ModelRequest], object]] = {
    'ls': look_around,
    'push': push,
    'delete': delete,
    'count': count,
    'exec_command': exec_command,
    'execute': execute,
    'move': move,
}


# -- the tests


@pytest.mark.filterwarnings('ignore::ResourceWarning')
@pytest.mark.parametrize('chain', HERE, ids=lambda chain: chain[0].place)
def test_code_of_a_page_does_what_the_page_says(
    chain: list[Fence],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    first = chain[0]
    if 'skip' in first.verbs:
        assert len(first.verbs['skip']) > 10, f'{first.place} is skipped without a reason'
        if first.language == 'python':
            check_names(first)
        pytest.skip(first.verbs['skip'])
    for fence in chain:
        if 'package' in fence.verbs:
            name = fence.verbs['package']
            where = 'its pins need an environment of their own, which `nox -s peers` makes'
            pytest.importorskip(name, reason=f'{name} is not here: {where}')
        if 'needs' in fence.verbs:
            request.node.add_marker(pytest.mark.needs(fence.verbs['needs']))
            request.config.hook.pytest_runtest_setup(item=request.node)
    (tmp_path / 'hello.txt').write_text('Hello.\n')
    monkeypatch.chdir(tmp_path)
    bin_path = f'{Path(sys.executable).parent}:{os.environ["PATH"]}'
    monkeypatch.setenv('PATH', bin_path)
    for fence in chain:
        if 'setup' in fence.verbs:
            subprocess.run(['bash', '-ec', fence.verbs['setup']], check=True, timeout=30)
    run(chain, monkeypatch)


def test_every_adapter_has_code_on_every_page_that_has_it_for_one() -> None:
    missing: list[str] = []
    for page in PAGES:
        there = {name for fence in fences(page) if (name := fence.adapter)}
        if there and 'tutorials' not in page.parts and page.parent.name != 'docs':
            missing += [f'{page.relative_to(ROOT)}: {name}' for name in set(ADAPTERS) - there]

    assert missing == []


def test_every_adapter_has_a_tutorial_that_is_run() -> None:
    for name in ADAPTERS:
        page = ROOT / f'docs/tutorials/{name}.md'
        assert [
            fence for fence in fences(page) if fence.adapter == name and not fence.verbs.get('skip')
        ]


# -- how each kind is run


def run(chain: list[Fence], monkeypatch: pytest.MonkeyPatch) -> None:
    first = chain[0]
    match first.language, first.verbs:
        case 'python', _:
            run_python(chain, monkeypatch)
        case 'sh', _:
            subprocess.run(['bash', '-euo', 'pipefail', '-c', first.text], check=True, timeout=60)
        case 'console', _:
            run_console(first)
        case 'text', {'transcript': settings}:
            asyncio.run(run_transcript(first, settings))
        case 'yaml', {'policy': _}:
            load_policy(first)
        case 'yaml', {'agent spec': _}:
            load_agent_spec(first, monkeypatch)
        case language, verbs:
            assert not language, f'{first.place}: no comment says what this {language} is'
            assert not verbs, f'{first.place}: what has no language is not run'


def check_names(fence: Fence) -> None:
    """Of what is not run, at least: it is Python, and the names that it imports are there."""
    for node in ast.walk(ast.parse(fence.text)):
        if isinstance(node, ast.ImportFrom):
            module = importlib.import_module(node.module or '')
            assert [name.name for name in node.names if not hasattr(module, name.name)] == []


def run_python(chain: list[Fence], monkeypatch: pytest.MonkeyPatch) -> None:
    script = MODELS[next((f.verbs['model'] for f in chain if 'model' in f.verbs), 'ls')]
    names: dict[str, object] = {'__name__': '__main__'}
    with OpenAIServer(script) as server:  # pyright: ignore[reportArgumentType]
        for name, value in server.environment.items():
            monkeypatch.setenv(name, value)
        printed = ''
        for fence in chain:
            if 'output' in fence.verbs:
                same(printed, fence)
                continue
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                exec(compile(fence.text, fence.place, 'exec'), names)  # noqa: S102  (our own code)
            printed = out.getvalue()
    # A program would end here. What a framework's client or loop leaves open is its own affair, and closed now.
    names.clear()
    asyncio.set_event_loop(None)
    gc.collect()


def run_console(fence: Fence) -> None:
    for command, expected in re.findall(r'^\$ (.*)\n((?:(?!\$ ).*\n)*)', fence.text, re.MULTILINE):
        done = subprocess.run(
            ['bash', '-c', command],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=60,
            check=False,
        )
        same(done.stdout, Fence(f'{fence.place}: {command}', 'text', expected))


async def run_transcript(fence: Fence, settings: str) -> None:
    asked = ast.parse(f'f({settings})', mode='eval').body
    assert isinstance(asked, ast.Call)
    options = {word.arg: ast.literal_eval(word.value) for word in asked.keywords if word.arg}
    _, *calls = re.split(r'^▸ ', fence.text, flags=re.MULTILINE)
    assert calls, f'{fence.place}: a transcript has calls'
    async with ShellSession(ShellOptions(**options)) as session:
        tools = {tool.name: tool for tool in session.tools}
        for call in calls:
            # A call may take several lines.
            for end in (match.end() for match in re.finditer(r'\)$', call, re.MULTILINE)):
                with contextlib.suppress(SyntaxError):
                    asked = ast.parse(call[:end], mode='eval').body
                    break
            else:
                pytest.fail(f'{fence.place}: not a call: {call}')
            assert isinstance(asked, ast.Call)
            assert isinstance(asked.func, ast.Name)
            arguments = {
                word.arg: ast.literal_eval(word.value) for word in asked.keywords if word.arg
            }
            try:
                text = (await tools[asked.func.id].call(arguments)).text
            except (CommandDenied, ApprovalRequired) as verdict:
                text = str(verdict)
            same(text, Fence(f'{fence.place}: {call[:end]}', 'text', call[end:]))


def same(got: str, fence: Fence) -> None:
    """What was printed is what the page says; empty lines don't count, and `…` stands for anything."""

    def lines(text: str) -> str:
        return '\n'.join(line.rstrip() for line in text.splitlines() if line.strip())

    wanted = lines(fence.text)
    pattern = '.*?'.join(map(re.escape, wanted.split('…')))
    if not re.fullmatch(pattern, lines(got), re.DOTALL):
        pytest.fail(
            f'{fence.place}\n--- the page says:\n{wanted}\n--- it is:\n{lines(got)}', pytrace=False
        )


def load_policy(fence: Fence) -> None:
    Path('policy.yaml').write_text(fence.text)
    done = subprocess.run(
        ['anyshell', 'test', 'policy.yaml'], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def load_agent_spec(fence: Fence, monkeypatch: pytest.MonkeyPatch) -> None:
    from pydantic_ai import Agent  # noqa: PLC0415 - only this environment has it

    from pydantic_ai_anyshell import Shell  # noqa: PLC0415 - as above

    monkeypatch.setenv('OPENAI_API_KEY', 'any')
    Path('agent.yaml').write_text(fence.text)
    Agent.from_file('agent.yaml', custom_capability_types=[Shell])
