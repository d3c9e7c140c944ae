"""What hvsvc reads from a domain's XML, as values.

The names follow libvirt's domain XML format; sizes are KiB whatever unit the XML
used. The XML itself stays the truth: these values are derived from it and never
written back as a whole.
"""

from __future__ import annotations

from dataclasses import dataclass

from hvsvc.domain.topology import Topology


@dataclass(frozen=True, slots=True)
class VcpuEntry:
    """One `<vcpus><vcpu/>` entry."""

    id: int
    enabled: bool
    hotpluggable: bool
    order: int | None = None


@dataclass(frozen=True, slots=True)
class NumaCell:
    """One guest NUMA cell; `cpus` is libvirt's list form, "" where absent."""

    id: int
    cpus: str
    memory_kib: int


@dataclass(frozen=True, slots=True)
class VcpuPin:
    """The pin of one vCPU."""

    vcpu: int
    cpuset: str


@dataclass(frozen=True, slots=True)
class Device:
    """A disk, an interface or a host device: what it is, where the guest has it, and what is behind it."""

    kind: str
    #: target of a disk, MAC of an interface, host address of a host device
    at: str
    #: file, block device or network volume of a disk; "" for the others and for an empty drive
    source: str = ""

    def __str__(self) -> str:
        return " ".join(part for part in (self.kind, self.at, self.source) if part)


@dataclass(frozen=True, slots=True)
class NovaMetadata:
    """What Nova wrote in the domain's metadata (namespace nova/1.0 or 1.1)."""

    name: str
    flavor: str
    flavor_vcpus: int | None
    flavor_memory_mib: int | None
    project: str
    project_id: str


@dataclass(frozen=True, slots=True)
class Definition:
    """The values of one domain XML, inactive (config) or live.

    `max_memory_kib` is `<maxMemory>`, the ceiling for memory devices, not the
    domain's maximum memory (`memory_kib`).
    """

    name: str
    uuid: str
    virt_type: str
    os_type: str
    arch: str
    machine: str
    emulator: str
    maximum_vcpus: int
    current_vcpus: int
    cpuset: str
    vcpus: tuple[VcpuEntry, ...]
    topology: Topology | None
    memory_kib: int
    current_memory_kib: int
    max_memory_kib: int | None
    numa_cells: tuple[NumaCell, ...]
    vcpu_pins: tuple[VcpuPin, ...]
    #: other elements that name single vCPUs: vcpusched, cachetune, memorytune, …
    vcpu_tunings: tuple[str, ...]
    hugepages: bool
    memory_devices: tuple[str, ...]
    #: what keeps the memory locked, in words: hostdev, launchSecurity, locked
    memory_locks: tuple[str, ...]
    #: "none" where it is switched off, "" where the XML has no `<memballoon>`
    balloon_model: str
    balloon_stats: bool
    agent_configured: bool
    #: state of the agent channel as libvirt reports it in the live XML; None in config
    agent_connected: bool | None
    acpi: bool
    extended_interrupts: bool
    nova: NovaMetadata | None
    #: `<numatune>` elements that bind guest memory to host nodes, in words
    numa_tunings: tuple[str, ...] = ()
    #: the smallest `<memtune>` limit: a domain whose memory grows past it is killed by the host
    memory_limit_kib: int | None = None
    devices: tuple[Device, ...] = ()
    #: what libvirt does when the guest powers off: "destroy" or "restart"; "" where the XML does not say
    on_poweroff: str = ""
