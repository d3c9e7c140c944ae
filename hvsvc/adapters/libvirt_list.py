"""Lists the domains of a host with few calls. Everything here runs in a native thread."""

from __future__ import annotations

from dataclasses import dataclass

import libvirt

from hvsvc.adapters.libvirt_facts import Listed, XmlReader, read_facts
from hvsvc.adapters.libvirt_unread import read_nova
from hvsvc.domain.facts import DomainFacts, DomainState
from hvsvc.domain.unread import UnreadDomain
from hvsvc.errors import HvsvcError


@dataclass(frozen=True, slots=True)
class Running:
    """A domain that runs, still to be read."""

    uuid: str
    libvirt_name: str
    listed: Listed


@dataclass(frozen=True, slots=True)
class Found:
    """The domains of a host: those that are off, read or not, and those that run, to be read."""

    off: list[DomainFacts]
    unread: list[UnreadDomain]
    running: list[Running]


def list_domains(connection: libvirt.virConnect, reader: XmlReader, security_model: tuple[str, str]) -> Found:
    """Lists every domain, and reads those that are off: no QEMU of theirs can hang.

    Persistence, autostart and managed save come from a few lists instead of some calls a
    domain, and the list itself tells which domains are off (they have no id), so one of
    those costs one call. One that went away meanwhile is left out.
    """
    domains = connection.listAllDomains(0)
    off = frozenset(domain.UUIDString() for domain in domains if domain.ID() == -1)
    # Only one that runs can be transient.
    persistent = (
        _list_uuids(connection, libvirt.VIR_CONNECT_LIST_DOMAINS_PERSISTENT)
        if len(off) < len(domains)
        else off
    )
    autostart = _list_uuids(connection, libvirt.VIR_CONNECT_LIST_DOMAINS_AUTOSTART)
    managed_save = _list_uuids(connection, libvirt.VIR_CONNECT_LIST_DOMAINS_MANAGEDSAVE)
    found = Found([], [], [])
    for domain in domains:
        uuid = domain.UUIDString()
        listed = Listed(uuid in off, uuid in persistent, uuid in autostart, uuid in managed_save)
        if not listed.off:
            found.running.append(Running(uuid, domain.name(), listed))
            continue
        try:
            found.off.append(read_facts(domain, reader, security_model, listed))
        except libvirt.libvirtError as err:
            if err.get_error_code() != libvirt.VIR_ERR_NO_DOMAIN:
                raise
        except HvsvcError as err:
            found.unread.append(_unread(domain, listed, err))
    return found


def find_named(connection: libvirt.virConnect, name: str, *, as_server: bool = True) -> list[tuple[str, str]]:
    """(uuid, libvirt name) of the domains with this libvirt name or Nova server name, ordered by uuid.

    Asks for no definition, so that no domain that hangs is in the way.

    :param as_server: whether Nova's names count.
    """
    found: list[tuple[str, str]] = []
    for domain in connection.listAllDomains(0):
        try:
            nova = read_nova(domain) if as_server and domain.name() != name else None
            if domain.name() == name or (nova is not None and nova.name == name):
                found.append((domain.UUIDString(), domain.name()))
        except libvirt.libvirtError as err:
            if err.get_error_code() != libvirt.VIR_ERR_NO_DOMAIN:
                raise
    return sorted(found)


def _unread(domain: libvirt.virDomain, listed: Listed, error: HvsvcError) -> UnreadDomain:
    return UnreadDomain(
        domain.UUIDString(),
        domain.name(),
        error,
        state=DomainState.SHUT_OFF,
        persistent=listed.persistent,
        autostart=listed.autostart,
        managed_save=listed.managed_save,
        nova=read_nova(domain),
    )


def _list_uuids(connection: libvirt.virConnect, flags: int) -> frozenset[str]:
    return frozenset(domain.UUIDString() for domain in connection.listAllDomains(flags))
