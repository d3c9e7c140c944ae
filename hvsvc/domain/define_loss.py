"""What libvirt itself removed or changed when it stored a definition."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

from lxml import etree

from hvsvc.domain.xml_document import canonical_element, parse_document

_SHOWN = 80


def lost_by_define(sent: str, stored: str) -> tuple[str, ...]:
    """What of the sent definition is gone or different in the stored one, in words.

    libvirt drops comments and metadata without a namespace (case XML-03), pins of vCPUs
    above the maximum, and clamps numbers (case XML-10), all without an error. What it
    adds, such as defaults and addresses, is no loss. Whether the values that were asked
    for are there is not judged here: read them with `parse_definition`.

    :raises FailedPreconditionError: BROKEN_DEFINITION when one is no domain XML.
    """
    before, after = (parse_document(xml, keep_blanks=False) for xml in (sent, stored))
    return tuple(_compare(before, after, "domain"))


def _compare(sent: etree._Element, stored: etree._Element, path: str) -> Iterator[str]:
    for name, value in _attributes(sent).items():
        now = stored.get(name)
        if now is None:
            yield f"{path}: attribute {_plain(name)}={_shown(value)} was removed"
        elif now != value:
            yield f"{path}: attribute {_plain(name)} was changed from {_shown(value)} to {_shown(now)}"
    if _text(sent) != _text(stored):
        yield f"{path}: text was changed from {_shown(_text(sent))} to {_shown(_text(stored))}"
    yield from _compare_children(sent, stored, path)


def _compare_children(sent: etree._Element, stored: etree._Element, path: str) -> Iterator[str]:
    equal = Counter(canonical_element(node) for node in stored)
    left: list[etree._Element] = []
    for node in sent:
        form = canonical_element(node)
        if equal[form]:
            equal[form] -= 1
        else:
            left.append(node)
    # what has no equal is compared with a namesake that has none either, in their order
    namesakes: dict[object, list[etree._Element]] = defaultdict(list)
    for node in stored:
        form = canonical_element(node)
        if equal[form]:
            equal[form] -= 1
            namesakes[node.tag].append(node)
    for node in left:
        if isinstance(node, (etree._Comment, etree._ProcessingInstruction)):
            yield f"{path}: the comment {_shown(node.text or '')} was removed"
        elif namesakes[node.tag]:
            yield from _compare(node, namesakes[node.tag].pop(0), f"{path}/{_plain(node.tag)}")
        else:
            yield f"{path}/{_plain(node.tag)} was removed"


def _attributes(element: etree._Element) -> dict[str, str]:
    return {str(name): str(value) for name, value in element.attrib.items()}


def _text(element: etree._Element) -> str:
    texts = [element.text, *(node.tail for node in element)]
    return " ".join(text.strip() for text in texts if text and text.strip())


def _plain(name: object) -> str:
    return str(name).rpartition("}")[2]


def _shown(text: str) -> str:
    return repr(text if len(text) <= _SHOWN else text[:_SHOWN] + "…")
