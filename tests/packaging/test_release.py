"""What a release writes, and what it refuses (.ci/release.py); `nox -s release -- --check` does the rest for real."""

import datetime as dt
import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DAY = dt.date(2031, 2, 3)

_spec = importlib.util.spec_from_file_location('release', ROOT / '.ci' / 'release.py')
assert _spec is not None
assert _spec.loader is not None
release = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(release)


@pytest.mark.parametrize('heading', ['Not released yet', '0.2.0, not released yet'])
def test_changelog_section_gets_the_version_and_the_day(heading):
    text = f'# Changelog\n\nWords.\n\n## {heading}\n\n- Added `x`.\n\n## 0.1.0, 2030-01-01\n\n- First.\n'

    assert release.released(text, '0.2.0', DAY) == (
        '# Changelog\n\nWords.\n\n## 0.2.0, 2031-02-03\n\n- Added `x`.\n\n## 0.1.0, 2030-01-01\n\n- First.\n'
    )


@pytest.mark.parametrize(
    ('text', 'why'),
    [
        ('# Changelog\n\n## 0.1.0, 2030-01-01\n\n- First.\n', 'no section "## Not released yet"'),
        ('## Not released yet\n\n## 0.1.0, 2030-01-01\n\n- First.\n', 'has no entries'),
    ],
)
def test_changelog_without_entries_is_refused(text, why):
    with pytest.raises(SystemExit, match=why):
        release.released(text, '0.2.0', DAY)


@pytest.mark.parametrize(
    ('version', 'bounds'),
    [('0.1.0', '>=0.1,<0.2'), ('0.12.3', '>=0.12,<0.13'), ('1.0.0', '>=1.0,<2'), ('2.5.1', '>=2.5,<3')],
)  # fmt: skip
def test_adapter_admits_cores_that_do_not_break_it(version, bounds):
    assert release.core_bounds(version) == bounds
    assert release.bounded('dependencies = ["x>=1,<2", "anyshell>=0.1,<0.2"]', version) == (
        f'dependencies = ["x>=1,<2", "anyshell{bounds}"]'
    )


def test_adapter_has_to_name_core_once():
    with pytest.raises(SystemExit, match='0 times'):
        release.bounded('dependencies = ["x>=1"]', '0.2.0')


@pytest.mark.parametrize(
    ('version', 'why'),
    [
        ('1.0', 'must be X.Y.Z'),
        ('v1.0.0', 'must be X.Y.Z'),
        ('1.0.0rc1', 'must be X.Y.Z'),
        ('01.0.0', 'must be X.Y.Z'),
        ('0.1.9', 'comes before 0.2.0'),
        ('0.3.0', r'the tag v0\.3\.0 is there already'),
        ('0.4.0', 'commit or undo these first'),
    ],
)
def test_version_that_can_not_be_is_refused(monkeypatch, version, why):
    answers = {
        ('tag', '--list', 'v0.3.0'): 'v0.3.0',
        ('status', '--porcelain', '--untracked-files=no'): ' M README.md',
    }
    monkeypatch.setattr(release, 'git', lambda *arguments: answers.get(arguments, ''))

    with pytest.raises(SystemExit, match=why):
        release.refuse_if_not_ready(version, '0.2.0', check=False)


def test_check_does_not_mind_uncommitted_work(monkeypatch):
    monkeypatch.setattr(
        release, 'git', lambda *arguments: ' M README.md' if arguments[0] == 'status' else ''
    )

    release.refuse_if_not_ready('0.2.0', '0.2.0', check=True)
