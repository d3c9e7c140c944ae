"""Changes a domain through libvirt. Everything here runs in a native thread, one hop a change.

What libvirt's error codes cannot tell apart is checked right before the call, in the same
hop: code 8 means "above the maximum" and "flag unsupported" (case CPU-01), code 55 "not
running" and much else (case RB-06).
"""

from __future__ import annotations

import libvirt

from hvsvc.adapters.guest_channel import require_agent
from hvsvc.adapters.libvirt_facts import CONFIG_XML, XmlReader
from hvsvc.domain.xml_document import fingerprint
from hvsvc.errors import AbortedError, FailedPreconditionError, Reason


def define(
    connection: libvirt.virConnect, reader: XmlReader, uuid: str, previous_etag: str, xml: str
) -> None:
    """Defines `xml` if the stored definition still is the one of `previous_etag`.

    libvirt has no compare-and-set, so the two lie as close together as they can. Never
    undefines: a refused define leaves the old definition as it was (case XML-05).
    """
    domain = connection.lookupByUUIDString(uuid)
    name = domain.name()
    if not domain.isPersistent():
        # A define would make it persistent, which nobody asked for (case XML-13).
        raise FailedPreconditionError(
            Reason.TRANSIENT_DOMAIN,
            f"Domain {name} is transient: it has no stored definition to edit. Define it first.",
        )
    new = reader.read(xml).definition
    if (new.uuid, new.name) != (uuid, name):
        # Another uuid with another name would make a second domain (case XML-06).
        raise FailedPreconditionError(
            Reason.DEFINITION_REFUSED,
            f"The new definition is of {new.name} ({new.uuid}), not of {name} ({uuid}): nothing was defined.",
        )
    if fingerprint(domain.XMLDesc(CONFIG_XML)) != previous_etag:
        raise AbortedError(
            Reason.DEFINITION_CHANGED,
            f"The stored definition of {name} changed since it was read; nothing was defined. Read again, then redo.",
        )
    connection.defineXML(xml)


def set_vcpus_live(connection: libvirt.virConnect, uuid: str, vcpus: int) -> None:
    """Plugs vCPUs up to `vcpus`; libvirt plugs one at a time, so a part may stay after an error (case CPU-07)."""
    domain = look_up_running(connection, uuid)
    ceiling = domain.vcpusFlags(libvirt.VIR_DOMAIN_AFFECT_LIVE | libvirt.VIR_DOMAIN_VCPU_MAXIMUM)
    current = domain.vcpusFlags(libvirt.VIR_DOMAIN_AFFECT_LIVE)
    values = {"requested": vcpus, "current": current, "ceiling": ceiling}
    if vcpus > ceiling:
        raise FailedPreconditionError(
            Reason.ABOVE_LIVE_CEILING,
            f"{vcpus} vCPUs asked, {current} now, the running domain allows {ceiling}. "
            "Raise the ceiling and reboot first.",
            values,
        )
    if vcpus < current:
        # Somebody else may have plugged more since the plan was made; unplugging corrupts QEMU under TCG.
        raise FailedPreconditionError(
            Reason.LIVE_VCPU_SHRINK,
            f"{vcpus} vCPUs asked, {current} now: hvsvc does not unplug vCPUs of a running domain.",
            values,
        )
    if vcpus > current:
        domain.setVcpusFlags(vcpus, libvirt.VIR_DOMAIN_AFFECT_LIVE)


def set_memory_live(connection: libvirt.virConnect, reader: XmlReader, uuid: str, memory_kib: int) -> None:
    """Sets the balloon's target; whether the guest follows is another matter (case MEM-01)."""
    domain = look_up_running(connection, uuid)
    ceiling_kib = domain.maxMemory()
    if memory_kib > ceiling_kib:
        raise FailedPreconditionError(
            Reason.ABOVE_LIVE_CEILING,
            f"{memory_kib} KiB asked, the running domain allows {ceiling_kib} KiB. Raise the ceiling and reboot first.",
            {"requestedKib": memory_kib, "ceilingKib": ceiling_kib},
        )
    if reader.read(domain.XMLDesc(0)).definition.balloon_model in {"", "none"}:
        raise FailedPreconditionError(
            Reason.NO_BALLOON,
            f"Domain {domain.name()} has no memory balloon, so its memory cannot change while it runs (case MEM-02).",
        )
    domain.setMemoryFlags(memory_kib, libvirt.VIR_DOMAIN_AFFECT_LIVE)


def shut_down(connection: libvirt.virConnect, reader: XmlReader, uuid: str, *, agent: bool) -> None:
    """Asks the guest to shut down; returns when it was asked, not when it is off (case RB-04)."""
    domain = look_up_running(connection, uuid)
    if agent:
        require_agent(reader.read(domain.XMLDesc(0)).definition)
    domain.shutdownFlags(
        libvirt.VIR_DOMAIN_SHUTDOWN_GUEST_AGENT if agent else libvirt.VIR_DOMAIN_SHUTDOWN_ACPI_POWER_BTN
    )


def start(connection: libvirt.virConnect, uuid: str) -> None:
    """Starts a domain from its stored definition."""
    connection.lookupByUUIDString(uuid).create()


def look_up_running(connection: libvirt.virConnect, uuid: str) -> libvirt.virDomain:
    """The domain, if it runs.

    :raises FailedPreconditionError: DOMAIN_NOT_RUNNING.
    """
    domain = connection.lookupByUUIDString(uuid)
    if not domain.isActive():
        raise FailedPreconditionError(
            Reason.DOMAIN_NOT_RUNNING, f"Domain {domain.name()} is not running: start it first."
        )
    return domain
