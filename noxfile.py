"""Everything that can be checked or shown here, each in an environment of its own.

`nox` runs the tests; `nox -l` lists all that there is, and what `nox` leaves out; `nox -s NAME -- ARGUMENTS` passes
arguments on (to pytest, mostly). Adapters are found by looking into adapters/: no file lists them. The four frameworks
can't share an environment (they need different major versions of the same packages), so each adapter gets one with its
framework and no other. What is tested is what would be published: wheels, built from source distributions.
"""

import functools
import itertools
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import nox

ROOT = Path(__file__).parent
ADAPTERS = sorted(path.parent.name for path in ROOT.glob('adapters/*/pyproject.toml'))
COVERAGE = ROOT / '.nox' / 'measured'
DIST = ROOT / '.nox' / 'dist'
PYTHONS = ('3.11', '3.12', '3.13')
RUNNING = f'{sys.version_info.major}.{sys.version_info.minor}'
TESTING = ('coverage>=7.10', 'hypothesis', 'psutil', 'pytest>=8.4')
# What benchmarks/executor measures anyshell beside, and the package that brings it.
MEASURED_BESIDE = {
    'pydantic-ai-harness': 'pydantic-ai-harness',
    'strands': 'strands-agents',
    'langchain': 'langchain',
    'deepagents': 'deepagents',
    'openai-agents': 'openai-agents',
}
# Core's modules that do no I/O: every line and every branch of them is tested.
PURE = (
    'environment.py',
    'errors.py',
    'guard.py',
    'keywords.py',
    'options.py',
    'output.py',
    'policy/*.py',
    'replies.py',
    'result.py',
    'tools.py',
    'waiting.py',
)

nox.needs_version = '>=2025.2.9'
nox.options.default_venv_backend = 'uv'
# A session runs on a Python that is here, or not at all.
os.environ['UV_PYTHON_DOWNLOADS'] = 'never'
os.environ.pop('PYTHONPATH', None)  # it could put sources in front of the wheels under test


def _other_pythons() -> list[str]:
    """Of PYTHONS, those that this machine has, apart from the one that runs nox."""
    if pyenv := shutil.which('pyenv'):
        # Its `python3.X` commands only work for versions that are selected, so select all that are installed.
        selected = subprocess.run(
            [pyenv, 'version-name'], capture_output=True, text=True, check=False, timeout=60
        )
        installed = subprocess.run(
            [pyenv, 'versions', '--bare'], capture_output=True, text=True, check=False, timeout=60
        )
        names = dict.fromkeys([*selected.stdout.strip().split(':'), *installed.stdout.split()])
        os.environ['PYENV_VERSION'] = ':'.join(name for name in names if name)
    return [
        version
        for version in PYTHONS
        if version != RUNNING
        and (python := shutil.which(f'python{version}'))
        and subprocess.run(
            [python, '-c', 'import venv'], capture_output=True, check=False, timeout=60
        ).returncode
        == 0
    ]


OTHER_PYTHONS = _other_pythons()
_built: dict[str, Path] = {}


def _wheel(session: nox.Session, project: str) -> str:
    """Build a project's source distribution and, from that, its wheel; once in a run of nox.

    Returns:
        The wheel's path.
    """
    if project not in _built:
        out = DIST / project
        shutil.rmtree(out, ignore_errors=True)
        session.log(f'Building {project} ...')
        session.run('uv', 'build', '--quiet', '--out-dir', str(out), str(ROOT / project), log=False)
        (_built[project],) = out.glob('*.whl')
    return str(_built[project])


def _adapter(name: str) -> dict:
    """An adapter's metadata: what it is called, which framework it needs, what its tests need."""
    project = nox.project.load_toml(ROOT / 'adapters' / name / 'pyproject.toml')
    framework = project['project']['dependencies'][0]
    return {
        'import': f'{name}_anyshell',
        'floor': re.sub(r'>=([^,]+).*', r'==\1', framework),
        'test': nox.project.dependency_groups(project, 'test'),
        'peers': project['dependency-groups'].get('peers', []),
        'extras': list(
            itertools.chain(*project['project'].get('optional-dependencies', {}).values())
        ),
    }


PEERS = [name for name in ADAPTERS if _adapter(name)['peers']]


