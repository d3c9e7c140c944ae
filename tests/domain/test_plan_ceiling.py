"""The define that sets maxima, topology and boot values together."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hvsvc.domain.plan import plan_change
from hvsvc.domain.plan_ceiling import CeilingPart, plan_ceiling
from hvsvc.domain.read_definition import parse_definition
from hvsvc.domain.steps import Effect, Part, StepKind
from hvsvc.domain.target import Method, RebootMode, Target
from hvsvc.domain.topology import Topology, TopologyMode, TopologyPolicy
from hvsvc.errors import Reason
from tests.fakes.worlds import GIB, MIB, facts, world

RAISE = Target(Method.RAISE_CEILING, max_vcpus=8, max_memory_kib=2 * GIB)
SCALE = Target(Method.SCALE_DOMAIN, vcpus=8, memory_kib=GIB)
ROOMY: dict[str, Any] = {"maximum": 8, "current": 2, "memory_kib": 2 * GIB, "current_memory_kib": 512 * MIB}


def part(target: Target, config: dict[str, Any], live: dict[str, Any] | None = None) -> CeilingPart:
    return plan_ceiling(world(facts(config, live=live)), target)


def numbers(found: CeilingPart) -> tuple[int, int, int, int]:
    assert found.after is not None
    after = found.after.definition
    return after.maximum_vcpus, after.current_vcpus, after.memory_kib, after.current_memory_kib


def test_topo_02_one_define_sets_maximum_topology_and_memory() -> None:
    found = part(RAISE, {})
    (step,) = found.part.steps
    assert (step.kind, step.effect) == (StepKind.DEFINE_CONFIG, Effect.REBOOT)
    assert step.why == "maximum vCPUs 2 to 8, maximum memory 512 MiB to 2 GiB"
    assert numbers(found) == (8, 2, 2 * GIB, 512 * MIB)
    assert found.topology == Topology(8)
    assert found.waits_for_reboot
    assert found.live_ceiling == "2 vCPUs and 512 MiB"


def test_a_step_says_only_what_changes() -> None:
    assert part(RAISE, {"maximum": 8, "current": 2}).part.steps[0].why == "maximum memory 512 MiB to 2 GiB"


def test_xml_09_boot_values_go_into_the_same_define() -> None:
    found = part(replace(RAISE, boot_vcpus=4, boot_memory_kib=GIB), {})
    assert len(found.part.steps) == 1
    assert numbers(found) == (8, 4, 2 * GIB, GIB)


def test_topo_08_lowering_both_in_one_request() -> None:
    found = part(Target(Method.RAISE_CEILING, max_vcpus=1, boot_vcpus=1), {"maximum": 4, "current": 2})
    assert found.part.blockers == ()
    assert numbers(found)[:2] == (1, 1)
    assert found.part.steps[0].why == "maximum vCPUs 4 to 1, boot vCPUs 2 to 1"
    refused = part(Target(Method.RAISE_CEILING, max_vcpus=1), {"maximum": 4, "current": 2})
    assert [error.reason for error in refused.part.blockers] == [Reason.MAXIMUM_BELOW_CURRENT]
    assert refused.part.steps[0].xml is None


def test_rb_09_a_second_raise_keeps_the_first_and_still_waits() -> None:
    found = part(Target(Method.RAISE_CEILING, max_memory_kib=2 * GIB), {"maximum": 8, "current": 2}, live={})
    assert numbers(found) == (8, 2, 2 * GIB, 512 * MIB)
    pending = part(RAISE, ROOMY, live={})
    assert pending.part == Part()
    assert pending.waits_for_reboot
    assert pending.why == "maximum vCPUs 2 to 8, maximum memory 512 MiB to 2 GiB"


def test_a_ceiling_in_effect_does_not_wait_for_another_one() -> None:
    vcpus = Target(Method.RAISE_CEILING, max_vcpus=2)
    assert not part(vcpus, {**ROOMY, "maximum": 2}, live={}).waits_for_reboot


@pytest.mark.parametrize("reboot", list(RebootMode))
def test_topo_07_a_topology_alone_rewrites_the_same_maximum(reboot: RebootMode) -> None:
    exact = TopologyPolicy(TopologyMode.EXACT, Topology(1, cores=4))
    four = {"maximum": 4, "current": 4}
    found = part(Target(Method.RAISE_CEILING, topology=exact, reboot=reboot), four)
    assert found.after is not None
    assert found.after.definition.topology == exact.exact
    assert found.part.steps[0].why == "another topology"
    assert found.waits_for_reboot
    stored = {**four, "topology": "1x4x1"}
    pending = part(Target(Method.RAISE_CEILING, topology=exact, reboot=reboot), stored, live=four)
    assert pending.part.steps == ()
    assert pending.waits_for_reboot
    cores = Target(Method.RAISE_CEILING, topology=TopologyPolicy(TopologyMode.GROW_CORES))
    flat = part(cores, {**four, "topology": ""})
    assert flat.after is not None
    assert flat.after.definition.topology == Topology(1, cores=4)
    assert part(cores, four).part.steps == ()


def test_topo_07_exact_factors_count_for_scale_too() -> None:
    exact = TopologyPolicy(TopologyMode.EXACT, Topology(2, cores=4))
    there = {**ROOMY, "current": 8, "current_memory_kib": GIB}
    plan = plan_change(world(facts(there)), replace(SCALE, topology=exact))
    assert [error.reason for error in plan.blockers] == [Reason.REBOOT_REQUIRED]
    plan = plan_change(world(facts(there)), replace(SCALE, topology=exact, reboot=RebootMode.SOFT))
    assert [step.kind for step in plan.steps] == [
        StepKind.DEFINE_CONFIG,
        StepKind.REBOOT,
        StepKind.WAIT_GUEST,
    ]
    done = facts({**there, "topology": "2x4x1"})
    assert plan_change(world(done), replace(SCALE, topology=exact)).steps == ()


def test_scale_raises_as_far_as_its_values_need_and_no_further() -> None:
    assert numbers(part(SCALE, {})) == (8, 2, GIB, 512 * MIB)
    assert numbers(part(replace(SCALE, max_vcpus=12), {}))[0] == 12
    assert part(SCALE, ROOMY).part == Part()


def test_scale_never_lowers_a_ceiling() -> None:
    least = Target(Method.SCALE_DOMAIN, vcpus=2, max_vcpus=4, max_memory_kib=GIB)
    found = part(least, ROOMY)
    assert found.part == Part()
    assert not found.waits_for_reboot
    done = facts({**ROOMY, "current": 8, "current_memory_kib": GIB})
    assert plan_change(world(done), replace(SCALE, max_vcpus=4)).steps == ()


def test_scale_within_the_live_ceiling_never_waits_for_one_stored_above_or_below() -> None:
    above = part(replace(SCALE, max_vcpus=8), {**ROOMY, "maximum": 16, "memory_kib": 4 * GIB}, live=ROOMY)
    assert above.part == Part()
    assert not above.waits_for_reboot
    below = part(SCALE, {**ROOMY, "maximum": 4}, live=ROOMY)
    assert numbers(below)[0] == 8
    assert not below.waits_for_reboot


def test_a_ceiling_refused_is_not_refused_a_second_time_by_what_follows() -> None:
    plan = plan_change(
        world(facts()), Target(Method.SCALE_DOMAIN, vcpus=1000, memory_kib=GIB, reboot=RebootMode.SOFT)
    )
    found = [error.reason for error in plan.blockers]
    assert Reason.ABOVE_MACHINE_LIMIT in found
    assert Reason.ABOVE_CONFIG_CEILING not in found


def test_mem_08_a_maximum_within_the_same_mib_is_there_already() -> None:
    odd = {"memory_kib": 976563}
    started = {"memory_kib": 976896}
    target = Target(Method.RAISE_CEILING, max_memory_kib=976896)
    found = part(target, odd, live=started)
    assert found.part == Part()
    assert not found.waits_for_reboot


def test_a_domain_that_is_off_needs_no_reboot() -> None:
    found = plan_ceiling(world(facts(running=False)), RAISE)
    assert numbers(found) == (8, 2, 2 * GIB, 512 * MIB)
    assert not found.waits_for_reboot


def test_what_the_edit_refuses_is_a_blocker() -> None:
    odd = "<cputune><vcpupin vcpu='0' cpuset='1'/></cputune>"
    found = part(RAISE, {"extra": odd})
    assert [error.reason for error in found.part.blockers] == [Reason.PINNED]
    limit = f"<memtune><hard_limit unit='KiB'>{GIB}</hard_limit></memtune>"
    found = part(RAISE, {"extra": limit})
    assert [error.reason for error in found.part.blockers] == [Reason.UNSUPPORTED_DEFINITION]
    assert found.after is not None
    assert found.after.definition.memory_kib == 512 * MIB


def test_the_plan_holds_the_whole_definition_it_writes() -> None:
    found = part(RAISE, {"nova": True})
    xml = found.part.steps[0].xml
    assert xml is not None
    assert found.after is not None
    assert parse_definition(xml) == found.after.definition
    assert "nova:instance" in xml
