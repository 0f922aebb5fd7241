"""Scripts of this machine: the reader understands them, and bash's own parse of them names no other commands."""

import os
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from anyshell.policy.calls import find
from anyshell.policy.syntax import NotUnderstood, read

FOLDERS = ('/bin', '/usr/bin', '/usr/sbin', '/usr/lib', '/usr/share', '/etc', '/var/lib/dpkg/info')
LIMIT = 60_000  # bytes


def scripts() -> list[Path]:
    """The scripts for sh and bash that bash can parse."""
    found: list[Path] = []
    for folder in FOLDERS:
        for directory, _, names in os.walk(folder):
            for name in names:
                path = Path(directory, name)
                if not path.is_symlink() and _is_script(path):
                    found.append(path)
    return sorted(set(found))


def _is_script(path: Path) -> bool:
    try:
        with path.open('rb') as file:
            first = file.readline(80) if file.read(2) == b'#!' else b''
        return any(
            first.rstrip().endswith(end) or end + b' ' in first
            for end in (b'/sh', b'/bash', b' sh', b' bash', b'/dash')
        )
    except OSError:
        return False


def _parses(path: Path) -> bool:
    return (
        subprocess.run(
            ['bash', '-n', str(path)], capture_output=True, check=False, env={}, timeout=60
        ).returncode
        == 0
    )


@pytest.mark.skipif(shutil.which('bash') is None, reason='no bash here')
def test_the_scripts_of_this_machine_are_read() -> None:
    refused: dict[str, str] = {}
    count = 0
    for path in scripts():
        if not _parses(path):
            continue
        count += 1
        try:
            read(path.read_text(encoding='utf-8', errors='replace'))
        except NotUnderstood as error:
            refused[str(path)] = error.message

    print(f'{count - len(refused)} of {count} scripts are read; not: {refused}')
    if count < 50:
        pytest.skip(f'only {count} scripts here')
    assert len(refused) <= count * 0.002


@pytest.mark.skipif(shutil.which('bash') is None, reason='no bash here')
def test_bash_prints_no_command_that_the_reader_does_not_find() -> None:
    differing: dict[str, Counter[str]] = {}
    count = 0
    for path in scripts()[::4]:
        text = path.read_text(encoding='utf-8', errors='replace')
        if len(text) > LIMIT or not _parses(path):
            continue
        # Only with a file: `bash --pretty-print -c …` would run the commands.
        printed = subprocess.run(
            ['bash', '--norc', '--pretty-print', str(path)],
            capture_output=True,
            check=False,
            env={},
            timeout=20,
            stdin=subprocess.DEVNULL,
        ).stdout.decode('utf-8', 'replace')
        try:
            ours = Counter(call.name for call in find(text, shell='bash').calls)
            theirs = Counter(call.name for call in find(printed, shell='bash').calls)
        except NotUnderstood:
            continue
        count += 1
        # The other way round bash's printer loses some: a `;` between pipelines in a subshell, for one.
        if theirs - ours:
            differing[str(path)] = theirs - ours

    print(f'{count} scripts compared; differing: {differing}')
    if count < 20:
        pytest.skip(f'only {count} scripts here')
    assert differing == {}