def _install(
    session: nox.Session, *adapters: str, lowest: bool = False, peers: bool = False
) -> None:
    """Install the wheels of core and of these adapters, with what tests need."""
    wheels = [_wheel(session, 'core')]
    needs = list(TESTING)
    for name in adapters:
        wheels.append(_wheel(session, f'adapters/{name}'))
        needs += _adapter(name)['test']
        if peers:
            needs += _adapter(name)['peers']
        if lowest:
            needs.append(_adapter(name)['floor'])
    # A reused environment (nox -r) may hold wheels of the same version with older content.
    session.install('--reinstall-package', 'anyshell', *wheels, *needs)


def _pytest(
    session: nox.Session, label: str, *arguments: str, packages: tuple[str, ...] = ('anyshell',)
) -> None:
    """Run pytest under coverage; what was measured waits for the session `coverage`."""
    measured = COVERAGE / label
    shutil.rmtree(measured, ignore_errors=True)
    measured.mkdir(parents=True)
    session.run(
        'coverage',
        'run',
        f'--source={",".join(packages)}',
        '-m',
        'pytest',
        *arguments,
        *session.posargs,
        env={'COVERAGE_FILE': str(measured / 'data')},
    )


def _marked(session: nox.Session, mark: str, *folders: str) -> None:
    """Run the tests that are left out elsewhere because they take minutes."""
    _install(session)
    # 5 is pytest's word for "no such test", which is no failure of the tests there are.
    session.run(
        'pytest',
        '-m',
        mark,
        *folders,
        *session.posargs,
        success_codes=[0, 5],
    )


@nox.session
def lint(session: nox.Session) -> None:
    """Check style and layers: `ruff check`, `ruff format --check`."""
    session.install('ruff>=0.12')
    session.run('ruff', 'check', *session.posargs)
    session.run('ruff', 'format', '--check')


@nox.session
@nox.parametrize('project', ['core', *ADAPTERS], ids=['core', *ADAPTERS])
def types(session: nox.Session, project: str) -> None:
    """Check types: pyright, strict, on core and on each adapter beside its framework."""
    adapters = [] if project == 'core' else [project]
    _install(session, *adapters)
    # What optional parts import has to be there: an adapter's own modules, and OpenTelemetry for core.
    extras = [need for name in adapters for need in _adapter(name)['extras']]
    session.install('pyright[nodejs]', *(extras or ['opentelemetry-api']))
    sources = f'adapters/{project}/src' if adapters else 'core/src'
    users = sorted(str(path) for path in ROOT.glob(f'tests/typing/*{project}*.py'))
    python = shutil.which('python', path=session.bin)
    session.run('pyright', '--pythonpath', python, '--warnings', sources, *users, *session.posargs)


@nox.session
def packaging(session: nox.Session) -> None:
    """Check what would be published: all wheels and source distributions, their metadata, the layers."""
    _install(session)
    for name in ADAPTERS:
        _wheel(session, f'adapters/{name}')
    session.run('pytest', 'tests/packaging', *session.posargs, env={'ANYSHELL_DIST': str(DIST)})


@nox.session
def core(session: nox.Session) -> None:
    """Test core, its wheel, on the Python that runs nox."""
    _install(session)
    _pytest(session, 'core', 'tests/core', 'tests/torture')


# What core is tested with on a Python between the oldest and the newest.
BETWEEN = ('tests/core/policy', *(f'tests/core/test_{name}.py' for name in ('jobs', 'options', 'output', 'processes', 'replies', 'session', 'sessions', 'tools')))  # fmt: skip

if OTHER_PYTHONS:

    @nox.session(python=OTHER_PYTHONS)
    def core_on(session: nox.Session) -> None:
        """Test core on the other Pythons of this machine."""
        _install(session)
        # What the shells do does not depend on the Python; these two take longer than all the rest.
        shells = ('oracle', 'scripts')
        ignored = (f'--ignore=tests/core/policy/test_{name}.py' for name in shells)
        # Between the oldest and the newest Python the tests that mostly wait for processes are left out.
        newest = session.python == OTHER_PYTHONS[-1]
        tests = ('tests/core',) if newest else BETWEEN
        # Not measured: `core` reaches the same lines, and measuring takes as long again.
        session.run('pytest', *tests, *ignored, *session.posargs)

else:

    @nox.session(venv_backend='none')
    def core_on(session: nox.Session) -> None:
        """Test core on the other Pythons of this machine; there are none."""
        others = ', '.join(version for version in PYTHONS if version != RUNNING)
        session.skip(f'no other Python found; put one of {others} on PATH to test core on it too')


