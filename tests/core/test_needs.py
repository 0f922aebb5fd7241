"""The rule in tests/conftest.py that keeps a test from being skipped unnoticed where it must run."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

CONFTEST = (Path(__file__).parents[1] / 'conftest.py').read_text()
LACKING = "\nNEEDS['dash'] = (lambda: False, 'dash')\nNEEDS['busybox'] = (lambda: True, '')\n"
TEST = """
import asyncio, pytest

@pytest.mark.needs('dash')
def test_lacking(): pass

@pytest.mark.needs('busybox')
async def test_present(tmp_path): await asyncio.sleep(0)

async def test_async(): assert asyncio.get_running_loop() is None
"""


@pytest.mark.parametrize(
    ('promised', 'summary'),
    [
        ('', '1 failed, 1 passed, 1 skipped'),
        ('busybox', '1 failed, 1 passed, 1 skipped'),
        ('busybox,dash', 'ANYSHELL_REQUIRE promises dash, which does not work here'),
        ('bwrap', "ANYSHELL_REQUIRE names ['bwrap']"),
    ],
)
def test_lacking_what_was_promised_fails(tmp_path: Path, promised: str, summary: str) -> None:
    (tmp_path / 'conftest.py').write_text(CONFTEST + LACKING)
    (tmp_path / 'test_it.py').write_text(TEST)
    command = [sys.executable, '-m', 'pytest', '-q', '-p', 'no:cacheprovider', '.']

    done = subprocess.run(
        command,
        cwd=tmp_path,
        env=os.environ | {'ANYSHELL_REQUIRE': promised},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )

    assert done.returncode != 0
    assert summary in done.stdout + done.stderr
