"""Keywords that a constructor doesn't know, answered with the one that was meant."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self


def refuse_unknown(
    given: Iterable[str], known: Sequence[str], elsewhere: Mapping[str, str]
) -> None:
    """Refuse keywords that are not known.

    Args:
        given: The keywords of a call.
        known: Those that it takes.
        elsewhere: Those that belong to something else, with a sentence that says to what.

    Raises:
        TypeError: As Python's own for such a call; it names the nearest keyword, or all when none is near.
    """
    for name in given:
        if name in known:
            continue
        if name in elsewhere:
            raise TypeError(f'unknown option {name!r} here: {elsewhere[name]}')
        names = [*known, *elsewhere]
        # One typing error leaves one that is meant; a word of a name, such as `timeout`, may leave several.
        near = difflib.get_close_matches(name, names, 1, 0.85)
        near = near or difflib.get_close_matches(name, names, 3)
        hint = (
            f'did you mean {" or ".join(map(repr, near))}?'
            if near
            else f'there are {", ".join(known)}'
        )
        raise TypeError(f'unknown option {name!r}: {hint}')


class Keywords:
    """Base of classes whose constructor answers an unknown keyword in the words of `refuse_unknown`."""

    _elsewhere: ClassVar[Mapping[str, str]] = {}

    # A type checker knows the keywords from the class itself.
    if not TYPE_CHECKING:  # pragma: no branch

        def __new__(cls, *_arguments: Any, **keywords: Any) -> Self:
            _, *parameters = inspect.signature(cls.__init__).parameters.values()
            # A class that takes any keyword knows itself which ones it means.
            if all(one.kind is not one.VAR_KEYWORD for one in parameters):
                refuse_unknown(keywords, [one.name for one in parameters], cls._elsewhere)
            return super().__new__(cls)
