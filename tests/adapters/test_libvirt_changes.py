"""Changes, and what is refused, on the real QEMU driver; a fake where QEMU would have to fail half way."""

from __future__ import annotations

from collections.abc import Callable

import libvirt
import pytest

from hvsvc.adapters import libvirt_changes as changes
from hvsvc.adapters.libvirt_facts import XmlReader
from hvsvc.domain.read_definition import parse_definition
from hvsvc.domain.xml_document import fingerprint
from hvsvc.errors import AbortedError, FailedPreconditionError, GuestAgentError, HvsvcError, Reason
from tests.adapters.libvirt_parts import NOBODY, config_of
from tests.fakes.libvirt_connection import FakeConnection, FakeDomain, libvirt_error
from tests.guest_domains import GuestDomains

Make = Callable[..., libvirt.virDomain]
_LIVE = libvirt.VIR_DOMAIN_AFFECT_LIVE
READER = XmlReader()


def define(domain: libvirt.virDomain, xml: str, etag: str | None = None) -> None:
    etag = fingerprint(config_of(domain)) if etag is None else etag
    changes.define(domain.connect(), READER, domain.UUIDString(), etag, xml)


def refused(kind: type[HvsvcError], reason: Reason, call: Callable[[], None]) -> HvsvcError:
    with pytest.raises(kind) as caught:
        call()
    assert caught.value.reason is reason
    return caught.value


def test_defines_what_it_is_given_and_nothing_else(define_domain: Make) -> None:
    domain = define_domain(max_vcpus=4)
    new = config_of(domain).replace(">4</vcpu>", ">6</vcpu>").replace("sockets='4'", "sockets='6'")
    define(domain, new)
    assert fingerprint(config_of(domain)) == fingerprint(new)
    assert parse_definition(config_of(domain)).maximum_vcpus == 6


def test_api_02_an_edit_from_outside_is_not_lost(define_domain: Make) -> None:
    domain = define_domain()
    read = config_of(domain)
    domain.setMemoryFlags(300 * 1024, libvirt.VIR_DOMAIN_AFFECT_CONFIG)
    outside = config_of(domain)
    refused(AbortedError, Reason.DEFINITION_CHANGED, lambda: define(domain, read, fingerprint(read)))
    assert config_of(domain) == outside


def test_xml_05_a_define_that_libvirt_refuses_leaves_the_old_definition(define_domain: Make) -> None:
    domain = define_domain(max_vcpus=4)
    before = config_of(domain)
    with pytest.raises(libvirt.libvirtError, match="topology"):
        define(domain, before.replace(">4</vcpu>", ">6</vcpu>"))
    assert config_of(domain) == before


def test_xml_05_a_domain_with_nvram_is_changed_without_an_undefine(
    define_domain: Make, tmp_path_factory: pytest.TempPathFactory
) -> None:
    files = tmp_path_factory.mktemp("nvram")
    (files / "code.fd").write_bytes(bytes(4096))
    (files / "vars.fd").write_bytes(bytes(4096))
    loader = (
        f"</type><loader readonly='yes' type='pflash'>{files}/code.fd</loader><nvram>{files}/vars.fd</nvram>"
    )
    domain = define_domain(max_vcpus=4, edit=lambda xml: xml.replace("</type>", loader))
    with pytest.raises(libvirt.libvirtError):
        domain.undefine()  # so an undefine and a define would not do
    new = config_of(domain).replace(">4</vcpu>", ">6</vcpu>").replace("sockets='4'", "sockets='6'")
    define(domain, new)
    assert parse_definition(config_of(domain)).maximum_vcpus == 6
    assert f"{files}/vars.fd" in config_of(domain)
    domain.undefineFlags(libvirt.VIR_DOMAIN_UNDEFINE_KEEP_NVRAM)


def test_xml_06_a_definition_of_another_domain_is_refused(define_domain: Make) -> None:
    domain = define_domain()
    xml, uuid = config_of(domain), domain.UUIDString()
    count = len(domain.connect().listAllDomains(0))
    other = xml.replace(uuid, NOBODY)
    renamed = xml.replace(f"<name>{domain.name()}", "<name>renamed")
    for wrong in (other, renamed, renamed.replace(uuid, NOBODY)):
        refused(FailedPreconditionError, Reason.DEFINITION_REFUSED, lambda wrong=wrong: define(domain, wrong))  # type: ignore[misc]
    without = xml.replace(f"<uuid>{uuid}</uuid>", "")
    refused(FailedPreconditionError, Reason.BROKEN_DEFINITION, lambda: define(domain, without))
    sysinfo = xml.replace(
        "<os>", f"<sysinfo type='smbios'><system><entry name='uuid'>{NOBODY}</entry></system></sysinfo><os>"
    )
    with pytest.raises(libvirt.libvirtError, match="UUID mismatch"):
        define(domain, sysinfo)
    assert config_of(domain) == xml
    assert len(domain.connect().listAllDomains(0)) == count


