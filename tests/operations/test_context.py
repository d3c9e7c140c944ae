"""The pace of waits."""

from __future__ import annotations

import pytest

from hvsvc.operations.context import Deadline
from tests.fakes.host import FakeClock


async def test_looks_come_fast_at_first_and_never_further_apart_than_asked() -> None:
    clock = FakeClock()
    deadline = Deadline(clock, 60)
    looks = []
    while not deadline.over:
        before_s = clock.monotonic_s()
        await deadline.pause(0.25)
        looks.append(round(clock.monotonic_s() - before_s, 6))
    assert looks[0] == pytest.approx(0.01)
    assert looks == sorted(looks)
    assert looks[-1] == pytest.approx(0.25)
    waited_s = 0.0
    for look in looks:
        assert look <= max(0.01, waited_s / 20) + 1e-6
        waited_s += look
