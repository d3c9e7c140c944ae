"""The highest values that would work: machine type, hypervisor, host and guest memory floor.

Each check answers with the value that would work, so that a refusal can name it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hvsvc.domain.definition import Definition
from hvsvc.domain.facts import Balloon, HostFacts
from hvsvc.domain.memory import format_kib
from hvsvc.domain.topology import Topology, TopologyMode, TopologyPolicy, factor
from hvsvc.errors import FailedPreconditionError, HvsvcError, InvalidArgumentError, Reason

#: QEMU hotplugs vCPUs on these; elsewhere `current` below the maximum does not start (case CPU-09)
HOTPLUG_ARCHITECTURES = frozenset({"x86_64", "i686", "ppc64", "ppc64le", "s390x"})
#: above it x86 needs an IOMMU with extended interrupt mode (case TOPO-11); libvirt 11.3 adds one unasked, 9.0 refuses
XAPIC_MAX_VCPUS = 255
MIB_KIB = 1024


@dataclass(frozen=True, slots=True)
class HostLimits:
    """Configured policy: how far the host may be overcommitted, how much a guest keeps.

    `memory_floor_reserve_*`: what a shrinking guest keeps above what it uses, the
    larger of KiB and a share of its present allocation (measured: below 128 MiB the
    guest starves and its agent is lost).
    """

    vcpu_overcommit_ratio: float = 16.0
    memory_overcommit_ratio: float = 1.5
    memory_floor_reserve_kib: int = 128 * MIB_KIB
    memory_floor_reserve_ratio: float = 0.10


def round_to_mib(memory_kib: int) -> int:
    """Rounds up to whole MiB, as libvirt does when it starts a domain (case MEM-08)."""
    return -(-memory_kib // MIB_KIB) * MIB_KIB


def same_at_start(size_kib: int, stored_kib: int) -> bool:
    """Whether two stored sizes give the guest the same: libvirt rounds both up to MiB (case MEM-08)."""
    return round_to_mib(size_kib) == round_to_mib(stored_kib)


def check_max_vcpus(
    definition: Definition, host: HostFacts, limits: HostLimits, maximum: int, policy: TopologyPolicy
) -> Iterator[HvsvcError]:
    """Yields a refusal for each limit that `maximum` vCPUs would break (cases TOPO-11, TOPO-12).

    The host's capacity limits only what grows: a maximum that comes down is never too much for it.
    """
    x86 = definition.arch in ("x86_64", "i686")
    bounds: list[tuple[Reason, int, str]] = []
    if maximum > definition.maximum_vcpus:
        bounds.append(
            (
                Reason.ABOVE_HOST_CAPACITY,
                int(host.pcpus * limits.vcpu_overcommit_ratio),
                f"the host's {host.pcpus} CPUs times the overcommit ratio {limits.vcpu_overcommit_ratio:g}",
            )
        )
    if host.machine_max_vcpus is not None:
        bounds.append(
            (Reason.ABOVE_MACHINE_LIMIT, host.machine_max_vcpus, f"machine type {definition.machine}")
        )
    if host.hypervisor_max_vcpus is not None:
        bounds.append(
            (
                Reason.ABOVE_HYPERVISOR_LIMIT,
                host.hypervisor_max_vcpus,
                f"{definition.emulator or 'the hypervisor'} on this host",
            )
        )
    if x86 and not definition.extended_interrupts:
        bounds.append(
            (
                Reason.NEEDS_EXTENDED_INTERRUPTS,
                XAPIC_MAX_VCPUS,
                "a domain without an IOMMU in extended interrupt mode",
            )
        )
    to_match = ", with factors to match" if policy.mode is TopologyMode.EXACT else ""
    lowest = min((bound for _, bound, _ in bounds), default=maximum)
    for reason, bound, whose in bounds:
        if maximum > bound:
            works = _highest_factorable(definition.topology, lowest, policy)
            advice = (
                f"ask for at most {works}{to_match}"
                if works
                else f"no maximum up to {lowest} fits this topology policy; choose another"
            )
            yield FailedPreconditionError(
                reason,
                f"a maximum of {maximum} vCPUs was asked; {whose} allows {bound}; {advice}",
                {"asked": maximum, "limit": bound, "highest": works or 0},
            )


def _highest_factorable(topology: Topology | None, bound: int, policy: TopologyPolicy) -> int | None:
    if policy.mode is TopologyMode.EXACT:
        return bound if bound > 0 else None
    for count in range(bound, 0, -1):
        try:
            factor(topology, count, policy)
        except InvalidArgumentError:
            continue
        return count
    return None


def check_max_memory(host: HostFacts, limits: HostLimits, maximum_kib: int) -> Iterator[HvsvcError]:
    """Yields a refusal where one domain's ceiling exceeds what the host may promise (case MEM-10)."""
    capacity = int(host.memory_kib * limits.memory_overcommit_ratio) // MIB_KIB * MIB_KIB
    if maximum_kib > capacity:
        whole_kib = host.memory_kib // MIB_KIB * MIB_KIB  # a host's memory to the KiB is only hard to read
        yield FailedPreconditionError(
            Reason.ABOVE_HOST_CAPACITY,
            f"a maximum of {format_kib(maximum_kib)} was asked; the host's {format_kib(whole_kib)} times the "
            f"overcommit ratio {limits.memory_overcommit_ratio:g} allow {format_kib(capacity)}; ask for at most that",
            {"askedKib": maximum_kib, "limitKib": capacity, "highestKib": capacity},
        )


