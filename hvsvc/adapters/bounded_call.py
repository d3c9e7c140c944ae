"""One call in a worker thread, waited for no longer than a bound; what comes too late can be undone."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import TypeVar

from hvsvc.adapters.workers import Workers

T = TypeVar("T")


async def call_bounded(
    thread: Workers, work: Callable[[], T], timeout_s: float, undo: Callable[[T], None] | None = None
) -> T:
    """Runs `work` in the thread and returns what it returns.

    A call that has not begun when the bound is over, or its caller is cancelled, never will.

    :param undo: called in the thread with the result of work that was done after its
        caller had been told that it ran out of time.
    :raises TimeoutError: at the bound.
    """
    first = threading.Lock()  # taken by whoever comes first: the work that is done, or the end of the wait

    def run() -> T:
        done = work()
        if not first.acquire(blocking=False) and undo is not None:
            undo(done)
        return done

    running = asyncio.wrap_future(thread.submit(run))
    try:
        # not wait_for, which in Python 3.11 loses a cancellation that comes with the answer
        async with asyncio.timeout(timeout_s):
            return await asyncio.shield(running)
    except TimeoutError:
        if running.done() or first.acquire(blocking=False):
            raise
        return await running  # it is done, and on its way
    finally:
        running.cancel()
