"""What a call can wait for: the end of a command, a text in its output, an open port, or silence."""

from __future__ import annotations

import asyncio
import math
import re
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from pydantic_core import SchemaError, SchemaValidator, core_schema

from anyshell.errors import InvalidCommand
from anyshell.sandbox.capture import Decoder

if TYPE_CHECKING:
    from collections.abc import Mapping

    from anyshell.sandbox.base import Process, Processes, StreamType

FORMS = "'exit', 'output:REGEX', 'port:NUMBER' or 'quiet:SECONDS'"


@dataclass(frozen=True, slots=True)
class Condition:
    """One thing to wait for.

    Attributes:
        text: As the caller wrote it.
        kind: What it is about.
        pattern: For 'output', the compiled expression.
        number: For 'port' the port, for 'quiet' the seconds.
    """

    text: str
    kind: Literal['exit', 'output', 'port', 'quiet']
    pattern: Any = None
    number: float = 0.0

    def matches(self, output: str) -> bool:
        """For 'output': whether the expression occurs in the text."""
        return self.pattern is not None and self.pattern.isinstance_python(output)


class Search:
    """Follows a command's output for a text, or for silence.

    Args:
        processes: Where the command runs.
        process: The command.
        condition: What to look for.
        since: Where to begin in each stream; `None` for the beginning.
    """

    OVERLAP = 8192
    """How many characters before a new piece are searched again, for a match that its border cuts."""

    def __init__(
        self,
        processes: Processes,
        process: Process,
        condition: Condition,
        since: Mapping[StreamType, int] | None,
    ) -> None:
        self._processes = processes
        self._process = process
        self._condition = condition
        self._positions: dict[StreamType, int] = dict(since or {'stdout': 0, 'stderr': 0})
        self._texts: dict[StreamType, str] = {'stdout': '', 'stderr': ''}
        self._decoder = Decoder()
        self._changed = time.monotonic()

    async def step(self) -> bool:
        """Take in what is new; whether the condition holds now."""
        for stream in self._texts:
            while data := await self._next(stream):
                text = self._texts[stream] + self._decoder.decode(stream, data)
                if self._condition.matches(text):
                    return True
                self._texts[stream] = text[-self.OVERLAP :]
                self._changed = time.monotonic()
                await asyncio.sleep(0)  # a big log must not hold up the loop
        return (
            self._condition.kind == 'quiet'
            and time.monotonic() - self._changed >= self._condition.number
        )

    async def _next(self, stream: StreamType) -> bytes:
        start, data = await self._processes.read(
            self._process, stream, self._positions[stream], 1 << 20
        )
        self._positions[stream] = start + len(data)
        return data


def parse(text: str, option: str) -> Condition:
    """Read a condition.

    Args:
        text: 'exit', 'output:REGEX', 'port:NUMBER' or 'quiet:SECONDS'.
        option: The argument's name, for the error.

    Raises:
        InvalidCommand: If it is none of these; the sentence says what is.
    """
    kind, _, value = text.partition(':')
    if kind == 'exit' and not value:
        return Condition(text, 'exit')
    if kind == 'output' and value:
        return Condition(text, 'output', pattern=_expression(value, option))
    if kind == 'port' and re.fullmatch(r'[0-9]{1,5}', value) and 0 < int(value) < 65536:
        return Condition(text, 'port', number=int(value))
    if kind == 'quiet' and (seconds := _seconds(value)) > 0:
        return Condition(text, 'quiet', number=seconds)
    raise InvalidCommand(f'{option} must be {FORMS}, not {text!r}')


def _expression(pattern: str, option: str) -> Any:
    # The expression comes from a model and the text from a command: an engine that backtracks could be held up for
    # ever by the two. This one, which pydantic brings along, takes linear time.
    # `^` and `$` are those of a line: that is what somebody means who waits for a line.
    schema = core_schema.str_schema(pattern=f'(?m){pattern}', regex_engine='rust-regex')
    try:
        return SchemaValidator(schema)
    except SchemaError as error:
        reason = str(error).strip().splitlines()[-1].strip()
        raise InvalidCommand(
            f'{option}: {pattern!r} is not a regular expression that can be used here ({reason}); '
            'look-around and back-references are not supported'
        ) from None


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        return 0.0
    return seconds if math.isfinite(seconds) else 0.0
