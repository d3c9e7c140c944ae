"""Puts elements into a document, or takes them out, without disturbing the text around them.

A new element takes the indentation of its neighbours. Nothing is ever indented anew:
whitespace inside text-only elements is a value, and libvirt refuses it (case TOPO-13).
"""

from __future__ import annotations

from lxml import etree


def insert_after(parent: etree._Element, names: tuple[str, ...], element: etree._Element) -> None:
    """Inserts after the last child that bears one of the names, else as the first child."""
    index = 0
    for position, node in enumerate(parent, start=1):
        if node.tag in names:
            index = position
    insert_at(parent, index, element)


def insert_at(parent: etree._Element, index: int, element: etree._Element) -> None:
    """Inserts as the child with this index; `len(parent)` appends."""
    indent = parent.text if parent.text and not parent.text.strip() else None
    if index == 0:
        element.tail = indent if len(parent) else None
    else:
        before = parent[index - 1]
        element.tail, before.tail = before.tail, indent
    parent.insert(index, element)


def remove(parent: etree._Element, element: etree._Element) -> None:
    """Removes a child; what closed the list of children closes it still."""
    before, after = element.getprevious(), element.getnext()
    if after is None and before is not None:
        before.tail = element.tail
    elif after is None:
        parent.text = None
    parent.remove(element)


def child_indent(parent: etree._Element) -> str | None:
    """The whitespace before each child of `parent`, None where the document has no lines."""
    text = parent.text or ""
    return text if "\n" in text and not text.strip() else None
