"""Facts of a domain to its message: what is not known stays absent, never zero."""

from __future__ import annotations

from typing import Final

from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp

from hvsvc.domain import report
from hvsvc.domain.allocation import AllocationFacts
from hvsvc.domain.definition import Definition, NovaMetadata
from hvsvc.domain.facts import DomainFacts, DomainState
from hvsvc.domain.topology import Topology
from hvsvc.domain.unread import UnreadDomain
from hvsvc.operations.reads import WatchItem, WatchKind
from hvsvc.service.status import clean
from hvsvc.v1 import desired_pb2, domain_pb2

STATES: Final = {
    DomainState.NO_STATE: domain_pb2.DOMAIN_STATE_NO_STATE,
    DomainState.RUNNING: domain_pb2.DOMAIN_STATE_RUNNING,
    DomainState.IDLE: domain_pb2.DOMAIN_STATE_IDLE,
    DomainState.PAUSED: domain_pb2.DOMAIN_STATE_PAUSED,
    DomainState.IN_SHUTDOWN: domain_pb2.DOMAIN_STATE_IN_SHUTDOWN,
    DomainState.SHUT_OFF: domain_pb2.DOMAIN_STATE_SHUT_OFF,
    DomainState.CRASHED: domain_pb2.DOMAIN_STATE_CRASHED,
    DomainState.PMSUSPENDED: domain_pb2.DOMAIN_STATE_PMSUSPENDED,
}
WATCH_TYPES: Final = {
    WatchKind.SNAPSHOT: domain_pb2.WatchDomainsResponse.TYPE_SNAPSHOT,
    WatchKind.SNAPSHOT_END: domain_pb2.WatchDomainsResponse.TYPE_SNAPSHOT_END,
    WatchKind.CHANGED: domain_pb2.WatchDomainsResponse.TYPE_CHANGED,
    WatchKind.REMOVED: domain_pb2.WatchDomainsResponse.TYPE_REMOVED,
}


def resource_name(uuid: str) -> str:
    """`domains/{uuid}`."""
    return f"domains/{uuid}"


def timestamp(time_s: float) -> Timestamp:
    """A time in seconds since the epoch, to the microsecond."""
    stamp = Timestamp()
    stamp.FromMicroseconds(round(time_s * 1e6))
    return stamp


def to_domain(
    facts: DomainFacts | UnreadDomain, read_time_s: float | None, drift: desired_pb2.Drift | None = None
) -> domain_pb2.Domain:
    """The whole report of one domain; `drift` where something is recorded for it."""
    if isinstance(facts, UnreadDomain):
        return _unread(facts, read_time_s)
    known = facts.definition
    described = report.describe(facts)
    domain = domain_pb2.Domain(
        name=resource_name(facts.uuid),
        uuid=facts.uuid,
        libvirt_name=clean(facts.libvirt_name),
        id=facts.id,
        state=STATES[facts.state],
        os_type=facts.os_type,
        persistent=facts.persistent,
        autostart=facts.autostart,
        managed_save=facts.managed_save,
        security_model=facts.security.model,
        security_doi=facts.security.doi,
        security_label=facts.security.label,
        security_enforcing=facts.security.enforcing,
        autostart_once=facts.autostart_once,
        messages=[clean(message) for message in facts.messages],
        vcpus=_vcpus(facts),
        memory=_memory(facts),
        nova=None if facts.nova is None else _nova(facts.uuid, facts.nova),
        pending_reboot=described.pending_reboot,
        pending_reboot_reasons=[clean(why) for why in described.pending_reboot_reasons],
        conditions=[
            domain_pb2.Condition(reason=note.reason.value, message=clean(note.message))
            for note in described.conditions
        ],
        etag=facts.etag,
        drift=drift,
        allocation=None if facts.allocation is None else _allocation(facts.allocation),
        virt_type=known.virt_type,
        arch=known.arch,
        machine=known.machine,
        emulator=known.emulator,
        placement=_placement(known),
    )
    if facts.cpu_time_ns is not None:
        domain.cpu_time.CopyFrom(_duration(facts.cpu_time_ns))
    for definition, topology in ((facts.config, "config"), (facts.live, "live")):
        if definition is not None and definition.topology is not None:
            getattr(domain.topology, topology).CopyFrom(to_topology(definition.topology))
    if read_time_s is not None:
        domain.read_time.CopyFrom(timestamp(read_time_s))
    return domain


