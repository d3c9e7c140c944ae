"""Reads all domains of a host with few calls. Everything here runs in a native thread."""

from __future__ import annotations

import libvirt

from hvsvc.adapters.libvirt_facts import CONFIG_XML, Listed, XmlReader, read_facts
from hvsvc.domain.facts import DomainFacts
from hvsvc.errors import HvsvcError


def read_all(
    connection: libvirt.virConnect, reader: XmlReader, security_model: tuple[str, str]
) -> tuple[list[DomainFacts], list[tuple[str, HvsvcError]]]:
    """Every domain's facts without the balloon, and the names of those that cannot be read, with why.

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
    facts: list[DomainFacts] = []
    errors: list[tuple[str, HvsvcError]] = []
    for domain in domains:
        uuid = domain.UUIDString()
        listed = Listed(uuid in off, uuid in persistent, uuid in autostart, uuid in managed_save)
        try:
            facts.append(read_facts(domain, reader, security_model, listed))
        except libvirt.libvirtError as err:
            if err.get_error_code() != libvirt.VIR_ERR_NO_DOMAIN:
                raise
        except HvsvcError as err:
            errors.append((domain.name(), err))
    return facts, errors


def find_named(connection: libvirt.virConnect, reader: XmlReader, name: str) -> list[tuple[str, str]]:
    """(uuid, libvirt name) of the domains with this libvirt name or Nova server name, ordered by uuid."""
    found: list[tuple[str, str]] = []
    for domain in connection.listAllDomains(0):
        try:
            if domain.name() == name or _read_nova_name(domain, reader) == name:
                found.append((domain.UUIDString(), domain.name()))
        except libvirt.libvirtError as err:
            if err.get_error_code() != libvirt.VIR_ERR_NO_DOMAIN:
                raise
    return sorted(found)


def _read_nova_name(domain: libvirt.virDomain, reader: XmlReader) -> str | None:
    try:
        nova = reader.read(domain.XMLDesc(0)).definition.nova
        if nova is None and domain.isActive() and domain.isPersistent():
            nova = reader.read(domain.XMLDesc(CONFIG_XML)).definition.nova
    except HvsvcError:
        return None  # a definition that cannot be read names nothing; its libvirt name still does
    return None if nova is None else nova.name


def _list_uuids(connection: libvirt.virConnect, flags: int) -> frozenset[str]:
    return frozenset(domain.UUIDString() for domain in connection.listAllDomains(flags))
