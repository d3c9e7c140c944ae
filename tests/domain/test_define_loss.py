"""What a define lost is named; what it added is not a loss."""

import pytest

from hvsvc.domain.define_loss import lost_by_define
from tests.domain.golden import edit_xml, read_case, small_domain

XML = small_domain(
    vcpu="<vcpu current='1'>2</vcpu>",
    more="<metadata><plain>x</plain><o:kept xmlns:o='urn:o'/></metadata>"
    "<cputune><vcpupin vcpu='0' cpuset='0'/><vcpupin vcpu='5' cpuset='0'/></cputune>",
    devices="<disk type='file'><target dev='vda'/></disk><disk type='file'><target dev='vdb'/></disk>",
)


@pytest.mark.parametrize(
    ("old", "new", "lost"),
    [
        ("", "", ()),
        ("<plain>x</plain>", "", ("domain/metadata/plain was removed",)),
        ("<vcpupin vcpu='5' cpuset='0'/>", "", ("domain/cputune/vcpupin was removed",)),
        ("<vcpu current='1'>2", "<vcpu>2", ("domain/vcpu: attribute current='1' was removed",)),
        ("1048576", "262144", ("domain/memory: text was changed from '1048576' to '262144'",)),
        (
            "<target dev='vdb'/>",
            "<target dev='vdc'/>",
            ("domain/devices/disk/target: attribute dev was changed from 'vdb' to 'vdc'",),
        ),
        ("<disk type='file'><target dev='vda'/></disk>", "", ("domain/devices/disk was removed",)),
        # additions: defaults, addresses, an entry filled in
        ("<target dev='vda'/>", "<target dev='vda' bus='virtio'/><address type='pci'/>", ()),
        ("<devices>", "<clock/><devices>", ()),
        # the same in another order
        (
            "<vcpupin vcpu='0' cpuset='0'/><vcpupin vcpu='5'",
            "<vcpupin cpuset='0' vcpu='0'/><vcpupin vcpu='5'",
            (),
        ),
    ],
)
def test_xml_03_what_libvirt_removed_or_changed_is_named(old: str, new: str, lost: tuple[str, ...]) -> None:
    assert lost_by_define(XML, edit_xml(XML, old, new) if old else XML) == lost


def test_xml_03_comments_are_named() -> None:
    sent = edit_xml(XML, "<vcpu ", "<!-- two for now --><vcpu ")
    assert lost_by_define(sent, XML) == ("domain: the comment ' two for now ' was removed",)
    assert lost_by_define(XML, sent) == ()


def test_xml_03_moved_elements_are_no_loss() -> None:
    one, other = (
        "<disk type='file'><target dev='vda'/></disk>",
        "<disk type='file'><target dev='vdb'/></disk>",
    )
    assert lost_by_define(XML, edit_xml(XML, one + other, other + one)) == ()


def test_a_long_value_is_cut() -> None:
    sent = small_domain(more=f"<description>{'x' * 5000}</description>")
    (lost,) = lost_by_define(sent, edit_xml(sent, "x" * 5000, "y"))
    assert len(lost) < 200


def test_xml_02_prefixes_count_as_change_of_the_whole_element() -> None:
    sent = read_case("xml-02-metadata")
    stored = (
        sent.replace("xmlns:ns0=", "xmlns:ovirt=").replace("<ns0:", "<ovirt:").replace("</ns0:", "</ovirt:")
    )
    # another prefix is the same name for libvirt: nothing is gone
    assert lost_by_define(sent, stored) == ()
