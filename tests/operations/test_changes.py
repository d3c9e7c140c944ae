"""Beginning changes: one path for all, refusals before anything is touched."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from hvsvc.domain.desired import DesiredState, ReapplyPolicy
from hvsvc.domain.facts import DomainFacts
from hvsvc.domain.operation import OperationRecord
from hvsvc.domain.outcome import Outcome
from hvsvc.domain.steps import StepState
from hvsvc.domain.target import Method, RebootMode, Target
from hvsvc.errors import (
    AbortedError,
    AlreadyExistsError,
    DeadlineError,
    ExhaustedError,
    FailedPreconditionError,
    NotFoundError,
    Reason,
    UnavailableError,
)
from hvsvc.operations.changes import REPLAY_S
from tests.fakes.host import FakeHost, host
from tests.fakes.worlds import GIB, MIB, UUID
from tests.operations.conftest import Floor

FloorOf = Callable[..., Floor]
RAISE = Target(Method.RAISE_CEILING, max_vcpus=8, max_memory_kib=2 * GIB)
GROWN = Target(Method.SCALE_DOMAIN, vcpus=4, memory_kib=GIB, reboot=RebootMode.SOFT)
REQUEST = "7a0e8c3e-0000-4000-8000-000000000001"


async def begin(floor: Floor, target: Target = RAISE, **changes: object) -> object:
    arguments: dict[str, object] = {
        "etag": "",
        "request_id": "",
        "caller": "tester",
        "validate_only": False,
        **changes,
    }
    return await floor.changes.begin(f"domains/{UUID}", target, **arguments)  # type: ignore[arg-type]


async def test_api_02_the_second_caller_is_told_who_is_at_work(floor_of: FloorOf) -> None:
    floor = floor_of(host(nova=True))
    first = await floor.changes.begin(UUID, RAISE, etag="", request_id="", caller="one", validate_only=False)
    with pytest.raises(AbortedError) as refused:
        await begin(floor)
    assert refused.value.reason is Reason.DOMAIN_BUSY
    assert refused.value.metadata == {"operation": f"operations/{first.id}"}
    await floor.operations.wait(first.id, 30)
    assert floor.host.calls[0][0] == "define"
    assert len(floor.host.calls) == 1
    await begin(floor)  # the lock was given back


async def test_what_stays_lost_of_the_record_is_told_by_every_change(floor_of: FloorOf) -> None:
    """Seen by an operator: a growth by hand ended COMPLETE without a word, the ceiling on record stayed lost."""
    floor = floor_of(host(nova=True))
    assert (await floor.result(GROWN)).outcome is Outcome.COMPLETE
    floor.host.hard_reboot()
    floor.host.settle()
    shrink = Target(Method.SET_MEMORY, memory_kib=500 * MIB)
    planned = await floor.changes.plan(UUID, shrink)
    assert Reason.CEILING_NOT_STORED in [note.reason for note in planned.plan.warnings]
    assert Reason.CEILING_NOT_STORED in [note.reason for note in (await floor.result(shrink)).reasons]
    whole = await floor.result(Target(Method.RAISE_CEILING, max_vcpus=4, max_memory_kib=GIB))
    assert Reason.CEILING_NOT_STORED not in [note.reason for note in whole.reasons]


@pytest.mark.parametrize("nova", [True, False])
async def test_an_operation_carries_the_servers_name(floor_of: FloorOf, nova: bool) -> None:
    floor = floor_of(host(nova=nova))
    assert (await floor.run(RAISE)).server_name == ("web-1" if nova else "")


async def test_two_callers_at_the_same_moment_one_gets_aborted(floor_of: FloorOf) -> None:
    floor = floor_of(host(nova=True))
    answers = await asyncio.gather(begin(floor), begin(floor), return_exceptions=True)
    assert sorted(type(answer).__name__ for answer in answers) == ["AbortedError", "OperationRecord"]


async def test_what_hvsvc_does_by_itself_is_waited_for_not_refused(floor_of: FloorOf) -> None:
    """Seen on the lab: a reboot asked for in the moment in which the allocation was brought to the truth."""
    floor = floor_of(host(nova=True))
    floor.locks.acquire(UUID, "allocation", own_work=True)
    floor.host.clock.at(2, lambda: floor.locks.release(UUID, "allocation"))
    assert (await floor.result(RAISE)).outcome is Outcome.PENDING_REBOOT


async def test_what_hvsvc_does_by_itself_is_not_waited_for_without_end(floor_of: FloorOf) -> None:
    floor = floor_of(host(nova=True))
    floor.locks.acquire(UUID, "allocation", own_work=True)
    with pytest.raises(AbortedError) as refused:
        await floor.run(RAISE)
    assert refused.value.reason is Reason.DOMAIN_BUSY
    assert floor.host.clock.time_s >= 1_000_020


async def test_a_refusal_leaves_no_operation_and_no_lock(floor_of: FloorOf) -> None:
    floor = floor_of(host(nova=True))
    scale = Target(Method.SCALE_DOMAIN, vcpus=8)
    for _ in range(2):
        with pytest.raises(FailedPreconditionError) as refused:
            await begin(floor, scale)
        assert refused.value.reason is Reason.REBOOT_REQUIRED
    assert floor.journal.records == {}
    assert floor.host.calls == []


async def test_all_refusals_come_at_once(floor_of: FloorOf) -> None:
    pins = "<cputune><vcpupin vcpu='0' cpuset='1'/></cputune>"
    floor = floor_of(host(extra=pins))
    with pytest.raises(FailedPreconditionError) as refused:
        await begin(floor, replace(RAISE, max_vcpus=400))
    found = [refused.value.reason, *(other.reason for other in refused.value.others)]
    assert found[0] is Reason.PINNED
    assert Reason.ABOVE_MACHINE_LIMIT in found


async def test_an_old_etag_is_refused(floor_of: FloorOf) -> None:
    floor = floor_of(host(nova=True))
    with pytest.raises(AbortedError) as refused:
        await begin(floor, etag="0" * 64)
    assert refused.value.reason is Reason.DEFINITION_CHANGED
    assert floor.host.calls == []
    report = await floor.changes.plan(UUID, RAISE)
    await begin(floor, etag=report.plan.etag)


async def test_a_request_id_answers_with_the_operation_it_began(floor_of: FloorOf) -> None:
    floor = floor_of(host(nova=True))
    first = await floor.run(RAISE, request_id=REQUEST)
    calls = list(floor.host.calls)
    again = await floor.run(RAISE, request_id=REQUEST)
    assert again == first
    assert floor.host.calls == calls


async def test_a_request_id_of_another_request_is_refused(floor_of: FloorOf) -> None:
    floor = floor_of(host(nova=True))
    await floor.run(RAISE, request_id=REQUEST)
    with pytest.raises(AlreadyExistsError) as refused:
        await begin(floor, replace(RAISE, max_vcpus=9), request_id=REQUEST)
    assert refused.value.reason is Reason.REQUEST_ID_REUSED


class TwinHost(FakeHost):
    """Any uuid names a domain, and reading one takes a moment."""

    async def find_uuids(self, name: str) -> Sequence[tuple[str, str]]:
        return [(name, name)]

    async def read_domain(self, uuid: str, *, hasty: bool = False) -> DomainFacts:
        await asyncio.sleep(0)
        return replace(await super().read_domain(UUID, hasty=hasty), uuid=uuid)


OTHER_UUID = "6f0c5a3e-0000-4000-8000-000000000002"


async def test_a_request_id_sent_for_two_domains_at_once_begins_one_operation(floor_of: FloorOf) -> None:
    floor = floor_of(TwinHost(host(nova=True).config_xml).settle())
    answers = await asyncio.gather(
        *(
            floor.changes.begin(
                f"domains/{uuid}", RAISE, etag="", request_id=REQUEST, caller="tester", validate_only=False
            )
            for uuid in (UUID, OTHER_UUID)
        ),
        return_exceptions=True,
    )
    began, refused = answers
    assert isinstance(began, OperationRecord)
    assert isinstance(refused, AlreadyExistsError)
    assert refused.reason is Reason.REQUEST_ID_REUSED
    assert refused.metadata["operation"] == f"operations/{began.id}"
    assert list(floor.journal.records) == [began.id]
    await floor.operations.wait(began.id, 30)
    assert [name for name, _ in floor.host.calls] == ["define"]


async def test_a_request_sent_twice_at_once_is_answered_with_one_operation(floor_of: FloorOf) -> None:
    floor = floor_of(TwinHost(host(nova=True).config_xml).settle())
    first, second = await asyncio.gather(*(begin(floor, request_id=REQUEST) for _ in range(2)))
    assert isinstance(first, OperationRecord)
    assert isinstance(second, OperationRecord)
    assert first.id == second.id
    assert list(floor.journal.records) == [first.id]


async def test_a_request_that_was_refused_leaves_its_id_to_the_next(floor_of: FloorOf) -> None:
    floor = floor_of(TwinHost(host(nova=True).config_xml).settle())
    refused, began = await asyncio.gather(
        begin(floor, Target(Method.SCALE_DOMAIN, vcpus=8), request_id=REQUEST),
        begin(floor, request_id=REQUEST),
        return_exceptions=True,
    )
    assert isinstance(refused, FailedPreconditionError)
    assert isinstance(began, OperationRecord)


async def test_a_request_id_is_the_callers_own_and_lasts_a_day(floor_of: FloorOf) -> None:
    floor = floor_of(host(nova=True))
    first = await floor.run(RAISE, request_id=REQUEST)
    other = await floor.changes.begin(
        UUID, RAISE, etag="", request_id=REQUEST, caller="somebody else", validate_only=False
    )
    assert other.id != first.id
    await floor.operations.wait(other.id, 30)
    floor.host.clock.time_s += REPLAY_S + 1
    later = await floor.run(RAISE, request_id=REQUEST)
    assert later.id not in (first.id, other.id)


async def test_validate_only_checks_and_does_nothing(floor_of: FloorOf) -> None:
    floor = floor_of(host(nova=True))
    record = await floor.changes.begin(
        UUID,
        replace(RAISE, reboot=RebootMode.SOFT),
        etag="",
        request_id="",
        caller="tester",
        validate_only=True,
    )
    assert record.result is not None
    assert record.result.outcome is Outcome.VALIDATED
    assert not record.result.changed
    assert [step.state for step in record.steps] == [StepState.PENDING] * 3
    assert floor.host.calls == []
    assert floor.journal.records == {}
    with pytest.raises(FailedPreconditionError):
        await begin(floor, Target(Method.SCALE_DOMAIN, vcpus=8), validate_only=True)
    await begin(floor)


async def test_a_caller_that_goes_away_does_not_leave_the_domain_locked(floor_of: FloorOf) -> None:
    floor = floor_of(host(nova=True))
    call = asyncio.create_task(begin(floor, request_id=REQUEST))
    await asyncio.sleep(0)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    for _ in range(100):
        await asyncio.sleep(0)
    record = await floor.run(RAISE, request_id=REQUEST)
    assert record.result is not None
    assert len(floor.journal.records) == 1


async def test_a_journal_that_cannot_take_it_begins_nothing(floor_of: FloorOf) -> None:
    floor = floor_of(host(nova=True))
    floor.journal.errors["begin"] = UnavailableError(Reason.JOURNAL_UNAVAILABLE, "disk full")
    with pytest.raises(UnavailableError):
        await begin(floor)
    floor.journal.errors.clear()
    await begin(floor)


async def test_no_more_operations_than_configured_and_none_while_stopping(floor_of: FloorOf) -> None:
    floor = floor_of(host(nova=True), max_operations=0)
    with pytest.raises(ExhaustedError):
        await begin(floor)
    floor = floor_of(host(nova=True))
    await floor.operations.drain(1)
    with pytest.raises(UnavailableError) as refused:
        await begin(floor)
    assert refused.value.reason is Reason.SHUTTING_DOWN


async def test_an_unknown_domain_is_not_found(floor_of: FloorOf) -> None:
    floor = floor_of(host())
    with pytest.raises(NotFoundError):
        await floor.changes.plan("nothing-like-that", RAISE)


async def test_without_a_nova_credential_a_nova_domain_is_not_rebooted(floor_of: FloorOf) -> None:
    floor = floor_of(host(nova=True), nova=False)
    with pytest.raises(FailedPreconditionError) as refused:
        await begin(floor, replace(RAISE, reboot=RebootMode.SOFT))
    assert refused.value.reason is Reason.NOVA_NOT_CONFIGURED
    assert floor.host.calls == []


async def test_what_a_change_asks_for_is_recorded_when_it_begins(floor_of: FloorOf) -> None:
    floor = floor_of(host(nova=True))
    seen: list[int | None] = []
    floor.host.before_call = lambda name: seen.extend(
        desired.max_vcpus for desired in floor.journal.desired.values() if name == "define"
    )
    await floor.result(RAISE)
    assert seen[:1] == [8], "on disk before the define"
    desired = floor.journal.desired[UUID]
    assert (desired.max_vcpus, desired.max_memory_kib, desired.caller) == (8, 2 * GIB, "tester")
    assert desired.seen_in_nova


async def test_what_is_refused_or_only_checked_is_not_recorded(floor_of: FloorOf) -> None:
    floor = floor_of(host(nova=True))
    await begin(floor, validate_only=True)
    with pytest.raises(FailedPreconditionError):
        await begin(floor, Target(Method.SET_VCPUS, vcpus=99))
    with pytest.raises(AbortedError):
        await begin(floor, etag="f" * 64)
    assert floor.journal.desired == {}


async def test_what_failed_before_anything_changed_is_not_recorded(floor_of: FloorOf) -> None:
    floor = floor_of(host(nova=True))
    await floor.result(Target(Method.RAISE_CEILING, max_vcpus=4))
    floor.host.errors["define"] = FailedPreconditionError(Reason.DEFINITION_REFUSED, "no")
    await floor.error(RAISE)
    assert floor.journal.desired[UUID].max_vcpus == 4


async def test_what_was_lost_by_its_own_reboot_stays_recorded(floor_of: FloorOf) -> None:
    floor = floor_of(host(nova=True))
    floor.host.nova_reboot = "fallback"
    await floor.error(replace(RAISE, reboot=RebootMode.SOFT))
    assert floor.journal.desired[UUID].max_vcpus == 8


async def test_without_the_journal_nothing_is_recorded_and_nothing_changed(floor_of: FloorOf) -> None:
    floor = floor_of(host(nova=True))
    gone = UnavailableError(Reason.JOURNAL_UNAVAILABLE, "disk full")
    for call in ("replace_desired", "begin"):
        floor.journal.errors = {call: gone}
        with pytest.raises(UnavailableError):
            await begin(floor)
        assert (floor.journal.desired, floor.host.calls) == ({}, [])
    floor.journal.errors = {}
    await floor.result(RAISE)  # the lock was given back


async def test_what_may_have_been_done_stays_recorded(floor_of: FloorOf) -> None:
    # libvirt took the definition, its answer came too late
    floor = floor_of(host(nova=True))
    define = floor.host.define

    async def define_late(uuid: str, previous_etag: str, xml: str) -> None:
        await define(uuid, previous_etag, xml)
        raise DeadlineError(Reason.CALL_TIMED_OUT, "no answer in 40 s")

    floor.host.define = define_late  # type: ignore[method-assign]
    assert (await floor.error(Target(Method.RAISE_CEILING, max_vcpus=4))).reason is Reason.CALL_TIMED_OUT
    assert floor.journal.desired[UUID].max_vcpus == 4
    floor.host.define = define  # type: ignore[method-assign]
    floor.host.errors["define"] = DeadlineError(Reason.CALL_TIMED_OUT, "no answer, and nothing done")
    await floor.error(Target(Method.RAISE_CEILING, max_vcpus=8))
    assert floor.journal.desired[UUID].max_vcpus == 4


async def test_a_record_made_meanwhile_is_merged_not_overwritten(floor_of: FloorOf) -> None:
    floor = floor_of(host(nova=True))
    replaced = floor.journal.replace_desired

    async def late(*arguments: object) -> bool:
        floor.journal.replace_desired = replaced  # type: ignore[method-assign]
        floor.journal.desired[UUID] = DesiredState(UUID, "x", "other", 1.0, policy=ReapplyPolicy.LIVE)
        return await replaced(*arguments)  # type: ignore[arg-type]

    floor.journal.replace_desired = late  # type: ignore[assignment]
    await floor.result(RAISE)
    desired = floor.journal.desired[UUID]
    assert (desired.max_vcpus, desired.policy) == (8, ReapplyPolicy.LIVE)


@pytest.mark.parametrize(
    "target",
    [
        Target(Method.RAISE_CEILING, max_vcpus=200),
        Target(Method.SCALE_DOMAIN, vcpus=200, reboot=RebootMode.SOFT),
        Target(Method.SCALE_DOMAIN, vcpus=2, max_vcpus=200, reboot=RebootMode.SOFT),
    ],
)
async def test_api_03_no_act_gets_around_the_limits_of_the_host(floor_of: FloorOf, target: Target) -> None:
    floor = floor_of(host())
    planned = (await floor.changes.plan(UUID, target)).plan.blockers
    with pytest.raises(FailedPreconditionError) as refused:
        await begin(floor, target)
    assert refused.value.reason is Reason.ABOVE_HOST_CAPACITY
    assert (
        refused.value.metadata
        == next(each for each in planned if each.reason is refused.value.reason).metadata
    )
    assert floor.host.calls == []


async def test_cpu_06_no_unplug_is_begun_whose_end_nobody_would_see(floor_of: FloorOf) -> None:
    floor = floor_of(host(maximum=8, current=4))
    for target in (Target(Method.SET_VCPUS, vcpus=2), Target(Method.SCALE_DOMAIN, vcpus=2)):
        with pytest.raises(FailedPreconditionError) as refused:
            await begin(floor, target)
        assert refused.value.reason is Reason.LIVE_VCPU_SHRINK
        assert refused.value.metadata["lowest"] == "4"
    assert floor.host.calls == []
