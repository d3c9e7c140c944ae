"""Reads a domain's XML into values; whatever does not say what it must is refused.

The format is https://libvirt.org/formatdomain.html. Defaults are what libvirt 9.0
itself fills in, measured with the QEMU driver.
"""

from __future__ import annotations

import uuid as uuids

from lxml import etree

from hvsvc.domain.definition import Definition, NumaCell, VcpuEntry
from hvsvc.domain.id_list import parse_id_list
from hvsvc.domain.memory import parse_memory_kib, parse_number
from hvsvc.domain.nova_metadata import read_nova_metadata
from hvsvc.domain.read_devices import (
    read_agent,
    read_balloon,
    read_identities,
    read_memory_devices,
    read_memory_locks,
)
from hvsvc.domain.read_tunings import read_memory_limit, read_numa_tunings, read_vcpu_pins, read_vcpu_tunings
from hvsvc.domain.topology import Topology
from hvsvc.domain.xml_document import broken, parse_document
from hvsvc.domain.xml_values import (
    child,
    child_text,
    flag_attribute,
    memory_text,
    number_attribute,
    required,
    text_of,
)

#: far above any machine type's limit; libvirt 9.0 itself allocates whatever it is told
MAX_VCPUS = 65535


def parse_definition(xml: str) -> Definition:
    """The values of one domain XML, inactive or live.

    Absent `current` means the maximum, absent or empty `currentMemory` means `memory`,
    and where `<vcpus>` lists single vCPUs, current is the number of enabled ones
    whatever the attribute says: so libvirt reads them.

    :raises FailedPreconditionError: BROKEN_DEFINITION naming the element, for a document
        that `parse_document` refuses, an element missing or doubled, a value that is no
        number or out of range.
    """
    return read_definition(parse_document(xml, keep_blanks=False))


def read_definition(root: etree._Element) -> Definition:
    """As `parse_definition`, of a parsed document."""
    name = child_text(root, "name")
    if not name:
        raise broken("<name> is missing or empty")
    os_type = child(root, "os/type")
    memory_kib, current_memory_kib = _read_memory(root)
    maximum, current, vcpus = _read_vcpus(root)
    vcpu = child(root, "vcpu")
    max_memory = child(root, "maxMemory")
    balloon_model, balloon_stats = read_balloon(root)
    agent_configured, agent_connected = read_agent(root)
    return Definition(
        name=name,
        uuid=_read_uuid(root),
        virt_type=required(root, "type"),
        os_type=text_of(os_type),
        arch="" if os_type is None else os_type.get("arch", ""),
        machine="" if os_type is None else os_type.get("machine", ""),
        emulator=child_text(root, "devices/emulator"),
        maximum_vcpus=maximum,
        current_vcpus=current,
        cpuset="" if vcpu is None else _id_list(vcpu, "cpuset"),
        vcpus=vcpus,
        topology=_read_topology(root),
        memory_kib=memory_kib,
        current_memory_kib=current_memory_kib,
        max_memory_kib=None if max_memory is None else memory_text(max_memory),
        numa_cells=_read_numa_cells(root, maximum),
        vcpu_pins=read_vcpu_pins(root),
        vcpu_tunings=read_vcpu_tunings(root),
        hugepages=child(root, "memoryBacking/hugepages") is not None,
        memory_devices=read_memory_devices(root),
        memory_locks=read_memory_locks(root),
        balloon_model=balloon_model,
        balloon_stats=balloon_stats,
        agent_configured=agent_configured,
        agent_connected=agent_connected,
        acpi=child(root, "features/acpi") is not None,
        extended_interrupts=any(node.get("eim") == "on" for node in root.findall("devices/iommu/driver")),
        nova=read_nova_metadata(root),
        numa_tunings=read_numa_tunings(root),
        memory_limit_kib=read_memory_limit(root),
        devices=read_identities(root),
        on_poweroff=child_text(root, "on_poweroff"),
    )


