"""A sandbox from one method: `execute_streaming` is enough for code, files, and commands that live on."""

from __future__ import annotations

import base64
import binascii
import contextlib
import errno
import re
import secrets
import shlex
import time
from abc import ABC
from typing import TYPE_CHECKING, Any

from anyshell.errors import SandboxError, SandboxPathNotFoundError, SandboxTimeoutError
from anyshell.sandbox.base import ExecutionResult, FileInfo, Sandbox, StreamChunk

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping

    from anyshell.sandbox.base import Processes

ENV_KEY_PATTERN = re.compile(r'[A-Za-z_][A-Za-z0-9_]*')
"""A name that a POSIX shell can export."""

LANGUAGE_PATTERN = re.compile(r'[a-zA-Z0-9._-]+')
"""What `execute_code` takes as the name of an interpreter."""

PIECE = 60_000
"""Characters of base64 in one command. A command is often one argument of a process, which Linux limits to 128 KiB."""

SHELLS = frozenset({'sh', 'bash', 'dash', 'ash', 'ksh', 'zsh'})

ALTERED = 'the answer of the sandbox is incomplete: its output is cut or altered on the way. See what it passes through: every byte has to arrive as it was written'

_MISSING, _DIRECTORY, _FORBIDDEN, _NO_DIRECTORY, _NO_FILE = 81, 82, 83, 84, 85


class _Altered(OSError):
    """Raised where a command has succeeded and what came back is not what was sent."""


class PathIsDirectory(FileNotFoundError, IsADirectoryError):
    """Raised where a file is wanted and the path names a directory; the spec has `FileNotFoundError` for it."""


class PathForbidden(FileNotFoundError, PermissionError):
    """Raised where a file can't be read or removed; the spec has `FileNotFoundError` for it."""


def validate_env_keys(env: Mapping[str, str]) -> None:
    """Check the names of variables.

    Args:
        env: Names and values.

    Raises:
        ValueError: If a name is not one that a POSIX shell can export.
    """
    for key in env:
        if not ENV_KEY_PATTERN.fullmatch(key):
            raise ValueError(f'Invalid environment variable name: {key}')


def build_shell_env_prefix(env: Mapping[str, str] | None = None) -> str:
    """The text `export NAME='value' … && ` to put in front of a command; '' when there is nothing to set.

    Args:
        env: Names and values.

    Raises:
        ValueError: If a name is not one that a POSIX shell can export, or a value holds a NUL.
    """
    if not env:
        return ''
    validate_env_keys(env)
    for key, value in env.items():
        if '\0' in value:
            raise ValueError(f'The value of the environment variable {key} holds a NUL character')
    return f'export {" ".join(f"{key}={shlex.quote(value)}" for key, value in env.items())} && '


