"""Shows what differs between two definitions, for people."""

from __future__ import annotations

import difflib

from lxml import etree

from hvsvc.domain.xml_document import canonical_element, parse_document

_SECRETS = ("passwd",)


def diff_definitions(before: str, after: str) -> str:
    """A unified diff, a line an element; "" where both say the same.

    Attribute order, quotes and indentation do not count (case XML-14). Console passwords
    are masked: whoever may see a plan need not know them.

    :raises FailedPreconditionError: BROKEN_DEFINITION when one is no domain XML.
    """
    trees = [parse_document(xml, keep_blanks=False) for xml in (before, after)]
    if canonical_element(trees[0]) == canonical_element(trees[1]):
        return ""
    known = {str(element.get(name)) for element in trees[0].iter() for name in _SECRETS}
    lines = difflib.unified_diff(
        _lines(trees[0], known), _lines(trees[1], known), "before", "after", lineterm=""
    )
    return "".join(f"{line}\n" for line in lines)


def _lines(root: etree._Element, known: set[str]) -> list[str]:
    for element in root.iter():
        for name in _SECRETS:
            if element.get(name):
                element.set(name, "***" if element.get(name) in known else "*** (another)")
    return etree.tostring(root, encoding="unicode", pretty_print=True).splitlines()
