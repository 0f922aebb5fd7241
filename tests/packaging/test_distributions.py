"""What would be published is complete: `nox -s packaging` builds it and says where it is."""

import email
import email.message
import os
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROJECTS = [
    'core',
    *sorted(f'adapters/{p.parent.name}' for p in ROOT.glob('adapters/*/pyproject.toml')),
]
DIST = os.environ.get('ANYSHELL_DIST')
VERSION = (ROOT / 'VERSION').read_text().strip()

pytestmark = [
    pytest.mark.skipif(DIST is None, reason='nothing was built; run nox -s packaging'),
    pytest.mark.parametrize('project', PROJECTS),
]


def module(project: str) -> str:
    return 'anyshell' if project == 'core' else f'{Path(project).name}_anyshell'


def wheel(project: str) -> zipfile.ZipFile:
    assert DIST is not None
    (path,) = Path(DIST, project).glob('*.whl')
    return zipfile.ZipFile(path)


def metadata(project: str) -> email.message.Message:
    with wheel(project) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith('.dist-info/METADATA'))
        return email.message_from_bytes(archive.read(name))


def test_all_share_one_version(project: str) -> None:
    assert metadata(project)['Version'] == VERSION


def test_metadata_is_complete(project: str) -> None:
    found = metadata(project)

    assert found['License-Expression'] == 'MIT'
    assert found['License-File'] == 'LICENSE'
    assert found['Requires-Python'] == '>=3.11'
    assert found['Summary'].endswith('.')
    assert found['Description-Content-Type'] == 'text/markdown'
    assert found.get_payload()
    assert 'Typing :: Typed' in found.get_all('Classifier', [])


def test_no_url_is_made_up(project: str) -> None:
    assert metadata(project).get_all('Project-URL', []) == []


def test_wheel_holds_one_package_typed_and_licensed(project: str) -> None:
    with wheel(project) as archive:
        names = archive.namelist()

    assert {name.split('/')[0] for name in names if '.dist-info' not in name} == {module(project)}
    assert f'{module(project)}/py.typed' in names
    assert [name for name in names if name.endswith('/licenses/LICENSE')]


def test_source_distribution_builds_on_its_own(project: str) -> None:
    # nox built the wheel from it; here it only has to hold nothing else than sources.
    assert DIST is not None
    (path,) = Path(DIST, project).glob('*.tar.gz')
    with tarfile.open(path) as archive:
        names = {name.split('/', 1)[1] for name in archive.getnames()}

    assert {'LICENSE', 'README.md', 'PKG-INFO', 'pyproject.toml'} <= names
    assert {name.split('/')[0] for name in names} == {
        'LICENSE', 'README.md', 'PKG-INFO', 'pyproject.toml', '.gitignore', 'src',
    }  # fmt: skip


def test_license_is_the_repository_s(project: str) -> None:
    assert (ROOT / project / 'LICENSE').read_text() == (ROOT / 'LICENSE').read_text()


def test_adapter_admits_the_core_it_was_made_with_and_none_that_may_break(project: str) -> None:
    if project == 'core':
        return
    major, minor, _ = VERSION.split('.')
    dependencies = tomllib.loads((ROOT / project / 'pyproject.toml').read_text())['project'][
        'dependencies'
    ]

    later = f'0.{int(minor) + 1}' if major == '0' else int(major) + 1
    assert f'anyshell>={major}.{minor},<{later}' in dependencies
