"""vCPUs and the CPUs of the guest."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from hvsvc.domain.outcome import Outcome
from hvsvc.domain.steps import StepKind, StepState
from hvsvc.domain.target import GuestCpuMode, Method, Target
from hvsvc.errors import (
    FailedPreconditionError,
    GuestAgentError,
    Reason,
    UnavailableError,
)
from tests.fakes.host import host
from tests.fakes.targets import GROW, ROOMY, mutations
from tests.fakes.worlds import GIB
from tests.operations.conftest import Floor

FloorOf = Callable[..., Floor]


@pytest.mark.parametrize(
    "reason",
    [
        Reason.AGENT_NOT_CONNECTED,
        Reason.AGENT_COMMAND_MISSING,
        Reason.AGENT_FROZEN,
        Reason.AGENT_SILENT,
        Reason.AGENT_REPLY_INVALID,
    ],
)
async def test_ga_01_ga_02_ga_06_a_silent_agent_leaves_it_unconfirmed(
    floor_of: FloorOf, reason: Reason
) -> None:
    fake = host(**ROOMY)
    fake.agent_error = GuestAgentError(reason, "why the agent says nothing")
    record = await floor_of(fake).run(GROW)
    assert record.result is not None
    assert record.result.outcome is Outcome.UNCONFIRMED
    assert record.result.reasons[0].reason is Reason.GUEST_CPUS_UNKNOWN
    assert record.result.reasons[0].metadata == {"agent": reason.value}
    assert record.result.after.live is not None
    assert record.result.after.live.current_vcpus == 8
    assert "set_online" not in mutations(fake)
    online = next(step for step in record.steps if step.kind is StepKind.ONLINE_GUEST_CPUS)
    assert online.state is StepState.UNCONFIRMED
    assert "why the agent says nothing" in online.evidence


async def test_cpu_03_without_an_agent_channel_it_is_unconfirmed(floor_of: FloorOf) -> None:
    fake = host(**ROOMY, agent=None)
    result = await floor_of(fake).result(GROW)
    assert result.outcome is Outcome.UNCONFIRMED
    assert result.reasons[0].metadata == {"agent": "AGENT_NOT_CONFIGURED"}


async def test_cpu_02_cpu_04_a_guest_that_refuses_is_partial_without_a_storm(floor_of: FloorOf) -> None:
    fake = host(**ROOMY)
    fake.online_error = GuestAgentError(Reason.AGENT_REFUSED, "Input/output error")
    record = await floor_of(fake).run(GROW)
    assert record.result is not None
    assert record.result.outcome is Outcome.PARTIAL
    reason = record.result.reasons[0]
    assert reason.reason is Reason.GUEST_CPUS_OFFLINE
    assert reason.metadata["offlineIds"] == "2,3,4,5,6,7"
    assert mutations(fake).count("set_online") == 2
    online = next(step for step in record.steps if step.kind is StepKind.ONLINE_GUEST_CPUS)
    assert "Input/output error" in online.evidence


async def test_cpu_12_a_guest_that_onlines_by_itself_is_only_counted(floor_of: FloorOf) -> None:
    fake = host(**ROOMY)
    fake.auto_online = True
    assert (await floor_of(fake).result(GROW)).outcome is Outcome.COMPLETE
    assert "set_online" not in mutations(fake)


async def test_only_cpus_that_appeared_are_onlined_unless_all_are_asked_for(floor_of: FloorOf) -> None:
    fake = host(**ROOMY)
    fake.guest[1] = False
    floor = floor_of(fake)
    result = await floor.result(Target(Method.SET_VCPUS, vcpus=4))
    assert fake.calls[1] == ("set_online", frozenset({2, 3}))
    assert result.outcome is Outcome.PARTIAL
    result = await floor.result(Target(Method.SET_VCPUS, vcpus=4, guest_cpus=GuestCpuMode.ALL))
    assert fake.calls[-1] == ("set_online", frozenset({1}))
    assert result.outcome is Outcome.COMPLETE


async def test_cpu_07_growth_that_stops_midway_says_how_far_it_came(floor_of: FloorOf) -> None:
    fake = host(**ROOMY)
    fake.errors["set_vcpus_live midway"] = FailedPreconditionError(
        Reason.HYPERVISOR_REFUSED, "device_add failed"
    )
    record = await floor_of(fake).run(Target(Method.SET_VCPUS, vcpus=8))
    assert record.error is not None
    assert record.error.metadata == {"asked": "8", "before": "2", "reached": "7"}
    assert "device_add failed" in record.error.message
    assert record.now is not None
    assert record.now.live is not None
    assert record.now.live.current_vcpus == 7
    assert "define" not in mutations(fake)


async def test_a_guest_that_goes_down_before_its_cpus_are_onlined_is_partial_and_no_bug(
    floor_of: FloorOf,
) -> None:
    fake = host(**ROOMY)
    fake.guest[1] = False
    set_memory = fake.set_memory_live

    async def down(uuid: str, memory_kib: int) -> None:
        await set_memory(uuid, memory_kib)
        fake.clock.at(2, fake._stop)

    fake.set_memory_live = down  # type: ignore[method-assign]
    target = Target(Method.SCALE_DOMAIN, vcpus=2, memory_kib=GIB, guest_cpus=GuestCpuMode.ALL)
    record = await floor_of(fake).run(target)
    assert record.error is None
    assert record.result is not None
    assert record.result.outcome is Outcome.PARTIAL
    assert record.result.reasons[0].reason is Reason.DOMAIN_NOT_RUNNING


GONE = UnavailableError(Reason.LIBVIRT_UNAVAILABLE, "libvirt is restarted")


@pytest.mark.parametrize("call", ["set_vcpus_live", "set_online", "define"])
@pytest.mark.parametrize("answered", [True, False])
async def test_a_restart_of_libvirt_after_a_change_leaves_no_cpu_offline(
    floor_of: FloorOf, call: str, answered: bool
) -> None:
    fake = host(**ROOMY)
    real, back_s = getattr(fake, call), [0.0]

    async def restarted_after(*arguments: Any) -> None:
        await real(*arguments)
        if not back_s[0]:
            back_s[0] = fake.clock.time_s + 3
            if not answered:
                raise GONE

    def away(name: str) -> None:
        if fake.clock.time_s < back_s[0]:
            raise GONE

    setattr(fake, call, restarted_after)
    fake.before_call = away
    record = await floor_of(fake).run(GROW)
    if (call, answered) == ("define", False):
        assert record.error is GONE, "whether it was stored is for the caller to read"
        return
    assert record.error is None, record.error
    assert record.result is not None
    assert record.result.outcome is Outcome.COMPLETE
    assert all(fake.guest.values())
    assert mutations(fake).count(call) == 1, "nothing is done twice on a guess"


async def test_a_libvirt_that_stays_away_ends_the_onlining_at_its_bound(floor_of: FloorOf) -> None:
    fake = host(**ROOMY)

    def away(name: str) -> None:
        if name == "read_cpus" and "set_vcpus_live" in mutations(fake):
            raise GONE

    fake.before_call = away
    began_s = fake.clock.time_s
    record = await floor_of(fake).run(GROW)
    assert record.error is GONE
    assert fake.clock.time_s - began_s < 40


async def test_an_agent_that_is_restarted_meanwhile_is_waited_for(floor_of: FloorOf) -> None:
    fake = host(**ROOMY)
    gone_s = fake.clock.time_s + 4

    def restart(name: str) -> None:
        grown = "set_vcpus_live" in mutations(fake)
        missing = GuestAgentError(Reason.AGENT_NOT_CONNECTED, "its service is restarted")
        fake.agent_error = missing if grown and fake.clock.time_s < gone_s else None

    fake.before_call = restart
    record = await floor_of(fake).run(GROW)
    assert record.result is not None
    assert record.result.outcome is Outcome.COMPLETE
    assert all(step.state is StepState.DONE for step in record.steps)
    assert fake.clock.time_s >= gone_s


async def test_an_agent_that_stays_away_is_waited_for_no_longer_than_the_bound(floor_of: FloorOf) -> None:
    fake = host(**ROOMY)

    def leave(name: str) -> None:
        if "set_vcpus_live" in mutations(fake):
            fake.agent_error = GuestAgentError(Reason.AGENT_NOT_CONNECTED, "its service ended")

    fake.before_call = leave
    began_s = fake.clock.time_s
    record = await floor_of(fake).run(GROW)
    assert record.result is not None
    assert record.result.outcome is Outcome.UNCONFIRMED
    assert 20 <= fake.clock.time_s - began_s < 40
