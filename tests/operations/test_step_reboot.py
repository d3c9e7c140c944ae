"""The verdict on a reboot."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from hvsvc.domain.facts import Balloon, LifecycleEvent
from hvsvc.domain.outcome import Outcome
from hvsvc.domain.steps import StepState
from hvsvc.domain.target import Method, RebootMode, Target
from hvsvc.errors import (
    AbortedError,
    FailedPreconditionError,
    Reason,
    UnavailableError,
)
from tests.fakes.host import host
from tests.fakes.targets import GROW, RAISE, ROOMY, mutations
from tests.fakes.worlds import GIB, domain_xml
from tests.operations.conftest import Floor

FloorOf = Callable[..., Floor]


async def test_nova_fallback_is_ceiling_lost_with_what_is_true_now(floor_of: FloorOf) -> None:
    fake = host(nova=True)
    fake.nova_reboot = "fallback"
    record = await floor_of(fake).run(RAISE)
    assert isinstance(record.error, FailedPreconditionError)
    assert record.error.reason is Reason.CEILING_LOST
    assert record.error.metadata["liveMaximumVcpus"] == "2"
    assert record.error.metadata["configMaximumVcpus"] == "2"
    assert "Nova made the definition anew" in record.error.message
    assert record.result is None
    assert record.now is not None
    assert record.now.live is not None
    assert record.now.live.maximum_vcpus == 2
    assert record.failed_step == 1
    assert record.steps[1].state is StepState.FAILED


@pytest.mark.parametrize(
    "target",
    [
        Target(Method.REBOOT_DOMAIN),
        RAISE,
        Target(Method.RAISE_CEILING, max_vcpus=8, reboot=RebootMode.SOFT),
        replace(GROW, max_vcpus=8, max_memory_kib=4 * GIB, reboot=RebootMode.SOFT),
    ],
    ids=lambda target: target.method.value,
)
@pytest.mark.parametrize("nova", [True, False])
@pytest.mark.parametrize("moment", ["ping", "read_cpus"])
async def test_rb_04_a_ceiling_lost_again_while_the_guest_is_waited_for_is_not_done(
    floor_of: FloorOf, target: Target, nova: bool, moment: str
) -> None:
    fake = host(**({**ROOMY} if target.method is Method.REBOOT_DOMAIN else {}), nova=nova)
    first_id, flavor = fake.id, domain_xml(nova=nova)

    def reboot_hard(name: str) -> None:
        if name == moment and fake.id == first_id + 1:
            fake.restart_with(flavor)

    fake.before_call = reboot_hard
    error = await floor_of(fake).error(target)
    assert fake.id == first_id + 2
    assert error.reason is Reason.CEILING_LOST, error
    assert error.metadata["liveMaximumVcpus"] == "2"


async def test_a_restart_that_keeps_the_ceiling_is_no_loss(floor_of: FloorOf) -> None:
    fake = host(nova=True)
    first_id = fake.id
    fake.before_call = lambda name: (
        fake.restart_with(fake.config_xml) if name == "ping" and fake.id == first_id + 1 else None
    )
    assert (await floor_of(fake).result(RAISE)).outcome is Outcome.COMPLETE
    assert fake.id == first_id + 2


async def test_a_lost_ceiling_is_seen_without_events_too(floor_of: FloorOf) -> None:
    fake = host(nova=True)
    fake.nova_reboot = "fallback"
    fake.emit = lambda kind: None  # type: ignore[method-assign]
    assert (await floor_of(fake).error(RAISE)).reason is Reason.CEILING_LOST


async def test_a_lost_event_stream_does_not_hide_the_truth(floor_of: FloorOf) -> None:
    fake = host(nova=True)
    fake.clock.at(1, lambda: fake.lose_connection(UnavailableError(Reason.LIBVIRT_UNAVAILABLE, "gone")))
    assert (await floor_of(fake).result(RAISE)).outcome is Outcome.COMPLETE


async def test_a_hard_reboot_that_loses_nothing_is_told(floor_of: FloorOf) -> None:
    fake = host(nova=True)
    fake.nova_reboot = "fallback"
    result = await floor_of(fake).result(Target(Method.REBOOT_DOMAIN))
    assert result.outcome is Outcome.COMPLETE
    assert [note.reason for note in result.reasons] == [Reason.LOST_BY_HARD_REBOOT]


async def test_events_of_others_do_not_matter(floor_of: FloorOf) -> None:
    fake = host(nova=True)
    fake.clock.at(1, lambda: fake.emit(LifecycleEvent.BALLOON_CHANGED))
    assert (await floor_of(fake).result(RAISE)).outcome is Outcome.COMPLETE


async def test_a_guest_that_still_boots_is_waited_for_before_the_reboot(floor_of: FloorOf) -> None:
    fake = host(nova=True, agent=None)
    booting_until_s = fake.clock.time_s + 4
    balloon = fake._balloon
    fake._balloon = lambda: balloon() if fake.clock.time_s >= booting_until_s else Balloon(fake.balloon_kib)  # type: ignore[method-assign]
    asked_s: list[float] = []
    fake.before_call = lambda name: asked_s.append(fake.clock.time_s) if name == "reboot_soft" else None
    await floor_of(fake).run(Target(Method.REBOOT_DOMAIN))
    assert booting_until_s <= asked_s[0] < booting_until_s + 1


async def test_a_guest_that_gives_no_sign_is_rebooted_after_the_bound(floor_of: FloorOf) -> None:
    fake = host(nova=True, agent="disconnected")
    began_s = fake.clock.time_s
    fake._balloon = lambda: Balloon(fake.balloon_kib)  # type: ignore[method-assign]
    asked_s: list[float] = []
    fake.before_call = lambda name: asked_s.append(fake.clock.time_s) if name == "reboot_soft" else None
    await floor_of(fake).run(Target(Method.REBOOT_DOMAIN))
    assert 10 <= asked_s[0] - began_s < 11


@pytest.mark.parametrize("nova", [True, False])
async def test_a_ceiling_that_somebody_took_back_before_the_reboot_is_rebooted_for_by_nobody(
    floor_of: FloorOf, nova: bool
) -> None:
    fake = host(nova=nova)
    reads_after = []

    def take_back(name: str) -> None:
        if name == "read_domain" and any(call == "define" for call, _ in fake.calls):
            reads_after.append(name)
            if len(reads_after) == 2:  # the first one belongs to the define
                fake.config_xml = fake.flavor_xml

    fake.before_call = take_back
    error = await floor_of(fake).error(RAISE)
    assert isinstance(error, AbortedError)
    assert error.reason is Reason.DEFINITION_CHANGED
    assert "nothing was rebooted" in error.message
    assert mutations(fake) == ["define"]
