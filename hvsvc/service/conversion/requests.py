"""Requests of ScalingService to a Target: nothing is read or touched before these checks passed."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from hvsvc.domain.target import Affect, GuestCpuMode, Method, RebootMode, Target
from hvsvc.domain.topology import Topology, TopologyMode, TopologyPolicy
from hvsvc.errors import InvalidArgumentError, Reason
from hvsvc.service.conversion import fields
from hvsvc.v1 import scaling_pb2

_REBOOT: Final[dict[int, RebootMode]] = {
    scaling_pb2.REBOOT_MODE_UNSPECIFIED: RebootMode.NEVER,
    scaling_pb2.REBOOT_MODE_NEVER: RebootMode.NEVER,
    scaling_pb2.REBOOT_MODE_SOFT: RebootMode.SOFT,
}
_AFFECT: Final[dict[int, Affect]] = {
    scaling_pb2.AFFECT_UNSPECIFIED: Affect.LIVE_AND_CONFIG,
    scaling_pb2.AFFECT_LIVE_AND_CONFIG: Affect.LIVE_AND_CONFIG,
    scaling_pb2.AFFECT_LIVE: Affect.LIVE,
    scaling_pb2.AFFECT_CONFIG: Affect.CONFIG,
}
_GUEST_CPUS: Final[dict[int, GuestCpuMode]] = {
    scaling_pb2.GUEST_CPUS_UNSPECIFIED: GuestCpuMode.NEW,
    scaling_pb2.GUEST_CPUS_NEW: GuestCpuMode.NEW,
    scaling_pb2.GUEST_CPUS_ALL: GuestCpuMode.ALL,
}
_MODE: Final[dict[int, TopologyMode]] = {
    scaling_pb2.TopologyPolicy.MODE_UNSPECIFIED: TopologyMode.GROW_SOCKETS,
    scaling_pb2.TopologyPolicy.MODE_GROW_SOCKETS: TopologyMode.GROW_SOCKETS,
    scaling_pb2.TopologyPolicy.MODE_GROW_CORES: TopologyMode.GROW_CORES,
    scaling_pb2.TopologyPolicy.MODE_EXACT: TopologyMode.EXACT,
}


def plan_target(request: scaling_pb2.PlanScaleRequest) -> Target:
    """The target to plan: one of ceilings alone is planned as RaiseCeiling, any other as ScaleDomain."""
    target = Target(
        Method.SCALE_DOMAIN,
        max_vcpus=fields.count(request, "max_vcpus"),
        max_memory_kib=fields.size_kib(request, "max_memory_kib"),
        topology=_policy(request.topology),
        vcpus=fields.count(request, "vcpus"),
        memory_kib=fields.size_kib(request, "memory_kib"),
        reboot=_reboot(request.reboot),
        guest_cpus=_guest_cpus(request.guest_cpus),
    )
    if target.vcpus is None and target.memory_kib is None:
        return _raise_target(request)
    return target


def raise_target(request: scaling_pb2.RaiseCeilingRequest) -> Target:
    """The target of RaiseCeiling; a topology alone is enough, it rewrites the factors of the same maximum."""
    return replace(
        _raise_target(request),
        boot_vcpus=fields.count(request, "boot_vcpus"),
        boot_memory_kib=fields.size_kib(request, "boot_memory_kib"),
    )


def vcpus_target(request: scaling_pb2.SetVcpusRequest) -> Target:
    """The target of SetVcpus."""
    vcpus = fields.count(request, "vcpus")
    if vcpus is None:
        raise _nothing("vcpus", "give vcpus")
    return Target(
        Method.SET_VCPUS,
        vcpus=vcpus,
        affect=_affect(request.affect),
        guest_cpus=_guest_cpus(request.guest_cpus),
    )


def memory_target(request: scaling_pb2.SetMemoryRequest) -> Target:
    """The target of SetMemory."""
    memory_kib = fields.size_kib(request, "memory_kib")
    if memory_kib is None:
        raise _nothing("memory_kib", "give memory_kib")
    return Target(Method.SET_MEMORY, memory_kib=memory_kib, affect=_affect(request.affect))


def scale_target(request: scaling_pb2.ScaleDomainRequest) -> Target:
    """The target of ScaleDomain."""
    target = Target(
        Method.SCALE_DOMAIN,
        vcpus=fields.count(request, "vcpus"),
        memory_kib=fields.size_kib(request, "memory_kib"),
        max_vcpus=fields.count(request, "max_vcpus"),
        max_memory_kib=fields.size_kib(request, "max_memory_kib"),
        topology=_policy(request.topology),
        reboot=_reboot(request.reboot),
        guest_cpus=_guest_cpus(request.guest_cpus),
    )
    if (target.vcpus, target.memory_kib, target.max_vcpus, target.max_memory_kib) == (None,) * 4:
        raise _nothing("vcpus", "give vcpus, memory_kib, max_vcpus or max_memory_kib")
    return target


def reboot_target() -> Target:
    """The target of RebootDomain: the call itself is the consent."""
    return Target(Method.REBOOT_DOMAIN, reboot=RebootMode.SOFT)


def _raise_target(request: scaling_pb2.RaiseCeilingRequest | scaling_pb2.PlanScaleRequest) -> Target:
    target = Target(
        Method.RAISE_CEILING,
        max_vcpus=fields.count(request, "max_vcpus"),
        max_memory_kib=fields.size_kib(request, "max_memory_kib"),
        topology=_policy(request.topology),
        reboot=_reboot(request.reboot),
    )
    if target.max_vcpus is None and target.max_memory_kib is None and not request.HasField("topology"):
        raise _nothing("max_vcpus", "give max_vcpus, max_memory_kib or topology")
    return target


def _policy(policy: scaling_pb2.TopologyPolicy) -> TopologyPolicy:
    mode = fields.choice(_MODE, scaling_pb2.TopologyPolicy.Mode, policy.mode, "topology.mode")
    given = policy.HasField("exact")
    if given != (mode is TopologyMode.EXACT):
        raise InvalidArgumentError(
            Reason.INVALID_VALUE,
            "topology.exact goes with topology.mode EXACT and with no other; "
            + ("leave it out, or set the mode" if given else "give the factors"),
            field="topology.exact",
        )
    if not given:
        return TopologyPolicy(mode)
    exact = policy.exact
    return TopologyPolicy(
        mode,
        Topology(
            sockets=fields.factor(exact.sockets, "topology.exact.sockets"),
            dies=fields.factor(exact.dies, "topology.exact.dies", zero_is_one=True),
            clusters=fields.factor(exact.clusters, "topology.exact.clusters", zero_is_one=True),
            cores=fields.factor(exact.cores, "topology.exact.cores"),
            threads=fields.factor(exact.threads, "topology.exact.threads"),
        ),
    )


def _reboot(value: int) -> RebootMode:
    return fields.choice(_REBOOT, scaling_pb2.RebootMode, value, "reboot")


def _affect(value: int) -> Affect:
    return fields.choice(_AFFECT, scaling_pb2.Affect, value, "affect")


def _guest_cpus(value: int) -> GuestCpuMode:
    return fields.choice(_GUEST_CPUS, scaling_pb2.GuestCpus, value, "guest_cpus")


def _nothing(field: str, advice: str) -> InvalidArgumentError:
    return InvalidArgumentError(Reason.NOTHING_ASKED, f"nothing is asked; {advice}", field=field)
