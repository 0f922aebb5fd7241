"""What a call's span shows in OpenTelemetry, where that is installed: facts, never a command, output or variables.

Frameworks make a span for each tool call and put the command there themselves, if content capture is on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

try:
    from opentelemetry.trace import get_current_span
except ImportError:  # no framework here brings it
    get_current_span = None


def record(facts: Mapping[str, Any]) -> None:
    """Put the facts of a call on the current span, as attributes `anyshell.NAME`."""
    if get_current_span is None:
        return
    span = get_current_span()
    if span.is_recording():
        span.set_attributes(
            {
                f'anyshell.{name}': value
                for name, value in facts.items()
                # An attribute has no None and no list of dicts.
                if isinstance(value, str | int | float)
            }
        )
