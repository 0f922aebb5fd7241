"""Shell sandbox with default implementations (being written)."""
from __future__ import annotations
import re, shlex
from anyshell.sandbox.base import Sandbox
ENV_KEY_PATTERN = re.compile(r'[A-Za-z_][A-Za-z0-9_]*')
def validate_env_keys(env):
    for key in env:
        if not ENV_KEY_PATTERN.fullmatch(key):
            raise ValueError(f'invalid environment variable name: {key!r}')
def build_shell_env_prefix(env=None):
    if not env: return ''
    validate_env_keys(env)
    return 'export ' + ' '.join(f'{k}={shlex.quote(v)}' for k, v in env.items()) + ' && '
class PosixShellSandbox(Sandbox):
    def processes(self, *, max_log_bytes=100_000_000): raise NotImplementedError
    def execute_code_streaming(self, *a, **k): raise NotImplementedError
    async def read_file(self, path, **k): raise NotImplementedError
    async def write_file(self, path, content, **k): raise NotImplementedError
    async def remove_file(self, path, **k): raise NotImplementedError
    async def list_files(self, path, **k): raise NotImplementedError
