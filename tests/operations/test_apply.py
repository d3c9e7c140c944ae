"""Whole operations over a host that behaves as told."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

import pytest

from hvsvc.domain.outcome import Outcome
from hvsvc.domain.steps import StepKind, StepState
from hvsvc.domain.target import Method, RebootMode, Target
from hvsvc.errors import (
    CancelledError,
    InternalError,
    Reason,
    UnavailableError,
)
from hvsvc.operations.apply import EXECUTORS
from tests.fakes.host import host
from tests.fakes.targets import GROW, RAISE, ROOMY, mutations
from tests.fakes.worlds import GIB, MIB
from tests.operations.conftest import Floor

FloorOf = Callable[..., Floor]


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


async def test_a_journal_that_fails_before_a_step_stops_it(floor_of: FloorOf) -> None:
    fake = host(nova=True)
    floor = floor_of(fake)
    full = UnavailableError(Reason.JOURNAL_UNAVAILABLE, "disk full")
    floor.journal.errors["update"] = full
    record = await floor.run(RAISE)
    assert record.error is full
    assert mutations(fake) == []
    assert record.failed_step == 0
    assert record.steps[0].state is StepState.FAILED, "nothing goes on running in an operation that ended"


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


async def test_a_bug_in_the_reading_of_a_domain_ends_the_operation_too(floor_of: FloorOf) -> None:
    fake = host(nova=True)

    def bug(name: str) -> None:
        if name == "read_domain" and fake.calls:
            raise ZeroDivisionError

    fake.before_call = bug
    record = await floor_of(fake).run(RAISE)
    assert isinstance(record.error, InternalError)
    assert record.done
    assert record.now is None


async def test_no_reboot_is_begun_by_a_daemon_that_stops(floor_of: FloorOf) -> None:
    fake = host()
    floor = floor_of(fake)
    stops: list[asyncio.Task[None]] = []

    def stop(name: str) -> None:
        if name == "define":
            stops.append(asyncio.create_task(floor.operations.drain(30)))

    fake.before_call = stop
    error = await floor.error(RAISE)
    await asyncio.gather(*stops)
    assert error.reason is Reason.SHUTTING_DOWN
    assert mutations(fake) == ["define"], "its guest would have been left shut down"
