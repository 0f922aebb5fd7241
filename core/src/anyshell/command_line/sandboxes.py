"""Sandboxes by a word on the command line."""

from __future__ import annotations

import os
from collections.abc import Callable

from anyshell.errors import OptionError
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
_PLACES: dict[str, Callable[[str, bool], Sandbox]] = {
    'docker': lambda name, _: DockerSandbox(name),
    'image': lambda name, network: DockerSandbox(
        image=name, network='bridge' if network else 'none'
    ),
    'podman': lambda name, _: DockerSandbox(name, program='podman'),
    'podman-image': lambda name, network: DockerSandbox(
        image=name, network='bridge' if network else 'none', program='podman'
    ),
    'ssh': lambda name, _: SshSandbox(name),
}
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
        OptionError: If it is none of them, or if it has no network of its own to choose.
    """
    kind, colon, name = place.partition(':')
    if network and kind not in _OWN_NETWORK:
        raise OptionError(
            '--network',
            True,  # noqa: FBT003 - the value of a flag
            f'left out with --sandbox {kind}, whose network is as it is',
        )
    if place in HERE and not os.path.isdir(cwd):
        raise OptionError('--cwd', cwd, 'a directory that is there')
    if place == 'local':
        return LocalSandbox(cwd=cwd)
    if place == 'bubblewrap':
        return BubblewrapSandbox(cwd=cwd, network=network)
    if kind not in _PLACES or not colon or not name:
        raise OptionError('--sandbox', place, FORMS)
    return _PLACES[kind](name, network)