def _unread(domain: UnreadDomain, read_time_s: float | None) -> domain_pb2.Domain:
    """What is known of it, and the condition that says why that is all."""
    return domain_pb2.Domain(
        name=resource_name(domain.uuid),
        uuid=domain.uuid,
        libvirt_name=clean(domain.libvirt_name),
        id=domain.id,
        state=domain_pb2.DOMAIN_STATE_UNSPECIFIED if domain.state is None else STATES[domain.state],
        persistent=domain.persistent,
        autostart=domain.autostart,
        managed_save=domain.managed_save,
        vcpus=domain_pb2.Vcpus(maximum_live=domain.maximum_vcpus, current_live=domain.current_vcpus),
        memory=domain_pb2.Memory(
            maximum_live_kib=domain.maximum_memory_kib, current_live_kib=domain.used_memory_kib
        ),
        nova=None if domain.nova is None else _nova(domain.uuid, domain.nova),
        conditions=[
            domain_pb2.Condition(reason=domain.error.reason.value, message=clean(domain.error.message))
        ],
        read_time=None if read_time_s is None else timestamp(read_time_s),
    )


def to_topology(topology: Topology) -> domain_pb2.Topology:
    """All five factors."""
    return domain_pb2.Topology(
        sockets=topology.sockets,
        dies=topology.dies,
        clusters=topology.clusters,
        cores=topology.cores,
        threads=topology.threads,
    )


def to_watch(
    item: WatchItem, read_time_s: float, drift: desired_pb2.Drift | None = None
) -> domain_pb2.WatchDomainsResponse:
    """One message of a watch; a domain that is gone has names only."""
    message = domain_pb2.WatchDomainsResponse(type=WATCH_TYPES[item.kind], event=item.event)
    if item.facts is not None:
        message.domain.CopyFrom(to_domain(item.facts, read_time_s, drift))
    elif item.uuid:
        message.domain.name = resource_name(item.uuid)
        message.domain.uuid = item.uuid
        message.domain.libvirt_name = clean(item.libvirt_name)
    return message


def _duration(time_ns: int) -> Duration:
    duration = Duration()
    duration.FromNanoseconds(time_ns)
    return duration


def _vcpus(facts: DomainFacts) -> domain_pb2.Vcpus:
    config, live, guest = facts.config, facts.live, facts.guest
    return domain_pb2.Vcpus(
        maximum_config=None if config is None else config.maximum_vcpus,
        maximum_live=None if live is None else live.maximum_vcpus,
        current_config=None if config is None else config.current_vcpus,
        current_live=None if live is None else live.current_vcpus,
        guest_present=None if guest is None else guest.present,
        guest_online=None if guest is None else guest.online,
    )


def _memory(facts: DomainFacts) -> domain_pb2.Memory:
    config, live = facts.config, facts.live
    return domain_pb2.Memory(
        maximum_config_kib=None if config is None else config.memory_kib,
        maximum_live_kib=None if live is None else facts.maximum_memory_kib,
        current_config_kib=None if config is None else config.current_memory_kib,
        current_live_kib=None if live is None else facts.used_memory_kib,
        balloon_actual_kib=facts.balloon.actual_kib,
        guest_total_kib=facts.balloon.guest_total_kib,
        guest_available_kib=facts.balloon.guest_available_kib,
    )


def _nova(uuid: str, nova: NovaMetadata) -> domain_pb2.NovaServer:
    return domain_pb2.NovaServer(
        server_id=uuid,
        name=clean(nova.name),
        flavor=clean(nova.flavor),
        flavor_vcpus=nova.flavor_vcpus,
        flavor_memory_mib=nova.flavor_memory_mib,
        project=clean(nova.project),
        project_id=nova.project_id,
    )


def _allocation(allocation: AllocationFacts) -> domain_pb2.Allocation:
    return domain_pb2.Allocation(
        vcpus=allocation.size.vcpus,
        memory_mib=allocation.size.memory_mib,
        resource_provider=allocation.resource_provider,
    )


def _placement(definition: Definition) -> domain_pb2.Placement:
    return domain_pb2.Placement(
        numa_cells=[
            domain_pb2.NumaCell(id=cell.id, cpus=cell.cpus, memory_kib=cell.memory_kib)
            for cell in definition.numa_cells
        ],
        vcpu_pins=[domain_pb2.VcpuPin(vcpu=pin.vcpu, cpuset=pin.cpuset) for pin in definition.vcpu_pins],
        cpuset=definition.cpuset,
        hugepages=definition.hugepages,
        memory_devices=definition.memory_devices,
        memory_locks=definition.memory_locks,
        balloon_model=definition.balloon_model,
        max_memory_kib=definition.max_memory_kib,
    )
