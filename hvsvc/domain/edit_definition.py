"""Edits the stored definition: vCPUs, topology and memory together, and nothing else.

One define carries them all, because libvirt refuses every order of single steps
(case TOPO-02). The input is the inactive, secure XML (case XML-01).
"""

from __future__ import annotations

from dataclasses import dataclass

from lxml import etree

from hvsvc.domain.check_edit import Values, check_edit
from hvsvc.domain.define_loss import lost_by_define
from hvsvc.domain.definition import Definition, VcpuEntry
from hvsvc.domain.id_list import format_id_list
from hvsvc.domain.limits import HOTPLUG_ARCHITECTURES
from hvsvc.domain.read_definition import read_definition
from hvsvc.domain.topology import Topology
from hvsvc.domain.vcpu_list import resize_vcpus
from hvsvc.domain.xml_document import parse_document
from hvsvc.domain.xml_insert import child_indent, insert_after, insert_at, remove

__all__ = ["Edit", "edit_definition", "lost_by_define"]

#: where a list of single hotpluggable vCPUs is known to start (case CPU-09: aarch64 does not)
_LIST_ARCHITECTURES = frozenset({"x86_64", "i686"})


@dataclass(frozen=True, slots=True)
class Edit:
    """The values to write; None leaves a value as it is. Sizes in KiB."""

    maximum_vcpus: int | None = None
    topology: Topology | None = None
    current_vcpus: int | None = None
    memory_kib: int | None = None
    current_memory_kib: int | None = None


def edit_definition(xml: str, edit: Edit) -> str:
    """The definition with these values; the same string where it has them already.

    What is not named keeps its value even where a default tied it to another one: the
    current values are written out when a maximum changes (case XML-09). A single NUMA
    cell follows the maxima, since libvirt keeps the sum of the cells and throws
    `<memory>` away. `<maxMemory>` keeps its room for memory devices when the memory
    would reach it (QEMU does not start with none). Raising the maximum above current
    lists the vCPUs singly, the new ones hotpluggable (case TOPO-09).

    :raises FailedPreconditionError: BROKEN_DEFINITION; SEVERAL_NUMA_CELLS, MEMORY_DEVICES,
        PINNED or UNSUPPORTED_DEFINITION where the edit would damage something.
    :raises InvalidArgumentError: INVALID_VALUE, MAXIMUM_BELOW_CURRENT or
        TOPOLOGY_NOT_FACTORABLE; never clamped.
    """
    root = parse_document(xml)
    before = read_definition(root)
    after = Values(
        maximum_vcpus=_or(edit.maximum_vcpus, before.maximum_vcpus),
        topology=edit.topology or before.topology,
        current_vcpus=_or(edit.current_vcpus, before.current_vcpus),
        memory_kib=_or(edit.memory_kib, before.memory_kib),
        current_memory_kib=_or(edit.current_memory_kib, before.current_memory_kib),
    )
    check_edit(root, before, after)
    if after == _values(before):
        return xml
    if (after.maximum_vcpus, after.current_vcpus) != (before.maximum_vcpus, before.current_vcpus):
        _write_vcpu(root, after)
        _write_vcpus(root, before, after)
    if after.topology is not None and after.topology != before.topology:
        _write_topology(root, after.topology)
    if after.maximum_vcpus != before.maximum_vcpus:
        for cell in root.findall("cpu/numa/cell"):
            cell.set("cpus", format_id_list(range(after.maximum_vcpus)))
    if after.memory_kib != before.memory_kib:
        _write_memory(root, before, after.memory_kib)
    if (after.memory_kib, after.current_memory_kib) != (before.memory_kib, before.current_memory_kib):
        _write_current_memory(root, before, after.current_memory_kib)
    return etree.tostring(root.getroottree(), encoding="unicode")


def _or(wanted: int | None, present: int) -> int:
    return present if wanted is None else wanted


def _values(definition: Definition) -> Values:
    return Values(
        maximum_vcpus=definition.maximum_vcpus,
        topology=definition.topology,
        current_vcpus=definition.current_vcpus,
        memory_kib=definition.memory_kib,
        current_memory_kib=definition.current_memory_kib,
    )


