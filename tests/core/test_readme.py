"""README.md and the code agree. That its Python code runs is tested by `nox -s examples`."""

import ast
import dataclasses
import re
from pathlib import Path

from anyshell import ShellOptions

README = (Path(__file__).parents[2] / 'README.md').read_text()


def test_option_table_lists_every_option_with_its_default() -> None:
    table = README.partition('## Options')[2].partition('\n## ')[0]
    rows = re.findall(r'^\| `(\w+)` \| (.+?) \|', table, re.MULTILINE)

    def value(cell: str) -> object:
        literals = [
            ast.literal_eval(code) if code[0] in "'(-0123456789NTF" else code
            for code in re.findall('`(.*?)`', cell)
        ]
        return literals[0] if len(literals) == 1 else tuple(literals)

    documented = {name: value(cell) for name, cell in rows}
    actual = {field.name: field.default for field in dataclasses.fields(ShellOptions)}
    assert documented == {
        name: tuple(default) if isinstance(default, list) else default
        for name, default in actual.items()
    }