@nox.session(default=False)
def floors(session: nox.Session) -> None:
    """Test core with the oldest releases of its dependencies that it says it supports."""
    wheel = _wheel(session, 'core')
    session.install(*TESTING)
    session.install('--resolution', 'lowest', '--reinstall-package', 'anyshell', wheel)
    _pytest(session, 'floors', 'tests/core')


@nox.session
def sandboxes(session: nox.Session) -> None:
    """Test the sandboxes, each where this machine has what it needs, and the example of a user's own."""
    _install(session)
    _pytest(session, 'sandboxes', 'tests/sandboxes', 'examples/own_sandbox.py')


@nox.session
@nox.parametrize(
    ('name', 'framework'),
    list(itertools.product(ADAPTERS, ['latest', 'lowest'])),
    ids=[f'{name}-{framework}' for name in ADAPTERS for framework in ('latest', 'lowest')],
)
def adapter(session: nox.Session, name: str, framework: str) -> None:
    """Test an adapter's wheel with its framework and no other: the latest release, and the lowest supported."""
    _install(session, name, lowest=framework == 'lowest')
    tests = sorted(str(path) for path in ROOT.glob(f'tests/adapters/test_{name}*.py'))
    if not tests:
        session.error(
            f'the adapter {name} has no tests: tests/adapters/test_{name}.py is where they go'
        )
    packages = ('anyshell', _adapter(name)['import'])
    _pytest(session, f'{name}-{framework}', *tests, packages=packages)


@nox.session
@nox.parametrize('name', PEERS, ids=PEERS)
def peers(session: nox.Session, name: str) -> None:
    """Test an adapter beside other packages of its framework, whose pins need an environment of their own."""
    _install(session, name, peers=True)
    tests = sorted(str(path) for path in ROOT.glob(f'tests/adapters/test_{name}_*.py'))
    packages = ('anyshell', _adapter(name)['import'])
    _pytest(session, f'{name}-peers', *tests, packages=packages)
    # The code in docs/ that needs these packages.
    snippets = ['tests/docs/test_snippets.py', '-k', 'environments or guards']
    session.run('pytest', *snippets, env={'ANYSHELL_SNIPPETS': name})


@nox.session
@nox.parametrize('name', ['core', *ADAPTERS], ids=['core', *ADAPTERS])
def examples(session: nox.Session, name: str) -> None:
    """Run the examples of core and of each framework, and the code in README.md and docs/, with a scripted model."""
    adapters = [] if name == 'core' else [name]
    _install(session, *adapters)
    scripted = {'ANYSHELL_MODEL': ''}
    # Named NAME_something: a file called langchain.py would be what `import langchain` finds.
    for example in sorted(ROOT.glob(f'examples/{name}_*.py')):
        session.run('python', str(example.relative_to(ROOT)), env=scripted)
    # The code in README.md and docs/, the part of it that is about this framework, or about none.
    environment = {'ANYSHELL_SNIPPETS': name}
    session.run('pytest', 'tests/docs/test_snippets.py', *session.posargs, env=environment)


@nox.session
def docs(session: nox.Session) -> None:
    """Build the documentation, strictly, into .nox/site; check that it and the code name the same things."""
    _install(session)
    session.install('mkdocs>=1.6,<2', 'mkdocs-material>=9.6,<10', 'mkdocstrings[python]>=1,<2')
    session.run('mkdocs', 'build', '--strict', '--quiet', env={'NO_MKDOCS_2_WARNING': '1'})
    session.run('pytest', 'tests/docs', '--ignore=tests/docs/test_snippets.py', *session.posargs)


@nox.session(default=False)
def demo(session: nox.Session) -> None:
    """Show the main job: in each framework, a real agent with a scripted model uses the shell."""
    quietly = functools.partial(session.run, log=False, silent=True)
    pythons = {}
    for name in session.posargs or ADAPTERS:
        session.log(f'Installing {name} ...')
        home = ROOT / '.nox' / f'demo-{name}'
        quietly('uv', 'venv', '--quiet', '--clear', '--python', sys.executable, str(home))
        pythons[name] = str(home / 'bin' / 'python')
        wheels = [_wheel(session, 'core'), _wheel(session, f'adapters/{name}')]
        needs = [*wheels, *_adapter(name)['test']]
        quietly('uv', 'pip', 'install', '--quiet', '--python', pythons[name], *needs)
    again: list[str] = []  # the story is told once; after that, what differs
    for name, python in pythons.items():
        session.run(python, 'examples/demo', name, *again, external=True, log=False)
        again = ['--again']
    if len(pythons) > 1:  # each has looked for itself, or the session has failed
        print(
            f'\nThe same in {len(pythons)} frameworks; each was denied rm and left nothing running.\n'
        )


