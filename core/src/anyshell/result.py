"""What is known about a command: the facts, for code."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandResult:
    """What is known about a command, for code.

    Attributes:
        command: The command as it was given.
        exit_code: 0-255, 128 + n when signal n ended it; `None` while it runs, and when the time limit or the caller ended it.
        stdout: The last `max_output_chars` characters of standard output.
        stderr: The last `max_output_chars` characters of standard error.
        truncated: Whether a stream was longer than what is kept here.
        output_bytes: How much both streams have written in all.
        timed_out: The limit in seconds when that has passed, else `None`.
        cancelled: Whether the caller's `cancelled` event ended it, or for the audit hook the end of the caller's task.
        duration: Seconds from the start to the end, or to now.
        cwd: The directory it started in.
        running: Whether it was still running when this was made: as a background command that was looked at, or has become one.
        job_id: The ID of the background command that it is or has become, or under which output that was cut can be read.
        decision: What the policy said, 'allow' or 'ask' (then a person approved it); `None` for a look at a job.
        rule: The name of the rule behind that, if there was one.
        condition: What the call waited for, as it was written.
        condition_met: Whether that came; `None` when nothing was waited for.
    """

    command: str
    exit_code: int | None
    stdout: str = ''
    stderr: str = ''
    truncated: bool = False
    output_bytes: int = 0
    timed_out: float | None = None
    cancelled: bool = False
    duration: float = 0.0
    cwd: str = ''
    running: bool = False
    job_id: str | None = None
    decision: str | None = None
    rule: str | None = None
    condition: str | None = None
    condition_met: bool | None = None
