"""From facts to replies: which words of `output.py` a result gets, under the session's options."""

from __future__ import annotations

import re
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from anyshell import output
from anyshell.tools import Reply

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from anyshell.jobs import Job
    from anyshell.options import ShellOptions
    from anyshell.result import CommandResult
    from anyshell.sandbox.base import StreamType

_SLEEP = re.compile(r'(?:^|[;&|(\n]|\bdo)\s*sleep\s+[0-9]')
_BACKGROUND = re.compile(r'(?<![&<>|])&(?![&>])')


class Replies:
    """The replies of one session.

    Args:
        options: How much a model sees, and in which tool set.
    """

    def __init__(self, options: ShellOptions) -> None:
        self._options = options
        self._limit = options.max_output_chars
        self._full = options.tool_set == 'full'
        self._advised = False

    def run(self, result: CommandResult, *, jobs: bool = False) -> Reply:
        """For a command that was waited for; `jobs` says whether there are background commands."""
        shown = self._shown(result)
        if shown.running and shown.job_id is not None and shown.timed_out is not None:
            text = output.moved_to_background(
                shown.stdout,
                shown.stderr,
                command_id=shown.job_id,
                seconds=shown.timed_out,
                limit=self._limit,
                dropped=shown.truncated,
            )
        else:
            text = output.run_result(
                shown.stdout,
                shown.stderr,
                exit_code=shown.exit_code,
                limit=self._limit,
                dropped=shown.truncated,
                timed_out=shown.timed_out,
                cancelled=shown.cancelled,
                note=self._note(shown, jobs=jobs),
            )
        return Reply(text, facts(result))

    def started(self, result: CommandResult) -> Reply:
        """For a command that was started in the background, and perhaps waited for until it was ready."""
        text = output.started(result.command, result.job_id or '')
        if result.condition is not None:
            text = f'{text}\n{self.status(result).text}'
        return Reply(text, facts(result))

    def status(self, result: CommandResult, *, since_last: bool = False) -> Reply:
        """For a background command that was looked at."""
        shown = self._shown(result)
        text = output.status(
            shown.stdout,
            shown.stderr,
            exit_code=shown.exit_code,
            limit=self._limit,
            dropped=shown.truncated,
            empty=output.NO_NEW_OUTPUT if since_last else output.NO_OUTPUT_YET,
        )
        if shown.condition not in {None, 'exit'}:
            waited = output.waited(
                shown.condition or '',
                met=bool(shown.condition_met),
                running=shown.exit_code is None,
            )
            text = f'{waited}\n{text}'
        return Reply(text, facts(result))

    def stopped(self, result: CommandResult) -> Reply:
        """For a background command that was stopped."""
        shown = self._shown(result)
        text = output.stopped(
            shown.command,
            shown.stdout,
            shown.stderr,
            exit_code=shown.exit_code,
            limit=self._limit,
            dropped=shown.truncated,
        )
        return Reply(text, facts(result))

    def listing(self, jobs: Sequence[Job]) -> Reply:
        """For all background commands."""
        rows: list[tuple[str, str, float, int | Literal['lost'] | None]] = [
            (
                job.id,
                job.command,
                (job.ended or time.monotonic()) - job.started,
                'lost' if job.lost else job.process.exit_code,
            )
            for job in jobs
        ]
        known = [{'job_id': job.id, 'exit_code': job.process.exit_code} for job in jobs]
        return Reply(output.listing(rows), {'jobs': known})

    def lines(
        self, command_id: str, found: Mapping[StreamType, Sequence[str]], dropped: int
    ) -> Reply:
        """For some lines of a command's whole output, whose first `dropped` bytes are no longer there."""
        texts = {stream: '\n'.join(lines) for stream, lines in found.items()}
        if self._options.clean_output:
            texts = {stream: output.clean(text) for stream, text in texts.items()}
        shown = output.sections(texts['stdout'], texts['stderr']) or output.NO_SUCH_LINES
        text = output.cut(shown, self._limit)
        if dropped:
            text = f'{output.head_dropped(dropped)}\n{text}'
        return Reply(text, {'job_id': command_id, 'dropped_bytes': dropped})

    def _shown(self, result: CommandResult) -> CommandResult:
        if not self._options.clean_output:
            return result
        stdout, stderr = output.clean(result.stdout), output.clean(result.stderr)
        if stdout is result.stdout and stderr is result.stderr:
            return result
        return replace(result, stdout=stdout, stderr=stderr)

    def _note(self, result: CommandResult, *, jobs: bool) -> str:
        """Advice, once in a session: a model that sleeps in the foreground pays for every turn of it."""
        if not self._full or self._advised or result.timed_out or result.duration < 2:
            return ''
        if _SLEEP.search(result.command) is None:
            return ''
        if not jobs and _BACKGROUND.search(result.command) is None:  # nothing is there to wait for
            return ''
        self._advised = True
        return output.INSTEAD_OF_SLEEPING


def facts(result: CommandResult) -> dict[str, Any]:
    """What code wants to know beside the words, as plain data; no output and no variables."""
    return {
        'exit_code': result.exit_code,
        'duration_seconds': round(result.duration, 6),
        'timed_out': result.timed_out is not None,
        'cancelled': result.cancelled,
        'truncated': result.truncated,
        'output_bytes': result.output_bytes,
        'cwd': result.cwd,
        'job_id': result.job_id,
        'decision': result.decision,
        'rule': result.rule,
    }