class PosixShellSandbox(Sandbox, ABC):
    """A sandbox whose every operation is a shell command.

    A subclass implements `execute_streaming` and nothing else. What that method must do itself, since nobody else can:

    - set `env` (put `build_shell_env_prefix(env)` in front of the command, or pass the variables on natively), apply
      `cwd`, and not run the command elsewhere when that directory is missing;
    - end the command and its children when `timeout` has passed, or when the generator is closed.

    Any operation may be overridden by one that is native to the place; an `execute` of the subclass's own is what then
    runs the operations on files.

    Sessions work over every such sandbox. Background commands need two things more, which the first one to be started
    asks of the sandbox: that calls share one file system and one set of processes, and that what a command leaves
    running with its output redirected lives on. If that does not hold, background commands are refused with that
    reason.
    """

    _staged: frozenset[str] = frozenset()
    """Files that a call has left behind, since the place failed; here, since a subclass need not call `__init__`."""

    def processes(self, *, max_log_bytes: int = 100_000_000) -> Processes:
        from anyshell.sandbox.channels import StreamingChannel  # noqa: PLC0415 - it knows this class
        from anyshell.sandbox.scripts import ScriptProcesses  # noqa: PLC0415 - as above

        # Kept, since it knows what was asked of the place; set here, since a subclass need not call `__init__`.
        channel: StreamingChannel | None = getattr(self, '_scripts', None)
        if channel is None:
            channel = self._scripts = StreamingChannel(self)
        return ScriptProcesses(channel, max_log_bytes=max_log_bytes)

    async def execute_code_streaming(
        self,
        code: str,
        language: str,
        *,
        timeout: float | None = None,
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        **kwargs: Any,
    ) -> AsyncGenerator[StreamChunk | ExecutionResult, None]:
        """Run source code by piping it to an interpreter.

        A shell gets the code on another descriptor than its standard input, which is at its end: a program in the
        code may then read that without eating the code.

        Args:
            code: The source.
            language: The interpreter's program name, such as `python3`.
            timeout: The limit for the whole call in seconds; `None` for no limit.
            cwd: The directory to start in.
            env: Variables to add.
            **kwargs: Passed on to `execute_streaming`.

        Raises:
            ValueError: If `language` is no plain program name.
        """
        if not LANGUAGE_PATTERN.fullmatch(language):
            raise ValueError(f'language parameter contains invalid characters: {language}')
        deadline = None if timeout is None else time.monotonic() + timeout
        run = language
        if language in SHELLS:
            run = f'{{ exec 3<&0 </dev/null; {language} /dev/fd/3; }}'
        encoded = base64.b64encode(code.encode()).decode('ascii')
        staged = ''
        try:
            left = timeout
            if len(encoded) <= PIECE:
                eof = _marker()
                command = f"base64 -d << '{eof}' | {run}\n{encoded}\n{eof}"
            else:
                staged = f'/tmp/{_marker()}'  # noqa: S108 - created with O_EXCL under a name nobody can guess
                await self._send_pieces(staged, encoded, deadline, timeout)
                quoted = shlex.quote(staged)
                command = f'{{ rm -f {quoted}; base64 -d; }} < {quoted} | {run}'
                left = _left(deadline, timeout)
            stream = self.execute_streaming(command, timeout=left, cwd=cwd, env=env, **kwargs)
            try:
                async for chunk in stream:
                    yield chunk
                    if isinstance(chunk, ExecutionResult) and not chunk.exit_code:
                        staged = ''  # it was read, and removed
            except SandboxTimeoutError as error:
                if left == timeout:
                    raise
                raise SandboxTimeoutError(timeout, error.stdout, error.stderr) from error
            finally:
                await stream.aclose()
        finally:
            if staged:
                await self._discard(staged)

    async def read_file(self, path: str, **kwargs: Any) -> bytes:  # noqa: ARG002 - the spec's
        """Read a whole file.

        Raises:
            FileNotFoundError: If there is no such file or it can't be read; also an `IsADirectoryError` or a
                `PermissionError` where that is why.
            OSError: If what came back is not what was sent.
        """
        undecodable = f'Failed to decode base64 contents of file: {path}'
        try:
            code, reply, noise = await self.run_script(reading(path, 'base64'))
        except _Altered as error:
            raise OSError(f'{undecodable}: {error}') from error
        if code:
            raise file_error(code, path, noise, f'Failed to read file: {path}')
        try:
            return base64.b64decode(reply.translate(None, b' \r\n\t'), validate=True)
        except binascii.Error as error:
            raise OSError(undecodable) from error

    async def write_file(self, path: str, content: bytes, **kwargs: Any) -> None:  # noqa: ARG002 - the spec's
        """Write a whole file, with the directories above it.

        The content is staged beside the file and moved into place, so that a full disk leaves the old file whole;
        what is not a plain file of one's own (a symbolic link, a device) is written in place.

        Raises:
            OSError: If it can't be written.
        """
        if self._staged:  # of an earlier call, which the place did not let go of
            await self._discard()
        name, staged = staging(path)
        encoded = base64.b64encode(content).decode('ascii')
        source = shlex.quote(staged)
        try:
            if len(encoded) <= PIECE:
                eof = _marker()
                script = writing(name, staged, f"base64 -d << '{eof}'", f'{encoded}\n{eof}')
            else:
                code, _, noise = await self.run_script(writing(name, staged, ': <', place=False))
                if code:
                    raise write_error(code, path, noise)  # noqa: TRY301 - what was staged goes either way
                await self._send_pieces(f'{staged}.b', encoded, None, None)
                script = writing(name, staged, f'base64 -d < {source}.b')
                script = f'{script}; _s=$?; rm -f {source}.b; exit $_s'
            code, _, noise = await self.run_script(script)
        except BaseException:  # cancelled or failed half-way
            await self._discard(staged, f'{staged}.b')
            raise
        if code:
            raise write_error(code, path, noise)

    async def remove_file(self, path: str, **kwargs: Any) -> None:  # noqa: ARG002 - the spec's
        """Remove a file.

        Raises:
            FileNotFoundError: If there is no such file; also an `IsADirectoryError` or a `PermissionError` where that
                is why.
        """
        name = shlex.quote(_plain(path))
        code, _, noise = await self.run_script(
            f'[ -e {name} ] || [ -h {name} ] || exit {_MISSING}; '
            f'[ ! -d {name} ] || [ -h {name} ] || exit {_DIRECTORY}; rm -f {name} || exit {_FORBIDDEN}'
        )
        if code:
            raise file_error(code, path, noise, f'Failed to remove file: {path}')

    async def list_files(self, path: str, **kwargs: Any) -> list[FileInfo]:  # noqa: ARG002 - the spec's
        """List a directory: hidden entries too; `size` is always `None`.

        Raises:
            SandboxPathNotFoundError: If the path does not exist or is no directory.
            OSError: If it can't be listed.
        """
        name = shlex.quote(_plain(path))
        # The names come NUL-separated, since only NUL and "/" can't be in one; `d` and `f` say what each is.
        code, reply, noise = await self.run_script(
            f'[ -d {name} ] || exit {_NO_DIRECTORY}; [ -r {name} ] && cd {name} || exit {_FORBIDDEN}; set +f; '
            'for _f in * .*; do case $_f in .|..) continue;; esac; '
            'if [ -d "$_f" ] && [ ! -h "$_f" ]; then printf \'d%s\\0\' "$_f"; '
            'elif [ -e "$_f" ] || [ -h "$_f" ]; then printf \'f%s\\0\' "$_f"; fi; done | base64'
        )
        if code == _NO_DIRECTORY:
            raise SandboxPathNotFoundError(path)
        if code == _FORBIDDEN:
            raise PermissionError(errno.EACCES, 'Permission denied', path)
        if code:
            raise OSError(noise or f'Failed to list directory: {path}')
        try:
            names = base64.b64decode(reply.translate(None, b' \r\n\t'), validate=True).split(b'\0')
        except binascii.Error as error:
            raise OSError(f'Failed to list directory: {path}') from error
        return [
            FileInfo(entry[1:].decode('utf-8', 'surrogateescape'), is_dir=entry[:1] == b'd')
            for entry in names
            if entry
        ]

    async def _discard(self, *staged: str) -> None:
        """Remove files that were staged; where that fails as well, when the next file is written."""
        self._staged |= frozenset(staged)
        names = self._staged
        with contextlib.suppress(Exception):  # what is on its way out is why
            code, _, _ = await self.run_script(f'rm -f {" ".join(map(shlex.quote, names))}')
            if not code:
                self._staged -= names

    async def _send_pieces(
        self, path: str, encoded: str, deadline: float | None, timeout: float | None
    ) -> None:
        """Put a long base64 text into a new private file, a piece for each command."""
        quoted = shlex.quote(path)
        for start in range(0, len(encoded), PIECE):
            begin = 'umask 077; set -C; ' if not start else ''
            code, _, noise = await self.run_script(
                f"{begin}printf '%s' {encoded[start : start + PIECE]} {'>>' if start else '>'} {quoted}",
                timeout=_left(deadline, timeout),
            )
            if code:
                raise SandboxError(noise or f'the sandbox can not hold the file {path!r}')

    async def run_script(
        self, script: str, *, timeout: float | None = None
    ) -> tuple[int, bytes, str]:
        """Run a script of ours.

        What a profile or a banner prints around its output does no harm: the output stands between two marks.

        Returns:
            The exit code, what the script wrote to standard output, and standard error.

        Raises:
            OSError: If the marks are missing although the command succeeded.
        """
        mark = _marker()
        # One compound command: what the place puts in front with `&&` holds for all of it.
        command = f"{{ printf '%s' {mark}; ( {script}\n); _s=$?; printf '%s' {mark}; exit $_s; }}"
        output: dict[str, list[str]] = {'stdout': [], 'stderr': []}
        result: ExecutionResult | None = None
        if type(self).execute is not Sandbox.execute:
            # A subclass that has an `execute` of its own means it for the operations too, as with the origin.
            result = await self.execute(command, timeout=timeout)
        else:
            stream = self.execute_streaming(command, timeout=timeout)
            try:
                async for chunk in stream:
                    if isinstance(chunk, ExecutionResult):
                        result = chunk
                        break
                    output[chunk.stream_type].append(chunk.data)
            finally:
                await stream.aclose()
        if result is None:
            raise RuntimeError('execute_streaming() did not yield an ExecutionResult')
        stdout = ''.join(output['stdout']) or result.stdout
        noise = (''.join(output['stderr']) or result.stderr).strip()
        _, begun, rest = stdout.partition(mark)
        inside, ended, _ = rest.partition(mark)
        if not (begun and ended):
            if result.exit_code:
                return result.exit_code, b'', noise
            raise _Altered(ALTERED)
        return result.exit_code, inside.encode('utf-8', 'surrogateescape'), noise


