"""Insertions and removals keep the lines of a document as a person would."""

import pytest
from lxml import etree

from hvsvc.domain.xml_insert import child_indent, insert_after, insert_at, remove

LINES = "<a>\n  <b/>\n  <c/>\n</a>"


def text(element: etree._Element) -> str:
    """The element as it is written."""
    return etree.tostring(element, encoding="unicode")


@pytest.mark.parametrize(
    ("xml", "index", "result"),
    [
        (LINES, 0, "<a>\n  <new/>\n  <b/>\n  <c/>\n</a>"),
        (LINES, 1, "<a>\n  <b/>\n  <new/>\n  <c/>\n</a>"),
        (LINES, 2, "<a>\n  <b/>\n  <c/>\n  <new/>\n</a>"),
        ("<a><b/></a>", 1, "<a><b/><new/></a>"),
        ("<a><b/></a>", 0, "<a><new/><b/></a>"),
        ("<a/>", 0, "<a><new/></a>"),
    ],
)
def test_an_element_takes_the_indentation_of_its_neighbours(xml: str, index: int, result: str) -> None:
    parent = etree.fromstring(xml)
    insert_at(parent, index, etree.Element("new"))
    assert text(parent) == result


@pytest.mark.parametrize(
    ("names", "result"),
    [
        (("b", "x"), "<a>\n  <b/>\n  <new/>\n  <c/>\n</a>"),
        (("c", "b"), "<a>\n  <b/>\n  <c/>\n  <new/>\n</a>"),
        (("x",), "<a>\n  <new/>\n  <b/>\n  <c/>\n</a>"),
    ],
)
def test_it_comes_after_the_last_of_its_predecessors(names: tuple[str, ...], result: str) -> None:
    parent = etree.fromstring(LINES)
    insert_after(parent, names, etree.Element("new"))
    assert text(parent) == result


@pytest.mark.parametrize(
    ("xml", "result"),
    [
        ("<a>\n  <gone/>\n  <b/>\n</a>", "<a>\n  <b/>\n</a>"),
        ("<a>\n  <b/>\n  <gone/>\n</a>", "<a>\n  <b/>\n</a>"),
        ("<a>\n  <gone/>\n</a>", "<a/>"),
        ("<a><b/><gone/><c/></a>", "<a><b/><c/></a>"),
    ],
)
def test_what_goes_leaves_no_line_behind(xml: str, result: str) -> None:
    parent = etree.fromstring(xml)
    (gone,) = parent.findall("gone")
    remove(parent, gone)
    assert text(parent) == result


def test_only_lines_are_an_indentation() -> None:
    assert child_indent(etree.fromstring(LINES)) == "\n  "
    assert child_indent(etree.fromstring("<a> <b/></a>")) is None
    assert child_indent(etree.fromstring("<a>\n text <b/></a>")) is None
