"""Each row of docs/policy.md is what the policy says."""

import ast
import html
import re
from pathlib import Path

import pytest

from anyshell import ShellOptions
from anyshell.policy.rules import OPERATORS

PAGE = (Path(__file__).parents[2] / 'docs/policy.md').read_text()


def rows() -> list[tuple[str, str, str]]:
    """Settings, command line and verdict of each row with an example."""
    found: list[tuple[str, str, str]] = []
    for settings, table in re.findall(r'<!-- policy: (.*?) -->\n\n((?:\|.*\n)+)', PAGE):
        for row in table.splitlines()[2:]:
            match = re.search(
                r'\| (?:`` ?(?P<two>.+?) ?``|`(?P<one>[^`]+)`|<code>(?P<code>.+?)</code>) \| (?P<verdict>allow|ask|deny) \|',
                row,
            )
            assert match, f'no example in {row}'
            text = match['two'] or match['one'] or html.unescape(match['code'])
            text = text.replace('⏎', '\n').replace(r'\u200b', '\u200b')
            found.append((settings, text, match['verdict']))
    return found


@pytest.mark.parametrize(('settings', 'command', 'verdict'), rows())
def test_line_of_the_page_gets_the_verdict_that_stands_beside_it(
    settings: str, command: str, verdict: str
) -> None:
    asked = ast.parse(f'f({settings})', mode='eval').body
    assert isinstance(asked, ast.Call)
    options = {word.arg: ast.literal_eval(word.value) for word in asked.keywords if word.arg}
    shell = options.pop('shell', 'bash')

    found = ShellOptions(**options).policy(shell).check(command)

    assert found.decision.name.lower() == verdict, found.reason


def test_the_page_names_all_operators() -> None:
    line = PAGE.partition('The operators that can be denied: ')[2].partition('\n')[0]
    named = set(re.findall(r'(?<!`)`([^` ]+)`(?!`)', line)) | {'`', '\n'}

    assert named == set(OPERATORS)
