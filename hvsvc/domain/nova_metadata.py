"""What Nova writes about its server in the domain's metadata."""

from __future__ import annotations

from lxml import etree

from hvsvc.domain.definition import NovaMetadata

#: 1.0 up to Nova 22 (Victoria), 1.1 since; the prefix is whatever the document says
_NAMESPACES = ("http://openstack.org/xmlns/libvirt/nova/1.1", "http://openstack.org/xmlns/libvirt/nova/1.0")


def read_nova_metadata(root: etree._Element) -> NovaMetadata | None:
    """Nova's metadata, None where the domain has none and so is not Nova's.

    It is information for people, written by whoever can write metadata: what is
    missing or no number is left out, never refused.
    """
    for namespace in _NAMESPACES:
        instance = root.find(f"metadata/{{{namespace}}}instance")
        if instance is not None:
            return _read_instance(instance, f"{{{namespace}}}")
    return None


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
