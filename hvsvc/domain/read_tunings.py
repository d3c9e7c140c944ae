"""Elements that bind single vCPUs or the guest's memory to something of the host."""

from __future__ import annotations

from collections.abc import Iterator

from lxml import etree

from hvsvc.domain.definition import VcpuPin
from hvsvc.domain.id_list import MAX_IDS, parse_id_list
from hvsvc.domain.memory import parse_number
from hvsvc.domain.xml_document import broken
from hvsvc.domain.xml_values import child, memory_text, required


def read_vcpu_pins(root: etree._Element) -> tuple[VcpuPin, ...]:
    """The `<vcpupin>` elements.

    :raises FailedPreconditionError: BROKEN_DEFINITION.
    """
    pins = []
    for node in root.findall("cputune/vcpupin"):
        cpuset = required(node, "cpuset")
        parse_id_list(cpuset, "cpuset of <vcpupin>")
        pins.append(VcpuPin(vcpu=_vcpu(node), cpuset=cpuset))
    return tuple(pins)


def read_vcpu_tunings(root: etree._Element) -> tuple[str, ...]:
    """The other elements of `<cputune>` that name vCPUs, in words: `vcpusched 2-3`.

    :raises FailedPreconditionError: BROKEN_DEFINITION.
    """
    return tuple(f"{node.tag} {node.get('vcpus', '')}".rstrip() for node in _tuned(root))


def read_tied_vcpus(root: etree._Element) -> frozenset[int]:
    """The ids of all vCPUs that a pin or another element of `<cputune>` names.

    :raises FailedPreconditionError: BROKEN_DEFINITION.
    """
    ids = {_vcpu(node) for node in root.findall("cputune/vcpupin")}
    for node in _tuned(root):
        ids |= parse_id_list(required(node, "vcpus"), f"vcpus of <{node.tag}>")
    return frozenset(ids)


def _tuned(root: etree._Element) -> Iterator[etree._Element]:
    """vcpusched, cachetune and memorytune; others to come are known by their attribute."""
    return (node for node in root.findall("cputune/*") if node.get("vcpus") is not None)


def _vcpu(node: etree._Element) -> int:
    vcpu = parse_number(required(node, "vcpu"), "vcpu of <vcpupin>")
    if vcpu >= MAX_IDS:
        raise broken(f"vcpu of <vcpupin> is {vcpu}")
    return vcpu


def read_numa_tunings(root: etree._Element) -> tuple[str, ...]:
    """The elements of `<numatune>`, in words: `memory strict 0-1`, `memnode 0 strict 1`."""
    found = []
    for node in root.findall("numatune/*"):
        words = (node.get("cellid"), node.get("mode"), node.get("placement"), node.get("nodeset"))
        found.append(" ".join([str(node.tag), *(word for word in words if word)]))
    return tuple(found)


def read_memory_limit(root: etree._Element) -> int | None:
    """The smallest limit that `<memtune>` puts on the domain's memory, KiB; None without one.

    :raises FailedPreconditionError: BROKEN_DEFINITION.
    """
    limits = [child(root, f"memtune/{name}") for name in ("hard_limit", "swap_hard_limit")]
    return min((memory_text(limit) for limit in limits if limit is not None), default=None)
