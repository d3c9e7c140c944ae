"""Operations under policy ENFORCE, over a Placement that behaves as told."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from hvsvc.domain.allocation import AllocationFacts, PlacementPolicy, Size
from hvsvc.domain.facts import DomainFacts
from hvsvc.domain.operation import OperationRecord
from hvsvc.domain.outcome import Outcome
from hvsvc.domain.steps import StepKind, StepState
from hvsvc.domain.target import Method, RebootMode, Target
from hvsvc.errors import (
    AbortedError,
    FailedPreconditionError,
    HvsvcError,
    NotPermittedError,
    Reason,
    UnavailableError,
)
from hvsvc.operations.step_allocation import reconcile_allocation, wait_settled
from tests.fakes.host import FakeHost, host
from tests.fakes.placement import PROVIDER, ROOM, FakePlacement
from tests.fakes.targets import GROW, RAISE, ROOMY, mutations
from tests.fakes.worlds import GIB, MIB, UUID
from tests.operations.conftest import Floor

FloorOf = Callable[..., Floor]
FORBIDDEN = NotPermittedError(Reason.PLACEMENT_NOT_PERMITTED, "not yours")
DOWN = UnavailableError(Reason.PLACEMENT_UNAVAILABLE, "it is down")


def allocated(vcpus: int, memory_mib: int) -> FakePlacement:
    return FakePlacement(AllocationFacts(Size(vcpus, memory_mib), PROVIDER))


def enforcing(floor_of: FloorOf, fake: FakeHost, placement: FakePlacement) -> Floor:
    return floor_of(fake, placement=placement, policy=PlacementPolicy.ENFORCE)


def allocations(record: OperationRecord) -> list[tuple[int, StepState]]:
    """Where in the operation the allocation was set, and how that ended."""
    return [
        (index, step.state) for index, step in enumerate(record.steps) if step.kind is StepKind.SET_ALLOCATION
    ]


async def test_what_libvirt_refused_is_not_recorded_though_the_allocation_was_raised(
    floor_of: FloorOf,
) -> None:
    fake, placement = host(nova=True), FakePlacement()
    floor = enforcing(floor_of, fake, placement)
    fake.errors["define"] = FailedPreconditionError(Reason.DEFINITION_REFUSED, "libvirt refuses it")
    target = Target(Method.SCALE_DOMAIN, vcpus=4, reboot=RebootMode.SOFT)
    assert (await floor.error(target)).reason is Reason.DEFINITION_REFUSED
    assert [size.vcpus for size in placement.calls] == [4, 2]
    assert floor.journal.desired == {}


async def test_the_allocation_is_raised_before_the_domain_grows(floor_of: FloorOf) -> None:
    fake, placement = host(**ROOMY, nova=True), FakePlacement()
    order: list[str] = []
    placement.before_call = lambda name: order.append(name) if name.startswith("set") else None
    fake.before_call = lambda name: order.append(name) if name.startswith("set") else None
    record = await enforcing(floor_of, fake, placement).run(GROW)
    assert order == ["set_allocation", "set_memory_live", "set_vcpus_live"]
    assert record.result is not None
    assert record.result.outcome is Outcome.COMPLETE
    assert placement.calls == [Size(8, 1024)]
    assert allocations(record) == [(0, StepState.DONE)]
    assert record.steps[0].evidence == "Placement has 8 vCPUs and 1024 MiB allocated"
    assert record.result.after.allocation == AllocationFacts(Size(8, 1024), PROVIDER)
    assert record.result.before.allocation == AllocationFacts(Size(2, 512), PROVIDER)


async def test_a_refusal_in_the_plan_touches_nothing(floor_of: FloorOf) -> None:
    fake = host(**ROOMY, nova=True)
    placement = FakePlacement(room=replace(ROOM, vcpu=replace(ROOM.vcpu, max_unit=4)))
    with pytest.raises(FailedPreconditionError) as caught:
        await enforcing(floor_of, fake, placement).run(GROW)
    assert caught.value.reason is Reason.ALLOCATION_ABOVE_MAX_UNIT
    assert (mutations(fake), placement.calls) == ([], [])


@pytest.mark.parametrize("refusal", [FORBIDDEN, DOWN], ids=["403", "down"])
async def test_a_refusal_of_the_write_ends_it_before_anything_grows(
    floor_of: FloorOf, refusal: HvsvcError
) -> None:
    fake, placement = host(**ROOMY, nova=True), FakePlacement(errors={"set_allocation": refusal})
    record = await enforcing(floor_of, fake, placement).run(GROW)
    assert record.error is refusal
    assert record.failed_step == 0
    assert mutations(fake) == []
    assert allocations(record) == [(0, StepState.FAILED)], "there is nothing to give back"


async def test_a_room_that_cannot_be_read_leaves_the_decision_to_placement(floor_of: FloorOf) -> None:
    fake, placement = host(**ROOMY, nova=True), FakePlacement(errors={"read_room": FORBIDDEN})
    assert (await enforcing(floor_of, fake, placement).result(GROW)).outcome is Outcome.COMPLETE
    assert placement.allocation.size == Size(8, 1024)


async def test_api_04_a_growth_that_fails_gives_its_allocation_back(floor_of: FloorOf) -> None:
    fake, placement = host(**ROOMY, nova=True), FakePlacement()
    fake.errors["set_vcpus_live midway"] = FailedPreconditionError(Reason.HYPERVISOR_REFUSED, "no more")
    record = await enforcing(floor_of, fake, placement).run(GROW)
    assert isinstance(record.error, FailedPreconditionError)
    # 7 of 8 vCPUs and the memory are there: that is what stays allocated
    assert placement.calls == [Size(8, 1024), Size(7, 1024)]
    assert record.failed_step is not None
    assert record.steps[record.failed_step].kind is StepKind.SET_VCPUS_LIVE
    assert allocations(record)[-1] == (len(record.steps) - 1, StepState.DONE)
    assert record.now is not None
    assert record.now.allocation == AllocationFacts(Size(7, 1024), PROVIDER)


async def test_api_04_a_ceiling_that_is_lost_gives_the_allocation_back(floor_of: FloorOf) -> None:
    fake, placement = host(nova=True), FakePlacement()
    fake.nova_reboot = "fallback"
    record = await enforcing(floor_of, fake, placement).run(replace(GROW, reboot=RebootMode.SOFT))
    assert record.error is not None
    assert record.error.reason is Reason.CEILING_LOST
    assert placement.calls == [Size(8, 1024), Size(2, 512)]


async def test_an_allocation_that_cannot_be_given_back_hides_no_error(floor_of: FloorOf) -> None:
    fake, placement = host(nova=True), FakePlacement()
    fake.nova_reboot = "fallback"
    fake.before_call = lambda name: placement.errors.update(set_allocation=DOWN) if name == "define" else None
    record = await enforcing(floor_of, fake, placement).run(replace(GROW, reboot=RebootMode.SOFT))
    assert record.error is not None
    assert record.error.reason is Reason.CEILING_LOST
    assert allocations(record)[-1] == (len(record.steps) - 1, StepState.UNCONFIRMED)
    assert "it is down" in record.steps[-1].evidence
    assert record.now is not None
    assert record.now.allocation == AllocationFacts(Size(8, 1024), PROVIDER)


async def test_the_whole_job_with_a_reboot_is_allocated_once(floor_of: FloorOf) -> None:
    fake, placement = host(nova=True), FakePlacement()
    record = await enforcing(floor_of, fake, placement).run(replace(GROW, reboot=RebootMode.SOFT))
    assert record.result is not None
    assert record.result.outcome is Outcome.COMPLETE
    assert placement.calls == [Size(8, 1024)]
    assert all(step.state is StepState.DONE for step in record.steps)


async def test_a_shrink_is_given_back_after_it(floor_of: FloorOf) -> None:
    fake = host(**ROOMY | {"current_memory_kib": GIB}, nova=True)
    placement = allocated(2, 1024)
    record = await enforcing(floor_of, fake, placement).run(Target(Method.SET_MEMORY, memory_kib=768 * MIB))
    assert record.result is not None
    assert record.result.outcome is Outcome.COMPLETE
    assert placement.calls == [Size(2, 768)]
    assert allocations(record) == [(len(record.steps) - 1, StepState.DONE)]


async def test_a_shrink_that_gets_stuck_keeps_what_it_still_has(floor_of: FloorOf) -> None:
    fake = host(**ROOMY | {"current_memory_kib": GIB}, nova=True)
    fake.balloon_driver = "stuck"
    placement = allocated(2, 1024)
    record = await enforcing(floor_of, fake, placement).run(Target(Method.SET_MEMORY, memory_kib=768 * MIB))
    assert record.result is not None
    assert record.result.outcome is Outcome.PARTIAL
    assert placement.allocation.size == Size(2, 1024)
    assert record.steps[-1].state is StepState.DONE
    assert record.steps[-1].evidence == "Placement has 2 vCPUs and 1024 MiB allocated"


async def test_a_shrink_whose_placement_goes_down_is_unconfirmed(floor_of: FloorOf) -> None:
    fake = host(**ROOMY | {"current_memory_kib": GIB}, nova=True)
    placement = allocated(2, 1024)
    fake.before_call = lambda name: (
        placement.errors.update(read_allocation=DOWN) if name == "set_memory_live" else None
    )
    record = await enforcing(floor_of, fake, placement).run(Target(Method.SET_MEMORY, memory_kib=768 * MIB))
    assert record.result is not None
    assert record.result.outcome is Outcome.UNCONFIRMED
    assert allocations(record) == [(len(record.steps) - 1, StepState.UNCONFIRMED)]


async def test_a_placement_that_goes_down_meanwhile_is_not_complete(floor_of: FloorOf) -> None:
    fake, placement = host(**ROOMY, nova=True), FakePlacement()
    fake.before_call = lambda name: (
        placement.errors.update(read_allocation=DOWN) if name == "set_vcpus_live" else None
    )
    result = await enforcing(floor_of, fake, placement).result(GROW)
    assert result.outcome is Outcome.UNCONFIRMED
    assert [note.reason for note in result.reasons] == [Reason.PLACEMENT_UNAVAILABLE]


async def test_a_request_that_is_fulfilled_already_still_puts_the_books_right(floor_of: FloorOf) -> None:
    fake, placement = host(**ROOMY | {"current": 4}, nova=True), FakePlacement()
    floor = enforcing(floor_of, fake, placement)
    record = await floor.run(Target(Method.SET_VCPUS, vcpus=4))
    assert record.result is not None
    assert (record.result.outcome, record.result.changed) == (Outcome.COMPLETE, True)
    assert placement.calls == [Size(4, 512)]
    again = await floor.result(Target(Method.SET_VCPUS, vcpus=4))
    assert (again.outcome, again.changed) == (Outcome.COMPLETE, False)


async def test_report_writes_nothing_and_says_so(floor_of: FloorOf) -> None:
    fake, placement = host(**ROOMY, nova=True), FakePlacement()
    result = await floor_of(fake, placement=placement, policy=PlacementPolicy.REPORT).result(GROW)
    assert result.outcome is Outcome.COMPLETE
    assert [note.reason for note in result.reasons] == [Reason.ALLOCATION_DIFFERS]
    assert placement.calls == []


async def test_a_full_report_shows_it_and_a_basic_one_does_not_ask(floor_of: FloorOf) -> None:
    fake, placement = host(**ROOMY, nova=True), FakePlacement()
    reads = floor_of(fake, placement=placement, policy=PlacementPolicy.REPORT).reads
    assert (await reads.get(UUID, full=True)).allocation == placement.allocation
    placement.errors["read_allocation"] = FORBIDDEN
    assert (await reads.get(UUID, full=True)).allocation_error is FORBIDDEN
    basic = await reads.get(UUID, full=False)
    assert (basic.allocation, basic.allocation_error) == (None, None)
    (listed,) = await reads.list(states=frozenset(), nova_server="", after_uuid="", limit=5, full=True)
    assert isinstance(listed, DomainFacts)
    assert listed.allocation_error is FORBIDDEN


# ---------------------------------------------------------------- reconcile_allocation


async def test_reconciling_brings_it_to_the_truth_once(floor_of: FloorOf) -> None:
    placement = allocated(8, 1024)
    tools = enforcing(floor_of, host(**ROOMY, nova=True), placement).tools
    assert await reconcile_allocation(tools, UUID) == (Size(8, 1024), Size(2, 512))
    assert await reconcile_allocation(tools, UUID) is None
    assert placement.calls == [Size(2, 512)]


async def test_reconciling_waits_while_nova_is_at_work(floor_of: FloorOf) -> None:
    fake, placement = host(**ROOMY, nova=True), allocated(8, 1024)
    fake.server = replace(fake.server, task_state="resize_prep")
    with pytest.raises(AbortedError) as caught:
        await reconcile_allocation(enforcing(floor_of, fake, placement).tools, UUID)
    assert caught.value.reason is Reason.SERVER_BUSY
    assert placement.calls == []


@pytest.mark.parametrize("nova", [True, False])
async def test_reconciling_is_for_novas_domains_under_enforce(floor_of: FloorOf, nova: bool) -> None:
    placement = allocated(8, 1024)
    policy = PlacementPolicy.REPORT if nova else PlacementPolicy.ENFORCE
    tools = floor_of(host(**ROOMY, nova=nova), placement=placement, policy=policy).tools
    assert await reconcile_allocation(tools, UUID) is None
    assert placement.calls == []


async def test_rb_07_after_a_start_the_balloon_is_waited_for(floor_of: FloorOf) -> None:
    fake = FakeHost(host(**ROOMY, nova=True).config_xml)
    tools = enforcing(floor_of, fake, FakePlacement()).tools
    assert fake.balloon_kib == 2 * GIB
    await wait_settled(tools, UUID, started=True)
    assert fake.balloon_kib == 512 * MIB


def with_balloon_on_its_way() -> FakeHost:
    """Seen on a real guest: it takes seconds from the maximum to the current memory, and no event tells its end."""
    fake = host(**ROOMY, nova=True)
    fake.balloon_driver = "stuck"
    fake._move_balloon(2 * GIB - 10 * MIB)
    for after_s, mib in ((0.1, 1780), (0.7, 1470), (1.6, 1075), (2.4, 700), (3.1, 512)):
        fake.clock.at(after_s, lambda mib=mib: fake._move_balloon(mib * MIB))  # type: ignore[misc]
    return fake


@pytest.mark.parametrize("started", [True, False])
async def test_rb_07_a_balloon_that_is_on_its_way_is_waited_for(floor_of: FloorOf, started: bool) -> None:
    fake = with_balloon_on_its_way()
    await wait_settled(enforcing(floor_of, fake, FakePlacement()).tools, UUID, started=started)
    assert fake.balloon_kib == 512 * MIB


@pytest.mark.parametrize("books", [Size(2, 512), Size(2, 1024)], ids=["at the truth", "above it"])
async def test_rb_07_an_operation_writes_no_size_that_a_balloon_only_passes_through(
    floor_of: FloorOf, books: Size
) -> None:
    """As seen on a real guest that had just reset itself: the size written was wrong when it was read back."""
    placement = allocated(books.vcpus, books.memory_mib)
    record = await enforcing(floor_of, with_balloon_on_its_way(), placement).run(
        Target(Method.RAISE_CEILING, max_vcpus=6)
    )
    assert record.result is not None
    assert (record.result.outcome, placement.allocation.size) == (Outcome.PENDING_REBOOT, Size(2, 512))
    assert placement.calls == ([] if books == Size(2, 512) else [Size(2, 512)])


async def test_rb_07_a_guest_that_resets_itself_after_its_allocation_was_set_is_settled_once_more(
    floor_of: FloorOf,
) -> None:
    fake, placement = host(**ROOMY, nova=True), allocated(2, 1024)
    fake.balloon_driver = "stuck"

    def reset(name: str) -> None:
        if name == "set_allocation" and not placement.calls:
            fake._move_balloon(2 * GIB - 10 * MIB)
            for after_s, mib in ((0.4, 1500), (1.2, 900), (2.1, 512)):
                fake.clock.at(after_s, lambda mib=mib: fake._move_balloon(mib * MIB))  # type: ignore[misc]

    placement.before_call = reset
    record = await enforcing(floor_of, fake, placement).run(Target(Method.RAISE_CEILING, max_vcpus=6))
    assert record.result is not None
    assert (record.result.outcome, placement.allocation.size) == (Outcome.PENDING_REBOOT, Size(2, 512))


async def test_a_size_that_never_stands_still_ends_an_operation_all_the_same(floor_of: FloorOf) -> None:
    fake, placement = host(**ROOMY, nova=True), allocated(2, 1024)
    fake.balloon_driver = "stuck"

    def move(name: str) -> None:
        if name == "set_allocation":
            fake._move_balloon(fake.balloon_kib + 10 * MIB)

    placement.before_call = move
    record = await enforcing(floor_of, fake, placement).run(Target(Method.RAISE_CEILING, max_vcpus=6))
    assert record.result is not None
    assert record.result.outcome is Outcome.PARTIAL
    assert Reason.ALLOCATION_DIFFERS in [note.reason for note in record.result.reasons]
    assert len(placement.calls) == 3


async def test_a_balloon_on_its_way_does_not_make_a_refused_growth_a_wish(floor_of: FloorOf) -> None:
    """What fails before anything was changed is not wanted; a balloon that moves by itself is no change."""
    fake, placement = host(**ROOMY, nova=True), FakePlacement(errors={"set_allocation": DOWN})
    floor = enforcing(floor_of, fake, placement)
    fake.balloon_driver = "stuck"

    def move(name: str) -> None:
        if name == "set_allocation":
            fake._move_balloon(fake.balloon_kib + 10 * MIB)
            fake.clock.time_s += 2

    placement.before_call = move
    assert await floor.error(Target(Method.SCALE_DOMAIN, vcpus=4)) is DOWN
    assert mutations(fake) == []
    assert floor.journal.desired == {}


async def test_a_balloon_that_stands_still_elsewhere_is_not_waited_for(floor_of: FloorOf) -> None:
    fake = host(**ROOMY, nova=True)
    fake._move_balloon(GIB)
    fake.balloon_driver = "stuck"
    tools = enforcing(floor_of, fake, FakePlacement()).tools
    before_s = fake.clock.time_s
    await wait_settled(tools, UUID, started=True)
    assert fake.clock.time_s == before_s + 1


async def test_raising_a_ceiling_alone_writes_nothing(floor_of: FloorOf) -> None:
    placement = FakePlacement()
    result = await enforcing(floor_of, host(nova=True), placement).result(RAISE)
    assert result.outcome is Outcome.COMPLETE
    assert placement.calls == []
