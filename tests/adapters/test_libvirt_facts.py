"""Facts of real domains, as libvirt tells them."""

from __future__ import annotations

from collections.abc import Callable

import libvirt
import pytest

from hvsvc.adapters.libvirt_facts import XmlReader, read_balloon, read_facts, read_security_model
from hvsvc.domain.facts import Balloon, DomainState
from hvsvc.domain.xml_document import fingerprint
from hvsvc.errors import AbortedError, FailedPreconditionError, Reason
from tests.adapters.libvirt_parts import config_of
from tests.guest_domains import GuestDomains, wait_for
from tests.private_libvirtd import PrivateLibvirtd

Make = Callable[..., libvirt.virDomain]
READER = XmlReader()
NO_MODEL = ("none", "0")


class Statistics:
    """A domain that says this of its balloon."""

    def __init__(self, **statistics: int) -> None:
        self._statistics = statistics

    def memoryStats(self) -> dict[str, int]:  # noqa: N802  libvirt's name
        return self._statistics


class Flapping:
    """A domain that is off whenever its state is asked, and on whenever its XML is."""

    def __init__(self, domain: libvirt.virDomain) -> None:
        self._domain = domain

    def name(self) -> str:
        return "flapping"

    def info(self) -> list[int]:
        return [libvirt.VIR_DOMAIN_SHUTOFF, 1, 1, 1, 0]

    def XMLDesc(self, flags: int) -> str:  # noqa: N802
        return str(self._domain.XMLDesc(flags))


def test_a_domain_that_is_off(define_domain: Make) -> None:
    domain = define_domain(vcpus=2, max_vcpus=4, memory_mib=256, max_memory_mib=512)
    facts = read_facts(domain, READER, NO_MODEL)
    assert (facts.uuid, facts.libvirt_name) == (domain.UUIDString(), domain.name())
    assert (facts.state, facts.id, facts.live, facts.cpu_time_ns) == (DomainState.SHUT_OFF, None, None, None)
    assert (facts.maximum_memory_kib, facts.used_memory_kib) == (512 * 1024, 256 * 1024)
    assert (facts.persistent, facts.autostart, facts.managed_save) == (True, False, False)
    assert facts.config_xml == config_of(domain)
    assert facts.etag == fingerprint(config_of(domain))
    assert facts.balloon == Balloon()
    domain.setAutostart(1)
    assert read_facts(domain, READER, NO_MODEL).autostart
    domain.setAutostart(0)


def test_cpu_13_each_number_has_one_place(boot_guest: Make) -> None:
    domain = boot_guest(until="started", vcpus=2, max_vcpus=4)
    domain.setVcpusFlags(3, libvirt.VIR_DOMAIN_AFFECT_LIVE)
    facts = read_facts(domain, READER, NO_MODEL)
    assert facts.config is not None
    assert facts.live is not None
    assert (facts.config.maximum_vcpus, facts.config.current_vcpus) == (4, 2)
    assert (facts.live.maximum_vcpus, facts.live.current_vcpus) == (4, 3)
    assert (facts.state, facts.id) == (DomainState.RUNNING, domain.ID())
    assert facts.cpu_time_ns is not None
    assert facts.cpu_time_ns > 0


def test_xml_13_a_transient_domain_has_no_config(embed_domains: GuestDomains) -> None:
    domain = embed_domains.connection.createXML(embed_domains.render_xml(), 0)
    try:
        facts = read_facts(domain, READER, NO_MODEL)
        assert (facts.persistent, facts.config, facts.config_xml, facts.etag) == (False, None, None, "")
        assert (facts.autostart, facts.managed_save) == (False, False)
        assert facts.live is not None
        assert facts.live.maximum_vcpus == 8
    finally:
        domain.destroy()


