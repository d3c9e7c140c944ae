"""What an edit of a definition must never do; checked before the first node is touched."""

from __future__ import annotations

from dataclasses import dataclass

from lxml import etree

from hvsvc.domain.definition import Definition
from hvsvc.domain.id_list import format_id_list
from hvsvc.domain.memory import format_kib
from hvsvc.domain.read_definition import MAX_VCPUS
from hvsvc.domain.read_tunings import read_tied_vcpus
from hvsvc.domain.topology import Topology
from hvsvc.errors import FailedPreconditionError, InvalidArgumentError, Reason

#: below libvirt's limit of 8 EiB
MAX_MEMORY_KIB = 2**53 - 1
_FACTORS = frozenset({"sockets", "dies", "clusters", "cores", "threads"})


@dataclass(frozen=True, slots=True)
class Values:
    """What a definition says of vCPUs and memory; sizes in KiB."""

    maximum_vcpus: int
    topology: Topology | None
    current_vcpus: int
    memory_kib: int
    current_memory_kib: int


def check_edit(root: etree._Element, before: Definition, after: Values) -> None:
    """Refuses an edit that libvirt would not take, would change silently, or that would lose something.

    :raises InvalidArgumentError: INVALID_VALUE, MAXIMUM_BELOW_CURRENT (cases TOPO-08 and
        XML-10: libvirt clamps, hvsvc refuses) or TOPOLOGY_NOT_FACTORABLE (case TOPO-01).
    :raises FailedPreconditionError: SEVERAL_NUMA_CELLS, MEMORY_DEVICES, PINNED or
        UNSUPPORTED_DEFINITION.
    """
    _check_range("max_vcpus", after.maximum_vcpus, MAX_VCPUS)
    _check_range("boot_vcpus", after.current_vcpus, MAX_VCPUS)
    _check_range("max_memory_kib", after.memory_kib, MAX_MEMORY_KIB)
    _check_range("boot_memory_kib", after.current_memory_kib, MAX_MEMORY_KIB)
    if after.current_vcpus > after.maximum_vcpus:
        raise _below_current(
            f"a maximum of {after.maximum_vcpus} vCPUs",
            str(after.current_vcpus),
            {"maximum": after.maximum_vcpus, "current": after.current_vcpus},
            "max_vcpus",
        )
    if after.current_memory_kib > after.memory_kib:
        raise _below_current(
            f"a maximum of {format_kib(after.memory_kib)} memory",
            format_kib(after.current_memory_kib),
            {"maximumKib": after.memory_kib, "currentKib": after.current_memory_kib},
            "max_memory_kib",
        )
    vcpus_change = after.maximum_vcpus != before.maximum_vcpus
    memory_changes = after.memory_kib != before.memory_kib
    if vcpus_change or after.topology != before.topology:
        _check_topology(root, after)
    if len(before.numa_cells) > 1 and (vcpus_change or memory_changes):
        raise FailedPreconditionError(
            Reason.SEVERAL_NUMA_CELLS,
            f"the guest has {len(before.numa_cells)} NUMA cells, and the maximum counts for all of them; only a domain "
            "with none or one is changed; nothing was changed",
            {"cells": len(before.numa_cells)},
        )
    if vcpus_change:
        _check_tied_vcpus(root, after)
    if vcpus_change or after.current_vcpus != before.current_vcpus:
        _check_core_granularity(before, after)
    if memory_changes:
        _check_memory(before, after)


def _check_range(field: str, value: int, highest: int) -> None:
    if not 1 <= value <= highest:
        raise InvalidArgumentError(
            Reason.INVALID_VALUE,
            f"{field} is {value}; ask for 1 to {highest}",
            {"asked": value, "lowest": 1, "highest": highest},
            field=field,
        )


def _below_current(maximum: str, current: str, metadata: dict[str, int], field: str) -> InvalidArgumentError:
    return InvalidArgumentError(
        Reason.MAXIMUM_BELOW_CURRENT,
        f"{maximum} is below the current value of {current}; ask for at least {current}, or lower both together",
        metadata,
        field=field,
    )


def _check_topology(root: etree._Element, after: Values) -> None:
    element = root.find("cpu/topology")
    unknown = set() if element is None else {str(name) for name in element.attrib} - _FACTORS
    if unknown:
        # it may be a factor of its own, and the product then another than computed
        raise FailedPreconditionError(
            Reason.UNSUPPORTED_DEFINITION,
            f"the domain's CPU topology has {', '.join(sorted(unknown))}, which this version of hvsvc does not know; "
            "nothing was changed; ask for memory alone, or set the maximum with virsh edit",
            {"unknown": ", ".join(sorted(unknown))},
        )
    topology = after.topology
    if topology is not None and topology.product != after.maximum_vcpus:
        raise InvalidArgumentError(
            Reason.TOPOLOGY_NOT_FACTORABLE,
            f"the topology {topology} (sockets x dies x clusters x cores x threads) stands for {topology.product} "
            f"vCPUs, not for the maximum of {after.maximum_vcpus}; change both together",
            {"asked": after.maximum_vcpus, "topology": topology},
            field="topology",
        )


def _check_tied_vcpus(root: etree._Element, after: Values) -> None:
    lost = {number for number in read_tied_vcpus(root) if number >= after.maximum_vcpus}
    if lost:
        # libvirt drops such a vcpupin with no more than a line in its log (case NUMA-05)
        raise FailedPreconditionError(
            Reason.PINNED,
            f"vCPUs {format_id_list(lost)} are pinned or tuned, and a maximum of {after.maximum_vcpus} leaves them "
            "out; remove these elements of <cputune> first, or ask for a higher maximum",
            {"vcpus": format_id_list(lost), "asked": after.maximum_vcpus},
        )


def _check_core_granularity(before: Definition, after: Values) -> None:
    threads = 1 if after.topology is None else after.topology.threads
    by_core = before.vcpus and before.arch.startswith("ppc64")
    if by_core and (after.maximum_vcpus % threads or after.current_vcpus % threads):
        raise FailedPreconditionError(
            Reason.UNSUPPORTED_DEFINITION,
            f"{before.arch} plugs whole cores of {threads} threads; ask for multiples of {threads}",
            {"multipleOf": threads},
        )


def _check_memory(before: Definition, after: Values) -> None:
    if before.memory_devices:
        raise FailedPreconditionError(
            Reason.MEMORY_DEVICES,
            f"the domain has memory devices ({', '.join(before.memory_devices)}), whose sizes are part of its maximum; "
            "nothing was changed; ask for vCPUs alone, or detach the devices first",
            {"devices": ", ".join(before.memory_devices)},
        )
    limit = before.memory_limit_kib
    if limit is not None and after.memory_kib > max(limit, before.memory_kib):
        raise FailedPreconditionError(
            Reason.UNSUPPORTED_DEFINITION,
            f"a maximum of {format_kib(after.memory_kib)} was asked; <memtune> limits the domain to "
            f"{format_kib(limit)}, and the host kills it above that; ask for at most {format_kib(limit)}, or raise the "
            "limit first",
            {"askedKib": after.memory_kib, "highestKib": limit},
        )
