"""The live oracle: what the reader reports is compared with what the shells really run."""

import importlib.util
import os
import random
import sys
from pathlib import Path
from types import ModuleType

import pytest

HERE = Path(__file__).parent


def _module(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f'policy_{name}', HERE / f'{name}.py')
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def _compare(count: int) -> None:
    seed = int(os.environ.get('ANYSHELL_FUZZ_SEED') or random.SystemRandom().randrange(1 << 20))
    print(f'ANYSHELL_FUZZ_SEED={seed}')

    report = _module('fuzz').fuzz(count, seed)

    print(report)
    assert report.missed == []
    assert report.refused == []


@pytest.mark.needs('bubblewrap')
@pytest.mark.needs('dash')
def test_no_program_runs_that_is_not_reported() -> None:
    _compare(2500)


@pytest.mark.fuzz
@pytest.mark.needs('bubblewrap')
@pytest.mark.needs('dash')
def test_no_program_runs_that_is_not_reported_in_200_000_lines() -> None:
    _compare(200_000)


@pytest.mark.needs('bubblewrap')
@pytest.mark.needs('dash')
@pytest.mark.parametrize('shell', ['bash', 'dash'])
def test_the_oracle_sees_what_runs(shell: str) -> None:
    oracle = _module('oracle')
    lines = [
        'rm x; ls | foo',
        'env rm x & true',
        'no-such-program x',
        'if',
        'echo $(find . -name f -exec rm {} \\;)',
        ':',
    ]

    runs = oracle.run(lines, shell=shell, accepted=True)

    assert [run.programs for run in runs] == [
        {'rm', 'ls', 'foo'},
        {'rm'},
        {'no-such-program'},
        set(),
        {'rm'},
        set(),
    ]
    assert [run.accepted for run in runs] == [True, True, True, False, True, True]
