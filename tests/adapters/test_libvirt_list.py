"""All domains of a host, and domains by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import libvirt

from hvsvc.adapters.libvirt_facts import Listed, ReadXml, XmlReader, read_facts
from hvsvc.adapters.libvirt_list import Running, find_named, list_domains
from hvsvc.domain.facts import DomainState

Make = Callable[..., libvirt.virDomain]
NO_MODEL = ("none", "0")


def nova(name: str, version: str = "1.1") -> str:
    return (
        f"<metadata><n:instance xmlns:n='http://openstack.org/xmlns/libvirt/nova/{version}'>"
        f"<n:name>{name}</n:name></n:instance></metadata>"
    )


def test_the_list_reads_those_that_are_off_and_names_those_that_run(
    embed: libvirt.virConnect, define_domain: Make, boot_guest: Make
) -> None:
    made = [define_domain(), define_domain()]
    running = boot_guest(until="started")
    made[1].setAutostart(1)
    found = list_domains(embed, XmlReader(), NO_MODEL)
    assert {one.uuid: one for one in found.off} == {
        # these two are read for a single domain only
        domain.UUIDString(): replace(
            read_facts(domain, XmlReader(), NO_MODEL), messages=(), autostart_once=None
        )
        for domain in made
    }
    assert [one.autostart for one in found.off].count(True) == 1
    listed = Listed(off=False, persistent=True, autostart=False, managed_save=False)
    assert found.running == [Running(running.UUIDString(), running.name(), listed)]
    assert found.unread == []


def test_a_definition_that_cannot_be_read_hides_no_other(
    embed: libvirt.virConnect, define_domain: Make
) -> None:
    class Picky(XmlReader):
        """Cannot read one domain."""

        def read(self, xml: str) -> ReadXml:
            return super().read(xml.replace("<name>odd</name>", "<name/>"))

    define_domain(name="odd", metadata=nova("web-1")).setAutostart(1)
    well = define_domain()
    found = list_domains(embed, Picky(), NO_MODEL)
    assert [one.uuid for one in found.off] == [well.UUIDString()]
    assert [(one.libvirt_name, one.state, one.autostart) for one in found.unread] == [
        ("odd", DomainState.SHUT_OFF, True)
    ]
    assert "<name>" in found.unread[0].error.message
    assert found.unread[0].nova is not None
    assert found.unread[0].nova.name == "web-1"


def test_a_domain_is_found_by_libvirt_name_and_by_novas(
    embed: libvirt.virConnect, define_domain: Make
) -> None:
    one = define_domain(name="instance-1", metadata=nova("web-1"))
    two = define_domain(name="instance-2", metadata=nova("web-1"))
    three = define_domain(name="web-1", metadata=nova("instance-1", "1.0"))
    pair = {domain.UUIDString(): domain.name() for domain in (one, two, three)}
    assert dict(find_named(embed, "web-1")) == pair
    assert dict(find_named(embed, "instance-2")) == {two.UUIDString(): "instance-2"}
    assert {name for _, name in find_named(embed, "instance-1")} == {"instance-1", "web-1"}
    assert find_named(embed, "web") == []
    assert find_named(embed, "") == []
