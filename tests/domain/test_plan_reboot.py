"""A reboot asked for as such brings back the recorded size too."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hvsvc.domain.plan import plan_change
from hvsvc.domain.plan_reboot import find_growth, plan_reboot, warn_unstored
from hvsvc.domain.steps import StepKind
from hvsvc.domain.target import Method, Target
from hvsvc.errors import FailedPreconditionError, Reason
from tests.domain.test_drift import ASKED, DESIRED, FLAVOR
from tests.fakes.worlds import GIB, MIB, facts, world

REBOOT = Target(Method.REBOOT_DOMAIN)
REAPPLIED = ASKED | {"current": 2, "current_memory_kib": 512 * MIB}
PLAIN = [StepKind.REBOOT, StepKind.WAIT_GUEST]


def test_the_recorded_size_follows_the_reboot() -> None:
    plan = plan_reboot(world(facts(REAPPLIED, FLAVOR)), REBOOT, DESIRED)
    assert [step.kind for step in plan.steps] == [
        *PLAIN,
        StepKind.SET_MEMORY_LIVE,
        StepKind.SET_VCPUS_LIVE,
        StepKind.ONLINE_GUEST_CPUS,
        StepKind.DEFINE_CONFIG,
    ]
    assert (plan.blockers, plan.target) == ((), REBOOT)
    assert plan.growth == Target(Method.SCALE_DOMAIN, vcpus=4, memory_kib=GIB)


def test_without_a_record_or_a_need_it_is_a_reboot_alone() -> None:
    for domain, desired in (
        (facts(REAPPLIED), None),
        (facts(ASKED), DESIRED),
        (facts(REAPPLIED), replace(DESIRED, flavor_vcpus=4)),
    ):
        plan = plan_reboot(world(domain), REBOOT, desired)
        assert [step.kind for step in plan.steps] == PLAIN
        assert (plan.growth, plan.warnings) == (None, ())


def test_growth_ends_at_the_stored_ceiling() -> None:
    growth = find_growth(DESIRED, facts(REAPPLIED | {"maximum": 3, "memory_kib": 768 * MIB}))
    assert growth is not None
    assert (growth.vcpus, growth.memory_kib) == (3, 768 * MIB)


@pytest.mark.parametrize("live", [FLAVOR, ASKED], ids=["gone from the running domain too", "still runs"])
def test_a_reboot_that_brings_no_lost_ceiling_back_is_refused(live: dict[str, int]) -> None:
    """Seen by an operator: it took live vCPUs from a running domain, and its outcome was COMPLETE."""
    (refused,) = plan_reboot(world(facts(FLAVOR, live)), REBOOT, DESIRED).blockers
    assert (type(refused), refused.reason) == (FailedPreconditionError, Reason.CEILING_NOT_STORED)
    assert "stored maximum vCPUs: 8 asked, 2 found" in refused.message
    assert "hvctl forget" in refused.message


def test_a_change_that_leaves_the_recorded_ceiling_lost_says_so() -> None:
    lost = world(facts(FLAVOR, FLAVOR))
    raised = plan_change(lost, Target(Method.RAISE_CEILING, max_vcpus=8))
    plan = warn_unstored(DESIRED, lost.domain, raised)
    assert [note.reason for note in plan.warnings[len(raised.warnings) :]] == [Reason.CEILING_NOT_STORED]
    assert plan.warnings[-1].metadata["differences"].startswith("stored maximum memory")
    assert warn_unstored(replace(DESIRED, max_memory_kib=None), lost.domain, raised) is raised
    resized = replace(DESIRED, flavor_vcpus=4)
    assert warn_unstored(resized, lost.domain, raised) is raised, "a resize supersedes the record"


def test_what_forbids_the_growth_does_not_refuse_the_reboot() -> None:
    here = world(facts(REAPPLIED, FLAVOR))
    full = replace(here, host=replace(here.host, others_vcpus=8 * 16))
    plan = plan_reboot(full, REBOOT, DESIRED)
    assert ([step.kind for step in plan.steps], plan.blockers) == (PLAIN, ())
    assert Reason.ABOVE_HOST_CAPACITY in [note.reason for note in plan.warnings]


def test_what_forbids_the_reboot_refuses_it() -> None:
    locked = replace(world(facts(REAPPLIED, FLAVOR)), server=None)
    assert plan_reboot(locked, REBOOT, DESIRED).blockers