def test_xml_13_a_transient_domain_has_no_definition_to_edit(embed_domains: GuestDomains) -> None:
    domain = embed_domains.connection.createXML(embed_domains.render_xml(), 0)
    try:
        xml = config_of(domain)  # libvirt gives one here, too
        refused(FailedPreconditionError, Reason.TRANSIENT_DOMAIN, lambda: define(domain, xml))
        assert not domain.isPersistent()
        changes.set_vcpus_live(domain.connect(), domain.UUIDString(), 3)  # live changes still work
        assert domain.vcpusFlags(_LIVE) == 3
    finally:
        domain.destroy()


def test_cpu_01_and_mem_04_above_the_live_ceiling_says_what_is_allowed(boot_guest: Make) -> None:
    domain = boot_guest(until="started", vcpus=2, max_vcpus=4, max_memory_mib=512)
    connection, uuid = domain.connect(), domain.UUIDString()
    error = refused(
        FailedPreconditionError,
        Reason.ABOVE_LIVE_CEILING,
        lambda: changes.set_vcpus_live(connection, uuid, 5),
    )
    assert error.metadata == {"requested": "5", "current": "2", "ceiling": "4"}
    error = refused(
        FailedPreconditionError,
        Reason.ABOVE_LIVE_CEILING,
        lambda: changes.set_memory_live(connection, READER, uuid, 512 * 1024 + 1),
    )
    assert error.metadata == {"requestedKib": "524289", "ceilingKib": "524288"}
    assert domain.vcpusFlags(_LIVE) == 2


def test_cpu_05_never_unplugs_even_where_somebody_else_plugged_more(boot_guest: Make) -> None:
    domain = boot_guest(until="started", vcpus=2, max_vcpus=4)
    domain.setVcpusFlags(4, _LIVE)
    error = refused(
        FailedPreconditionError,
        Reason.LIVE_VCPU_SHRINK,
        lambda: changes.set_vcpus_live(domain.connect(), domain.UUIDString(), 3),
    )
    assert error.metadata["current"] == "4"
    changes.set_vcpus_live(domain.connect(), domain.UUIDString(), 4)
    assert domain.vcpusFlags(_LIVE) == 4


def test_cpu_07_a_plug_that_stops_half_way_is_an_error_and_the_part_stays() -> None:
    domain = FakeDomain(NOBODY, current=2, maximum=8, plugs=1)
    domain.errors["setVcpusFlags"] = libvirt_error(libvirt.VIR_ERR_OPERATION_FAILED)
    with pytest.raises(libvirt.libvirtError):
        changes.set_vcpus_live(FakeConnection(domain), NOBODY, 5)
    assert domain.current == 3
    domain.errors.clear()
    changes.set_vcpus_live(FakeConnection(domain), NOBODY, 5)
    assert domain.current == 5


def test_mem_02_no_balloon_is_refused_before_the_call(boot_guest: Make) -> None:
    domain = boot_guest(until="started", balloon="none")
    before = domain.info()[2]
    refused(
        FailedPreconditionError,
        Reason.NO_BALLOON,
        lambda: changes.set_memory_live(domain.connect(), READER, domain.UUIDString(), 400 * 1024),
    )
    assert domain.info()[2] == before


def test_rb_06_live_calls_on_a_domain_that_is_off(define_domain: Make) -> None:
    domain = define_domain()
    connection, uuid, before = domain.connect(), domain.UUIDString(), config_of(domain)
    for call in (
        lambda: changes.set_vcpus_live(connection, uuid, 3),
        lambda: changes.set_memory_live(connection, READER, uuid, 400 * 1024),
        lambda: changes.shut_down(connection, READER, uuid, agent=False),
    ):
        refused(FailedPreconditionError, Reason.DOMAIN_NOT_RUNNING, call)
    assert config_of(domain) == before


def test_rb_04_a_shutdown_that_is_ignored_still_returns(boot_guest: Make) -> None:
    domain = boot_guest(until="started", words="noacpid noga")
    changes.shut_down(domain.connect(), READER, domain.UUIDString(), agent=False)
    assert domain.isActive()


def test_ga_01_a_shutdown_through_an_agent_that_is_not_there(boot_guest: Make) -> None:
    without = boot_guest(until="started", agent=False)
    deaf = boot_guest(until="started", words="noga")
    for domain, reason in ((without, Reason.AGENT_NOT_CONFIGURED), (deaf, Reason.AGENT_NOT_CONNECTED)):
        call = lambda d=domain: changes.shut_down(d.connect(), READER, d.UUIDString(), agent=True)  # noqa: E731
        refused(GuestAgentError, reason, call)
