"""Reads what libvirt says of one domain. Everything here runs in a native thread."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from dataclasses import dataclass

import libvirt

from hvsvc.domain.definition import Definition
from hvsvc.domain.facts import Balloon, DomainFacts, DomainState, Security
from hvsvc.domain.read_definition import read_definition
from hvsvc.domain.xml_document import fingerprint, parse_document
from hvsvc.errors import AbortedError, Reason

#: libvirt's states
STATES = {
    libvirt.VIR_DOMAIN_NOSTATE: DomainState.NO_STATE,
    libvirt.VIR_DOMAIN_RUNNING: DomainState.RUNNING,
    libvirt.VIR_DOMAIN_BLOCKED: DomainState.IDLE,
    libvirt.VIR_DOMAIN_PAUSED: DomainState.PAUSED,
    libvirt.VIR_DOMAIN_SHUTDOWN: DomainState.IN_SHUTDOWN,
    libvirt.VIR_DOMAIN_SHUTOFF: DomainState.SHUT_OFF,
    libvirt.VIR_DOMAIN_CRASHED: DomainState.CRASHED,
    libvirt.VIR_DOMAIN_PMSUSPENDED: DomainState.PMSUSPENDED,
}
#: SECURE keeps secrets such as a VNC password in the definition, so that a define does not drop them; needs
#: a read-write connection
CONFIG_XML = libvirt.VIR_DOMAIN_XML_INACTIVE | libvirt.VIR_DOMAIN_XML_SECURE
_MOST_TRIES = 3


@dataclass(frozen=True, slots=True)
class ReadXml:
    """What one XML text says; `id` only in a live one, `etag` is its fingerprint."""

    definition: Definition
    id: int | None
    etag: str


@dataclass(frozen=True, slots=True)
class Listed:
    """What lists of all domains already told of one."""

    off: bool
    persistent: bool
    autostart: bool
    managed_save: bool


class XmlReader:
    """Reads definitions, and remembers what the same text said before.

    Kept by the text's hash, so an entry is never out of date: only unused. Thread-safe.
    """

    def __init__(self, size: int = 4096) -> None:
        self._size = size
        self._known: OrderedDict[bytes, ReadXml] = OrderedDict()
        self._lock = threading.Lock()

    def read(self, xml: str) -> ReadXml:
        """:raises FailedPreconditionError: BROKEN_DEFINITION."""
        key = hashlib.sha256(xml.encode("utf-8", "surrogatepass")).digest()
        with self._lock:
            if (known := self._known.get(key)) is not None:
                self._known.move_to_end(key)
                return known
        root = parse_document(xml, keep_blanks=False)
        number = root.get("id")
        read = ReadXml(
            read_definition(root),
            int(number) if number is not None and number.isdecimal() else None,
            fingerprint(xml),
        )
        with self._lock:
            self._known[key] = read
            while len(self._known) > self._size:
                self._known.popitem(last=False)
        return read


def read_security_model(connection: libvirt.virConnect) -> tuple[str, str]:
    """Model and DOI of the host's security driver, as `virsh dominfo` prints them; "" without one."""
    try:
        model, doi = connection.getSecurityModel()
    except libvirt.libvirtError as err:
        if err.get_error_code() == libvirt.VIR_ERR_NO_SUPPORT:
            return "", ""
        raise
    return str(model), str(doi)


def read_facts(
    domain: libvirt.virDomain,
    reader: XmlReader,
    security_model: tuple[str, str],
    listed: Listed | None = None,
) -> DomainFacts:
    """Reads all of a domain but the balloon's statistics, for which QEMU is asked (case GA-07).

    The definitions may have to be waited for all the same, see DEFINITION_WAITS_SINCE.
    `listed` saves the calls whose answers are known. State and definitions belong together:
    where the domain started or stopped in between, all is read again.

    :raises AbortedError: DOMAIN_BUSY when it starts and stops too fast to be read.
    """
    alone = listed is None
    for _ in range(_MOST_TRIES):
        info = None if listed is not None and listed.off else domain.info()
        state = DomainState.SHUT_OFF if info is None else STATES.get(info[0], DomainState.NO_STATE)
        # With its secrets: of a domain that is off, this is the stored definition.
        xml = domain.XMLDesc(libvirt.VIR_DOMAIN_XML_SECURE)
        current = reader.read(xml)
        active = current.id is not None
        # A crashed domain may be preserved, and so be active.
        if state is DomainState.CRASHED or active == (state is not DomainState.SHUT_OFF):
            break
        listed = None
    else:
        raise AbortedError(
            Reason.DOMAIN_BUSY,
            f"Domain {domain.name()} starts and stops while it is read: retry when it is done.",
        )
    persistent = not active or bool(domain.isPersistent() if listed is None else listed.persistent)
    config_xml = xml if not active else domain.XMLDesc(CONFIG_XML) if persistent else None
    config = reader.read(config_xml) if config_xml is not None else None
    model, doi = security_model
    label, enforcing = _read_label(domain) if active and model else (None, None)
    definition = current.definition
    return DomainFacts(
        uuid=definition.uuid,
        libvirt_name=definition.name,
        id=current.id,
        state=state,
        os_type=definition.os_type,
        cpu_time_ns=int(info[4]) if active and info is not None else None,
        persistent=persistent,
        autostart=persistent and bool(domain.autostart() if listed is None else listed.autostart),
        managed_save=persistent
        and bool(domain.hasManagedSaveImage(0) if listed is None else listed.managed_save),
        security=Security(model, doi, label, enforcing),
        maximum_memory_kib=definition.memory_kib if info is None else int(info[1]),
        used_memory_kib=definition.current_memory_kib if info is None else int(info[2]),
        config=None if config is None else config.definition,
        live=definition if active else None,
        config_xml=config_xml,
        etag="" if config is None else config.etag,
        balloon=Balloon(),
        messages=tuple(map(str, domain.messages())) if alone else (),
        autostart_once=_read_autostart_once(domain) if alone else None,
    )


def read_balloon(domain: libvirt.virDomain) -> Balloon:
    """Reads the balloon's statistics: takes the domain's job and asks QEMU, so it hangs with it.

    `actual` is QEMU's own; the rest is what the guest's driver sent last, and absent where
    it never did (case MEM-07).
    """
    statistics: dict[str, int] = domain.memoryStats()
    last_update_s = statistics.get("last_update") or None
    reported = last_update_s is not None
    return Balloon(
        actual_kib=statistics.get("actual"),
        guest_total_kib=statistics.get("available") if reported else None,
        guest_available_kib=statistics.get("usable") if reported else None,
        last_update_s=last_update_s,
    )


def _read_autostart_once(domain: libvirt.virDomain) -> bool | None:
    # neither a binding built against an older libvirt nor a driver that cannot do it is a reason to read nothing
    read = getattr(domain, "autostartOnce", None)
    if read is None:
        return None
    try:
        return bool(read())
    except libvirt.libvirtError as err:
        if err.get_error_code() == libvirt.VIR_ERR_NO_SUPPORT:
            return None
        raise


def _read_label(domain: libvirt.virDomain) -> tuple[str | None, bool | None]:
    label, enforcing = domain.securityLabel()
    return (str(label), bool(enforcing)) if label else (None, None)
