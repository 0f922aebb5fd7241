"""`SECURITY.md` names the test behind each guarantee."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_guarantee_names_a_test_that_exists() -> None:
    text = (ROOT / 'SECURITY.md').read_text()
    there = re.findall(r'def test_(\w+)', (ROOT / 'tests/sandboxes/test_boundaries.py').read_text())

    named = re.findall(r'`((?:bubblewrap|docker)_\w+)`', text)

    assert named
    assert set(named) - set(there) == set()
