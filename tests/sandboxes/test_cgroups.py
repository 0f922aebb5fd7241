"""Where the group is made that limits memory and processes."""

import os
from pathlib import Path

import pytest

from anyshell.sandbox import cgroups
from anyshell.sandbox.cgroups import Group

V2 = ('cgroup.procs', 'memory.max', 'memory.swap.max', 'pids.max')
V1 = {'memory': ('memory.limit_in_bytes',), 'pids': ('pids.max',)}


class Hierarchy:
    """A tree of folders that behave like a hierarchy of groups: a new one gets the files that its parent gives it."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root, self.gives, self.forbidden = root, {}, set()
        self.mkdir, self.rmdir = os.mkdir, os.rmdir
        self.own = root.parent / 'own'
        monkeypatch.setattr(cgroups, 'ROOT', str(root))
        monkeypatch.setattr(cgroups, 'OWN', str(self.own))
        monkeypatch.setattr(os, 'mkdir', self.make)
        monkeypatch.setattr(os, 'rmdir', self.remove)

    def group(self, path: str, *gives: str) -> None:
        folder = self.root / path
        folder.mkdir(parents=True, exist_ok=True)
        (folder / 'cgroup.procs').touch()
        self.gives[str(folder)] = gives

    def make(self, path: str, *mode: int) -> None:
        parent = os.path.dirname(path)
        if parent in self.forbidden:
            raise PermissionError(path)
        self.mkdir(path, *mode)
        for name in self.gives.get(parent, ()):
            Path(path, name).touch()

    def remove(self, path: str) -> None:
        for file in Path(path).iterdir():
            file.unlink()
        self.rmdir(path)


@pytest.fixture
def tree(tmp_path, monkeypatch):
    (tmp_path / 'root').mkdir()
    return Hierarchy(tmp_path / 'root', monkeypatch)


def made(tree, *, memory: int | None = 1 << 20, pids: int | None = 5) -> tuple[str, list[str]]:
    """The kind of a group, and where it was made."""
    before = {path for path in tree.root.rglob('*') if path.is_dir()}
    group = Group(memory=memory, pids=pids)
    where = [os.path.relpath(os.path.dirname(folder), tree.root) for folder in group.folders]
    for folder in group.folders:
        for name, value in (('memory.max', memory), ('pids.max', pids)):
            file = Path(folder, name)
            assert not file.exists() or file.read_text() == ('' if value is None else str(value))
    group.remove()

    assert {path for path in tree.root.rglob('*') if path.is_dir()} == before
    return group.kind, where


def v2(tree, own: str) -> None:
    tree.group('.', *V2)
    (tree.root / 'cgroup.controllers').touch()
    tree.own.write_text(f'0::{own}\n')


def test_version_2_makes_a_neighbour_where_its_own_group_gives_no_limits(tree):
    v2(tree, '/user/app/this')
    tree.group('user')
    tree.group('user/app', *V2)
    tree.group('user/app/this', 'cgroup.procs')

    assert made(tree) == ('cgroup v2', ['user/app'])


def test_version_2_makes_it_below_its_own_group_where_that_gives_limits(tree):
    v2(tree, '/this')
    tree.group('this', *V2)

    assert made(tree) == ('cgroup v2', ['this'])
    assert made(tree, memory=None) == ('cgroup v2', ['this'])


def test_version_2_makes_none_where_no_process_may_be_moved(tree, monkeypatch):
    v2(tree, '/this')
    tree.group('this')
    access = os.access
    closed = f'{tree.root}/cgroup.procs'
    monkeypatch.setattr(os, 'access', lambda path, mode: path != closed and access(path, mode))

    assert made(tree) == ('none', [])


def test_version_2_makes_none_where_it_may_not(tree):
    v2(tree, '/this')
    tree.group('this')
    tree.forbidden = {str(tree.root), f'{tree.root}/this'}

    assert made(tree) == ('none', [])


def test_version_2_takes_what_is_mounted_where_its_own_group_is_not_seen(tree):
    v2(tree, '/../outside')

    assert made(tree) == ('cgroup v2', ['.'])


def test_version_1_goes_below_its_own_group_of_each_resource(tree):
    for name, gives in V1.items():
        tree.group(name, *gives)
        tree.group(f'{name}/mine/{name}', *gives)
    tree.own.write_text('9:name=systemd:/\n5:pids:/mine/pids\n4:memory:/mine/memory\n0::/\n')

    assert made(tree) == ('cgroup v1', ['memory/mine/memory', 'pids/mine/pids'])


def test_version_1_takes_the_root_where_its_own_group_is_another_namespaces(tree):
    for name, gives in V1.items():
        tree.group(name, *gives)
    tree.own.write_text('5:pids:/docker/0123\n4:memory:/docker/0123\n')

    assert made(tree) == ('cgroup v1', ['memory', 'pids'])


def test_half_a_group_counts_as_none(tree):
    tree.group('memory', *V1['memory'])
    tree.own.write_text('4:memory:/\n')

    assert made(tree) == ('none', [])


def test_what_no_limit_is_asked_for_makes_no_group(tree):
    assert made(tree, memory=None, pids=None) == ('none', [])


def test_the_real_group_is_below_its_own_or_above():
    group = Group(memory=64 << 20, pids=16)
    places = {place for name in ('', 'memory', 'pids') for place in cgroups._places(name)}
    try:
        assert {os.path.dirname(folder) for folder in group.folders} <= places
        assert (group.kind == 'none') == (not group.folders)
    finally:
        group.remove()
    assert group.folders == []
