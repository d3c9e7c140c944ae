"""The balloon: read back until at its target, or the bound."""

from __future__ import annotations

from collections.abc import Callable

from hvsvc.domain.outcome import Outcome
from hvsvc.domain.target import Method, Target
from hvsvc.errors import (
    Reason,
)
from tests.fakes.host import host
from tests.fakes.targets import ROOMY
from tests.fakes.worlds import GIB, MIB
from tests.operations.conftest import Floor

FloorOf = Callable[..., Floor]


async def test_mem_01_mem_12_a_stuck_balloon_is_partial(floor_of: FloorOf) -> None:
    fake = host(**ROOMY)
    fake.balloon_driver = "stuck"
    result = await floor_of(fake).result(Target(Method.SET_MEMORY, memory_kib=GIB))
    assert result.outcome is Outcome.PARTIAL
    assert result.reasons[0].reason is Reason.BALLOON_BELOW_TARGET
    assert result.reasons[0].metadata == {"askedKib": str(GIB), "actualKib": str(512 * MIB)}


async def test_a_stuck_shrink_is_given_up(floor_of: FloorOf) -> None:
    fake = host(**{**ROOMY, "current_memory_kib": 2 * GIB})
    fake.balloon_driver = "stuck"
    result = await floor_of(fake).result(Target(Method.SET_MEMORY, memory_kib=GIB + 512 * MIB))
    assert result.outcome is Outcome.PARTIAL
    assert [value for name, value in fake.calls if name == "set_memory_live"] == [GIB + 512 * MIB, 2 * GIB]


async def test_the_result_is_read_when_all_figures_have_followed(floor_of: FloorOf) -> None:
    fake = host(**ROOMY)
    result = await floor_of(fake).result(Target(Method.SET_MEMORY, memory_kib=GIB))
    assert result.after.used_memory_kib == result.after.balloon.actual_kib == GIB
    assert result.after.balloon.guest_total_kib == GIB - 60_000
