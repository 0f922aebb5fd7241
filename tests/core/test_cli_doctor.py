"""`anyshell doctor`: each answer is tried, bounded in time, and a gap comes with its fix."""

import json
import os
import signal
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from anyshell.cli import main
from anyshell.command_line.doctor import adapters, checks, command, host, sandboxes
from anyshell.command_line.doctor.checks import Answer, Check


@pytest.fixture
def programs(tmp_path, monkeypatch):
    """Makes programs that are the only ones on PATH."""
    folder = tmp_path / 'bin'
    folder.mkdir()
    monkeypatch.setenv('PATH', str(folder))

    def make(name, script):
        path = folder / name
        path.write_text(f'#!/bin/sh\n{script}\n')
        path.chmod(0o755)

    return make


def test_json_has_an_answer_to_every_question(anyshell):
    done = anyshell('doctor', '--json')

    report = json.loads(done.stdout)
    names = [check['name'] for check in report['checks']]
    assert names[: len(command.QUESTIONS)] == list(command.QUESTIONS)
    assert len(names) > len(command.QUESTIONS)  # at least that no adapter is installed
    assert report['python'].startswith(f'{sys.version_info.major}.')
    assert set(report['checks'][0]) == {
        'name',
        'area',
        'works',
        'found',
        'fix',
        'required',
        'status',
    }
    required = [check for check in report['checks'] if check['required']]
    assert report['works'] == all(check['works'] for check in required)
    assert done.returncode == (0 if report['works'] else 1)
    assert [
        check['name'] for check in report['checks'] if not check['works'] and not check['fix']
    ] == []


def test_page_says_what_works_and_how_to_mend_the_rest(anyshell):
    done = anyshell('doctor', COLUMNS='200')

    for heading in ('Commands', 'Sandboxes', 'Adapters'):
        assert f'\n{heading}\n' in done.stdout
    assert '  ok    engine ' in done.stdout
    assert done.stdout.count('-> ') >= done.stdout.count('\n  gap ') + done.stdout.count(
        '\n  fail '
    )
    assert '\x1b' not in done.stdout


@pytest.mark.parametrize(
    ('given', 'code', 'status', 'last'),
    [
        ((), 0, 'gap', 'Ready. The gaps matter only to those who use what they name.'),
        (('--require', 'podman'), 1, 'fail', 'Not ready: podman. What to do is said above.'),
        (('--require', 'shell'), 0, 'gap', 'Ready. The gaps matter only to those who use what they name.'),
        (('--require', 'nonesuch'), 3, '', ''),
    ],
)  # fmt: skip
def test_exit_code_says_whether_all_that_is_required_works(monkeypatch, given, code, status, last):
    works = Check(name='shell', area='commands', works=True, found='there', required=True)
    lacks = Check(name='podman', area='sandboxes', works=False, found='not there', fix='install it')
    monkeypatch.setattr(command, 'examine', _examined(works, lacks))

    done = CliRunner().invoke(main, ['doctor', *given])

    assert done.exit_code == code
    if status:
        assert f'  {status:<4}  podman  not there\n                -> install it\n' in done.stdout
        assert done.stdout.splitlines()[-1] == last


def _examined(*found):
    return lambda required: [replace(c, required=True) if c.name in required else c for c in found]


def test_names_of_the_questions_are_those_of_the_answers(programs):
    del programs  # with nothing on PATH each answers at once, and all the same

    assert [question().name for question in command.QUESTIONS.values()] == list(command.QUESTIONS)


def test_machine_without_any_program_has_no_shell_and_no_sandbox(programs):
    del programs

    assert host.shell().status == 'fail'
    for question in (sandboxes.bubblewrap, sandboxes.docker, sandboxes.podman, sandboxes.ssh):
        check = question()
        assert (check.status, 'on PATH' in check.found, 'install' in check.fix) == (
            'gap',
            True,
            True,
        )


def test_program_that_hangs_is_given_up_with_its_children(programs, monkeypatch, tmp_path):
    programs('docker', f'echo $$ >>{tmp_path}/pids; /bin/sleep 600 & wait')
    monkeypatch.setattr(checks, 'SECONDS', 0.3)

    started = time.monotonic()
    check = sandboxes.docker()

    assert time.monotonic() - started < 10
    assert not check.works
    assert 'did not answer in time' in check.found


def test_child_that_left_its_group_holds_no_answer_up(tmp_path):
    script = f"setsid sh -c 'echo $$ >{tmp_path}/pid; exec sleep 600' & sleep 600"

    started = time.monotonic()
    answer = checks.ask('sh', '-c', script, seconds=1)
    took = time.monotonic() - started
    os.kill(int((tmp_path / 'pid').read_text()), signal.SIGKILL)

    assert answer == Answer(None, '')
    assert took < 10


