"""Run the Python code in README.md that imports one package: `python examples/readme.py pydantic_ai_anyshell`.

The code is run as it stands: OpenAI's client, which all frameworks use, is led to a scripted model by its variables.
"""

import os
import re
import sys
import tempfile
from pathlib import Path

from anyshell.testing import ModelRequest, OpenAIServer

README = Path(__file__).parents[1] / 'README.md'


def snippets(package: str) -> list[str]:
    """The Python blocks that import this package; for `anyshell` those that import no adapter."""
    blocks = re.findall(r'^```python\n(.*?)^```$', README.read_text(), re.DOTALL | re.MULTILINE)
    return [block for block in blocks if package in adapter_or_core(block)]


def adapter_or_core(block: str) -> set[str]:
    """The adapters that a block imports; `anyshell` if it imports none."""
    imported = set(re.findall(r'^from (\w*anyshell)\b', block, re.MULTILINE))
    return imported - {'anyshell'} or imported


def look_around(request: ModelRequest) -> object:
    """A model that calls the shell once and then answers."""
    if request.tool_results:
        return 'There is one file: hello.txt.'
    return [('run_command', {'command': 'ls'})]


def main(package: str) -> None:
    """Run the snippets of a package; fail if one fails, or if its model has not seen the shell's output."""
    found = snippets(package)
    if not found:
        sys.exit(f'README.md has no code that imports {package}')
    with tempfile.TemporaryDirectory() as folder, OpenAIServer(look_around) as server:
        os.environ |= server.environment
        Path(folder, 'hello.txt').touch()
        os.chdir(folder)
        for snippet in found:
            exec(compile(snippet, f'README.md ({package})', 'exec'), {'__name__': '__main__'})  # noqa: S102  (our own code)
        os.chdir('/')  # the folder goes
    if package != 'anyshell' and 'hello.txt' not in ''.join(server.tool_results()):
        sys.exit(f'the model saw {server.tool_results()}')


if __name__ == '__main__':
    main(*sys.argv[1:])