def _write_vcpu(root: etree._Element, after: Values) -> None:
    vcpu = root.find("vcpu")
    if vcpu is None:
        vcpu = etree.Element("vcpu")
        insert_after(root, ("name", "memory", "currentMemory"), vcpu)
    vcpu.text = str(after.maximum_vcpus)
    if after.current_vcpus < after.maximum_vcpus:
        vcpu.set("current", str(after.current_vcpus))
    elif "current" in vcpu.attrib:
        del vcpu.attrib["current"]


def _write_vcpus(root: etree._Element, before: Definition, after: Values) -> None:
    growable = before.maximum_vcpus < after.maximum_vcpus > after.current_vcpus
    if not before.vcpus and not (growable and before.arch in _LIST_ARCHITECTURES):
        return
    entries = resize_vcpus(
        before.vcpus,
        boot=before.current_vcpus,
        maximum=after.maximum_vcpus,
        current=after.current_vcpus,
        hotplug=before.arch in HOTPLUG_ARCHITECTURES,
    )
    vcpus = root.find("vcpus")
    indent = child_indent(root)
    if vcpus is None:
        vcpus = etree.Element("vcpus")
        insert_after(root, ("vcpu",), vcpus)
    if len(vcpus) == 0 and indent is not None:
        vcpus.text = indent + "  "
    _write_entries(vcpus, {entry.id: entry for entry in before.vcpus}, entries, indent)


def _write_entries(
    vcpus: etree._Element,
    known: dict[int, VcpuEntry],
    entries: tuple[VcpuEntry, ...],
    indent: str | None,
) -> None:
    nodes = {int(node.get("id", "")): node for node in vcpus.findall("vcpu")}
    for number in nodes.keys() - {entry.id for entry in entries}:
        remove(vcpus, nodes[number])
    for entry in entries:
        if known.get(entry.id) == entry:
            continue
        node = nodes.get(entry.id)
        if node is None:
            node = etree.Element("vcpu", {"id": str(entry.id)})
            insert_at(vcpus, len(vcpus), node)
            if len(vcpus) == 1:
                node.tail = indent
        node.set("enabled", "yes" if entry.enabled else "no")
        node.set("hotpluggable", "yes" if entry.hotpluggable else "no")
        if entry.order is not None:
            node.set("order", str(entry.order))
        elif "order" in node.attrib:
            del node.attrib["order"]


def _write_topology(root: etree._Element, topology: Topology) -> None:
    cpu = root.find("cpu")
    if cpu is None:
        cpu = etree.Element("cpu")
        insert_after(root, ("vcpu", "vcpus", "os", "features"), cpu)
    element = cpu.find("topology")
    if element is None:
        element = etree.Element("topology")
        insert_after(cpu, ("model", "vendor"), element)
    # libvirt 9.0 knows no clusters and older ones no dies: written only where there already or of any meaning
    for name in ("sockets", "dies", "clusters", "cores", "threads"):
        value = getattr(topology, name)
        if name in element.attrib or value > 1 or name not in ("dies", "clusters"):
            element.set(name, str(value))


def _write_memory(root: etree._Element, before: Definition, memory_kib: int) -> None:
    _write_size(root.find("memory"), memory_kib)
    for cell in root.findall("cpu/numa/cell"):
        cell.set("memory", str(memory_kib))
        cell.set("unit", "KiB")
    if before.max_memory_kib is not None and memory_kib >= before.max_memory_kib:
        room = max(before.max_memory_kib - before.memory_kib, 0)
        _write_size(root.find("maxMemory"), memory_kib + room)


def _write_current_memory(root: etree._Element, before: Definition, current_kib: int) -> None:
    element = root.find("currentMemory")
    if element is None:
        element = etree.Element("currentMemory")
        insert_after(root, ("memory",), element)
    elif element.text and current_kib == before.current_memory_kib:
        return
    _write_size(element, current_kib)


def _write_size(element: etree._Element | None, kib: int) -> None:
    assert element is not None, "the element was read before it is written"
    element.set("unit", "KiB")
    element.text = str(kib)
