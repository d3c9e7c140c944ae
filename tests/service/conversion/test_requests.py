"""Requests to targets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hvsvc.domain.target import Affect, GuestCpuMode, Method, RebootMode, Target
from hvsvc.domain.topology import Topology, TopologyMode, TopologyPolicy
from hvsvc.errors import InvalidArgumentError, Reason
from hvsvc.service.conversion import requests
from hvsvc.v1 import domain_pb2, scaling_pb2

EXACT = scaling_pb2.TopologyPolicy(
    mode=scaling_pb2.TopologyPolicy.MODE_EXACT, exact=domain_pb2.Topology(sockets=2, cores=4, threads=1)
)


def test_raise_ceiling_carries_every_field() -> None:
    request = scaling_pb2.RaiseCeilingRequest(
        max_vcpus=8,
        max_memory_kib=1024,
        topology=EXACT,
        boot_vcpus=3,
        boot_memory_kib=512,
        reboot=scaling_pb2.REBOOT_MODE_SOFT,
    )
    assert requests.raise_target(request) == Target(
        Method.RAISE_CEILING,
        max_vcpus=8,
        max_memory_kib=1024,
        topology=TopologyPolicy(TopologyMode.EXACT, Topology(2, 1, 1, 4, 1)),
        boot_vcpus=3,
        boot_memory_kib=512,
        reboot=RebootMode.SOFT,
    )


def test_set_vcpus_carries_every_field() -> None:
    request = scaling_pb2.SetVcpusRequest(
        vcpus=5, affect=scaling_pb2.AFFECT_LIVE, guest_cpus=scaling_pb2.GUEST_CPUS_ALL
    )
    assert requests.vcpus_target(request) == Target(
        Method.SET_VCPUS, vcpus=5, affect=Affect.LIVE, guest_cpus=GuestCpuMode.ALL
    )


def test_set_memory_carries_every_field() -> None:
    request = scaling_pb2.SetMemoryRequest(memory_kib=4096, affect=scaling_pb2.AFFECT_CONFIG)
    assert requests.memory_target(request) == Target(Method.SET_MEMORY, memory_kib=4096, affect=Affect.CONFIG)


def test_scale_carries_every_field() -> None:
    request = scaling_pb2.ScaleDomainRequest(
        vcpus=4,
        memory_kib=1024,
        max_vcpus=8,
        max_memory_kib=2048,
        topology=scaling_pb2.TopologyPolicy(mode=scaling_pb2.TopologyPolicy.MODE_GROW_CORES),
        reboot=scaling_pb2.REBOOT_MODE_SOFT,
        guest_cpus=scaling_pb2.GUEST_CPUS_ALL,
    )
    assert requests.scale_target(request) == Target(
        Method.SCALE_DOMAIN,
        vcpus=4,
        memory_kib=1024,
        max_vcpus=8,
        max_memory_kib=2048,
        topology=TopologyPolicy(TopologyMode.GROW_CORES),
        reboot=RebootMode.SOFT,
        guest_cpus=GuestCpuMode.ALL,
    )


def test_reboot_is_its_own_consent() -> None:
    assert requests.reboot_target() == Target(Method.REBOOT_DOMAIN, reboot=RebootMode.SOFT)


def test_defaults_are_the_careful_ones() -> None:
    target = requests.scale_target(scaling_pb2.ScaleDomainRequest(vcpus=4))
    assert target == Target(Method.SCALE_DOMAIN, vcpus=4)
    assert target.reboot is RebootMode.NEVER
    assert target.guest_cpus is GuestCpuMode.NEW
    assert target.topology == TopologyPolicy(TopologyMode.GROW_SOCKETS)
    assert requests.vcpus_target(scaling_pb2.SetVcpusRequest(vcpus=1)).affect is Affect.LIVE_AND_CONFIG


def test_a_plan_of_ceilings_alone_is_one_of_raise_ceiling() -> None:
    raised = requests.plan_target(
        scaling_pb2.PlanScaleRequest(max_vcpus=8, reboot=scaling_pb2.REBOOT_MODE_SOFT)
    )
    assert raised == Target(Method.RAISE_CEILING, max_vcpus=8, reboot=RebootMode.SOFT)
    scaled = requests.plan_target(scaling_pb2.PlanScaleRequest(max_vcpus=8, memory_kib=1024))
    assert scaled == Target(Method.SCALE_DOMAIN, max_vcpus=8, memory_kib=1024)


def test_a_topology_alone_is_something_to_raise() -> None:
    target = requests.raise_target(scaling_pb2.RaiseCeilingRequest(topology=EXACT))
    assert target.topology.exact == Topology(2, 1, 1, 4, 1)
    assert target.max_vcpus is None


@pytest.mark.parametrize(
    ("convert", "request_message"),
    [
        (requests.raise_target, scaling_pb2.RaiseCeilingRequest(reboot=scaling_pb2.REBOOT_MODE_SOFT)),
        (requests.raise_target, scaling_pb2.RaiseCeilingRequest(boot_vcpus=2)),
        (requests.vcpus_target, scaling_pb2.SetVcpusRequest(affect=scaling_pb2.AFFECT_LIVE)),
        (requests.memory_target, scaling_pb2.SetMemoryRequest()),
        (requests.scale_target, scaling_pb2.ScaleDomainRequest(topology=EXACT)),
        (requests.plan_target, scaling_pb2.PlanScaleRequest()),
    ],
)
def test_cpu_08_nothing_asked_is_refused(convert: Callable[[Any], Target], request_message: Any) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        convert(request_message)
    assert caught.value.reason is Reason.NOTHING_ASKED
    assert caught.value.field


@pytest.mark.parametrize(
    ("policy", "field"),
    [
        (scaling_pb2.TopologyPolicy(mode=scaling_pb2.TopologyPolicy.MODE_EXACT), "topology.exact"),
        (scaling_pb2.TopologyPolicy(exact=domain_pb2.Topology(sockets=1)), "topology.exact"),
        (scaling_pb2.TopologyPolicy(mode=9), "topology.mode"),  # type: ignore[arg-type]
        (
            scaling_pb2.TopologyPolicy(
                mode=scaling_pb2.TopologyPolicy.MODE_EXACT, exact=domain_pb2.Topology(sockets=2, cores=4)
            ),
            "topology.exact.threads",
        ),
        (
            scaling_pb2.TopologyPolicy(
                mode=scaling_pb2.TopologyPolicy.MODE_EXACT,
                exact=domain_pb2.Topology(sockets=2**32 - 1, cores=4, threads=1),
            ),
            "topology.exact.sockets",
        ),
    ],
)
def test_topology_policies_that_contradict_themselves(policy: scaling_pb2.TopologyPolicy, field: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        requests.raise_target(scaling_pb2.RaiseCeilingRequest(max_vcpus=8, topology=policy))
    assert caught.value.field == field


def test_every_enum_number_of_the_contract_is_known() -> None:
    for mode in scaling_pb2.RebootMode.values():
        requests.scale_target(scaling_pb2.ScaleDomainRequest(vcpus=1, reboot=mode))
    for cpus in scaling_pb2.GuestCpus.values():
        requests.scale_target(scaling_pb2.ScaleDomainRequest(vcpus=1, guest_cpus=cpus))
    for affect in scaling_pb2.Affect.values():
        requests.vcpus_target(scaling_pb2.SetVcpusRequest(vcpus=1, affect=affect))
    seen = {
        requests.raise_target(
            scaling_pb2.RaiseCeilingRequest(
                max_vcpus=8,
                topology=EXACT
                if mode == scaling_pb2.TopologyPolicy.MODE_EXACT
                else scaling_pb2.TopologyPolicy(mode=mode),
            )
        ).topology.mode
        for mode in scaling_pb2.TopologyPolicy.Mode.values()
    }
    assert seen == set(TopologyMode)


@given(st.binary(max_size=200))
def test_any_bytes_are_a_target_or_a_refusal(raw: bytes) -> None:
    """Whatever parses as a request is either a target within the bounds or refused."""
    pairs: tuple[tuple[Any, Any], ...] = (
        (scaling_pb2.RaiseCeilingRequest, requests.raise_target),
        (scaling_pb2.ScaleDomainRequest, requests.scale_target),
        (scaling_pb2.PlanScaleRequest, requests.plan_target),
        (scaling_pb2.SetVcpusRequest, requests.vcpus_target),
        (scaling_pb2.SetMemoryRequest, requests.memory_target),
    )
    for kind, convert in pairs:
        message = kind()
        try:
            message.ParseFromString(raw)
        except Exception:  # noqa: BLE001 - what does not parse never reaches the conversion
            continue
        try:
            target = convert(message)
        except InvalidArgumentError:
            continue
        for value in (target.vcpus, target.max_vcpus, target.boot_vcpus):
            assert value is None or 1 <= value <= 65_535
        for value in (target.memory_kib, target.max_memory_kib, target.boot_memory_kib):
            assert value is None or 1 <= value <= 2**53
