"""What Nova writes about its server in the domain's metadata."""

from __future__ import annotations

from lxml import etree

from hvsvc.domain.definition import NovaMetadata
from hvsvc.domain.xml_document import parse_document

#: and a version: 1.0 up to Nova 22 (Victoria), 1.1 since; what a later one writes is Nova's just as well, and taking it
#: for a plain domain would mean to reboot it behind Nova's back. The prefix is whatever the document says.
_NAMESPACES = "http://openstack.org/xmlns/libvirt/nova/"
#: those there are, the present one first, for asking libvirt, which wants to know the whole name
KNOWN_NAMESPACES = (f"{_NAMESPACES}1.1", f"{_NAMESPACES}1.0")


#: how the product that Nova names in the domain's SMBIOS begins, "OpenStack Nova" unless its vendor says otherwise
#: (nova/virt/libvirt/driver.py, `_get_guest_config_sysinfo`)
_PRODUCT = "OpenStack"


def read_nova_metadata(root: etree._Element) -> NovaMetadata | None:
    """Nova's metadata, None where the domain is not Nova's.

    It is information for people, written by whoever can write metadata: what is
    missing or no number is left out, never refused. A server whose metadata somebody
    took away is known by its SMBIOS, and then nothing else is known of it.
    """
    for instance in root.iterfind("metadata/{*}instance"):
        namespace, brace, _ = str(instance.tag).rpartition("}")
        if namespace.startswith(f"{{{_NAMESPACES}"):
            return _read_instance(instance, namespace + brace)
    for entry in root.iterfind("sysinfo/system/entry[@name='product']"):
        if _text(entry).startswith(_PRODUCT):
            return NovaMetadata("", "", None, None, "", "")
    return None


def parse_nova_metadata(instance_xml: str) -> NovaMetadata:
    """The same from the metadata element alone, which libvirt gives out without the namespace it was asked by.

    :raises FailedPreconditionError: BROKEN_DEFINITION.
    """
    (instance,) = parse_document(f"<domain>{instance_xml}</domain>")
    namespace, brace, _ = str(instance.tag).rpartition("}")
    return _read_instance(instance, namespace + brace)


def _read_instance(instance: etree._Element, ns: str) -> NovaMetadata:
    flavor = instance.find(f"{ns}flavor")
    project = instance.find(f"{ns}owner/{ns}project")
    return NovaMetadata(
        name=_text(instance.find(f"{ns}name")),
        flavor="" if flavor is None else flavor.get("name", ""),
        flavor_vcpus=_number(instance.find(f"{ns}flavor/{ns}vcpus")),
        flavor_memory_mib=_number(instance.find(f"{ns}flavor/{ns}memory")),
        project=_text(project),
        project_id="" if project is None else project.get("uuid", ""),
    )


def _text(element: etree._Element | None) -> str:
    return "" if element is None else (element.text or "").strip()


def _number(element: etree._Element | None) -> int | None:
    text = _text(element)
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 9 else None
