"""Make a release: `nox -s release -- X.Y.Z`; with `--check` everything but the writing.

All is done in a copy of what git knows, so that a release that fails leaves the tree as it was: set the version there, build five
wheels and source distributions, check their metadata, install each into an environment of its own and run its examples. Then
VERSION, the bounds of the adapters and CHANGELOG.md are written, and the distributions lie in dist/.
"""

import argparse
import datetime as dt
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
WORK = ROOT / '.nox' / 'release-work'
TREE = WORK / 'tree'
DIST = WORK / 'dist'
UNRELEASED = re.compile(r'^## (?:[0-9.]+, not released yet|Not released yet)$', re.MULTILINE)


def main() -> None:
    """Do as the command line says."""
    parser = argparse.ArgumentParser(prog='nox -s release --', description=__doc__)
    parser.add_argument('version', nargs='?', help='X.Y.Z; by default what VERSION says')
    parser.add_argument('--check', action='store_true', help='write nothing outside .nox/')
    arguments = parser.parse_args()
    current = (ROOT / 'VERSION').read_text().strip()
    version = arguments.version or current
    refuse_if_not_ready(version, current, check=arguments.check)

    copy_tree()
    written = write_version(version, dt.datetime.now(dt.UTC).date())
    projects = [
        'core',
        *sorted(f'adapters/{p.parent.name}' for p in TREE.glob('adapters/*/pyproject.toml')),
    ]
    for project in projects:
        say(f'building {project}')
        run('uv', 'build', '--quiet', '--out-dir', DIST, TREE / project)
    distributions = {project: distributions_of(project, version) for project in projects}
    say('checking the metadata')
    run('twine', 'check', '--strict', *sorted(DIST.glob('*.whl')), *sorted(DIST.glob('*.tar.gz')))
    for project in projects:
        try_out(project, distributions, version)

    if arguments.check:
        say(f'{version} could be released; nothing was written')
        return
    for path in written:
        shutil.copyfile(TREE / path, ROOT / path)
    shutil.rmtree(ROOT / 'dist', ignore_errors=True)
    shutil.copytree(DIST, ROOT / 'dist', ignore=shutil.ignore_patterns('.gitignore'))
    say(
        f'{version} is ready: {len(written)} files were written, dist/ holds what is to be published. Now:'
    )
    print(f'  git commit -m "Release {version}" -- {" ".join(written)}')
    print(f'  git tag v{version}')
    print('  twine upload dist/*')


def refuse_if_not_ready(version: str, current: str, *, check: bool) -> None:
    """End with a sentence when this can't become a release."""
    if not re.fullmatch(r'(0|[1-9][0-9]*)(\.(0|[1-9][0-9]*)){2}', version):
        sys.exit(f'{version!r} is no version; it must be X.Y.Z, such as 0.2.0')
    if numbers(version) < numbers(current):
        sys.exit(f'{version} comes before {current}, which VERSION says; name that or a later one')
    if git('tag', '--list', f'v{version}'):
        sys.exit(f'the tag v{version} is there already; choose the next version')
    if not check and (changed := git('status', '--porcelain', '--untracked-files=no')):
        sys.exit(f'commit or undo these first, so that the release is what git has:\n{changed}')


def copy_tree() -> None:
    """Copy what git knows, as it lies in the tree."""
    shutil.rmtree(WORK, ignore_errors=True)
    for name in filter(None, git('ls-files', '-z').split('\0')):
        if (ROOT / name).is_file():
            (TREE / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, TREE / name)


def write_version(version: str, day: dt.date) -> list[str]:
    """Set the version in the copy; the files that it is in."""
    texts = {
        'VERSION': f'{version}\n',
        'CHANGELOG.md': released((ROOT / 'CHANGELOG.md').read_text(), version, day),
    }
    for path in sorted(TREE.glob('adapters/*/pyproject.toml')):
        texts[str(path.relative_to(TREE))] = bounded(path.read_text(), version)
    for name, text in texts.items():
        (TREE / name).write_text(text)
    return list(texts)