@pytest.mark.parametrize(
    ('script', 'found', 'fix'),
    [
        ('case $1 in info) echo 29.1.0;; *) echo "Docker version 29.1.0, build x";; esac', 'engine 29.1.0', ''),
        ('case $1 in info) echo "permission denied while trying to connect" >&2; exit 1;; esac', 'permission denied', 'usermod -aG docker'),
        ('case $1 in info) echo; echo "Cannot connect to the Docker daemon." >&2; exit 1;; esac', 'Cannot connect', 'systemctl start docker'),
        ('exit 9', 'exit code 9, no message', 'systemctl start docker'),
    ],
)  # fmt: skip
def test_docker_is_asked_for_its_engine(programs, script, found, fix):
    programs('docker', script)

    check = sandboxes.docker()

    assert check.works == (not fix)
    assert found in check.found
    assert fix in check.fix


@pytest.mark.parametrize(
    ('said', 'settings', 'fix'),
    [
        ('bwrap: No permissions to create a new namespace', {'kernel/unprivileged_userns_clone': '0'}, 'sysctl kernel.unprivileged_userns_clone=1'),
        ('bwrap: setting up uid map: Permission denied', {'kernel/apparmor_restrict_unprivileged_userns': '1'}, 'AppArmor'),
        ('bwrap: No permissions', {'user/max_user_namespaces': '0'}, 'user.max_user_namespaces='),
        ("bwrap: Can't mount proc on /newroot/proc: Operation not permitted", {}, 'systempaths=unconfined'),
        ('bwrap: Creating new namespace failed', {}, 'seccomp=unconfined'),
    ],
)  # fmt: skip
def test_bubblewrap_that_does_not_start_comes_with_the_setting_to_change(
    programs, monkeypatch, said, settings, fix
):
    programs(
        'bwrap',
        f'case $1 in --version) echo bubblewrap 0.8.0;; *) echo "{said}" >&2; exit 1;; esac',
    )
    monkeypatch.setattr(sandboxes, '_setting', lambda name: settings.get(name, ''))
    monkeypatch.setattr(sys, 'platform', 'linux')

    check = sandboxes.bubblewrap()

    assert check.status == 'gap'
    assert said in check.found
    assert fix in check.fix


@pytest.mark.needs('bubblewrap')
def test_bubblewrap_that_starts_works():
    assert sandboxes.bubblewrap().works


def test_ssh_has_to_be_openssh(programs):
    programs('ssh', 'echo dropbear >&2')
    assert sandboxes.ssh().status == 'gap'

    programs('ssh', 'echo OpenSSH_9.2p1 >&2')
    assert sandboxes.ssh().works


@pytest.mark.parametrize(('kind', 'works'), [('cgroup v2', True), ('cgroup v1', True), ('none', False)])  # fmt: skip
def test_group_is_tried_and_removed(monkeypatch, kind, works):
    made = []

    class Group:
        def __init__(self, *, memory, pids):
            self.kind, self.limits, self.removed = kind, (memory, pids), False
            made.append(self)

        def remove(self):
            self.removed = True

    monkeypatch.setattr(sandboxes, 'Group', Group)
    monkeypatch.setattr(sys, 'platform', 'linux')

    check = sandboxes.cgroups()

    assert check.works is works
    assert [group.removed for group in made] == [True]
    assert all(made[0].limits)
    assert works or ('not for root' in check.found and '/sys/fs/cgroup' in check.fix)


@pytest.mark.parametrize(
    ('release', 'bounds', 'met'),
    [
        ('1.2.10', '>=1.2.10,<2', True),
        ('1.2.9', '>=1.2.10,<2', False),
        ('2.0', '>=1.2.10,<2', False),
        ('1.10', '>=1.9', True),
        ('2', '==2.0.0', True),
        ('2.1', '!=2.1', False),
        ('0.1.1rc1', '>=0.1,<0.2', True),
        ('0.1', '', True),
        ('0.1', '~=0.1', True),  # a form that pip has judged
    ],
)  # fmt: skip
def test_release_meets_its_bounds(release, bounds, met):
    assert adapters.meets(release, bounds) is met


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Makes a distribution that Python finds."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv('PYTHONPATH', os.pathsep.join([str(tmp_path), *sys.path]))

    def make(name, version, *needs, code=None):
        info = tmp_path / f'{name.replace("-", "_")}-{version}.dist-info'
        info.mkdir()
        lines = [
            'Metadata-Version: 2.1',
            f'Name: {name}',
            f'Version: {version}',
            *(f'Requires-Dist: {n}' for n in needs),
        ]
        Path(info, 'METADATA').write_text('\n'.join(lines) + '\n')
        if code is not None:
            Path(tmp_path, f'{name.replace("-", "_")}.py').write_text(code)

    return make


