"""What about a domain or its server forbids a change, whatever the target."""

from __future__ import annotations

from collections.abc import Iterator

from hvsvc.domain.definition import Definition
from hvsvc.domain.facts import DomainFacts, HostFacts, ServerFacts
from hvsvc.domain.id_list import format_id_list, parse_id_list
from hvsvc.domain.world import World
from hvsvc.errors import AbortedError, FailedPreconditionError, HvsvcError, Reason, UnavailableError

#: Nova statuses in which the definition on the host is the one the server goes on with (nova.md's table, measured)
EDITABLE_STATUSES = frozenset({"ACTIVE", "PAUSED", "SUSPENDED"})
#: nova-compute does not report (UNKNOWN), or was declared down (DOWN): Nova's `host_status`
_SILENT_HOST_STATUSES = frozenset({"UNKNOWN", "DOWN"})


def find_tied_resources(definition: Definition) -> Iterator[HvsvcError]:
    """Yields a refusal for each way the domain's resources are tied down.

    Such domains are reported, never changed: libvirt would put new vCPUs into cell 0
    (case NUMA-01), let pinned guests float (case NUMA-05), or drop a pin silently.
    """
    if len(definition.numa_cells) > 1:
        cells = "; ".join(f"cell {cell.id}: CPUs {cell.cpus or 'none'}" for cell in definition.numa_cells)
        yield FailedPreconditionError(
            Reason.SEVERAL_NUMA_CELLS,
            f"the guest has {len(definition.numa_cells)} NUMA cells ({cells}); only domains with none or one can be "
            "changed; resize the server through Nova instead",
            {"cells": cells},
        )
    if definition.vcpu_pins:
        pins = ", ".join(f"{pin.vcpu} to {pin.cpuset}" for pin in definition.vcpu_pins)
        yield FailedPreconditionError(
            Reason.PINNED,
            f"vCPUs are pinned to host CPUs ({pins}); new ones would float; a pinned domain cannot be changed; "
            "resize the server through Nova instead",
            {"pins": pins},
        )
    if definition.vcpu_tunings:
        yield FailedPreconditionError(
            Reason.PINNED,
            f"single vCPUs are tuned ({', '.join(definition.vcpu_tunings)}); new ones would not be; such a domain "
            "cannot be changed; remove the tuning first",
            {"tunings": ", ".join(definition.vcpu_tunings)},
        )
    if definition.numa_tunings:
        tunings = ", ".join(definition.numa_tunings)
        yield FailedPreconditionError(
            Reason.PINNED,
            f"the memory is bound to host NUMA nodes ({tunings}), which may not have room for more; such a domain "
            "cannot be changed; resize the server through Nova instead",
            {"tunings": tunings},
        )
    if definition.hugepages:
        yield FailedPreconditionError(
            Reason.HUGEPAGES,
            "the memory is backed by hugepages, which a balloon cannot give or take; the domain cannot be changed; "
            "resize the server through Nova instead",
        )
    if definition.memory_devices:
        yield FailedPreconditionError(
            Reason.MEMORY_DEVICES,
            f"the domain has memory devices ({', '.join(definition.memory_devices)}), which count in its memory "
            "maximum; it cannot be changed; detach them first",
            {"devices": ", ".join(definition.memory_devices)},
        )
    if definition.memory_locks:
        yield FailedPreconditionError(
            Reason.MEMORY_LOCKED,
            f"the memory is locked ({', '.join(definition.memory_locks)}), which inhibits the balloon; the domain "
            "cannot be changed; resize the server through Nova instead",
            {"locks": ", ".join(definition.memory_locks)},
        )


def check_cpuset(definition: Definition, host: HostFacts) -> Iterator[HvsvcError]:
    """Yields a refusal where vCPUs to come would be bound to CPUs the host lacks (case NUMA-04)."""
    if definition.cpuset:
        wanted = parse_id_list(definition.cpuset)
        missing = wanted - host.online_pcpus
        if missing:
            # the cgroup refuses the whole set for one such CPU, after vCPUs were added
            yield FailedPreconditionError(
                Reason.CPUSET_NOT_ON_HOST,
                f"the domain's vCPUs may run only on host CPUs {definition.cpuset}, of which "
                f"{format_id_list(missing)} are not online here; correct the cpuset first",
                {"cpuset": definition.cpuset, "missing": format_id_list(missing)},
            )


def check_editable(domain: DomainFacts) -> Iterator[HvsvcError]:
    """Yields a refusal where the stored definition cannot be changed to any use."""
    if domain.config is None:
        yield FailedPreconditionError(
            Reason.TRANSIENT_DOMAIN,
            "the domain is transient: it has no stored definition to change and vanishes when it stops; "
            "only its live values can be set (affect live)",
        )
    elif domain.managed_save:
        how = (
            "resume the server first (openstack server resume)"
            if domain.nova is not None
            else "start the domain or remove the image first (virsh managedsave-remove)"
        )
        yield FailedPreconditionError(
            Reason.MANAGED_SAVE_IMAGE,
            f"a managed-save image exists: the next start restores the definition stored in it; {how}",
        )


