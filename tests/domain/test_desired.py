"""What is remembered of each kind of change."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hvsvc.domain.desired import DesiredState, ReapplyPolicy, record_target
from hvsvc.domain.target import Affect, Method, Target
from hvsvc.domain.topology import Topology, TopologyMode, TopologyPolicy
from tests.fakes.worlds import GIB, MIB, SERVER, UUID, facts

CORES = TopologyPolicy(TopologyMode.GROW_CORES)


def recorded(target: Target, known: DesiredState | None = None, **live: object) -> DesiredState | None:
    return record_target(known, target, facts({"nova": True, **live}), SERVER, caller="unix", now_s=2000.0)


def sizes(desired: DesiredState | None) -> tuple[int | None, int | None, int | None, int | None]:
    assert desired is not None
    return desired.max_vcpus, desired.max_memory_kib, desired.vcpus, desired.memory_kib


def test_a_first_change_records_who_asked_when_and_the_flavor_of_that_time() -> None:
    desired = recorded(Target(Method.RAISE_CEILING, max_vcpus=8, max_memory_kib=2 * GIB, topology=CORES))
    assert desired == DesiredState(
        UUID,
        "instance-00000001",
        "unix",
        2000.0,
        max_vcpus=8,
        max_memory_kib=2 * GIB,
        topology=CORES,
        server_name="web-1",
        seen_in_nova=True,
        nova_host="cmp1",
        is_server=True,
        flavor="small",
        flavor_vcpus=2,
        flavor_memory_mib=512,
    )


@pytest.mark.parametrize(
    ("target", "wanted"),
    [
        (Target(Method.SCALE_DOMAIN, vcpus=4, memory_kib=GIB), (4, GIB, 4, GIB)),
        (Target(Method.SCALE_DOMAIN, vcpus=4, max_vcpus=8), (8, None, 4, None)),
        (Target(Method.SET_VCPUS, vcpus=2), (None, None, 2, None)),
        (Target(Method.SET_MEMORY, memory_kib=GIB - 1), (None, None, None, GIB)),
        (Target(Method.RAISE_CEILING, max_vcpus=8, boot_vcpus=4), (8, None, 4, None)),
        (
            Target(
                Method.RAISE_CEILING, topology=TopologyPolicy(TopologyMode.EXACT, Topology(2, 1, 1, 2, 2))
            ),
            (8, None, None, None),
        ),
    ],
)
def test_what_each_change_asks_for(target: Target, wanted: tuple[int | None, ...]) -> None:
    assert sizes(recorded(target)) == wanted


KNOWN = DesiredState(
    UUID,
    "instance-00000001",
    "first",
    1000.0,
    max_vcpus=8,
    max_memory_kib=2 * GIB,
    topology=CORES,
    vcpus=6,
    memory_kib=GIB,
    policy=ReapplyPolicy.CONFIG,
    is_server=True,
    flavor="small",
    flavor_vcpus=2,
    flavor_memory_mib=512,
)


@pytest.mark.parametrize(
    ("target", "wanted"),
    [
        # ScaleDomain never lowers a ceiling, RaiseCeiling sets it, and takes the current value with it
        (Target(Method.SCALE_DOMAIN, vcpus=4), (8, 2 * GIB, 4, GIB)),
        (Target(Method.SCALE_DOMAIN, vcpus=12), (12, 2 * GIB, 12, GIB)),
        (Target(Method.RAISE_CEILING, max_vcpus=4, max_memory_kib=512 * MIB), (4, 512 * MIB, 4, 512 * MIB)),
        # one side alone only lowers what is remembered
        (Target(Method.SET_VCPUS, vcpus=8, affect=Affect.LIVE), (8, 2 * GIB, 6, GIB)),
        (Target(Method.SET_VCPUS, vcpus=4, affect=Affect.CONFIG), (8, 2 * GIB, 4, GIB)),
        (Target(Method.SET_MEMORY, memory_kib=512 * MIB, affect=Affect.LIVE), (8, 2 * GIB, 6, 512 * MIB)),
    ],
)
def test_a_later_change_is_merged(target: Target, wanted: tuple[int | None, ...]) -> None:
    merged = recorded(target, KNOWN)
    assert sizes(merged) == wanted
    assert merged is not None
    assert (merged.policy, merged.caller, merged.record_time_s) == (ReapplyPolicy.CONFIG, "unix", 2000.0)


def test_a_growth_within_the_ceiling_keeps_its_topology() -> None:
    within = recorded(Target(Method.SCALE_DOMAIN, vcpus=8), KNOWN)
    above = recorded(Target(Method.SCALE_DOMAIN, vcpus=9), KNOWN)
    assert within is not None
    assert above is not None
    assert (within.topology, above.topology) == (CORES, TopologyPolicy())


def test_what_was_given_above_the_recorded_ceiling_is_recorded_whole() -> None:
    # somebody else raised the ceiling further, under which hvsvc then grew the domain
    assert sizes(recorded(Target(Method.SET_VCPUS, vcpus=12), KNOWN)) == (12, 2 * GIB, 12, GIB)
    assert sizes(recorded(Target(Method.SET_MEMORY, memory_kib=3 * GIB), KNOWN)) == (8, 3 * GIB, 6, 3 * GIB)
    exact = replace(KNOWN, topology=TopologyPolicy(TopologyMode.EXACT, Topology(2, cores=4)))
    grown = recorded(Target(Method.SET_VCPUS, vcpus=12), exact)
    assert grown is not None
    assert grown.topology == TopologyPolicy(), "8 vCPUs' factors are not those of 12"
    within = recorded(Target(Method.SET_VCPUS, vcpus=7), exact)
    assert within is not None
    assert within.topology == exact.topology


def test_a_reboot_asks_for_nothing() -> None:
    assert recorded(Target(Method.REBOOT_DOMAIN), KNOWN) is KNOWN
    assert recorded(Target(Method.REBOOT_DOMAIN)) is None


def test_what_one_side_alone_was_asked_for_begins_no_record() -> None:
    assert recorded(Target(Method.SET_VCPUS, vcpus=8, affect=Affect.LIVE)) is None


def test_after_a_resize_a_change_begins_anew() -> None:
    before = replace(KNOWN, flavor="tiny", flavor_vcpus=1)
    merged = recorded(Target(Method.SET_VCPUS, vcpus=3), before)
    assert sizes(merged) == (None, None, 3, None)
    assert merged is not None
    assert (merged.flavor_vcpus, merged.policy) == (2, ReapplyPolicy.CONFIG)


def test_another_name_of_a_flavor_of_the_same_sizes_is_no_resize() -> None:
    assert not replace(KNOWN, flavor="m1.small").superseded_by(facts({"nova": True}))
    assert replace(KNOWN, flavor_memory_mib=256).superseded_by(facts({"nova": True}))
    assert not replace(KNOWN, flavor_memory_mib=256).superseded_by(facts())
