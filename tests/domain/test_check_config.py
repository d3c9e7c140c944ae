"""One edit of the stored definition, and what forbids it."""

from __future__ import annotations

from typing import Any

import pytest

from hvsvc.domain.check_config import ConfigPlan, ConfigWish, plan_config
from hvsvc.domain.edit_definition import Edit
from hvsvc.domain.limits import HostLimits
from hvsvc.domain.read_definition import parse_definition
from hvsvc.domain.topology import Topology, TopologyMode, TopologyPolicy
from hvsvc.errors import InvalidArgumentError, Reason, UnimplementedError
from tests.fakes.worlds import GIB, HOST, MIB, domain_xml

LIMITS = HostLimits()
CORES = TopologyPolicy(TopologyMode.GROW_CORES)


def planned(wish: ConfigWish, limits: HostLimits = LIMITS, **xml: Any) -> ConfigPlan:
    return plan_config(parse_definition(domain_xml(**xml)), HOST, limits, wish)


def reasons(plan: ConfigPlan) -> list[Reason]:
    return [error.reason for error in plan.blockers]


@pytest.mark.parametrize(
    ("maximum", "below", "above"), [(383, "382", "384"), (7, "6", "8"), (1, "", "2"), (12, None, None)]
)
def test_topo_05_a_count_that_cannot_be_factored_is_refused_with_the_nearest(
    maximum: int, below: str | None, above: str | None
) -> None:
    roomy = HostLimits(vcpu_overcommit_ratio=100)
    wish = ConfigWish(maximum_vcpus=maximum, current_vcpus=1)
    plan = planned(wish, roomy, maximum=4, current=1, topology="2x1x2")
    if below is None:
        assert plan.topology == Topology(6, threads=2)
        assert plan.blockers == ()
        return
    error = plan.blockers[0]
    assert error.reason is Reason.TOPOLOGY_NOT_FACTORABLE
    assert (error.metadata["nearestBelow"], error.metadata["nearestAbove"]) == (below, above)
    assert plan.topology is None


def test_topo_06_a_change_of_memory_leaves_the_topology_alone() -> None:
    plan = planned(ConfigWish(memory_kib=GIB), maximum=240, current=8, topology="10x6x4")
    assert plan == ConfigPlan(Edit(memory_kib=GIB), None, (), ())
    misfit = planned(ConfigWish(memory_kib=GIB), maximum=4, current=2, topology="3x1x1")
    assert misfit == ConfigPlan(Edit(memory_kib=GIB), None, (), ())


def test_topo_07_the_policy_says_which_factor_follows() -> None:
    two: dict[str, Any] = {"maximum": 4, "current": 4, "topology": "2x2x1"}
    assert planned(ConfigWish(maximum_vcpus=8), **two).topology == Topology(4, cores=2)
    assert planned(ConfigWish(maximum_vcpus=8, topology=CORES), **two).topology == Topology(2, cores=4)
    exact = TopologyPolicy(TopologyMode.EXACT, Topology(1, cores=4, threads=2))
    assert planned(ConfigWish(maximum_vcpus=8, topology=exact), **two).topology == exact.exact
    assert reasons(planned(ConfigWish(maximum_vcpus=12, topology=exact), **two)) == [
        Reason.TOPOLOGY_NOT_FACTORABLE
    ]


def test_topo_07_exact_factors_of_the_same_maximum_are_an_edit_of_their_own() -> None:
    exact = TopologyPolicy(TopologyMode.EXACT, Topology(1, cores=4))
    plan = planned(ConfigWish(topology=exact), maximum=4, current=4)
    assert plan == ConfigPlan(Edit(topology=Topology(1, cores=4)), Topology(1, cores=4), (), ())


def test_topo_01_a_misfit_of_the_same_maximum_is_repaired_and_both_are_told() -> None:
    plan = planned(ConfigWish(maximum_vcpus=4), maximum=4, current=2, topology="1x1x2")
    assert plan.edit == Edit(topology=Topology(2, threads=2))
    (note,) = plan.warnings
    assert note.reason is Reason.TOPOLOGY_REPAIRED
    assert note.metadata == {"old": "1x1x1x1x2", "new": "2x1x1x1x2"}


