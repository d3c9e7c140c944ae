"""A reboot asked for as such brings back the recorded size too."""

from __future__ import annotations

from dataclasses import replace

from hvsvc.domain.plan_reboot import find_growth, plan_reboot
from hvsvc.domain.steps import StepKind
from hvsvc.domain.target import Method, Target
from hvsvc.errors import Reason
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


def test_a_ceiling_that_is_lost_is_told_before_the_reboot() -> None:
    plan = plan_reboot(world(facts(FLAVOR)), REBOOT, DESIRED)
    assert [step.kind for step in plan.steps] == PLAIN
    assert [note.reason for note in plan.warnings] == [Reason.CEILING_LOST]
    assert "stored maximum vCPUs: 8 asked, 2 found" in plan.warnings[0].message


def test_what_forbids_the_growth_does_not_refuse_the_reboot() -> None:
    here = world(facts(REAPPLIED, FLAVOR))
    full = replace(here, host=replace(here.host, others_vcpus=8 * 16))
    plan = plan_reboot(full, REBOOT, DESIRED)
    assert ([step.kind for step in plan.steps], plan.blockers) == (PLAIN, ())
    assert Reason.ABOVE_HOST_CAPACITY in [note.reason for note in plan.warnings]


def test_what_forbids_the_reboot_refuses_it() -> None:
    locked = replace(world(facts(REAPPLIED, FLAVOR)), server=None)
    assert plan_reboot(locked, REBOOT, DESIRED).blockers