@nox.session(default=False)
def release(session: nox.Session) -> None:
    """Make all wheels and source distributions of a version, try each, and write it: nox -s release -- X.Y.Z, or --check."""
    session.install('twine>=6.1', 'uv')
    session.run('python', '.ci/release.py', *session.posargs)


@nox.session(default=False)
def record(session: nox.Session) -> None:
    """Draw docs/assets/demo.svg anew, from what the demo of a framework shows: nox -s record -- langchain."""
    (name,) = session.posargs or ['langchain']
    _install(session, name)
    session.install('rich>=14,<16')
    title, demo = f'nox -s demo -- {name}', ['python', 'examples/demo', name]
    picture = ['docs/assets/demo.svg', '--lines', '47', '--title', title]
    session.run('python', 'docs/record_demo.py', *picture, '--', *demo)


@nox.session(default=False)
def bench(session: nox.Session) -> None:
    """Measure: everything in benchmarks/, or what is named: nox -s bench -- executor."""
    _install(session)
    found = {path.stem: path for path in sorted(ROOT.glob('benchmarks/*.py'))}
    found['executor'] = ROOT / 'benchmarks' / 'executor'
    for name in [Path(name).stem for name in session.posargs] or found:
        peers = _measured_beside(session) if name == 'executor' else []
        session.run('python', str(found[name]), *peers)


def _measured_beside(session: nox.Session) -> list[str]:
    """An environment for each peer of the executor: NAME=PYTHON."""
    pythons: list[str] = []
    for name, package in MEASURED_BESIDE.items():
        home = ROOT / '.nox' / f'bench-{name}'
        python = str(home / 'bin' / 'python')
        session.log(f'Installing {package} ...')
        for command in (
            ('uv', 'venv', '--quiet', '--clear', '--python', sys.executable, str(home)),
            ('uv', 'pip', 'install', '--quiet', '--python', python, package),
        ):
            session.run(*command, log=False, silent=True)
        pythons.append(f'{name}={python}')
    return pythons


@nox.session(default=False)
def fuzz(session: nox.Session) -> None:
    """Feed generated input to what must never fail, for minutes."""
    _marked(session, 'fuzz', 'tests/core', 'tests/sandboxes')


@nox.session(default=False)
def soak(session: nox.Session) -> None:
    """Do the same things for minutes and look for what grows."""
    _marked(session, 'soak', 'tests/soak')


@nox.session
def coverage(session: nox.Session) -> None:
    """Join what all sessions measured, and require every line and branch of core's pure modules."""
    measured = sorted(str(path) for path in COVERAGE.glob('*/data*'))
    if not measured:
        session.skip('nothing was measured yet: nox -s core adapter')
    session.install('coverage>=7.10')
    # The settings in pyproject.toml, and where the sources of the adapters are, so that no file has to list them.
    paths = ''.join(
        f'{name} = ["adapters/{name}/src/{name}_anyshell", "*/site-packages/{name}_anyshell"]\n'
        for name in ADAPTERS
    )
    head = '[tool.coverage.paths]\n'
    settings = (ROOT / 'pyproject.toml').read_text().replace(head, head + paths)
    (COVERAGE / 'settings.toml').write_text(settings)
    session.env.update(
        {
            'COVERAGE_FILE': str(COVERAGE / 'all'),
            'COVERAGE_RCFILE': str(COVERAGE / 'settings.toml'),
        }
    )
    session.run('coverage', 'combine', '--quiet', '--keep', *measured)
    session.run('coverage', 'report')
    included = ','.join(f'core/src/anyshell/{module}' for module in PURE)
    session.run('coverage', 'report', f'--include={included}', '--fail-under=100')


@nox.session(default=False)
def dev(session: nox.Session) -> None:
    """Make .venvs/NAME to work in, with the sources of core and an adapter: nox -s dev -- langchain."""
    for name in session.posargs or ['core']:
        home = ROOT / '.venvs' / name
        session.run('uv', 'venv', '--quiet', '--clear', '--python', sys.executable, str(home))
        needs = [*TESTING, 'pyright[nodejs]', 'ruff>=0.12', '--editable', 'core']
        if name != 'core':
            needs += [*_adapter(name)['test'], '--editable', f'adapters/{name}']
        session.run(
            'uv', 'pip', 'install', '--quiet', '--python', str(home / 'bin' / 'python'), *needs
        )
        session.log(f'Ready: .venvs/{name}/bin/pytest')
