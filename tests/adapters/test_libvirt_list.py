"""All domains of a host, and domains by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import libvirt

from hvsvc.adapters.libvirt_facts import ReadXml, XmlReader, read_facts
from hvsvc.adapters.libvirt_list import find_named, read_all

Make = Callable[..., libvirt.virDomain]
NO_MODEL = ("none", "0")


def nova(name: str) -> str:
    return (
        "<metadata><n:instance xmlns:n='http://openstack.org/xmlns/libvirt/nova/1.1'>"
        f"<n:name>{name}</n:name></n:instance></metadata>"
    )


def test_the_list_says_what_reading_each_one_says(
    embed: libvirt.virConnect, define_domain: Make, boot_guest: Make
) -> None:
    made = [define_domain(), define_domain(), boot_guest(until="started")]
    made[1].setAutostart(1)
    made[2].suspend()  # its CPU time stands still
    facts, errors = read_all(embed, XmlReader(), NO_MODEL)
    assert errors == []
    assert {one.uuid: one for one in facts} == {
        # these two are read for a single domain only
        domain.UUIDString(): replace(
            read_facts(domain, XmlReader(), NO_MODEL), messages=(), autostart_once=None
        )
        for domain in made
    }
    assert [one.autostart for one in facts].count(True) == 1


def test_a_definition_that_cannot_be_read_hides_no_other(
    embed: libvirt.virConnect, define_domain: Make
) -> None:
    class Picky(XmlReader):
        """Cannot read one domain."""

        def read(self, xml: str) -> ReadXml:
            return super().read(xml.replace("<name>odd</name>", "<name/>"))

    define_domain(name="odd")
    well = define_domain()
    facts, errors = read_all(embed, Picky(), NO_MODEL)
    assert [one.uuid for one in facts] == [well.UUIDString()]
    assert [name for name, _ in errors] == ["odd"]
    assert "<name>" in errors[0][1].message


def test_a_domain_is_found_by_libvirt_name_and_by_novas(
    embed: libvirt.virConnect, define_domain: Make
) -> None:
    one = define_domain(name="instance-1", metadata=nova("web-1"))
    two = define_domain(name="instance-2", metadata=nova("web-1"))
    three = define_domain(name="web-1", metadata=nova("instance-1"))
    pair = {domain.UUIDString(): domain.name() for domain in (one, two, three)}
    assert dict(find_named(embed, XmlReader(), "web-1")) == pair
    assert dict(find_named(embed, XmlReader(), "instance-2")) == {two.UUIDString(): "instance-2"}
    assert {name for _, name in find_named(embed, XmlReader(), "instance-1")} == {"instance-1", "web-1"}
    assert find_named(embed, XmlReader(), "web") == []
    assert find_named(embed, XmlReader(), "") == []
