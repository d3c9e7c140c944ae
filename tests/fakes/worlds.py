"""Worlds for tests of the deciding core: facts made from real domain XML, so that they agree with it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hvsvc.domain.facts import (
    Balloon,
    DomainFacts,
    DomainState,
    GuestCpu,
    GuestCpus,
    HostFacts,
    Security,
    ServerFacts,
)
from hvsvc.domain.limits import HostLimits
from hvsvc.domain.read_definition import parse_definition
from hvsvc.domain.world import World
from hvsvc.domain.xml_document import fingerprint

UUID = "6f0c5a3e-8b1d-4c57-9a35-1f2e3d4c5b6a"
MIB = 1024
GIB = 1024 * MIB

NOVA = """<metadata><nova:instance xmlns:nova="http://openstack.org/xmlns/libvirt/nova/1.1">
<nova:name>web-1</nova:name><nova:flavor name="small"><nova:memory>512</nova:memory><nova:vcpus>2</nova:vcpus>
</nova:flavor><nova:owner><nova:project uuid="0123456789abcdef0123456789abcdef">demo</nova:project></nova:owner>
</nova:instance></metadata>"""


def domain_xml(
    *,
    maximum: int = 2,
    current: int = 2,
    memory_kib: int = 512 * MIB,
    current_memory_kib: int | None = None,
    topology: str | None = None,
    arch: str = "x86_64",
    machine: str = "pc-q35-7.2",
    virt_type: str = "kvm",
    nova: bool = False,
    acpi: bool = True,
    balloon: str = "virtio",
    agent: str | None = "connected",
    cpu: str = "",
    extra: str = "",
    cpuset: str = "",
    devices: str = "",
) -> str:
    """A domain's XML; `topology` "4x1x1" is sockets, cores, threads; `agent` its state, "" unknown, None none."""
    sockets, cores, threads = (
        (topology if topology is not None else f"{maximum}x1x1").split("x") if topology != "" else "   "
    )
    topology_xml = (
        f"<topology sockets='{sockets}' cores='{cores}' threads='{threads}'/>" if topology != "" else ""
    )
    state = f" state='{agent}'" if agent else ""
    channel = (
        f"<channel type='unix'><target type='virtio' name='org.qemu.guest_agent.0'{state}/></channel>"
        if agent is not None
        else ""
    )
    return f"""<domain type='{virt_type}'><name>instance-00000001</name><uuid>{UUID}</uuid>{NOVA if nova else ""}
<memory unit='KiB'>{memory_kib}</memory><currentMemory unit='KiB'>{current_memory_kib or memory_kib}</currentMemory>
<vcpu placement='static'{f" cpuset='{cpuset}'" if cpuset else ""} current='{current}'>{maximum}</vcpu>{extra}
<os><type arch='{arch}' machine='{machine}'>hvm</type></os><features>{"<acpi/>" if acpi else ""}</features>
<cpu>{topology_xml}{cpu}</cpu><devices><emulator>/usr/bin/qemu-system-x86_64</emulator>{channel}{devices}
<memballoon model='{balloon}'/></devices></domain>"""


def guest_cpus(present: int, online: int | None = None) -> GuestCpus:
    """CPUs 0 to present-1, the first `online` of them in use."""
    used = present if online is None else online
    return GuestCpus(tuple(GuestCpu(i, i < used, i > 0) for i in range(present)))


HOST = HostFacts(
    pcpus=8,
    memory_kib=64 * GIB,
    hypervisor_max_vcpus=255,
    machine_max_vcpus=288,
    others_vcpus=10,
    others_memory_kib=8 * GIB,
    online_pcpus=frozenset(range(8)),
)

SERVER = ServerFacts(UUID, "web-1", "ACTIVE", None, "active", False, "cmp1", "instance-00000001")


def facts(
    config: dict[str, Any] | None = None, live: dict[str, Any] | None = None, **changes: Any
) -> DomainFacts:
    """A running domain whose definitions are `domain_xml(**config)` and `domain_xml(**live)`.

    `live` defaults to the config; `state` other than running makes it off or paused.
    """
    stored = domain_xml(**{"agent": "", **(config or {})})
    running = changes.pop("running", True)
    active = parse_definition(domain_xml(**(live if live is not None else config or {}))) if running else None
    found = DomainFacts(
        uuid=UUID,
        libvirt_name="instance-00000001",
        id=7 if running else None,
        state=DomainState.RUNNING if running else DomainState.SHUT_OFF,
        os_type="hvm",
        cpu_time_ns=12_000_000_000,
        persistent=True,
        autostart=False,
        managed_save=False,
        security=Security("none", "0"),
        maximum_memory_kib=active.memory_kib if active else 0,
        used_memory_kib=active.current_memory_kib if active else None,
        config=parse_definition(stored),
        live=active,
        config_xml=stored,
        etag=fingerprint(stored),
        balloon=Balloon(
            active.current_memory_kib, active.current_memory_kib, active.current_memory_kib // 2, 1000
        )
        if active
        else Balloon(),
        guest=guest_cpus(active.current_vcpus) if active and active.agent_connected else None,
    )
    return replace(found, **changes)


def world(domain: DomainFacts, **changes: Any) -> World:
    """A roomy host; a domain of Nova has an ACTIVE server."""
    server = SERVER if domain.nova is not None else None
    return replace(World(domain, HOST, HostLimits(), server), **changes)
