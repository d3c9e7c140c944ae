"""The truth of a domain as an allocation, and where a plan sets it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hvsvc.domain.allocation import AllocationFacts, PlacementPolicy, Size
from hvsvc.domain.facts import Balloon, DomainFacts
from hvsvc.domain.outcome import Outcome
from hvsvc.domain.plan import Plan, plan_change
from hvsvc.domain.plan_allocation import check_settled, describe_allocation, true_size, verify_allocation
from hvsvc.domain.report import describe
from hvsvc.domain.steps import StepKind
from hvsvc.domain.target import Affect, Method, RebootMode, Target
from hvsvc.domain.verify import verify_target
from hvsvc.domain.world import World
from hvsvc.errors import NotPermittedError, Reason, UnavailableError
from tests.domain.test_plan_property import targets, worlds
from tests.fakes.placement import PROVIDER, ROOM, SMALL
from tests.fakes.simulated import applied
from tests.fakes.targets import GROW, RAISE, ROOMY
from tests.fakes.worlds import GIB, MIB, SERVER, facts, world

ROOMY_NOVA = {**ROOMY, "nova": True}
DOWN = UnavailableError(Reason.PLACEMENT_UNAVAILABLE, "it is down")


def allocated(vcpus: int, memory_mib: int) -> AllocationFacts:
    return AllocationFacts(Size(vcpus, memory_mib), PROVIDER)


def enforced(domain: DomainFacts, **changes: Any) -> World:
    """A world under ENFORCE whose Placement has the flavor's 2 vCPUs and 512 MiB allocated."""
    seen = replace(domain, allocation=SMALL)
    return world(replace(seen, **changes), placement=PlacementPolicy.ENFORCE, room=ROOM)


def sets(plan: Plan) -> list[tuple[int, Size | None]]:
    """Where the plan sets the allocation, and to what."""
    return [
        (index, step.allocation)
        for index, step in enumerate(plan.steps)
        if step.kind is StepKind.SET_ALLOCATION
    ]


def reasons(plan: Plan) -> list[Reason]:
    return [blocker.reason for blocker in plan.blockers]


# ---------------------------------------------------------------- the truth


def test_the_truth_is_the_largest_of_what_runs_and_what_is_stored() -> None:
    stored, live = ROOMY_NOVA | {"current": 3}, ROOMY_NOVA | {"current": 6}
    assert true_size(facts(stored, live)) == Size(6, 512)
    assert true_size(facts(live, stored)) == Size(6, 512)
    assert true_size(facts(ROOMY_NOVA | {"current_memory_kib": GIB}, ROOMY_NOVA)) == Size(2, 1024)


def test_the_truth_is_never_below_the_flavor() -> None:
    assert true_size(facts(ROOMY_NOVA | {"current": 1, "current_memory_kib": 300 * MIB})) == Size(2, 512)
    assert true_size(facts(ROOMY_NOVA | {"current": 1}, running=False)) == Size(2, 512)


def test_memory_that_runs_is_the_balloon_and_all_of_it_without_one() -> None:
    grown = replace(facts(ROOMY_NOVA), balloon=Balloon(700 * MIB + 1))
    assert true_size(grown) == Size(2, 701)
    assert true_size(facts(ROOMY_NOVA | {"balloon": "none"})) == Size(2, 2048)


def test_a_ceiling_alone_is_not_allocated() -> None:
    assert true_size(facts(ROOMY_NOVA)) == Size(2, 512)


# ---------------------------------------------------------------- the plan


def test_growth_is_allocated_before_anything_else() -> None:
    plan = plan_change(enforced(facts(ROOMY_NOVA)), GROW)
    assert plan.blockers == ()
    assert sets(plan) == [(0, Size(8, 1024))]
    assert plan.steps[0].why.startswith("allocation 2 vCPUs and 512 MiB to 8 vCPUs and 1024 MiB")
    assert len(plan.steps) > 3


def test_what_is_allocated_already_is_not_set_again() -> None:
    assert sets(plan_change(enforced(facts(ROOMY_NOVA), allocation=allocated(8, 1024)), GROW)) == []


def test_only_what_is_short_is_raised_and_the_surplus_given_back_at_the_end() -> None:
    plan = plan_change(enforced(facts(ROOMY_NOVA), allocation=allocated(4, 4096)), GROW)
    assert sets(plan) == [(0, Size(8, 4096)), (len(plan.steps) - 1, None)]
    assert all(not step.settles for step in plan.certain)


