"""Asynchronous code for synchronous callers, with or without a running event loop."""

from __future__ import annotations

import asyncio
import contextvars
import signal
import threading
from concurrent.futures import Future
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self, TypeVar

if TYPE_CHECKING:
    from collections.abc import Coroutine, Generator
    from types import TracebackType

T = TypeVar('T')


class Closing:
    """Something that is closed once: by `async with`, `with`, `aclose` or `close`; more than once is harmless.

    It has one owner, who closes it, so a copy is the thing itself: what holds it can be copied with `copy.deepcopy`.
    """

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    async def aclose(self) -> None:
        """End what is still running and release what is held. Idempotent; by default there is nothing to do."""

    def close(self) -> None:
        """`aclose` for synchronous code."""
        run_sync(self.aclose())


def run_sync(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine of ours to its end, with or without a running event loop in this thread."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(coroutine)
    return _in_thread(coroutine)


def _in_thread(coroutine: Coroutine[Any, Any, T]) -> T:
    """A running loop can't be entered twice, so the coroutine gets a thread with a loop of its own."""
    started: Future[tuple[asyncio.AbstractEventLoop, asyncio.Task[T] | None]] = Future()
    ended: Future[T] = Future()

    async def main() -> T:
        started.set_result((asyncio.get_running_loop(), asyncio.current_task()))
        return await coroutine

    def work() -> None:
        try:
            ended.set_result(asyncio.run(main()))
        except BaseException as error:  # noqa: BLE001 - handed over to the caller, whatever it is
            ended.set_exception(error)

    # What the caller has in context variables (a span, the state of a graph) is there in the thread too.
    context = contextvars.copy_context()
    thread = threading.Thread(target=context.run, args=(work,), name='anyshell-run-sync')
    with _ctrl_c_raises():
        try:
            thread.start()
            return ended.result()
        except BaseException:
            # Ctrl+C here: the command must end before that leaves.
            if not ended.done():
                loop, task = started.result(timeout=5)
                if task is not None:
                    loop.call_soon_threadsafe(task.cancel)
            raise
        finally:
            thread.join()


@contextmanager
def _ctrl_c_raises() -> Generator[None]:
    """`asyncio.run` has Ctrl+C cancel a task of its loop, which stands still here: back to Python's own way meanwhile."""
    handler = signal.getsignal(signal.SIGINT)
    owner = getattr(getattr(handler, 'func', None), '__self__', None)
    if threading.current_thread() is not threading.main_thread() or not isinstance(
        owner, asyncio.Runner
    ):
        yield
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
