"""Whole operations over a host that behaves as told."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

import pytest

from hvsvc.domain.edit_definition import Edit
from hvsvc.domain.facts import LifecycleEvent
from hvsvc.domain.outcome import Outcome
from hvsvc.domain.read_definition import parse_definition
from hvsvc.domain.steps import StepKind, StepState
from hvsvc.domain.target import GuestCpuMode, Method, RebootMode, Target
from hvsvc.errors import (
    AbortedError,
    CancelledError,
    DeadlineError,
    FailedPreconditionError,
    GuestAgentError,
    InternalError,
    Reason,
    UnavailableError,
)
from hvsvc.operations.apply import EXECUTORS
from tests.fakes.host import FakeHost, host
from tests.fakes.worlds import GIB, MIB
from tests.operations.conftest import Floor

FloorOf = Callable[..., Floor]
ROOMY = {"maximum": 8, "current": 2, "memory_kib": 2 * GIB, "current_memory_kib": 512 * MIB}
RAISE = Target(Method.RAISE_CEILING, max_vcpus=8, max_memory_kib=2 * GIB, reboot=RebootMode.SOFT)
GROW = Target(Method.SCALE_DOMAIN, vcpus=8, memory_kib=GIB)


def mutations(fake: FakeHost) -> list[str]:
    return [name for name, _ in fake.calls]


def test_every_step_kind_has_an_executor() -> None:
    assert set(EXECUTORS) == set(StepKind)


@pytest.mark.parametrize("nova", [True, False])
async def test_raise_reboots_the_right_way_and_is_proven(floor_of: FloorOf, nova: bool) -> None:
    fake = host(nova=nova)
    result = await floor_of(fake).result(RAISE)
    assert result.outcome is Outcome.COMPLETE
    assert result.changed
    assert mutations(fake) == (["define", "reboot_soft"] if nova else ["define", "shut_down", "start"])
    assert result.after.live is not None
    assert result.after.config is not None
    assert (result.after.live.maximum_vcpus, result.after.live.current_vcpus) == (8, 2)
    assert result.after.balloon.actual_kib == 512 * MIB
    assert result.before.config is not None
    assert result.before.config.maximum_vcpus == 2


async def test_grow_within_the_ceiling_never_reboots(floor_of: FloorOf) -> None:
    fake = host(**ROOMY, nova=True)
    floor = floor_of(fake)
    record = await floor.run(GROW)
    assert record.result is not None
    assert record.result.outcome is Outcome.COMPLETE
    assert mutations(fake) == ["set_memory_live", "set_vcpus_live", "set_online", "define"]
    assert fake.calls[2] == ("set_online", frozenset(range(2, 8)))
    after = record.result.after
    assert after.guest is not None
    assert (after.guest.present, after.guest.online) == (8, 8)
    assert after.config is not None
    assert (after.config.current_vcpus, after.config.current_memory_kib) == (8, GIB)
    assert all(step.state is StepState.DONE and step.evidence for step in record.steps)
    assert after.balloon.guest_total_kib == GIB - 60_000


async def test_intent_is_journaled_before_each_step_and_the_result_after(floor_of: FloorOf) -> None:
    fake = host(**ROOMY)
    floor = floor_of(fake)
    seen: list[tuple[str, list[StepState]]] = []

    def note(name: str) -> None:
        if name in ("set_memory_live", "set_vcpus_live", "define"):
            record = next(iter(floor.journal.records.values()))
            seen.append((name, [step.state for step in record.steps]))

    fake.before_call = note
    await floor.run(GROW)
    done, running, pending = StepState.DONE, StepState.RUNNING, StepState.PENDING
    assert seen[0] == ("set_memory_live", [running, pending, pending, pending])
    assert seen[1] == ("set_vcpus_live", [done, running, pending, pending])
    assert seen[-1] == ("define", [done, done, done, running])


async def test_scale_with_consent_does_the_whole_job(floor_of: FloorOf) -> None:
    fake = host(nova=True)
    floor = floor_of(fake)
    record = await floor.run(replace(GROW, reboot=RebootMode.SOFT))
    assert record.result is not None
    assert record.result.outcome is Outcome.COMPLETE
    assert mutations(fake) == [
        "define",
        "reboot_soft",
        "set_memory_live",
        "set_vcpus_live",
        "set_online",
        "define",
    ]
    assert len(record.steps) == 7
    assert next(xml for _, _, xml in floor.journal.definitions) == fake.flavor_xml


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


async def test_a_lost_ceiling_is_seen_without_events_too(floor_of: FloorOf) -> None:
    fake = host(nova=True)
    fake.nova_reboot = "fallback"
    fake.emit = lambda kind: None  # type: ignore[method-assign]
    assert (await floor_of(fake).error(RAISE)).reason is Reason.CEILING_LOST


async def test_a_lost_event_stream_does_not_hide_the_truth(floor_of: FloorOf) -> None:
    fake = host(nova=True)
    fake.clock.at(1, lambda: fake.lose_connection(UnavailableError(Reason.LIBVIRT_UNAVAILABLE, "gone")))
    assert (await floor_of(fake).result(RAISE)).outcome is Outcome.COMPLETE


async def test_rb_01_a_reboot_in_the_same_process_is_not_applied(floor_of: FloorOf) -> None:
    fake = host(nova=True)
    fake.nova_reboot = "same process"
    error = await floor_of(fake).error(RAISE)
    assert isinstance(error, DeadlineError)
    assert "not over within 300 s" in error.message


async def test_nova_that_never_finishes_is_bounded(floor_of: FloorOf) -> None:
    fake = host(nova=True)
    fake.nova_reboot = "never"
    start_s = fake.clock.time_s
    error = await floor_of(fake).error(RAISE)
    assert isinstance(error, DeadlineError)
    assert "task_state rebooting" in error.message
    assert 300 <= fake.clock.time_s - start_s < 310


async def test_nova_that_goes_away_during_the_reboot(floor_of: FloorOf) -> None:
    fake = host(nova=True)
    down = UnavailableError(Reason.NOVA_UNAVAILABLE, "connection refused")
    fake.clock.at(1, lambda: fake.errors.update(read_server=down, read_reboot_result=down))
    result = await floor_of(fake).result(RAISE)
    assert result.outcome is Outcome.UNCONFIRMED
    assert result.reasons[0].reason is Reason.NOVA_STATE_UNKNOWN
    assert result.after.live is not None
    assert result.after.live.maximum_vcpus == 8


async def test_a_server_in_error_is_told(floor_of: FloorOf) -> None:
    fake = host(nova=True)
    fake.nova_reboot = "error"
    error = await floor_of(fake).error(RAISE)
    assert error.reason is Reason.NOVA_REFUSED
    assert error.metadata == {"result": "Error", "status": "ERROR"}


async def test_a_server_locked_after_the_plan_is_not_rebooted(floor_of: FloorOf) -> None:
    fake = host(nova=True)
    fake.before_call = lambda name: (
        setattr(fake, "server", replace(fake.server, locked=True)) if name == "define" else None
    )
    error = await floor_of(fake).error(RAISE)
    assert error.reason is Reason.SERVER_LOCKED
    assert "reboot_soft" not in mutations(fake)


async def test_a_plain_guest_that_ignores_shutdown_runs_on(floor_of: FloorOf) -> None:
    fake = host()
    fake.obeys_shutdown = False
    record = await floor_of(fake).run(RAISE)
    assert record.error is not None
    assert record.error.reason is Reason.SHUTDOWN_IGNORED
    assert mutations(fake) == ["define", "shut_down"]
    assert record.now is not None
    assert record.now.running
    assert record.now.live is not None
    assert record.now.live.maximum_vcpus == 2


async def test_topo_12_mem_10_a_definition_that_does_not_start_is_taken_back(floor_of: FloorOf) -> None:
    fake = host()
    before = fake.config_xml
    fake.errors["start once"] = FailedPreconditionError(Reason.START_FAILED, "cannot set up guest memory")
    record = await floor_of(fake).run(RAISE)
    assert record.error is not None
    assert record.error.reason is Reason.START_FAILED
    assert record.error.metadata == {"restored": "true"}
    assert fake.config_xml == before
    assert record.now is not None
    assert record.now.running
    assert mutations(fake) == ["define", "shut_down", "define", "start"]


async def test_a_pending_definition_of_an_earlier_operation_is_taken_back_too(floor_of: FloorOf) -> None:
    fake = host()
    before = fake.config_xml
    floor = floor_of(fake)
    assert (await floor.result(replace(RAISE, reboot=RebootMode.NEVER))).outcome is Outcome.PENDING_REBOOT
    fake.errors["start once"] = FailedPreconditionError(Reason.START_FAILED, "cannot set up guest memory")
    error = await floor.error(Target(Method.REBOOT_DOMAIN))
    assert error.metadata == {"restored": "true"}
    assert fake.config_xml == before


async def test_raise_without_consent_stays_pending(floor_of: FloorOf) -> None:
    fake = host(nova=True)
    result = await floor_of(fake).result(replace(RAISE, reboot=RebootMode.NEVER))
    assert result.outcome is Outcome.PENDING_REBOOT
    assert mutations(fake) == ["define"]
    assert fake.id == 7


async def test_xml_14_api_05_the_same_request_again_changes_nothing(floor_of: FloorOf) -> None:
    fake = host(nova=True)
    floor = floor_of(fake)
    await floor.result(replace(GROW, reboot=RebootMode.SOFT))
    done, config, domain_id = len(fake.calls), fake.config_xml, fake.id
    again = await floor.result(replace(GROW, reboot=RebootMode.SOFT))
    assert again.outcome is Outcome.COMPLETE
    assert not again.changed
    assert (len(fake.calls), fake.config_xml, fake.id) == (done, config, domain_id)


async def test_api_02_an_edit_between_plan_and_define_is_not_lost(floor_of: FloorOf) -> None:
    fake = host(nova=True)
    fake.before_call = lambda name: (
        fake.edit_outside(Edit(current_memory_kib=256 * MIB)) if name == "define" else None
    )
    error = await floor_of(fake).error(RAISE)
    assert isinstance(error, AbortedError)
    assert error.reason is Reason.DEFINITION_CHANGED
    assert mutations(fake) == []
    assert parse_definition(fake.config_xml).current_memory_kib == 256 * MIB


async def test_api_02_an_edit_during_the_live_steps_is_not_lost(floor_of: FloorOf) -> None:
    fake = host(**ROOMY)
    fake.before_call = lambda name: (
        fake.edit_outside(Edit(current_memory_kib=256 * MIB)) if name == "set_vcpus_live" else None
    )
    record = await floor_of(fake).run(GROW)
    assert record.error is not None
    assert record.error.reason is Reason.DEFINITION_CHANGED
    assert parse_definition(fake.config_xml).current_memory_kib == 256 * MIB
    assert record.now is not None
    assert record.now.live is not None
    assert record.now.live.current_vcpus == 8


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


async def test_a_journal_that_fails_before_a_step_stops_it(floor_of: FloorOf) -> None:
    fake = host(nova=True)
    floor = floor_of(fake)
    full = UnavailableError(Reason.JOURNAL_UNAVAILABLE, "disk full")
    floor.journal.errors["update"] = full
    record = await floor.run(RAISE)
    assert record.error is full
    assert mutations(fake) == []


async def test_a_definition_that_cannot_be_kept_is_not_replaced(floor_of: FloorOf) -> None:
    fake = host(nova=True)
    floor = floor_of(fake)
    floor.journal.errors["keep_definition"] = UnavailableError(Reason.JOURNAL_UNAVAILABLE, "disk full")
    assert (await floor.error(RAISE)).reason is Reason.JOURNAL_UNAVAILABLE
    assert mutations(fake) == []


async def test_xml_05_a_refused_define_leaves_everything(floor_of: FloorOf) -> None:
    fake = host(nova=True)
    before = fake.config_xml
    fake.errors["define"] = FailedPreconditionError(Reason.DEFINITION_REFUSED, "libvirt says no")
    record = await floor_of(fake).run(RAISE)
    assert record.error is fake.errors["define"]
    assert fake.config_xml == before
    assert mutations(fake) == []


async def test_what_cannot_be_read_back_is_not_done(floor_of: FloorOf) -> None:
    fake = host(**ROOMY)
    gone = UnavailableError(Reason.LIBVIRT_UNAVAILABLE, "libvirtd is gone")
    fake.before_call = lambda name: fake.errors.update(read_domain=gone) if name == "set_vcpus_live" else None
    record = await floor_of(fake).run(Target(Method.SET_VCPUS, vcpus=4))
    assert record.error is gone
    assert record.now is None
    assert record.failed_step == 0


async def test_cancel_ends_before_the_next_step(floor_of: FloorOf) -> None:
    fake = host(nova=True)
    floor = floor_of(fake)
    cancelling: list[asyncio.Task[None]] = []

    def cancel(name: str) -> None:
        if name == "define":
            operation_id = next(iter(floor.journal.records))
            cancelling.append(asyncio.create_task(floor.operations.cancel(operation_id)))

    fake.before_call = cancel
    record = await floor.run(RAISE)
    await cancelling[0]
    assert isinstance(record.error, CancelledError)
    assert record.cancel_requested
    assert mutations(fake) == ["define"]
    assert record.steps[0].state is StepState.DONE
    assert record.failed_step is None


async def test_a_bug_ends_the_operation_as_internal(
    floor_of: FloorOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = host(nova=True)

    def bug(name: str) -> None:
        if name == "define":
            raise ZeroDivisionError

    fake.before_call = bug
    floor = floor_of(fake)
    record = await floor.run(RAISE)
    assert isinstance(record.error, InternalError)
    assert "ZeroDivisionError" in record.error.message
    again = await floor.run(replace(RAISE, reboot=RebootMode.NEVER))
    assert isinstance(again.error, InternalError), "the domain's lock was given back"


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