def _marker() -> str:
    return f'anyshell_{secrets.token_hex(12)}'


def _plain(path: str) -> str:
    """The path in a form that no program takes for an option."""
    if not path or '\0' in path:
        raise FileNotFoundError(errno.ENOENT, 'No such file or directory', path)
    return path if path.startswith('/') else f'./{path}'


def reading(path: str, how: str) -> str:
    """A script that writes a file to standard output by the program `how`, or exits with a code for `file_error`."""
    name = shlex.quote(_plain(path))
    return (
        f'[ -e {name} ] || exit {_MISSING}; [ ! -d {name} ] || exit {_DIRECTORY}; '
        f'[ -f {name} ] || exit {_NO_FILE}; [ -r {name} ] || exit {_FORBIDDEN}; {how} < {name}'
    )


def staging(path: str) -> tuple[str, str]:
    """The file to write in a form that is safe in a script, and the name of a new file beside it."""
    name = _plain(path)
    folder, _, base = name.rpartition('/')
    if not base:
        raise IsADirectoryError(errno.EISDIR, 'Is a directory', path)
    return name, f'{folder}/.{_marker()}'


def writing(name: str, staged: str, how: str, document: str = '', *, place: bool = True) -> str:
    """A script that writes a file, by way of `staged`, with what the command `how` gives.

    Args:
        name: The file, from `staging`.
        staged: The file beside it, from `staging`.
        how: A command whose standard output is the content.
        document: Its here-document, with the last line.
        place: Whether the file is moved into place; otherwise only the place is made and tried.
    """
    folder = name.rpartition('/')[0]
    source, target = shlex.quote(staged), shlex.quote(name)
    make = f'mkdir -p {shlex.quote(folder)} || exit 1; ' if folder.strip('.') else ''
    begin = f'[ ! -d {target} ] || exit {_DIRECTORY}; {make}'
    if not place:
        return f'{begin}: > {source}'
    return f'{begin}{how} > {source} || {{ rm -f {source}; exit 1; }}\n{document}\n{_place(source, target)}'


