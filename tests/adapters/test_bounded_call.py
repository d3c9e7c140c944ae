"""A call that is late is either undone or never begun, and its caller told which."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

import pytest

from hvsvc.adapters.bounded_call import call_bounded
from hvsvc.adapters.workers import Workers


@pytest.fixture
def thread() -> Iterator[Workers]:
    workers = Workers(1, "test")
    yield workers
    workers.stop()


async def test_what_is_in_time_is_returned_and_stays(thread: Workers) -> None:
    undone: list[int] = []
    assert await call_bounded(thread, lambda: 7, 5, undone.append) == 7
    with pytest.raises(ValueError, match="of the work"):
        await call_bounded(thread, lambda: int("of the work"), 5, undone.append)
    assert undone == []


async def test_what_is_done_too_late_is_undone(thread: Workers) -> None:
    go = threading.Event()
    undone: list[bool] = []
    with pytest.raises(TimeoutError):
        await call_bounded(thread, go.wait, 0.05, undone.append)
    go.set()
    assert await call_bounded(thread, lambda: list(undone), 5) == [True]


async def test_what_has_not_begun_never_will(thread: Workers) -> None:
    go = threading.Event()
    done: list[str] = []
    thread.submit(go.wait)
    with pytest.raises(TimeoutError):
        await call_bounded(thread, lambda: done.append("late"), 0.05)
    cancelled = asyncio.create_task(call_bounded(thread, lambda: done.append("cancelled"), 5))
    await asyncio.sleep(0)
    cancelled.cancel()
    with pytest.raises(asyncio.CancelledError):
        await cancelled
    go.set()
    await call_bounded(thread, lambda: None, 5)
    assert done == []


async def test_a_timeout_of_the_work_itself_is_its_own(thread: Workers) -> None:
    def fail() -> None:
        raise TimeoutError("the disk's own")

    with pytest.raises(TimeoutError, match="the disk's own"):
        await call_bounded(thread, fail, 5)
