"""Containers of a real Docker, with a tiny and with a GNU userland."""

import pytest

from anyshell import run_sync
from anyshell.sandbox.docker import DockerSandbox
from anyshell.testing import SandboxContract


@pytest.mark.needs('docker')
class TestDockerSandboxWithBusybox(SandboxContract):
    @pytest.fixture(scope='class')
    @classmethod
    def sandbox(cls, busybox_image):
        sandbox = DockerSandbox(image=busybox_image)
        yield sandbox
        run_sync(sandbox.aclose())


@pytest.mark.needs('docker')
class TestDockerSandboxWithGnu(SandboxContract):
    @pytest.fixture(scope='class')
    @classmethod
    def sandbox(cls, gnu_image):
        sandbox = DockerSandbox(image=gnu_image)
        yield sandbox
        run_sync(sandbox.aclose())
