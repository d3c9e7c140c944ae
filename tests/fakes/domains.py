"""Facts of made-up domains, every value different from every other."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hvsvc.domain.definition import Definition, NovaMetadata, NumaCell, VcpuPin
from hvsvc.domain.facts import Balloon, DomainFacts, DomainState, GuestCpu, GuestCpus, Security
from hvsvc.domain.topology import Topology

WEB_UUID = "11111111-2222-4333-8444-555555555555"
DB_UUID = "66666666-7777-4888-9999-aaaaaaaaaaaa"


def definition(**changes: Any) -> Definition:
    """A stored definition: maximum 8 of 2x1x1x4x1, current 2, 2 GiB of which 1 GiB."""
    made = Definition(
        name="instance-0000335c",
        uuid=WEB_UUID,
        virt_type="kvm",
        os_type="hvm",
        arch="x86_64",
        machine="pc-q35-7.2",
        emulator="/usr/bin/qemu-system-x86_64",
        maximum_vcpus=8,
        current_vcpus=2,
        cpuset="",
        vcpus=(),
        topology=Topology(sockets=2, cores=4),
        memory_kib=2 * 1024 * 1024,
        current_memory_kib=1024 * 1024,
        max_memory_kib=None,
        numa_cells=(),
        vcpu_pins=(),
        vcpu_tunings=(),
        hugepages=False,
        memory_devices=(),
        memory_locks=(),
        balloon_model="virtio",
        balloon_stats=True,
        agent_configured=True,
        agent_connected=None,
        acpi=True,
        extended_interrupts=False,
        nova=NovaMetadata("web-1", "m1.small", 2, 1024, "shop", "0123456789abcdef0123456789abcdef"),
    )
    return replace(made, **changes)


def running(**changes: Any) -> DomainFacts:
    """A running Nova server whose ceiling was raised in the config and waits for a reboot."""
    live = definition(
        maximum_vcpus=4,
        current_vcpus=3,
        topology=Topology(sockets=4),
        memory_kib=1536 * 1024,
        current_memory_kib=768 * 1024,
        agent_connected=True,
    )
    made = DomainFacts(
        uuid=WEB_UUID,
        libvirt_name="instance-0000335c",
        id=7,
        state=DomainState.RUNNING,
        os_type="hvm",
        cpu_time_ns=12_500_000_000,
        persistent=True,
        autostart=False,
        managed_save=False,
        security=Security("apparmor", "0", "libvirt-11111111", enforcing=True),
        maximum_memory_kib=1536 * 1024,
        used_memory_kib=768 * 1024,
        config=definition(),
        live=live,
        config_xml="<domain/>",
        etag="0f" * 32,
        balloon=Balloon(actual_kib=767 * 1024, guest_total_kib=700 * 1024, guest_available_kib=500 * 1024),
        guest=GuestCpus(
            (GuestCpu(0, online=True, can_offline=False), GuestCpu(5, online=False, can_offline=True))
        ),
    )
    return replace(made, **changes)


def shut_off(**changes: Any) -> DomainFacts:
    """A plain libvirt domain that is off, without a topology, tied to the host in every way."""
    config = definition(
        name="db",
        uuid=DB_UUID,
        virt_type="qemu",
        topology=None,
        nova=None,
        cpuset="0-3",
        max_memory_kib=4 * 1024 * 1024,
        numa_cells=(NumaCell(0, "0-3", 1024 * 1024), NumaCell(1, "4-7", 1024 * 1024)),
        vcpu_pins=(VcpuPin(1, "2-3"),),
        hugepages=True,
        memory_devices=("dimm",),
        memory_locks=("hostdev",),
    )
    made = DomainFacts(
        uuid=DB_UUID,
        libvirt_name="db",
        id=None,
        state=DomainState.SHUT_OFF,
        os_type="hvm",
        cpu_time_ns=None,
        persistent=True,
        autostart=True,
        managed_save=True,
        security=Security("none", "0"),
        maximum_memory_kib=2 * 1024 * 1024,
        used_memory_kib=None,
        config=config,
        live=None,
        config_xml="<domain/>",
        etag="a1" * 32,
        balloon=Balloon(),
    )
    return replace(made, **changes)
