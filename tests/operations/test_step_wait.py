"""Waiting for a guest to be up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from hvsvc.domain.outcome import Outcome
from hvsvc.domain.target import RebootMode
from hvsvc.errors import (
    GuestAgentError,
    Reason,
)
from tests.fakes.host import host
from tests.fakes.targets import GROW, RAISE, mutations
from tests.operations.conftest import Floor

FloorOf = Callable[..., Floor]


async def test_rb_07_the_boot_allocation_is_not_claimed_before_the_balloon_has_it(floor_of: FloorOf) -> None:
    fake = host(nova=True)
    fake.balloon_driver = "stuck"
    result = await floor_of(fake).result(RAISE)
    assert result.outcome is Outcome.PARTIAL
    assert result.reasons[0].reason is Reason.BALLOON_NOT_SETTLED


async def test_no_vcpus_for_a_guest_that_did_not_come_up(floor_of: FloorOf) -> None:
    fake = host(nova=True, agent="disconnected")
    fake.balloon_driver = "stuck"
    fake.agent_error = GuestAgentError(Reason.AGENT_NOT_CONNECTED, "nobody listens")
    real = fake._balloon
    fake._balloon = lambda: replace(real(), last_update_s=None)  # type: ignore[method-assign]
    record = await floor_of(fake).run(replace(GROW, reboot=RebootMode.SOFT))
    assert record.error is not None
    assert record.error.reason is Reason.GUEST_NOT_BOOTED
    assert "set_vcpus_live" not in mutations(fake)
