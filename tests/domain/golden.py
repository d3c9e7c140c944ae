"""Domain XML of the field cases, and what an edit of them must leave alone."""

import difflib
from pathlib import Path

from lxml import etree

from hvsvc.domain.xml_document import canonical_element, parse_document

DATA = Path(__file__).parents[1] / "data/xml"
_EDITED = ("memory", "currentMemory", "maxMemory", "vcpu", "vcpus")


def read_case(case: str) -> str:
    """The definition of a case, as libvirt or a person wrote it."""
    return (DATA / f"{case}-in.xml").read_text(encoding="utf-8")


def compare_golden(case: str, result: str, *, regenerate: bool) -> None:
    """Compare with the stored result byte for byte, or store it."""
    path = DATA / f"{case}-out.xml"
    if regenerate:
        path.write_text(result, encoding="utf-8")
        return
    expected = path.read_text(encoding="utf-8")
    diff = difflib.unified_diff(expected.splitlines(), result.splitlines(), path.name, "edited", lineterm="")
    assert result == expected, "\n".join(diff)


def without_edited_nodes(xml: str) -> bytes:
    """The canonical form of all that no edit may touch."""
    root = parse_document(xml, keep_blanks=False)
    for name in _EDITED:
        for node in root.findall(name):
            root.remove(node)
    for cpu in root.findall("cpu"):
        for node in cpu.findall("topology"):
            cpu.remove(node)
        if len(cpu) == 0 and not cpu.attrib:
            root.remove(cpu)
    for cell in root.findall("cpu/numa/cell"):
        for name in ("cpus", "memory", "unit"):
            if name in cell.attrib:
                del cell.attrib[name]
    return canonical_element(root)


def edit_xml(xml: str, old: str, new: str) -> str:
    """The text with one part replaced; the part must be there."""
    assert old in xml, f"{old!r} is not in the document"
    return xml.replace(old, new)


def small_domain(
    *,
    vcpu: str = "<vcpu>2</vcpu>",
    memory: str = "<memory unit='KiB'>1048576</memory>",
    cpu: str = "",
    more: str = "",
    devices: str = "",
    arch: str = "x86_64",
) -> str:
    """A domain that has the least of everything."""
    return (
        "<domain type='qemu'><name>small</name><uuid>7a1c0de0-0000-4000-8000-000000000001</uuid>"
        f"{memory}{vcpu}<os><type arch='{arch}' machine='pc'>hvm</type></os>{cpu}{more}"
        f"<devices>{devices}</devices></domain>"
    )


def element(xml: str, path: str) -> etree._Element:
    """The first element at a path of a document."""
    found = parse_document(xml).find(path)
    assert found is not None, f"no {path}"
    return found
