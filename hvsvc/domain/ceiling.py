"""A definition's ceiling as one thing: maximum vCPUs, their topology, maximum memory."""

from __future__ import annotations

from hvsvc.domain.definition import Definition
from hvsvc.domain.limits import same_at_start
from hvsvc.domain.memory import format_kib


def same_ceiling(one: Definition, other: Definition) -> bool:
    """Whether both give a domain the same ceiling once it is started."""
    return (
        one.maximum_vcpus == other.maximum_vcpus
        and one.topology == other.topology
        and same_at_start(one.memory_kib, other.memory_kib)
    )


def format_ceiling(definition: Definition) -> str:
    """For people: "8 vCPUs and 2 GiB"."""
    return f"{definition.maximum_vcpus} vCPUs and {format_kib(definition.memory_kib)}"
