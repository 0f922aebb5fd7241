"""Sandboxes by a word on the command line."""

from __future__ import annotations

import os
import shutil

import click

from anyshell.errors import OptionError, SandboxUnavailable
from anyshell.sandbox import (
    BubblewrapSandbox,
    DockerSandbox,
    LocalSandbox,
    Sandbox,
    SshSandbox,
)

FORMS = (
    'local, bubblewrap, docker:CONTAINER (one that runs), image:IMAGE (a container of its own, removed at the end), '
    'podman:CONTAINER, podman-image:IMAGE or ssh:[USER@]HOST'
)
_ENGINES = {
    'docker': 'docker',
    'image': 'docker',
    'podman': 'podman',
    'podman-image': 'podman',
}
"""Which program reaches the containers of a word."""

HERE = ('local', 'bubblewrap')
"""The sandboxes that start in a directory of this machine."""

_OWN_NETWORK = ('bubblewrap', 'image', 'podman-image')


def named(place: str, *, cwd: str, network: bool) -> Sandbox:
    """The sandbox that a word such as `docker:web` means.

    Args:
        place: One of `FORMS`.
        cwd: The directory on this machine that a sandbox of this machine starts in.
        network: Whether a sandbox that is made here can reach the network.

    Raises:
        OptionError: If it is none of them, or the directory can't be used.
        SandboxUnavailable: If the client of its engine is missing.
        click.UsageError: If it has no network of its own to choose.
    """
    kind, _, name = place.partition(':')
    if place not in HERE and not (name and (kind in _ENGINES or kind == 'ssh')):
        raise OptionError('--sandbox', place, FORMS)
    if not cwd or (place in HERE and not os.path.isdir(cwd)):
        raise OptionError('--cwd', cwd, 'a directory that is there')
    if network and kind not in _OWN_NETWORK:
        raise click.UsageError(
            f'--network has no place beside --sandbox {kind}, whose network is as it is: leave it out'
        )
    if place == 'local':
        return LocalSandbox(cwd=cwd)
    if place == 'bubblewrap':
        if os.path.realpath(cwd) == '/':
            raise OptionError(
                '--cwd', cwd, 'the directory to work in, which is all that can be written'
            )
        return BubblewrapSandbox(cwd=cwd, network=network)
    if kind == 'ssh':
        return SshSandbox(name)
    program = _ENGINES[kind]
    if shutil.which(program) is None:
        raise SandboxUnavailable(
            f'{program} is not on PATH, and --sandbox {kind} needs it: install it, or use another sandbox; '
            '"anyshell doctor" says which ones work here'
        )
    if kind == program:
        return DockerSandbox(name, program=program)
    return DockerSandbox(image=name, network='bridge' if network else 'none', program=program)