def _place(source: str, target: str) -> str:
    """Shell text that moves a staged file into place; both names are quoted."""
    return (
        f'if [ ! -e {target} ] && [ ! -h {target} ]; then mv -f {source} {target} || _bad=1; '
        f'elif [ -f {target} ] && [ ! -h {target} ] && [ -O {target} ] && [ -w {target} ] && '
        f'_m=$(stat -c "%h %a" {target} 2>/dev/null) && [ "${{_m% *}}" = 1 ] && '
        f'chmod "${{_m#* }}" {source}; then '
        # A file that is a mount point can't be replaced, only filled.
        f'mv -f {source} {target} 2>/dev/null || cat {source} > {target} || _bad=1; '
        f'else cat {source} > {target} || _bad=1; fi; rm -f {source}; [ -z "${{_bad-}}" ]'
    )


def _left(deadline: float | None, timeout: float | None) -> float | None:
    """The rest of the time; an error when there is none."""
    if deadline is None:
        return None
    left = deadline - time.monotonic()
    if left <= 0:
        raise SandboxTimeoutError(timeout)
    return left


def file_error(code: int, path: str, noise: str, otherwise: str) -> OSError:
    """The error for a script that could not read or remove a file."""
    if code == _MISSING:
        return FileNotFoundError(errno.ENOENT, 'No such file or directory', path)
    if code == _DIRECTORY:
        return PathIsDirectory(errno.EISDIR, 'Is a directory', path)
    if code == _FORBIDDEN:
        return PathForbidden(errno.EACCES, 'Permission denied', path)
    if code == _NO_FILE:
        return no_file(path)
    return FileNotFoundError(noise or otherwise)


def no_file(path: str) -> FileNotFoundError:
    """The error for a path that names a pipe, a socket or a device: reading it might never end."""
    return FileNotFoundError(errno.EINVAL, 'Not a regular file', path)


def write_error(code: int, path: str, noise: str) -> OSError:
    """The error for a script that could not write a file."""
    if code == _DIRECTORY:
        return IsADirectoryError(errno.EISDIR, 'Is a directory', path)
    return OSError(noise or f'Failed to write file: {path}')