def test_boot_values_of_a_raised_ceiling_count_for_what_they_start() -> None:
    target = replace(RAISE, boot_vcpus=4, boot_memory_kib=GIB)
    assert sets(plan_change(enforced(facts({"nova": True})), target)) == [(0, Size(4, 1024))]
    assert sets(plan_change(enforced(facts({"nova": True})), RAISE)) == []


def test_a_job_with_a_reboot_is_allocated_before_the_reboot() -> None:
    plan = plan_change(enforced(facts({"nova": True})), replace(GROW, reboot=RebootMode.SOFT))
    assert sets(plan)[0] == (0, Size(8, 1024))
    assert plan.certain[0].allocation == Size(8, 1024)
    assert plan.certain[-1].kind is StepKind.WAIT_GUEST


def test_stored_values_alone_are_allocated_too() -> None:
    target = Target(Method.SET_VCPUS, vcpus=4, affect=Affect.CONFIG)
    assert sets(plan_change(enforced(facts(ROOMY_NOVA)), target)) == [(0, Size(4, 512))]


def test_a_shrink_is_given_back_at_the_end() -> None:
    big = ROOMY_NOVA | {"current_memory_kib": GIB}
    shrink = Target(Method.SET_MEMORY, memory_kib=768 * MIB)
    plan = plan_change(enforced(facts(big), allocation=allocated(2, 1024)), shrink)
    assert sets(plan) == [(len(plan.steps) - 1, None)]
    assert plan.steps[-1].why.startswith("allocation 2 vCPUs and 1024 MiB to 2 vCPUs and 768 MiB")
    assert plan.certain == plan.steps[:-1]


def test_placements_refusals_are_blockers_of_the_plan() -> None:
    room = replace(ROOM, vcpu=replace(ROOM.vcpu, max_unit=4))
    plan = plan_change(replace(enforced(facts(ROOMY_NOVA)), room=room), GROW)
    assert reasons(plan) == [Reason.ALLOCATION_ABOVE_MAX_UNIT]
    unknown = plan_change(replace(enforced(facts(ROOMY_NOVA)), room=None), GROW)
    assert reasons(unknown) == [], "Placement decides itself when the allocation is written"


def test_an_allocation_is_not_touched_while_nobody_knows_what_nova_does() -> None:
    gone = UnavailableError(Reason.NOVA_UNAVAILABLE, "down")
    blind = replace(enforced(facts(ROOMY_NOVA)), server=None, server_error=gone)
    assert plan_change(blind, GROW).blockers == (gone,)
    covered = replace(blind, domain=replace(blind.domain, allocation=allocated(8, 1024)))
    assert plan_change(covered, GROW).blockers == ()


def test_a_growth_beyond_the_ceiling_is_told_first() -> None:
    room = replace(ROOM, vcpu=replace(ROOM.vcpu, max_unit=4))
    plan = plan_change(replace(enforced(facts({"nova": True})), room=room), GROW)
    assert reasons(plan)[0] is Reason.REBOOT_REQUIRED


@pytest.mark.parametrize(
    "error", [DOWN, NotPermittedError(Reason.PLACEMENT_NOT_PERMITTED, "not yours")], ids=["down", "403"]
)
def test_what_cannot_be_asked_stops_a_growth_and_warns_of_anything_else(error: UnavailableError) -> None:
    blind = enforced(facts(ROOMY_NOVA), allocation=None, allocation_error=error)
    assert plan_change(blind, GROW).blockers == (error,)
    lower = plan_change(blind, Target(Method.SET_MEMORY, memory_kib=400 * MIB))
    assert lower.blockers == ()
    assert [note.reason for note in lower.warnings] == [error.reason]


def test_report_only_warns() -> None:
    reporting = replace(enforced(facts(ROOMY_NOVA)), placement=PlacementPolicy.REPORT)
    plan = plan_change(reporting, GROW)
    assert (sets(plan), plan.blockers) == ([], ())
    assert [note.reason for note in plan.warnings] == [Reason.ALLOCATION_DIFFERS]
    assert plan.warnings[0].metadata["vcpus"] == "8"
    fits = replace(reporting, domain=replace(reporting.domain, allocation=allocated(8, 1024)))
    assert plan_change(fits, GROW).warnings == ()
    blind = replace(reporting, domain=replace(reporting.domain, allocation=None, allocation_error=DOWN))
    assert [note.reason for note in plan_change(blind, GROW).warnings] == [Reason.PLACEMENT_UNAVAILABLE]


