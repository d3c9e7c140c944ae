"""Single values of an element: where libvirt would take the first of several or a default, the rules are here.

Two elements where the format has one are refused: libvirt itself never writes them,
and an editor that changes one of two changes nothing.
"""

from __future__ import annotations

from lxml import etree

from hvsvc.domain.memory import parse_memory_kib, parse_number
from hvsvc.domain.xml_document import broken


def child(element: etree._Element, path: str) -> etree._Element | None:
    """The one element at a path of plain tag names, None where there is none.

    :raises FailedPreconditionError: BROKEN_DEFINITION when there are several.
    """
    found = element.findall(path)
    if len(found) > 1:
        raise broken(f"<{path.rpartition('/')[2]}> stands there {len(found)} times")
    return found[0] if found else None


def text_of(element: etree._Element | None) -> str:
    """The text of an element that holds text only; "" where it is absent or empty.

    :raises FailedPreconditionError: BROKEN_DEFINITION when it holds anything else.
    """
    if element is None:
        return ""
    if len(element):
        raise broken(f"<{element.tag}> must hold text only")
    return element.text or ""


def child_text(element: etree._Element, path: str) -> str:
    """The text of the one element at a path."""
    return text_of(child(element, path))


def number_attribute(element: etree._Element, name: str) -> int | None:
    """An attribute's whole number, None where it is absent.

    :raises FailedPreconditionError: BROKEN_DEFINITION.
    """
    value = element.get(name)
    return None if value is None else parse_number(value, f"{name} of <{element.tag}>")


def required(element: etree._Element, name: str) -> str:
    """An attribute that must be there.

    :raises FailedPreconditionError: BROKEN_DEFINITION when it is not.
    """
    value = element.get(name)
    if value is None:
        raise broken(f"<{element.tag}> lacks the attribute {name}")
    return value


def flag_attribute(element: etree._Element, name: str) -> bool | None:
    """A yes/no attribute, None where it is absent.

    :raises FailedPreconditionError: BROKEN_DEFINITION for another value.
    """
    value = element.get(name)
    if value not in (None, "yes", "no"):
        raise broken(f"{name} of <{element.tag}> is {value[:40]!r}, not yes or no")
    return None if value is None else value == "yes"


def memory_text(element: etree._Element) -> int:
    """The KiB of an element whose text is a size; 0 where it is empty, as libvirt reads it.

    :raises FailedPreconditionError: BROKEN_DEFINITION.
    """
    text = text_of(element)
    return parse_memory_kib(text, element.get("unit"), f"<{element.tag}>") if text else 0
