"""What a person answers to an interrupt, for our tools and for those of others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

NAME = 'anyshell'
"""The name of our interrupts; Strands makes an ID from it and the call."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a person said.

    Attributes:
        approved: Whether the call may run.
        always: Whether this very call, with all its arguments, may be made from now on.
        command: The command that is to run instead; `None` for the model's.
        message: What the model is told in case of a no.
    """

    approved: bool = False
    always: bool = False
    command: Any = None
    message: str = ''

    @classmethod
    def of(cls, answer: Any) -> Answer:
        """Read the response of an interrupt."""
        # A yes is not guessed: neither 1 nor 'yes' nor some other true value is one.
        match answer:
            case True | {'approved': True}:
                given = cast('dict[str, Any]', {} if answer is True else answer)
                return cls(
                    approved=True, always=given.get('always') is True, command=given.get('command')
                )
            case str(message) | {'message': str(message)}:
                return cls(message=message)
            case _:
                return cls()