def check_growth_vcpus(host: HostFacts, limits: HostLimits, vcpus: int) -> Iterator[HvsvcError]:
    """Yields a refusal where this domain's vCPUs beside the others' exceed the host's capacity."""
    room = int(host.pcpus * limits.vcpu_overcommit_ratio) - host.others_vcpus
    if vcpus > room:
        yield FailedPreconditionError(
            Reason.ABOVE_HOST_CAPACITY,
            f"{vcpus} vCPUs were asked; the host has room for {max(room, 0)} beside the {host.others_vcpus} of its "
            f"other running domains ({host.pcpus} CPUs, overcommit ratio {limits.vcpu_overcommit_ratio:g}); "
            "ask for fewer or free some",
            {"asked": vcpus, "highest": max(room, 0), "others": host.others_vcpus},
        )


def check_growth_memory(host: HostFacts, limits: HostLimits, memory_kib: int) -> Iterator[HvsvcError]:
    """Yields a refusal where this domain's memory beside the others' exceeds the host's capacity."""
    room = int(host.memory_kib * limits.memory_overcommit_ratio) - host.others_memory_kib
    room = max(room, 0) // MIB_KIB * MIB_KIB
    if memory_kib > room:
        yield FailedPreconditionError(
            Reason.ABOVE_HOST_CAPACITY,
            f"{format_kib(memory_kib)} were asked; the host has room for {format_kib(room)} beside the "
            f"{format_kib(host.others_memory_kib)} of its other running domains (overcommit ratio "
            f"{limits.memory_overcommit_ratio:g}); ask for less or free some",
            {"askedKib": memory_kib, "highestKib": room, "othersKib": host.others_memory_kib},
        )


def memory_floor_kib(balloon: Balloon, limits: HostLimits) -> int | None:
    """The least memory the guest can be left with; None where its use is not known.

    actual - usable + reserve, which held in every run measured; "unused" instead of
    "usable" was too optimistic. The guest's figures may be from before somebody shrank it:
    then what it used of its own total counts, since more is usable than there is left.
    """
    if balloon.actual_kib is None or balloon.guest_available_kib is None:
        return None
    reserve = max(
        limits.memory_floor_reserve_kib, int(balloon.actual_kib * limits.memory_floor_reserve_ratio)
    )
    whole_kib = max(balloon.actual_kib, balloon.guest_total_kib or 0)
    used = max(whole_kib - balloon.guest_available_kib, 0)
    return round_to_mib(used + reserve)
