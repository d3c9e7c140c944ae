"""The clock of a running daemon."""

from __future__ import annotations

import asyncio
import time

from hvsvc.adapters.clock import SystemClock


def test_now_is_the_time_of_day() -> None:
    before = time.time()
    now = SystemClock().now_s()
    assert before <= now <= time.time()


def test_monotonic_never_goes_back() -> None:
    clock = SystemClock()
    seen = [clock.monotonic_s() for _ in range(1000)]
    assert seen == sorted(seen)


async def test_sleep_waits_at_least_as_long_and_lets_others_run() -> None:
    clock = SystemClock()
    ran = False

    async def other() -> None:
        nonlocal ran
        ran = True

    begin = clock.monotonic_s()
    task = asyncio.create_task(other())
    await clock.sleep(0.02)
    assert clock.monotonic_s() - begin >= 0.02
    assert ran
    await task