def test_adapter_is_measured_by_what_it_needs(installed):
    installed('moon-agents', '2.5.0')
    installed(
        'moon-anyshell',
        '0.9',
        'moon-agents<3,>=2.4',
        'anyshell<999,>=0.0',
        'pytest; extra == "dev"',
        code='',
    )

    (found,) = [adapter for adapter in adapters.installed() if adapter.name == 'moon-anyshell']

    assert (found.version, found.module) == ('0.9', 'moon_anyshell')
    assert found.needs[0] == adapters.Need('moon-agents', '>=2.4,<3', '2.5.0', met=True)
    assert [need.name for need in found.needs] == ['moon-agents', 'anyshell']


def _check_of(name):
    (check,) = [check for check in adapters.checks() if check.name == name]
    return check


def test_adapter_whose_framework_is_too_old_or_missing_fails_with_the_command_that_mends_it(
    installed,
):
    installed('moon-agents', '2.3.9')
    installed(
        'moon-anyshell',
        '0.9',
        'moon-agents<3,>=2.4',
        'sun-agents>=1',
        'anyshell<999,>=0.0',
        code='',
    )

    check = _check_of('moon-anyshell')

    assert check.status == 'fail'
    assert 'moon-agents 2.3.9 (needs >=2.4,<3)' in check.found
    assert 'sun-agents is missing' in check.found
    assert '"moon-agents>=2.4,<3" "sun-agents>=1"' in check.fix


def test_adapter_that_can_not_be_imported_fails_with_the_reason(installed):
    anyshell_found = adapters._need('anyshell>=0')
    if anyshell_found is None or not anyshell_found.met:
        installed('anyshell', '0.1.0')
    installed('moon-anyshell', '0.9', 'anyshell>=0', code='raise RuntimeError("no moon tonight")')

    check = _check_of('moon-anyshell')

    assert check.status == 'fail'
    assert 'RuntimeError: no moon tonight' in check.found


def test_no_adapter_is_a_gap_only(monkeypatch):
    monkeypatch.setattr(adapters, 'distributions', list)

    (check,) = adapters.checks()

    assert (check.status, check.name) == ('gap', 'adapters')


def test_full_or_missing_temporary_directory_fails(monkeypatch):
    def gone():
        raise FileNotFoundError(2, 'No usable temporary directory found')

    monkeypatch.setattr(host.tempfile, 'gettempdir', gone)

    check = host.temporary_directory()

    assert check.status == 'fail'
    assert 'No usable temporary directory' in check.found
    assert 'TMPDIR' in check.fix


def test_full_disk_takes_no_answer_away(programs, monkeypatch):
    def full():
        raise FileNotFoundError(2, 'No usable temporary directory found')

    programs('bwrap', 'echo bubblewrap 9')
    monkeypatch.setattr(host.tempfile, 'gettempdir', full)

    found = {check.name: check for check in command.examine()}

    assert set(command.QUESTIONS) <= set(found)
    assert found['temporary-directory'].status == 'fail'
    assert found['bubblewrap'].fix == (
        'mend temporary-directory first'
        if sys.platform.startswith('linux')
        else 'use DockerSandbox or SshSandbox'
    )


@pytest.mark.parametrize('variable', ['TMPDIR', 'TEMP', 'TMP'])
def test_temporary_directory_that_python_silently_ignores_is_named(variable, tmp_path, monkeypatch):
    for name in ('TMPDIR', 'TEMP', 'TMP'):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(host.tempfile, 'gettempdir', lambda: str(tmp_path))
    monkeypatch.setenv(variable, str(tmp_path))

    assert host.temporary_directory().status == 'ok'

    monkeypatch.setenv(variable, '/nonesuch')
    check = host.temporary_directory()

    assert check.status == 'gap'
    assert check.found.startswith(f'{tmp_path}, ')
    assert check.found.endswith(
        f'; {variable}=/nonesuch is ignored, since nothing can be written there (No such file or directory)'
    )
    assert check.fix == f'let {variable} name a directory that can be written, or unset it'


def test_answer_s_first_line_is_the_first_that_says_something():
    assert Answer(0, '\n  \n hello \nworld\n').first_line == 'hello'
    assert Answer(0, '').first_line == ''