def _read_uuid(root: etree._Element) -> str:
    # A define without a uuid would make another domain (case XML-06).
    text = child_text(root, "uuid")
    try:
        return str(uuids.UUID(text))
    except ValueError as err:
        raise broken(f"<uuid> is {text[:60]!r}, not a UUID") from err


def _id_list(element: etree._Element, name: str) -> str:
    text = element.get(name, "")
    if text:
        parse_id_list(text, f"{name} of <{element.tag}>")
    return text


def _read_memory(root: etree._Element) -> tuple[int, int]:
    memory = child(root, "memory")
    memory_kib = 0 if memory is None else memory_text(memory)
    if memory_kib == 0:
        raise broken("<memory> is missing or 0")
    current = child(root, "currentMemory")
    current_kib = 0 if current is None else memory_text(current)
    if current_kib > memory_kib:
        raise broken(f"<currentMemory> is {current_kib} KiB, above <memory>, which is {memory_kib} KiB")
    return memory_kib, current_kib or memory_kib


def _read_vcpus(root: etree._Element) -> tuple[int, int, tuple[VcpuEntry, ...]]:
    element = child(root, "vcpu")
    maximum = 1 if element is None else parse_number(text_of(element), "<vcpu>")
    if not 1 <= maximum <= MAX_VCPUS:
        raise broken(f"<vcpu> is {maximum}, not in 1 to {MAX_VCPUS}")
    stated = None if element is None else number_attribute(element, "current")
    if stated is not None and not 1 <= stated <= maximum:
        raise broken(f"current of <vcpu> is {stated}, not in 1 to the maximum of {maximum}")
    entries = _read_entries(root, maximum)
    current = sum(entry.enabled for entry in entries) if entries else stated or maximum
    return maximum, current, entries


def _read_entries(root: etree._Element, maximum: int) -> tuple[VcpuEntry, ...]:
    vcpus = child(root, "vcpus")
    entries: dict[int, VcpuEntry] = {}
    for node in () if vcpus is None else vcpus.findall("vcpu"):
        number = parse_number(required(node, "id"), "id of <vcpus><vcpu>")
        if number >= maximum:
            raise broken(f"<vcpus> lists vCPU {number}, but the maximum is {maximum}")
        if number in entries:
            raise broken(f"<vcpus> lists vCPU {number} twice")
        required(node, "enabled")
        enabled = flag_attribute(node, "enabled") is True
        hotpluggable = flag_attribute(node, "hotpluggable")
        entries[number] = VcpuEntry(
            id=number,
            enabled=enabled,
            hotpluggable=not enabled if hotpluggable is None else hotpluggable,
            order=number_attribute(node, "order") or None,
        )
    if entries and not any(entry.enabled for entry in entries.values()):
        raise broken("<vcpus> enables no vCPU")
    return tuple(entries[number] for number in sorted(entries))


def _read_topology(root: etree._Element) -> Topology | None:
    cpu = child(root, "cpu")
    element = None if cpu is None else child(cpu, "topology")
    if element is None:
        return None
    factors = {}
    for factor in ("sockets", "dies", "clusters", "cores", "threads"):
        value = number_attribute(element, factor)
        if value is not None and not 1 <= value <= MAX_VCPUS:
            raise broken(f"{factor} of <topology> is {value}, not in 1 to {MAX_VCPUS}")
        factors[factor] = value or 1
    return Topology(**factors)


def _read_numa_cells(root: etree._Element, maximum: int) -> tuple[NumaCell, ...]:
    numa = child(root, "cpu/numa")
    cells = []
    for index, node in enumerate(() if numa is None else numa.findall("cell")):
        cpus = _id_list(node, "cpus")
        if cpus and max(parse_id_list(cpus)) >= maximum:
            raise broken(f"cpus of <cell> is {cpus}, but the maximum of vCPUs is {maximum}")
        stated = number_attribute(node, "id")
        cells.append(
            NumaCell(
                id=index if stated is None else stated,
                cpus=cpus,
                memory_kib=parse_memory_kib(required(node, "memory"), node.get("unit"), "memory of <cell>"),
            )
        )
    return tuple(cells)