def released(changelog: str, version: str, day: dt.date) -> str:
    """The changelog with what is not released yet under the version and the day."""
    heading = UNRELEASED.search(changelog)
    if heading is None:
        sys.exit('CHANGELOG.md has no section "## Not released yet"; write what a user notices')
    section = changelog[heading.end() :].partition('\n## ')[0]
    if not re.search(r'^- ', section, re.MULTILINE):
        sys.exit(f'"{heading[0]}" in CHANGELOG.md has no entries; write what a user notices')
    return f'{changelog[: heading.start()]}## {version}, {day}{changelog[heading.end() :]}'


def bounded(pyproject: str, version: str) -> str:
    """An adapter's metadata that admits the core of its own release and no later one that may break."""
    text, count = re.subn(r'"anyshell>=[^"]*"', f'"anyshell{core_bounds(version)}"', pyproject)
    if count != 1:
        sys.exit(f'an adapter names anyshell {count} times in its dependencies; it must be once')
    return text


def core_bounds(version: str) -> str:
    """Which cores an adapter of this version works with: in 0.x a minor release may break, later a major one."""
    major, minor, _ = numbers(version)
    return f'>={major}.{minor},<{f"0.{minor + 1}" if major == 0 else major + 1}'


def distributions_of(project: str, version: str) -> tuple[Path, Path]:
    """The wheel and the source distribution of a project."""
    name = metadata(project)['name'].replace('-', '_')
    found = DIST / f'{name}-{version}-py3-none-any.whl', DIST / f'{name}-{version}.tar.gz'
    if missing := [path.name for path in found if not path.exists()]:
        sys.exit(f'{project}: {" and ".join(missing)} should have been built')
    return found


def try_out(project: str, distributions: dict[str, tuple[Path, Path]], version: str) -> None:
    """Install a wheel into an environment of its own and run its examples; then the same from the source distribution."""
    say(f'trying {project}')
    home = WORK / 'environments' / Path(project).name
    python = home / 'bin' / 'python'
    wheel, source = distributions[project]
    core, _ = distributions['core']
    name = 'core' if project == 'core' else Path(project).name
    module = 'anyshell' if project == 'core' else f'{name}_anyshell'
    needs = metadata(project, 'dependency-groups').get('test', [])
    run('uv', 'venv', '--quiet', '--clear', '--python', sys.executable, home)
    run(
        'uv', 'pip', 'install', '--quiet', '--python', python, *dict.fromkeys([wheel, core]), *needs
    )
    run('uv', 'pip', 'check', '--quiet', '--python', python)
    if project == 'core':
        run(home / 'bin' / 'anyshell', '--version', shows=version)
        run(home / 'bin' / 'anyshell', 'demo')
    for example in sorted(TREE.glob(f'examples/{name}_*.py')):
        run(python, example.relative_to(TREE))
    run(python, 'examples/readme.py', module)
    install = ('uv', 'pip', 'install', '--quiet', '--python', python, '--no-deps', '--reinstall')
    run(*install, source)
    code = (
        f'import importlib.metadata as m, {module}; print(m.version({metadata(project)["name"]!r}))'
    )
    run(python, '-c', code, shows=version)


def metadata(project: str, table: str = 'project') -> dict:
    """A table of a project's pyproject.toml."""
    return tomllib.loads((TREE / project / 'pyproject.toml').read_text()).get(table, {})


def numbers(version: str) -> tuple[int, ...]:
    """A version that can be compared."""
    return tuple(int(number) for number in version.split('.'))


def git(*arguments: str) -> str:
    """What git prints."""
    return subprocess.run(
        ['git', '-C', ROOT, *arguments], capture_output=True, text=True, check=True, timeout=60
    ).stdout.strip()


def run(*command: object, shows: str = '') -> None:
    """Run a program in the copy; end with what it printed when it fails or does not show what it should."""
    # Without sources in front of what is installed, and without a model that costs money.
    environment = {k: v for k, v in os.environ.items() if k not in {'PYTHONPATH', 'VIRTUAL_ENV'}}
    done = subprocess.run(
        [str(part) for part in command],
        cwd=TREE,
        env={**environment, 'ANYSHELL_MODEL': ''},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=900,
        check=False,
    )
    if done.returncode or shows not in done.stdout:
        print(done.stdout)
        wanted = f' and should show {shows!r}' if shows else ''
        sys.exit(f'exit code {done.returncode}{wanted}: {" ".join(map(str, command))}')


def say(text: str) -> None:
    """Say what is going on."""
    print(f'release: {text}', flush=True)


if __name__ == '__main__':
    main()
