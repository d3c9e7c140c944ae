"""What was read of the world: the only input of planning and verifying."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from hvsvc.domain.allocation import AllocationFacts
from hvsvc.domain.definition import Definition, NovaMetadata
from hvsvc.domain.flavor import Flavor
from hvsvc.errors import HvsvcError


class DomainState(Enum):
    """Power state, worded as `virsh domstate` does."""

    NO_STATE = "no state"
    RUNNING = "running"
    IDLE = "idle"
    PAUSED = "paused"
    IN_SHUTDOWN = "in shutdown"
    SHUT_OFF = "shut off"
    CRASHED = "crashed"
    PMSUSPENDED = "pmsuspended"


@dataclass(frozen=True, slots=True)
class GuestCpu:
    """One logical CPU of the guest; `can_offline` None where the agent did not say (case GA-04)."""

    id: int
    online: bool
    can_offline: bool | None


@dataclass(frozen=True, slots=True)
class GuestCpus:
    """The guest's CPUs as its agent lists them; ids need not be contiguous (case CPU-15)."""

    cpus: tuple[GuestCpu, ...]

    @property
    def present(self) -> int:
        """CPUs the guest sees."""
        return len(self.cpus)

    @property
    def online(self) -> int:
        """CPUs the guest uses."""
        return sum(1 for cpu in self.cpus if cpu.online)

    @property
    def ids(self) -> frozenset[int]:
        """All ids."""
        return frozenset(cpu.id for cpu in self.cpus)

    @property
    def offline_ids(self) -> frozenset[int]:
        """Ids of the CPUs that are present and offline."""
        return frozenset(cpu.id for cpu in self.cpus if not cpu.online)


@dataclass(frozen=True, slots=True)
class Balloon:
    """Balloon statistics, KiB; what the guest's driver has not reported is None (case MEM-07)."""

    actual_kib: int | None = None
    guest_total_kib: int | None = None
    #: MemAvailable: what the guest could hand out without swapping ("usable")
    guest_available_kib: int | None = None
    #: seconds since the epoch of the guest's last report; None where it never reported
    last_update_s: int | None = None


@dataclass(frozen=True, slots=True)
class Security:
    """Security driver as `virsh dominfo` prints it; label and enforcing None while off."""

    model: str
    doi: str
    label: str | None = None
    enforcing: bool | None = None


@dataclass(frozen=True, slots=True)
class DomainFacts:
    """One domain, read at one moment.

    `config` is None for a transient domain, `live` is None while it is off. `etag`
    is the fingerprint of the inactive XML. `guest` is None where the agent was not
    asked or could not tell; `guest_error` then says which and why. So are `allocation`
    and `allocation_error` of Placement.
    """

    uuid: str
    libvirt_name: str
    id: int | None
    state: DomainState
    os_type: str
    cpu_time_ns: int | None
    persistent: bool
    autostart: bool
    managed_save: bool
    security: Security
    maximum_memory_kib: int
    used_memory_kib: int | None
    config: Definition | None
    live: Definition | None
    config_xml: str | None
    etag: str
    balloon: Balloon
    #: libvirt's notes, such as taints; not read in lists
    messages: tuple[str, ...] = ()
    #: None where libvirt cannot tell (before 11.2), and in lists
    autostart_once: bool | None = None
    guest: GuestCpus | None = None
    guest_error: HvsvcError | None = None
    allocation: AllocationFacts | None = None
    allocation_error: HvsvcError | None = None

    @property
    def running(self) -> bool:
        """Whether live changes are possible now (case RB-06)."""
        return self.live is not None and self.state in (DomainState.RUNNING, DomainState.IDLE)

    @property
    def definition(self) -> Definition:
        """The live definition where there is one, else the stored one."""
        found = self.live or self.config
        assert found is not None, "libvirt knows a domain by one definition at least"
        return found

    @property
    def nova(self) -> NovaMetadata | None:
        """Nova's metadata; in either definition it makes the domain Nova's."""
        for definition in (self.config, self.live):
            if definition is not None and definition.nova is not None:
                return definition.nova
        return None


@dataclass(frozen=True, slots=True)
class HostFacts:
    """The host, for one domain's emulator, architecture, machine and virt type (case API-06).

    `others_*` sum the current values of the host's other running domains.
    """

    pcpus: int
    memory_kib: int
    #: largest vCPU count of domcapabilities; None where libvirt does not say
    hypervisor_max_vcpus: int | None
    #: largest count of the machine type from capabilities; None where not listed
    machine_max_vcpus: int | None
    others_vcpus: int
    others_memory_kib: int
    online_pcpus: frozenset[int]
    #: libvirt's name of this host, by which Nova knows it as a hypervisor
    hostname: str = ""


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """The Nova server, as its API tells it now."""

    id: str
    name: str
    status: str
    task_state: str | None
    vm_state: str | None
    locked: bool
    #: compute host and libvirt name; None without the admin role
    host: str | None
    libvirt_name: str | None
    project_id: str = ""
    #: as the server was made from it; None where Nova does not tell
    flavor: Flavor | None = None
    #: the root disk is a volume, to which the flavor's disk does not matter
    volume_backed: bool = False
    #: nova-compute of its host as Nova sees it, such as UP, UNKNOWN or DOWN; None without the admin role
    host_status: str | None = None
    #: libvirt's name of that host; None without the admin role
    hypervisor_hostname: str | None = None


class LifecycleEvent(Enum):
    """libvirt's domain lifecycle events that tell what happened to a domain."""

    DEFINED_ADDED = "DEFINED ADDED"
    DEFINED_UPDATED = "DEFINED UPDATED"
    UNDEFINED = "UNDEFINED"
    STARTED = "STARTED"
    SUSPENDED = "SUSPENDED"
    RESUMED = "RESUMED"
    STOPPED_SHUTDOWN = "STOPPED SHUTDOWN"
    STOPPED_DESTROYED = "STOPPED DESTROYED"
    STOPPED_CRASHED = "STOPPED CRASHED"
    STOPPED_FAILED = "STOPPED FAILED"
    STOPPED_OTHER = "STOPPED OTHER"
    SHUTDOWN = "SHUTDOWN"
    PMSUSPENDED = "PMSUSPENDED"
    CRASHED = "CRASHED"
    REBOOTED = "REBOOTED"
    AGENT_CONNECTED = "AGENT CONNECTED"
    AGENT_DISCONNECTED = "AGENT DISCONNECTED"
    BALLOON_CHANGED = "BALLOON CHANGED"
    OTHER = "OTHER"


@dataclass(frozen=True, slots=True)
class DomainEvent:
    """One event of a domain; `kind` OTHER where the name in `text` is all there is to say."""

    uuid: str
    libvirt_name: str
    kind: LifecycleEvent
    #: as libvirt names it, such as "STARTED BOOTED"
    text: str
