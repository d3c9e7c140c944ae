"""Nova's metadata: every namespace of it, any prefix, and nothing it holds can break a read."""

import pytest

from hvsvc.domain.definition import NovaMetadata
from hvsvc.domain.nova_metadata import parse_nova_metadata, read_nova_metadata
from hvsvc.domain.xml_document import parse_document
from tests.domain.golden import read_case

NS_1_1 = "http://openstack.org/xmlns/libvirt/nova/1.1"


def read(xml: str) -> NovaMetadata | None:
    """The metadata of a document."""
    return read_nova_metadata(parse_document(xml))


def test_a_server_of_nova_26_is_read() -> None:
    assert read(read_case("nova-26")) == NovaMetadata(
        name="web-1",
        flavor="m1.large",
        flavor_vcpus=8,
        flavor_memory_mib=12288,
        project="shop & site",
        project_id="41018d9bcd6844428983ee12e9cd5cce",
    )


def test_xml_02_the_older_namespace_beside_foreign_metadata_is_read() -> None:
    found = read(read_case("xml-02-metadata"))
    assert found is not None
    assert (found.name, found.flavor, found.flavor_vcpus, found.flavor_memory_mib) == (
        "db-1",
        "m1.small",
        2,
        1024,
    )


@pytest.mark.parametrize("version", ["1.0", "1.1", "1.2", "2.0"])
def test_a_server_of_a_later_nova_is_novas_too_and_never_rebooted_behind_its_back(version: str) -> None:
    namespace = f"http://openstack.org/xmlns/libvirt/nova/{version}"
    found = read(
        f"<domain><metadata><n:instance xmlns:n='{namespace}'><n:name>web-9</n:name></n:instance></metadata></domain>"
    )
    assert found is not None
    assert found.name == "web-9"


@pytest.mark.parametrize("product", ["OpenStack Nova", "OpenStack Compute"])
def test_a_server_without_its_metadata_is_novas_all_the_same(product: str) -> None:
    # virsh metadata --remove, or a define without it, takes the metadata; it was rebooted behind Nova's back then
    entry = f"<sysinfo type='smbios'><system><entry name='product'>{product}</entry></system></sysinfo>"
    assert read(f"<domain>{entry}</domain>") == NovaMetadata("", "", None, None, "", "")
    named = f"<metadata><n:instance xmlns:n='{NS_1_1}'><n:name>a</n:name></n:instance></metadata>"
    found = read(f"<domain>{named}{entry}</domain>")
    assert found is not None
    assert found.name == "a"


@pytest.mark.parametrize(
    "entry", ["<entry name='product'>KVM</entry>", "<entry name='family'>OpenStack Nova</entry>", ""]
)
def test_another_product_is_nobodys_server(entry: str) -> None:
    assert read(f"<domain><sysinfo type='smbios'><system>{entry}</system></sysinfo></domain>") is None


@pytest.mark.parametrize("namespace", ["", "urn:other", "http://openstack.org/xmlns/libvirt/other/1.0"])
def test_an_instance_of_somebody_else_is_no_server(namespace: str) -> None:
    assert read(f"<domain><metadata><instance xmlns='{namespace}'/></metadata></domain>") is None


@pytest.mark.parametrize("prefix", ["nova", "ns0", "n1"])
def test_xml_02_any_prefix_means_the_same(prefix: str) -> None:
    xml = f"<domain><metadata><{prefix}:instance xmlns:{prefix}='{NS_1_1}'><{prefix}:name> a </{prefix}:name>"
    found = read(f"{xml}</{prefix}:instance></metadata></domain>")
    assert found == NovaMetadata("a", "", None, None, "", "")


def test_the_default_namespace_means_the_same() -> None:
    found = read(
        f"<domain><metadata><instance xmlns='{NS_1_1}'><name>a</name></instance></metadata></domain>"
    )
    assert found is not None
    assert found.name == "a"


@pytest.mark.parametrize(
    "metadata",
    [
        "",
        "<metadata/>",
        "<metadata><instance/></metadata>",
        "<metadata><x:instance xmlns:x='urn:x'/></metadata>",
    ],
)
def test_other_domains_are_not_novas(metadata: str) -> None:
    assert read(f"<domain>{metadata}</domain>") is None


@pytest.mark.parametrize("number", ["", "x", "-1", "1.5", "9" * 30, "\u0661", "<b/>"])
def test_numbers_that_are_none_are_left_out(number: str) -> None:
    xml = f"<domain><metadata><n:instance xmlns:n='{NS_1_1}'><n:flavor><n:vcpus>{number}</n:vcpus><n:memory> 64 "
    found = read(f"{xml}</n:memory></n:flavor></n:instance></metadata></domain>")
    assert found is not None
    assert (found.flavor_vcpus, found.flavor_memory_mib) == (None, 64)


@pytest.mark.parametrize("prefix", ["", "n:"])
def test_the_element_alone_is_read_with_and_without_its_namespace(prefix: str) -> None:
    declared = f" xmlns:n='{NS_1_1}'" if prefix else ""
    xml = f"<{prefix}instance{declared}><{prefix}name>web-1</{prefix}name></{prefix}instance>"
    assert parse_nova_metadata(xml).name == "web-1"
