"""What `anyshell doctor` finds out, as values, and how it asks a program without waiting for ever."""

from __future__ import annotations

import os
import signal
import subprocess
from dataclasses import asdict, dataclass
from typing import Any, Literal

SECONDS = 10.0
"""How long one program may take to answer."""

Area = Literal['commands', 'sandboxes', 'adapters']


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """The answer to one question about this host.

    Attributes:
        name: What it is about; a name for `--require`.
        area: Under which heading it is shown.
        works: Whether it works.
        found: What was found, as a sentence without its full stop.
        fix: What to install or change when it doesn't work; empty when there is nothing to do.
        required: Whether anyshell can't do without.
    """

    name: str
    area: Area
    works: bool
    found: str
    fix: str = ''
    required: bool = False

    @property
    def status(self) -> Literal['ok', 'gap', 'fail']:
        """A gap is something that this host lacks and that not everybody needs."""
        return 'ok' if self.works else 'fail' if self.required else 'gap'

    def as_dict(self) -> dict[str, Any]:
        """For `--json`."""
        return {**asdict(self), 'status': self.status}


@dataclass(frozen=True, slots=True)
class Answer:
    """How a program of this host answered.

    Attributes:
        code: Its exit code; `None` when it did not answer in time, 127 when it could not be started.
        output: What it wrote, both streams; empty when it did not answer in time.
    """

    code: int | None
    output: str

    @property
    def first_line(self) -> str:
        """The first line that says something."""
        return next((line.strip() for line in self.output.splitlines() if line.strip()), '')


def ask(*command: str, seconds: float | None = None) -> Answer:
    """Run a program to its end, for so many seconds at most (`SECONDS`); it has no input and leaves nothing."""
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors='replace',
            start_new_session=True,  # so that what it starts can be ended with it
        )
    except OSError as error:
        return Answer(127, error.strerror or str(error))
    with process:
        try:
            output, _ = process.communicate(timeout=SECONDS if seconds is None else seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            # Not read to its end: a child that left the group may hold it open.
            return Answer(None, '')
    return Answer(process.returncode, output)