def test_topo_08_a_maximum_below_current_is_refused_unless_both_are_asked() -> None:
    four: dict[str, Any] = {"maximum": 4, "current": 2}
    plan = planned(ConfigWish(maximum_vcpus=1), **four)
    (error,) = plan.blockers
    assert isinstance(error, InvalidArgumentError)
    assert (error.reason, error.field) == (Reason.MAXIMUM_BELOW_CURRENT, "max_vcpus")
    assert error.metadata == {"maximum": "1", "current": "2", "lowest": "2"}
    both = planned(ConfigWish(maximum_vcpus=1, current_vcpus=1), **four)
    assert both.blockers == ()
    assert both.edit == Edit(maximum_vcpus=1, topology=Topology(1), current_vcpus=1)


def test_xml_09_ceiling_and_boot_memory_are_two_numbers() -> None:
    plan = planned(ConfigWish(memory_kib=GIB))
    assert plan.edit == Edit(memory_kib=GIB)
    both = planned(ConfigWish(memory_kib=GIB, current_memory_kib=768 * MIB))
    assert both.edit == Edit(memory_kib=GIB, current_memory_kib=768 * MIB)


def test_xml_10_current_above_maximum_is_refused_never_clamped() -> None:
    lower = planned(ConfigWish(memory_kib=256 * MIB))
    (error,) = lower.blockers
    assert isinstance(error, InvalidArgumentError)
    assert (error.reason, error.field) == (Reason.MAXIMUM_BELOW_CURRENT, "max_memory_kib")
    assert error.metadata == {
        "maximumKib": str(256 * MIB),
        "currentKib": str(512 * MIB),
        "lowestKib": str(512 * MIB),
    }
    higher = planned(ConfigWish(current_memory_kib=GIB))
    (error,) = higher.blockers
    assert isinstance(error, InvalidArgumentError)
    assert error.field == "boot_memory_kib"
    assert error.metadata["highestKib"] == str(512 * MIB)
    assert "1 GiB" in error.message
    assert "512 MiB" in error.message
    (error,) = planned(ConfigWish(current_vcpus=3)).blockers
    assert isinstance(error, InvalidArgumentError)
    assert (error.field, error.metadata["highest"]) == ("boot_vcpus", "2")


def test_xml_14_what_is_there_already_is_no_edit_and_no_refusal() -> None:
    wish = ConfigWish(maximum_vcpus=2, memory_kib=512 * MIB, current_vcpus=2, current_memory_kib=512 * MIB)
    assert planned(wish) == ConfigPlan(None, Topology(2), (), ())
    tiny = HostLimits(vcpu_overcommit_ratio=0.1, memory_overcommit_ratio=0.001)
    assert planned(wish, tiny).blockers == ()
    arm = planned(ConfigWish(maximum_vcpus=4), maximum=4, current=2, arch="aarch64", machine="virt")
    assert arm == ConfigPlan(None, Topology(4), (), ())


def test_mem_08_a_size_within_the_same_mib_is_no_edit() -> None:
    odd: dict[str, Any] = {"memory_kib": 976563}
    assert planned(ConfigWish(memory_kib=976896), **odd).edit is None
    lower: dict[str, Any] = {"memory_kib": 976563, "current_memory_kib": 512 * MIB}
    plan = planned(ConfigWish(current_memory_kib=976896), **lower)
    assert plan == ConfigPlan(Edit(current_memory_kib=976563), None, (), ())


@pytest.mark.parametrize("arch", ["aarch64", "riscv64", ""])
def test_cpu_09_no_room_above_current_where_vcpus_cannot_be_added(arch: str) -> None:
    plan = planned(ConfigWish(maximum_vcpus=8), arch=arch)
    (error,) = plan.blockers
    assert isinstance(error, UnimplementedError)
    assert error.metadata == {"arch": arch, "maximum": "8", "current": "2"}
    assert planned(ConfigWish(maximum_vcpus=8, current_vcpus=8), arch=arch).blockers == ()
    assert planned(ConfigWish(memory_kib=GIB), arch=arch).blockers == ()


def test_without_acpi_there_is_no_use_in_room_above_current() -> None:
    assert reasons(planned(ConfigWish(maximum_vcpus=8), acpi=False)) == [Reason.NO_ACPI]
    assert planned(ConfigWish(maximum_vcpus=8), acpi=False, arch="s390x").blockers == ()


