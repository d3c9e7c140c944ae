"""The highest values that would work."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hvsvc.domain.facts import Balloon
from hvsvc.domain.limits import (
    HostLimits,
    check_growth_memory,
    check_growth_vcpus,
    check_max_memory,
    check_max_vcpus,
    memory_floor_kib,
    round_to_mib,
    same_at_start,
)
from hvsvc.domain.read_definition import parse_definition
from hvsvc.domain.topology import Topology, TopologyMode, TopologyPolicy
from hvsvc.errors import Reason
from tests.fakes.worlds import GIB, HOST, MIB, domain_xml

ROOMY = HostLimits(vcpu_overcommit_ratio=100)
SOCKETS = TopologyPolicy()


def found(
    maximum: int,
    *,
    topology: str = "2x1x1",
    policy: TopologyPolicy = SOCKETS,
    machine: int | None = 288,
    hypervisor: int | None = None,
    limits: HostLimits = ROOMY,
    eim: bool = False,
    now: int = 2,
    **xml: str,
) -> list[tuple[Reason, str, str]]:
    iommu = "<iommu model='intel'><driver intremap='on' eim='on'/></iommu>" if eim else ""
    definition = parse_definition(
        domain_xml(maximum=now, current=1, topology=topology, devices=iommu, **xml)  # type: ignore[arg-type]
    )
    host = replace(HOST, machine_max_vcpus=machine, hypervisor_max_vcpus=hypervisor)
    errors = list(check_max_vcpus(definition, host, limits, maximum, policy))
    assert all(f"a maximum of {maximum} vCPUs was asked" in error.message for error in errors)
    return [(error.reason, error.metadata["limit"], error.metadata["highest"]) for error in errors]


@pytest.mark.parametrize(
    ("maximum", "eim", "machine", "expected"),
    [
        (255, False, 288, []),
        (256, False, 288, [(Reason.NEEDS_EXTENDED_INTERRUPTS, "255", "255")]),
        (256, True, 288, []),
        (288, True, 288, []),
        (300, True, 288, [(Reason.ABOVE_MACHINE_LIMIT, "288", "288")]),
        (
            300,
            False,
            288,
            [(Reason.ABOVE_MACHINE_LIMIT, "288", "255"), (Reason.NEEDS_EXTENDED_INTERRUPTS, "255", "255")],
        ),
        (256, True, 255, [(Reason.ABOVE_MACHINE_LIMIT, "255", "255")]),
        (700, True, None, []),
    ],
)
def test_topo_11_each_limit_answers_with_the_highest_that_works(
    maximum: int, eim: bool, machine: int | None, expected: list[tuple[Reason, str, str]]
) -> None:
    assert found(maximum, eim=eim, machine=machine) == expected


def test_topo_11_the_interrupt_rule_is_of_x86_alone() -> None:
    assert found(400, machine=None, arch="s390x") == []


def test_topo_11_the_highest_fits_the_factors_too() -> None:
    assert found(258, topology="1x3x2", now=6) == [(Reason.NEEDS_EXTENDED_INTERRUPTS, "255", "252")]
    cores = TopologyPolicy(TopologyMode.GROW_CORES)
    assert found(260, topology="4x1x1", now=4, policy=cores)[0][2] == "252"


def test_topo_11_exact_factors_are_told_the_highest_count() -> None:
    exact = TopologyPolicy(TopologyMode.EXACT, Topology(300))
    assert found(300, policy=exact)[0] == (Reason.ABOVE_MACHINE_LIMIT, "288", "255")


def test_topo_11_no_count_at_all_says_so() -> None:
    assert found(60, topology="1x25x1", now=25, machine=20)[0][2] == "0"


def test_topo_12_the_hypervisors_recommendation_is_a_limit() -> None:
    assert found(17, hypervisor=16) == [(Reason.ABOVE_HYPERVISOR_LIMIT, "16", "16")]
    assert found(16, hypervisor=16) == []


def test_the_host_may_be_overcommitted_so_far() -> None:
    twice = HostLimits(vcpu_overcommit_ratio=2)
    assert found(16, limits=twice) == []
    assert found(17, limits=twice) == [(Reason.ABOVE_HOST_CAPACITY, "16", "16")]


def test_a_maximum_that_comes_down_is_never_too_much_for_the_host() -> None:
    assert found(32, limits=HostLimits(vcpu_overcommit_ratio=2), now=64, topology="64x1x1") == []


def test_mem_10_the_ceiling_is_bounded_by_the_hosts_memory() -> None:
    assert list(check_max_memory(HOST, HostLimits(), 96 * GIB)) == []
    (error,) = check_max_memory(HOST, HostLimits(), 96 * GIB + MIB)
    assert error.reason is Reason.ABOVE_HOST_CAPACITY
    assert error.metadata["highestKib"] == str(96 * GIB)
    assert "96 GiB" in error.message
    (error,) = check_max_memory(replace(HOST, memory_kib=64 * GIB + 3), HostLimits(), 97 * GIB)
    assert "the host's 64 GiB times" in error.message


def test_growth_counts_what_other_domains_have() -> None:
    limits = HostLimits(vcpu_overcommit_ratio=2, memory_overcommit_ratio=1)
    assert list(check_growth_vcpus(HOST, limits, 6)) == []
    (vcpus,) = check_growth_vcpus(HOST, limits, 7)
    assert vcpus.metadata == {"asked": "7", "highest": "6", "others": "10"}
    assert list(check_growth_memory(HOST, limits, 56 * GIB)) == []
    (memory,) = check_growth_memory(HOST, limits, 56 * GIB + MIB)
    assert memory.metadata["highestKib"] == str(56 * GIB)
    full = replace(HOST, others_vcpus=100, others_memory_kib=1000 * GIB)
    assert next(check_growth_vcpus(full, limits, 1)).metadata["highest"] == "0"
    assert next(check_growth_memory(full, limits, MIB)).metadata["highestKib"] == "0"


@pytest.mark.parametrize(
    ("actual", "available", "floor"),
    [
        (GIB, GIB // 2, 512 * MIB + 128 * MIB),
        (4 * GIB, GIB, 3 * GIB + 410 * MIB),  # a tenth of 4 GiB, rounded up to MiB
        (GIB, 2 * GIB, 128 * MIB),  # a guest that claims more than it has
        (None, GIB, None),
        (GIB, None, None),
    ],
)
def test_the_floor_is_what_the_guest_uses_and_a_reserve(
    actual: int | None, available: int | None, floor: int | None
) -> None:
    assert memory_floor_kib(Balloon(actual, actual, available, 1), HostLimits()) == floor


def test_figures_from_before_a_shrink_do_not_make_a_guest_look_idle() -> None:
    """Nova has its domains report every 10 s; whoever shrank the guest since then left it with less than it says."""
    shrunk = Balloon(actual_kib=640 * MIB, guest_total_kib=2 * GIB, guest_available_kib=GIB + 512 * MIB)
    assert memory_floor_kib(shrunk, HostLimits()) == 512 * MIB + 128 * MIB


def test_mem_08_sizes_are_the_same_where_libvirt_rounds_them_to_the_same() -> None:
    assert round_to_mib(262145) == 263168
    assert round_to_mib(262144) == 262144
    assert same_at_start(262145, 263168)
    assert not same_at_start(262144, 262145)