def check_server(world: World) -> Iterator[HvsvcError]:
    """Yields a refusal where Nova is at work on the server or would discard the change."""
    server = world.server
    # a suspended server is off too, but goes on with the definition it has
    off = world.domain.nova is not None and world.domain.live is None and not world.domain.managed_save
    if server is None:
        if off:
            yield _start_discards("off")
        return
    # in ERROR a task may stay for good: nobody works on it (a resize asked for while nova-compute was away; measured)
    if server.task_state is not None and server.status != "ERROR":
        yield AbortedError(
            Reason.SERVER_BUSY,
            f"Nova is at work on the server (task_state {server.task_state}); nothing was changed; "
            "try again when it has finished",
            {"taskState": server.task_state},
        )
    elif runs_elsewhere(world):
        yield FailedPreconditionError(
            Reason.SERVER_ELSEWHERE,
            f"Nova runs the server on host {server.hypervisor_hostname}, not on this one ({world.host.hostname}): what "
            "is here was left behind, as by an evacuation, and hvsvc leaves it alone; ask the hvsvc of that host",
            {"host": str(server.hypervisor_hostname), "thisHost": world.host.hostname},
        )
    elif server.status == "SHUTOFF" or (off and server.status in EDITABLE_STATUSES):
        yield _start_discards(server.status if server.status == "SHUTOFF" else "off")
    elif server.status not in EDITABLE_STATUSES:
        yield FailedPreconditionError(
            Reason.SERVER_NOT_ACTIVE,
            f"the server's status is {server.status}; it must be ACTIVE; bring it there first",
            {"status": server.status},
        )


def runs_elsewhere(world: World) -> bool:
    """Whether Nova has the server on another host, so that what it does there is nothing to the domain here.

    Nova's libvirt driver takes its hypervisor's name from libvirt once, at its start, and
    a resolver may add or leave out the domain since; the host's own part of it decides.
    """
    server, here = world.server, world.host.hostname
    if server is None or not server.hypervisor_hostname or not here:
        return False
    return server.hypervisor_hostname.partition(".")[0].lower() != here.partition(".")[0].lower()


def _start_discards(state: str) -> HvsvcError:
    return FailedPreconditionError(
        Reason.NOVA_START_DISCARDS,
        f"the server is {state}, and Nova's start makes the definition anew: whatever is stored now would be lost; "
        "start the server first",
        {"status": state},
    )


def check_reboot(world: World) -> Iterator[HvsvcError]:
    """Yields a refusal where an orderly reboot is known to be impossible."""
    domain = world.domain
    if not domain.running:
        yield FailedPreconditionError(
            Reason.DOMAIN_NOT_RUNNING,
            f"the domain is {domain.state.value}; only a running one can be rebooted, and hvsvc never starts or "
            "resumes one unasked; bring it to run first, a server of Nova's through Nova",
            {"state": domain.state.value},
        )
        return
    if domain.config is None:
        yield FailedPreconditionError(
            Reason.TRANSIENT_DOMAIN,
            "the domain is transient: it would vanish when it shuts down, and nothing could start it again; "
            "define it first (virsh define)",
        )
    yield from _check_shutdown(domain)
    if domain.nova is None:
        return
    if world.server is None:
        yield _nova_cannot_reboot(world)
        return
    yield from _check_server_reboot(world.server)


def has_power_button(definition: Definition) -> bool:
    """Whether the guest can be asked to shut down without its agent; beyond x86 that needs no ACPI."""
    return definition.acpi or definition.arch not in ("x86_64", "i686")


def _check_shutdown(domain: DomainFacts) -> Iterator[HvsvcError]:
    live = domain.definition
    if not live.agent_connected and not has_power_button(live):
        yield FailedPreconditionError(
            Reason.NO_ACPI,
            "the guest cannot be asked to shut down: the domain has no ACPI and no guest agent is connected; a soft "
            "reboot would end as a hard one and lose the ceiling; start the agent in the guest first",
        )
    if live.on_poweroff == "restart":
        # libvirt resets the guest in the same process (measured): a new ceiling needs a new one, and Nova, which
        # waits for the domain to go off, would turn to a hard reboot
        yield FailedPreconditionError(
            Reason.UNSUPPORTED_DEFINITION,
            "the domain's on_poweroff is restart: when its guest shuts down, it is restarted in the same QEMU process, "
            "which brings no ceiling into effect; set it to destroy first "
            "(virsh set-lifecycle-action DOMAIN poweroff destroy --live --config)",
            {"onPoweroff": live.on_poweroff},
        )


def _nova_cannot_reboot(world: World) -> HvsvcError:
    if world.server_error is not None:
        return world.server_error
    return FailedPreconditionError(
        Reason.NOVA_NOT_CONFIGURED,
        "the domain is Nova's and may be rebooted only through Nova, for which this host has no credential; "
        "set [nova] cloud in the configuration",
    )


def _check_server_reboot(server: ServerFacts) -> Iterator[HvsvcError]:
    if server.locked:
        # Nova lets an administrator reboot a locked server, so hvsvc itself must refuse.
        yield FailedPreconditionError(
            Reason.SERVER_LOCKED,
            "the server is locked in Nova; unlock it first (openstack server unlock)",
        )
    if server.task_state is None and server.status != "ACTIVE" and server.status in EDITABLE_STATUSES:
        yield FailedPreconditionError(
            Reason.SERVER_NOT_ACTIVE,
            f"the server's status is {server.status}; a soft reboot needs ACTIVE; resume it first",
            {"status": server.status},
        )
    if server.host_status in _SILENT_HOST_STATUSES:
        # Nova would take it, and keep it for whenever nova-compute is back (measured on Nova 26.2).
        yield UnavailableError(
            Reason.NOVA_UNAVAILABLE,
            f"nova-compute on the server's host does not report to Nova (host_status {server.host_status}): Nova would "
            "take the reboot now and do it unannounced once it is back; start nova-compute first; what needs no reboot "
            "can be done meanwhile",
            {"hostStatus": server.host_status},
        )