@pytest.mark.parametrize("balloon", ["none", ""])
def test_mem_02_without_a_balloon_the_boot_memory_must_be_the_maximum(balloon: str) -> None:
    plan = planned(ConfigWish(memory_kib=GIB), balloon=balloon)
    assert reasons(plan) == [Reason.NO_BALLOON]
    assert plan.blockers[0].metadata == {"askedKib": str(GIB), "currentKib": str(512 * MIB)}
    assert planned(ConfigWish(memory_kib=GIB, current_memory_kib=GIB), balloon=balloon).blockers == ()
    assert planned(ConfigWish(maximum_vcpus=4), balloon=balloon).blockers == ()


@pytest.mark.parametrize("stored_kib", [512 * MIB, 256 * MIB])
def test_mem_02_without_a_balloon_no_less_than_the_maximum_can_be_asked_for_the_next_start(
    stored_kib: int,
) -> None:
    """It was asked for beside another ceiling, stored already, and PARTIAL after the reboot."""
    # 976563 KiB are 954 MiB once libvirt rounds them up
    numbers: dict[str, Any] = {"memory_kib": 976563, "current_memory_kib": stored_kib, "balloon": "none"}
    plan = planned(ConfigWish(maximum_vcpus=4, current_memory_kib=256 * MIB), **numbers)
    assert reasons(plan) == [Reason.NO_BALLOON]
    assert planned(ConfigWish(maximum_vcpus=4, current_memory_kib=954 * MIB), **numbers).blockers == ()
    assert planned(ConfigWish(maximum_vcpus=4), **numbers).blockers == ()


def test_mem_10_only_a_memory_maximum_that_grows_is_measured_by_the_host() -> None:
    tight = HostLimits(memory_overcommit_ratio=0.01)
    assert reasons(planned(ConfigWish(memory_kib=2 * GIB), tight)) == [Reason.ABOVE_HOST_CAPACITY]
    big: dict[str, Any] = {"memory_kib": 4 * GIB, "current_memory_kib": GIB}
    assert planned(ConfigWish(memory_kib=2 * GIB), tight, **big).blockers == ()


def test_the_next_start_is_never_given_less_memory_than_a_guest_boots_with() -> None:
    plan = planned(ConfigWish(current_memory_kib=MIB))
    assert reasons(plan) == [Reason.BELOW_MEMORY_FLOOR]
    assert plan.blockers[0].metadata == {"askedKib": str(MIB), "lowestKib": str(128 * MIB)}
    both = planned(ConfigWish(memory_kib=64 * MIB, current_memory_kib=64 * MIB))
    assert reasons(both) == [Reason.BELOW_MEMORY_FLOOR]
    assert planned(ConfigWish(current_memory_kib=128 * MIB)).blockers == ()
    assert planned(ConfigWish(current_memory_kib=MIB), HostLimits(memory_floor_reserve_kib=0)).blockers == ()
    # one that is that small already may stay so, or grow
    small: dict[str, Any] = {"current_memory_kib": 64 * MIB}
    assert planned(ConfigWish(current_memory_kib=64 * MIB), **small).blockers == ()
    assert planned(ConfigWish(current_memory_kib=96 * MIB), **small).blockers == ()
    assert reasons(planned(ConfigWish(current_memory_kib=63 * MIB), **small)) == [Reason.BELOW_MEMORY_FLOOR]


def test_room_for_memory_devices_grows_with_the_maximum() -> None:
    room = "<maxMemory slots='4' unit='KiB'>1048576</maxMemory>"
    plan = planned(ConfigWish(memory_kib=2 * GIB), extra=room)
    assert plan == ConfigPlan(Edit(memory_kib=2 * GIB), None, (), ())


def test_every_refusal_is_told_at_once() -> None:
    wish = ConfigWish(maximum_vcpus=401, memory_kib=1000 * GIB, current_vcpus=500)
    plan = planned(wish, maximum=4, current=2, topology="2x1x2", acpi=False)
    assert reasons(plan) == [
        Reason.TOPOLOGY_NOT_FACTORABLE,
        Reason.ABOVE_HOST_CAPACITY,
        Reason.ABOVE_MACHINE_LIMIT,
        Reason.ABOVE_HYPERVISOR_LIMIT,
        Reason.NEEDS_EXTENDED_INTERRUPTS,
        Reason.MAXIMUM_BELOW_CURRENT,
        Reason.ABOVE_HOST_CAPACITY,
    ]
