"""A guest that reset itself is not taken for one that is up: nova.md's hard reboot would follow."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from hvsvc.domain.facts import Balloon
from hvsvc.domain.outcome import Outcome
from hvsvc.domain.target import Affect, Method, Target
from hvsvc.errors import GuestAgentError, Reason
from tests.fakes.host import FakeHost, host
from tests.fakes.targets import ROOMY, mutations
from tests.operations.conftest import Floor

FloorOf = Callable[..., Floor]

REBOOT = Target(Method.REBOOT_DOMAIN)
GROWTH = Target(Method.SET_VCPUS, vcpus=4, affect=Affect.LIVE)
NOT_THERE = GuestAgentError(Reason.AGENT_NOT_CONNECTED, "nobody listens")
STATS = "<stats period='10'/>"


class Booting:
    """A guest that has just reset itself: its driver reports after some seconds, its agent answers later."""

    def __init__(self, *, nova: bool = False, report_s: float = 8, agent_s: float | None = 14) -> None:
        self.host = host(**ROOMY, nova=nova)
        self._use(agent="disconnected")
        self.host.agent_error = NOT_THERE
        self.start_s = self.host.clock.time_s
        self._shown, self._report_s = self.host._balloon(), report_s
        self.host._balloon = self._balloon  # type: ignore[method-assign]
        if agent_s is not None:
            self.host.clock.at(agent_s, self._connect)
        self.asked_s: float | None = None
        self.host.before_call = self._note

    def _use(self, *, agent: str) -> None:
        other = {"connected": "disconnected", "disconnected": "connected"}[agent]
        assert self.host.live_xml is not None
        xml = self.host.live_xml.replace(f"state='{other}'", f"state='{agent}'")
        self.host.live_xml = xml.replace(
            "<memballoon model='virtio'/>", f"<memballoon model='virtio'>{STATS}</memballoon>"
        )

    def _connect(self) -> None:
        if self.host.live_xml is not None:
            self._use(agent="connected")
        self.host.agent_error = None

    def _balloon(self) -> Balloon:
        report_s = self.start_s + self._report_s
        if self.host.clock.time_s < report_s:
            return self._shown
        return replace(self._shown, last_update_s=int(self.host.clock.time_s))

    def _note(self, name: str) -> None:
        if name in ("reboot_soft", "shut_down", "set_vcpus_live") and self.asked_s is None:
            self.asked_s = self.host.clock.time_s - self.start_s


@pytest.mark.parametrize("nova", [True, False])
async def test_no_shutdown_is_asked_of_a_guest_that_boots_again(floor_of: FloorOf, nova: bool) -> None:
    booting = Booting(nova=nova)
    result = await floor_of(booting.host).result(REBOOT)
    assert result.outcome is Outcome.COMPLETE
    assert booting.asked_s is not None
    assert 14 <= booting.asked_s < 20
    if not nova:
        assert ("shut_down", True) in booting.host.calls, "by the agent, which is there by then"


async def test_no_vcpus_are_added_to_a_guest_that_boots_again(floor_of: FloorOf) -> None:
    booting = Booting()
    result = await floor_of(booting.host).result(GROWTH)
    assert result.outcome is Outcome.COMPLETE, result.reasons
    assert booting.asked_s is not None
    assert 14 <= booting.asked_s < 20


@pytest.mark.parametrize("target", [REBOOT, GROWTH])
async def test_an_agent_that_never_comes_is_waited_for_no_longer_than_the_bound(
    floor_of: FloorOf, target: Target
) -> None:
    booting = Booting(agent_s=None)
    await floor_of(booting.host).result(target)
    assert booting.asked_s is not None
    assert 8 + 10 <= booting.asked_s < 8 + 13, "after the driver's report"


@pytest.mark.parametrize("target", [REBOOT, GROWTH])
async def test_a_guest_that_hangs_is_waited_for_no_longer_than_a_boot(
    floor_of: FloorOf, target: Target
) -> None:
    booting = Booting(report_s=10_000, agent_s=None)
    await floor_of(booting.host).run(target)
    assert booting.asked_s is not None
    assert 120 <= booting.asked_s < 130


async def test_a_domain_that_stops_meanwhile_ends_the_wait(floor_of: FloorOf) -> None:
    booting = Booting(agent_s=None)
    fake: FakeHost = booting.host
    fake.clock.at(2, fake._stop)
    record = await floor_of(fake).run(REBOOT)
    assert record.error is not None
    assert record.error.reason is Reason.DOMAIN_NOT_RUNNING
    assert mutations(fake) == []
    assert fake.clock.time_s - booting.start_s < 5
