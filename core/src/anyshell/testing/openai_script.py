"""What the script of a model may be, and what is wrong with one that can't be; does no I/O."""

from __future__ import annotations

import json
import reprlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeGuard

from anyshell.testing.openai_wire import Calls, ModelRequest, ModelTurn, ToolCall

A_SCRIPT = (
    "A script is a list of turns, as in OpenAIServer(['Done.']), or a function that makes a turn from"
    ' the request.'
)
A_TURN = (
    "A turn is a text, a list of calls such as [('run_command', {'command': 'ls'})], a ModelTurn, a Failure"
    ' or a Hang; in a list of turns it may also be a function that makes one of these from the request.'
)
A_CALL = (
    'A call is a ToolCall, (name, arguments) or (name, arguments, call_id), where the arguments are a dict,'
    ' or a string that is sent as it is.'
)

_SHORT = reprlib.Repr()  # its own way with large, deep and circular values
_SHORT.maxother = _SHORT.maxstring = 120


@dataclass(frozen=True, slots=True)
class Failure:
    """An HTTP error in place of a turn.

    Attributes:
        status: The HTTP status.
        message: The message in the error's body.
        retry: Whether the client may try again by itself, which takes another turn from the script.
    """

    status: int = 500
    message: str = 'The scripted model failed.'
    retry: bool = False


@dataclass(frozen=True, slots=True)
class Hang:
    """A model that stops answering, until the client goes away or the server closes.

    Attributes:
        after: A text to stream first; a client that did not ask for a stream gets nothing at all.
    """

    after: str = ''


Answer: TypeAlias = str | Calls | ModelTurn | Failure | Hang
Turns: TypeAlias = Sequence[Answer | Callable[[ModelRequest], Answer]]
Script: TypeAlias = Turns | Callable[[ModelRequest], Answer]


def check_script(script: object) -> None:
    """Look at all that can be known of a script before a client asks.

    Raises:
        TypeError: With what is wrong, and the number of the turn.
    """
    if callable(script):
        return
    if not _is_list(script):
        raise TypeError(f'The script is {_SHORT.repr(script)}. {A_SCRIPT}')
    for number, turn in enumerate(script, 1):
        if not callable(turn):
            read_turn(turn, f'Turn {number}')


def read_turn(turn: object, where: str) -> ModelTurn | Failure | Hang:
    """A turn as it may be written, spelled out: its calls are a tuple of `ToolCall`.

    Args:
        turn: What the script holds, or what its function made.
        where: What the turn is called in an error.

    Raises:
        TypeError: If it can't be sent, with the reason.
    """
    match turn:
        case str():
            return ModelTurn(turn)
        case Failure(status=int(), message=str()) | Hang(after=str()):
            return turn
        case ModelTurn(text=str(text), calls=calls) if _is_list(calls):
            pass
        case _ if _is_list(turn) and not isinstance(next(iter(turn), None), str):
            text, calls = '', turn
        case _:
            is_call = isinstance(turn, ToolCall) or _is_list(turn)
            what = ', a call outside a list' if is_call else ''
            raise TypeError(f'{where} is {_SHORT.repr(turn)}{what}. {A_TURN}')
    return ModelTurn(
        text,
        tuple(_read_call(call, f'{where}, call {number},') for number, call in enumerate(calls, 1)),
    )


def _read_call(call: object, where: str) -> ToolCall:
    given = ToolCall(*call) if _is_list(call) and len(call) in (2, 3) else call  # pyright: ignore[reportArgumentType]  (looked at next)
    match given:
        case ToolCall(name=str(), arguments=str(), call_id=str() | None):
            return given
        case ToolCall(name=str(), arguments=Mapping() as arguments, call_id=str() | None):
            try:
                json.dumps(dict(arguments))
            except (TypeError, ValueError, RecursionError) as error:
                reason = f"{_SHORT.repr(arguments)}, which can't be JSON: {error}"
                raise TypeError(f'{where} has the arguments {reason}.') from error
            return given
        case _:
            raise TypeError(f'{where} is {_SHORT.repr(call)}. {A_CALL}')


def _is_list(value: object) -> TypeGuard[Sequence[object]]:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes | bytearray)