def test_the_config_keeps_its_secrets(define_domain: Make) -> None:
    graphics = "<graphics type='vnc' port='-1' autoport='yes' passwd='hush'/>"
    domain = define_domain(devices=graphics)
    assert "passwd='hush'" not in domain.XMLDesc(libvirt.VIR_DOMAIN_XML_INACTIVE)
    config_xml = read_facts(domain, READER, NO_MODEL).config_xml
    assert config_xml is not None
    assert "passwd='hush'" in config_xml


def test_a_domain_that_starts_and_stops_while_it_is_read(boot_guest: Make) -> None:
    domain = boot_guest(until="started")
    with pytest.raises(AbortedError) as caught:
        read_facts(Flapping(domain), READER, NO_MODEL)
    assert caught.value.reason is Reason.DOMAIN_BUSY


def test_mem_01_a_balloon_without_a_driver_says_what_is_true(boot_guest: Make) -> None:
    domain = boot_guest(until="started", words="noballoon", memory_mib=256, max_memory_mib=512)
    assert domain.setMemoryFlags(300 * 1024, libvirt.VIR_DOMAIN_AFFECT_LIVE) == 0
    assert read_balloon(domain) == Balloon(actual_kib=512 * 1024)


def test_mem_07_guest_figures_only_with_the_time_of_their_report() -> None:
    silent = Statistics(actual=4096, available=1, usable=2, last_update=0, rss=9)
    assert read_balloon(silent) == Balloon(actual_kib=4096)
    told = Statistics(actual=4096, available=4000, usable=0, last_update=1700000000)
    assert read_balloon(told) == Balloon(4096, 4000, 0, 1700000000)
    assert read_balloon(Statistics(rss=9)) == Balloon()


@pytest.mark.guest
def test_mem_07_a_real_guests_figures_are_not_the_allocation(boot_guest: Make) -> None:
    domain = boot_guest(memory_mib=384, max_memory_mib=512)

    def is_reported() -> bool:
        balloon = read_balloon(domain)
        # The driver reports once a second, so what it said last may be older than the balloon's size.
        return balloon.guest_total_kib is not None and balloon.guest_total_kib < 384 * 1024

    wait_for(is_reported, "a report from after the balloon settled")
    balloon = read_balloon(domain)
    assert balloon.actual_kib == 384 * 1024
    assert balloon.guest_available_kib is not None
    assert balloon.guest_total_kib is not None
    assert balloon.guest_available_kib < balloon.guest_total_kib
    # libvirt's own figure follows QEMU's events, of which there is one a second at most.
    wait_for(
        lambda: read_facts(domain, READER, NO_MODEL).used_memory_kib == 384 * 1024,
        "used memory at the target",
    )
    assert read_facts(domain, READER, NO_MODEL).maximum_memory_kib == 512 * 1024


def test_security_is_what_virsh_prints(
    private_libvirtd: PrivateLibvirtd, libvirtd_domains: GuestDomains
) -> None:
    domain = libvirtd_domains.define()
    facts = read_facts(domain, READER, read_security_model(libvirtd_domains.connection))
    printed = dict(
        line.split(":", 1)
        for line in private_libvirtd.virsh("dominfo", domain.name()).splitlines()
        if ":" in line
    )
    assert facts.security.model == printed["Security model"].strip()
    assert facts.security.doi == printed["Security DOI"].strip()
    assert (facts.security.label, facts.security.enforcing) == (None, None)


def test_the_reader_remembers_texts_and_forgets_the_oldest(define_domain: Make) -> None:
    one, two = config_of(define_domain()), config_of(define_domain())
    reader = XmlReader(size=1)
    first = reader.read(one)
    assert reader.read(one) is first
    assert reader.read(two).definition.uuid != first.definition.uuid
    assert reader.read(one) is not first
    assert reader.read(one) == first


def test_the_reader_refuses_what_is_broken() -> None:
    with pytest.raises(FailedPreconditionError) as caught:
        READER.read("<domain")
    assert caught.value.reason is Reason.BROKEN_DEFINITION
