"""Waits for a domain: through absences of libvirt, and bounded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from hvsvc.domain.outcome import Outcome
from hvsvc.domain.steps import StepState
from hvsvc.domain.target import RebootMode
from hvsvc.errors import AbortedError, DeadlineError, HvsvcError, NotFoundError, Reason, UnavailableError
from hvsvc.operations.context import Tools
from hvsvc.operations.wait_domain import wait_for_domain
from tests.fakes.host import host
from tests.fakes.targets import GROW
from tests.fakes.worlds import UUID
from tests.operations.conftest import Floor

FloorOf = Callable[..., Floor]


def tools_of(floor: Floor) -> Tools:
    return floor.changes._tools


@pytest.mark.parametrize(
    "error",
    [
        UnavailableError(Reason.LIBVIRT_UNAVAILABLE, "connection refused"),
        DeadlineError(Reason.CALL_TIMED_OUT, "no answer"),
        AbortedError(Reason.DOMAIN_BUSY, "it starts and stops"),
    ],
)
async def test_an_absence_of_libvirt_ends_no_wait_before_its_bound(
    floor_of: FloorOf, error: HvsvcError
) -> None:
    fake = host()
    fake.errors["read_domain"] = error
    fake.clock.at(3, fake.errors.clear)
    fake.clock.at(5, fake._stop)
    domain = await wait_for_domain(tools_of(floor_of(fake)), UUID, 60, lambda found: found.live is None)
    assert domain.live is None


@pytest.mark.parametrize("during", ["ping", "read_balloon", "the verdict"])
async def test_a_restart_of_libvirt_ends_no_change_that_only_waits(floor_of: FloorOf, during: str) -> None:
    fake = host(nova=True)
    floor = floor_of(fake)
    away = UnavailableError(Reason.LIBVIRT_UNAVAILABLE, "connection refused")
    began: list[float] = []

    def go_away(name: str) -> None:
        judged = floor.journal.history and all(
            step.state is StepState.DONE for step in floor.journal.history[-1].steps
        )
        if not began and (name == during or (during == "the verdict" and judged and name == "read_domain")):
            began.append(fake.clock.time_s)
            fake.errors |= {"read_domain": away, "read_balloon": away, "ping": away}
            fake.clock.at(3, fake.errors.clear)

    fake.before_call = go_away
    result = await floor.result(replace(GROW, reboot=RebootMode.SOFT))
    assert began
    assert fake.clock.time_s >= began[0] + 3
    assert result.outcome is Outcome.COMPLETE


async def test_one_that_lasts_is_told_at_the_bound(floor_of: FloorOf) -> None:
    fake = host()
    fake.errors["read_domain"] = UnavailableError(Reason.LIBVIRT_UNAVAILABLE, "connection refused")
    start_s = fake.clock.time_s
    with pytest.raises(UnavailableError):
        await wait_for_domain(tools_of(floor_of(fake)), UUID, 60, lambda _: True)
    assert 60 <= fake.clock.time_s - start_s < 61


async def test_a_state_that_never_comes_ends_with_the_domain_as_it_is(floor_of: FloorOf) -> None:
    fake = host()
    start_s = fake.clock.time_s
    domain = await wait_for_domain(tools_of(floor_of(fake)), UUID, 60, lambda _: False)
    assert domain.running
    assert 60 <= fake.clock.time_s - start_s < 61


async def test_a_domain_that_is_gone_is_told_at_once(floor_of: FloorOf) -> None:
    fake = host()
    with pytest.raises(NotFoundError):
        await wait_for_domain(tools_of(floor_of(fake)), "0" * 36, 60, lambda _: True)
