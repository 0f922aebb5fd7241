"""Waiting on descriptors in the caller's own loop, and how long."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from anyshell.sandbox.base import Flag

CHUNK = 1 << 20
"""Bytes that are read or written at a time."""

STALLED = 300.0
"""Seconds after which an operation of ours, of which nothing moves, is given up: the far side is there but frozen."""


async def ready(
    read: Iterable[int] = (), write: Iterable[int] = (), *, timeout: float | None = None
) -> None:
    """Wait until a descriptor of `read` can be read, one of `write` can be written, or `timeout` seconds have passed."""
    loop = asyncio.get_running_loop()
    future = loop.create_future()

    def wake() -> None:
        if not future.done():
            future.set_result(None)

    read, write = tuple(read), tuple(write)
    timer = None if timeout is None else loop.call_later(timeout, wake)
    for descriptor in read:
        loop.add_reader(descriptor, wake)
    for descriptor in write:
        loop.add_writer(descriptor, wake)
    try:
        await future
    finally:
        if timer is not None:
            timer.cancel()
        for descriptor in read:
            loop.remove_reader(descriptor)
        for descriptor in write:
            loop.remove_writer(descriptor)


async def until(condition: Callable[[], bool], *, timeout: float) -> None:
    """Wait until something that another thread or loop does has come about, or `timeout` seconds have passed."""
    end = time.monotonic() + timeout
    while not condition() and time.monotonic() < end:  # noqa: ASYNC110 - an `asyncio.Event` is of one loop
        await asyncio.sleep(0.01)


def given_up(deadline: float | None, cancelled: Flag | None) -> bool:
    """Whether the deadline, a `time.monotonic()`, has passed or the flag is set."""
    return (deadline is not None and time.monotonic() >= deadline) or (
        cancelled is not None and cancelled.is_set()
    )


def step(deadline: float | None, *, polling: bool) -> float | None:
    """Seconds to wait now: up to the deadline, a `time.monotonic()`; in steps when there is something to look at meanwhile."""
    left = None if deadline is None else max(0.0, deadline - time.monotonic())
    if not polling:
        return left
    return 0.05 if left is None else min(0.05, left)