def test_off_and_a_domain_that_is_not_novas_say_nothing() -> None:
    off = replace(enforced(facts(ROOMY_NOVA)), placement=PlacementPolicy.OFF)
    assert (sets(plan_change(off, GROW)), plan_change(off, GROW).warnings) == ([], ())
    plain = enforced(facts(ROOMY), allocation=None)
    assert (sets(plan_change(plain, GROW)), plan_change(plain, GROW).blockers) == ([], ())


def test_nothing_to_do_sets_nothing() -> None:
    assert plan_change(enforced(facts(ROOMY_NOVA)), Target(Method.SET_VCPUS, vcpus=2)).steps == ()


# ---------------------------------------------------------------- verdict and report


def test_complete_needs_the_allocation_read_back() -> None:
    target = Target(Method.SET_VCPUS, vcpus=4)
    grown = facts(ROOMY_NOVA | {"current": 4})
    assert verify_target(enforced(grown, allocation=allocated(4, 512)), target, rebooted=False).outcome is (
        Outcome.COMPLETE
    )
    short = verify_target(enforced(grown), target, rebooted=False)
    assert (short.outcome, short.reasons[0].reason) == (Outcome.PARTIAL, Reason.ALLOCATION_DIFFERS)
    blind = verify_target(enforced(grown, allocation=None, allocation_error=DOWN), target, rebooted=False)
    assert (blind.outcome, blind.reasons[0].reason) == (Outcome.UNCONFIRMED, Reason.PLACEMENT_UNAVAILABLE)
    report = replace(enforced(grown), placement=PlacementPolicy.REPORT)
    assert list(verify_allocation(report)) == []


def test_the_report_names_both_sizes() -> None:
    domain = replace(facts(ROOMY_NOVA | {"current": 4}), allocation=SMALL)
    (note,) = describe_allocation(domain)
    assert note.reason is Reason.ALLOCATION_DIFFERS
    assert note.metadata["allocatedVcpus"] == "2"
    assert note.metadata["vcpus"] == "4"
    assert "may place other servers" in note.message
    (surplus,) = describe_allocation(replace(domain, allocation=allocated(8, 512)))
    assert "keeps for it what it does not use" in surplus.message
    assert list(describe_allocation(replace(domain, allocation=allocated(4, 512)))) == []
    silent = replace(domain, allocation=None, allocation_error=DOWN)
    assert Reason.PLACEMENT_UNAVAILABLE in [note.reason for note in describe(silent).conditions]


@pytest.mark.parametrize(
    ("status", "task", "settled"),
    [
        ("ACTIVE", None, True),
        ("SHUTOFF", None, True),
        ("ACTIVE", "resize_prep", False),
        ("VERIFY_RESIZE", None, False),
        ("RESCUE", None, False),
    ],
)
def test_nova_at_work_is_not_disturbed(status: str, task: str | None, settled: bool) -> None:
    busy = replace(enforced(facts(ROOMY_NOVA)), server=replace(SERVER, status=status, task_state=task))
    assert (list(check_settled(busy)) == []) is settled


def test_a_server_nova_cannot_tell_of_is_left_alone() -> None:
    gone = UnavailableError(Reason.NOVA_UNAVAILABLE, "down")
    assert list(check_settled(replace(enforced(facts(ROOMY_NOVA)), server=None, server_error=gone))) == [gone]


# ---------------------------------------------------------------- whatever the domain and the target


@given(worlds(hostile=False), targets(hostile=False), st.integers(0, 12), st.integers(0, 4096))
@settings(max_examples=300, deadline=None)
def test_a_growing_domain_never_has_more_than_is_allocated(
    there: World, target: Target, vcpus: int, memory_mib: int
) -> None:
    domain = replace(there.domain, allocation=allocated(vcpus, memory_mib))
    there = replace(there, domain=domain, placement=PlacementPolicy.ENFORCE)
    plan = plan_change(there, target)
    if plan.blockers or not plan.steps or domain.nova is None:
        assert sets(plan) == [] or plan.blockers
        return
    changes = tuple(step for step in plan.steps if step.kind is not StepKind.SET_ALLOCATION)
    on_the_way = [true_size(applied(there, changes[:count]).domain) for count in range(len(changes) + 1)]
    raised = plan.steps[0].allocation
    if raised is None:
        now = Size(vcpus, memory_mib)
        grows = any(not on_the_way[0].covers(size) for size in on_the_way)
        assert not grows or all(now.covers(size) for size in on_the_way)
    else:
        assert all(raised.covers(size) for size in on_the_way)
    at_last = raised or Size(vcpus, memory_mib)
    assert plan.steps[-1].settles == (at_last != on_the_way[-1])
