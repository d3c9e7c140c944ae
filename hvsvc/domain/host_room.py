"""What a host has, what its running domains have of it, and what it could still give."""

from __future__ import annotations

from dataclasses import dataclass

from hvsvc.domain.check_live import current_memory_kib
from hvsvc.domain.limits import HostLimits
from hvsvc.domain.unread import DomainList


@dataclass(frozen=True, slots=True)
class HostResources:
    """The host's online CPUs and its memory."""

    pcpus: int
    memory_kib: int


@dataclass(frozen=True, slots=True)
class HostRoom:
    """Capacities are those of planning: overcommit ratios times what the host has."""

    resources: HostResources
    vcpu_capacity: int
    memory_capacity_kib: int
    running_domains: int
    current_vcpus: int
    maximum_vcpus: int
    current_memory_kib: int
    maximum_memory_kib: int

    @property
    def vcpus_left(self) -> int:
        """vCPUs that could be given on top of the current ones."""
        return max(self.vcpu_capacity - self.current_vcpus, 0)

    @property
    def memory_left_kib(self) -> int:
        """Memory that could be given on top of the current one."""
        return max(self.memory_capacity_kib - self.current_memory_kib, 0)


def sum_host(resources: HostResources, limits: HostLimits, domains: DomainList) -> HostRoom:
    """Sums the running domains; paused ones count, since they have what they have.

    One that cannot be read counts with what is known of it.
    """
    live = [(facts, facts.live) for facts in domains.read if facts.live is not None]
    unread = [domain for domain in domains.unread if domain.id is not None]
    return HostRoom(
        resources=resources,
        vcpu_capacity=int(resources.pcpus * limits.vcpu_overcommit_ratio),
        memory_capacity_kib=int(resources.memory_kib * limits.memory_overcommit_ratio),
        running_domains=len(live) + len(unread),
        current_vcpus=sum(definition.current_vcpus for _, definition in live)
        + sum(domain.current_vcpus or 0 for domain in unread),
        maximum_vcpus=sum(definition.maximum_vcpus for _, definition in live)
        + sum(domain.maximum_vcpus or 0 for domain in unread),
        current_memory_kib=sum(current_memory_kib(facts) or 0 for facts, _ in live)
        + sum(domain.used_memory_kib or 0 for domain in unread),
        maximum_memory_kib=sum(definition.memory_kib for _, definition in live)
        + sum(domain.maximum_memory_kib or 0 for domain in unread),
    )
