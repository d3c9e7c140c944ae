"""Reads what the host could give to a domain. Everything here runs in a native thread."""

from __future__ import annotations

import libvirt
from lxml import etree

from hvsvc.domain.definition import Definition
from hvsvc.domain.facts import HostFacts
from hvsvc.domain.host_room import HostResources


def read_host(connection: libvirt.virConnect, uuid: str, definition: Definition) -> HostFacts:
    """Reads the host for the domain's own emulator, architecture, machine and virt type (case API-06).

    libvirt keeps the capabilities of each QEMU itself and reads them again when QEMU
    changed: the first question may take seconds, the next ones less than one millisecond.
    """
    online, memory_kib = _read_cpus_and_memory(connection)
    others_vcpus = others_memory_kib = 0
    for domain in connection.listAllDomains(libvirt.VIR_CONNECT_LIST_DOMAINS_ACTIVE):
        if domain.UUIDString() == uuid:
            continue
        try:
            _, _, used_kib, vcpus, _ = domain.info()
        except libvirt.libvirtError as err:
            if err.get_error_code() != libvirt.VIR_ERR_NO_DOMAIN:
                raise
            continue
        others_vcpus += vcpus
        others_memory_kib += used_kib
    return HostFacts(
        pcpus=len(online),
        memory_kib=memory_kib,
        hypervisor_max_vcpus=_read_hypervisor_maximum(connection, definition),
        machine_max_vcpus=parse_machine_maximum(connection.getCapabilities(), definition),
        others_vcpus=others_vcpus,
        others_memory_kib=others_memory_kib,
        online_pcpus=online,
        hostname=connection.getHostname(),
    )


def read_resources(connection: libvirt.virConnect) -> HostResources:
    """Reads what the host has, whoever uses it."""
    online, memory_kib = _read_cpus_and_memory(connection)
    return HostResources(pcpus=len(online), memory_kib=memory_kib)


def _read_cpus_and_memory(connection: libvirt.virConnect) -> tuple[frozenset[int], int]:
    _, online, _ = connection.getCPUMap()
    memory = connection.getMemoryStats(libvirt.VIR_NODE_MEMORY_STATS_ALL_CELLS)
    return frozenset(number for number, is_online in enumerate(online) if is_online), int(memory["total"])


def parse_machine_maximum(capabilities: str, definition: Definition) -> int | None:
    """`maxCpus` of the definition's machine type in the capabilities XML; None where not listed.

    A `<domain type=…>` with machines of its own overrides those of the architecture
    (https://libvirt.org/formatcaps.html#guest-capabilities).
    """
    root = etree.fromstring(capabilities.encode(), etree.XMLParser(resolve_entities=False, no_network=True))
    for guest in root.findall("guest"):
        arch = guest.find("arch")
        wanted = (definition.os_type, definition.arch)
        if arch is None or (guest.findtext("os_type"), arch.get("name")) != wanted:
            continue
        own = [node for node in arch.findall("domain") if node.get("type") == definition.virt_type]
        for level in (*own, arch):
            for machine in level.findall("machine"):
                if definition.machine in (machine.text, machine.get("canonical")):
                    maximum = machine.get("maxCpus", "")
                    return int(maximum) if maximum.isdecimal() else None
    return None


def _read_hypervisor_maximum(connection: libvirt.virConnect, definition: Definition) -> int | None:
    try:
        xml = connection.getDomainCapabilities(
            definition.emulator or None, definition.arch, definition.machine, definition.virt_type, 0
        )
    except libvirt.libvirtError as err:
        if err.get_error_code() == libvirt.VIR_ERR_NO_SUPPORT:
            return None  # a driver without the call, such as the test driver
        raise
    root = etree.fromstring(xml.encode(), etree.XMLParser(resolve_entities=False, no_network=True))
    vcpu = root.find("vcpu")
    maximum = "" if vcpu is None else vcpu.get("max", "")
    return int(maximum) if maximum.isdecimal() else None
