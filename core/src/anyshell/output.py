"""What a model reads about output: labels, cutting, status lines. Pure functions; the texts are part of the interface.

The labels and status lines are those of pydantic-ai-harness' Shell, to the letter, since people's prompts rely on them.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Sequence

NO_OUTPUT = '(no output)'
NO_OUTPUT_YET = '(no output yet)'
NO_SUCH_LINES = '(no such lines)'
NO_NEW_OUTPUT = '(no new output)'


_TERMINAL_CODE = re.compile(
    r'\x1b\[[0-?]*[ -/]*[@-~]'  # control sequences, such as colours (ECMA-48 5.4)
    r'|\x1b[\]PX^_].*?(?:\x07|\x1b\\|\Z)'  # strings, such as window titles and links
    r'|\x1b[ -/]*[0-~]',  # other escapes
    re.DOTALL,
)
_ERASE_LINE = re.compile(r'\x1b\[[0-2]?K')


def clean(text: str) -> str:
    """The text as a terminal would show it: without colours and titles, overwritten lines as they were left."""
    if '\x1b' not in text and '\r' not in text and '\b' not in text:
        return text
    return '\n'.join(_shown(line) for line in text.split('\n'))


def _shown(line: str) -> str:
    line = line.removesuffix('\r')
    if '\r' in line:
        # A progress bar goes back to the start of the line and writes over what is there.
        shown = ''
        for part in line.split('\r'):
            erased = _ERASE_LINE.search(part) is not None
            part = _TERMINAL_CODE.sub('', part)  # noqa: PLW2901 - the same part, readable
            shown = part if erased else part + shown[len(part) :]
        line = shown
    else:
        line = _TERMINAL_CODE.sub('', line)
    return _backspaced(line) if '\b' in line else line


def _backspaced(line: str) -> str:
    kept: list[str] = []
    for character in line:
        if character != '\b':
            kept.append(character)
        elif kept:
            kept.pop()
    return ''.join(kept)


def sections(stdout: str, stderr: str) -> str:
    """Both streams under their labels; an empty stream has no section."""
    parts = [f'[{name}]\n{text}' for name, text in (('stdout', stdout), ('stderr', stderr)) if text]
    return '\n'.join(parts)


def cut(text: str, limit: int, *, dropped: bool = False) -> str:
    """The last `limit` characters under a line that says so; the text as it is when it is shorter.

    The tail is kept since errors, stack traces and the `[stderr]` section are at the end.

    Args:
        text: The joined sections.
        limit: Characters, which the line on top is not counted in.
        dropped: Whether something is missing already, so that the line is due in any case.
    """
    if len(text) <= limit and not dropped:
        return text
    notice = f'[... output truncated, showing last {limit} chars]\n'
    return notice + (text[-limit:] if limit else '')


def run_result(
    stdout: str,
    stderr: str,
    *,
    exit_code: int | None,
    limit: int,
    dropped: bool = False,
    timed_out: float | None = None,
    cancelled: bool = False,
    note: str = '',
) -> str:
    """The words for a command that was waited for.

    Args:
        stdout: Standard output, at least its last `limit` characters.
        stderr: Standard error, likewise.
        exit_code: `None` when the command did not end by itself.
        limit: The most characters of output to show.
        dropped: Whether output is missing at the beginning.
        timed_out: The limit in seconds when it has passed.
        cancelled: Whether the caller took the call back.
        note: A line of advice below the output.
    """
    body = _body(stdout, stderr, limit, dropped=dropped, empty=NO_OUTPUT)
    shown = body != NO_OUTPUT
    if note:
        body = f'{body}\n{note}'
    if timed_out is not None:
        ending = f'[Command timed out after {float(timed_out)}s]'
        return f'{body}\n{ending}' if shown else ending
    if cancelled:
        return f'{body}\n[Command cancelled]' if shown else '[Command cancelled]'
    return f'{body}\n[exit code: {exit_code}]' if exit_code else body


def moved_to_background(
    stdout: str, stderr: str, *, command_id: str, seconds: float, limit: int, dropped: bool
) -> str:
    """The words for a command that goes on as a job because its time was up (`on_timeout='background'`)."""
    head = (
        f'[status: running] The command is still running after {float(seconds)}s and goes on in the background; it has not failed.\n'
        f'ID: {command_id}\n'
        f'Next: check_command(command_id={command_id!r}) for its output and exit code, '
        f'or stop_command(command_id={command_id!r}) to end it.'
    )
    body = _body(stdout, stderr, limit, dropped=dropped, empty='')
    return f'{head}\n{body}' if body else head


def started(command: str, command_id: str) -> str:
    """The words for a started job."""
    return f'Started background command: {command!r}\nID: {command_id}'


def waited(condition: str, *, met: bool, running: bool) -> str:
    """The line that says whether what was waited for came."""
    if met:
        return f'[ready: {condition}]'
    if running:
        return f'[not ready: {condition} has not come yet]'
    return f'[not ready: the command ended before {condition} came]'


def listing(rows: Sequence[tuple[str, str, float, int | Literal['lost'] | None]]) -> str:
    """The words for all background commands.

    Args:
        rows: ID, command, seconds since the start, and the exit code: `None` while it runs, 'lost' when the sandbox no
            longer knows it.
    """
    if not rows:
        return '(no background commands)'
    return '\n'.join(
        f'{command_id}: {_state(seconds, exit_code)}: {command!r}'
        for command_id, command, seconds, exit_code in rows
    )


def _state(seconds: float, exit_code: int | Literal['lost'] | None) -> str:
    if exit_code is None:
        return f'running for {seconds:.0f}s'
    return 'ended and lost' if exit_code == 'lost' else f'finished, exit code {exit_code}'


def without_effect(names: list[str], why: str) -> str:
    """The line that says which arguments of a call changed nothing."""
    return f'[{" and ".join(names)} had no effect: {why}]'


INSTEAD_OF_SLEEPING = (
    '[hint: to wait for a background command, do not sleep: check_command with its ID and wait_seconds=60 returns as '
    'soon as it ends, and with until="port:8000", "output:REGEX" or "quiet:2" as soon as that is so.]'
)


def head_dropped(count: int) -> str:
    """The line above lines of a log that has lost its head."""
    return f'[the first {count} bytes of the output are no longer kept; lines are counted from what is]'


def status(
    stdout: str,
    stderr: str,
    *,
    exit_code: int | None,
    limit: int,
    dropped: bool,
    empty: str = NO_OUTPUT_YET,
) -> str:
    """The words for a job that was looked at."""
    body = _body(stdout, stderr, limit, dropped=dropped, empty=empty)
    return _report(f'[status: {"running" if exit_code is None else "finished"}]', exit_code, body)


def stopped(
    command: str,
    stdout: str,
    stderr: str,
    *,
    exit_code: int | None,
    limit: int,
    dropped: bool,
) -> str:
    """The words for a job that was stopped, or had ended before."""
    body = _body(stdout, stderr, limit, dropped=dropped, empty=NO_OUTPUT)
    return _report(f'[stopped: {command!r}]', exit_code, body)


def _body(stdout: str, stderr: str, limit: int, *, dropped: bool, empty: str) -> str:
    """Both streams, cut; `empty` when there was no output, which is not the same as none that is left."""
    shown = sections(stdout, stderr)
    return cut(shown, limit, dropped=dropped) if shown or dropped else empty


def _report(head: str, exit_code: int | None, body: str) -> str:
    return '\n'.join((head, *(() if exit_code is None else (f'[exit code: {exit_code}]',)), body))


def error(sentence: str) -> str:
    """The words for something that went wrong with the call itself."""
    return f'[Error: {sentence}]'


def unknown_command_id(command_id: str, known: tuple[str, ...]) -> str:
    """The words for an ID that names no job."""
    which = (
        f'Known IDs: {", ".join(known)}.'
        if known
        else 'start_command has not been called yet, so there are none.'
    )
    return f'{error(f"unknown command ID {command_id!r}")}\n{which}'
