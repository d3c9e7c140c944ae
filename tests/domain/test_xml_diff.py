"""The diff for people shows what changed and nothing that only looks different."""

import pytest

from hvsvc.domain.edit_definition import Edit, edit_definition
from hvsvc.domain.xml_diff import diff_definitions
from hvsvc.errors import FailedPreconditionError
from tests.domain.golden import edit_xml, read_case, small_domain


def changes(before: str, after: str) -> list[str]:
    """The removed and added lines, the header left out."""
    lines = diff_definitions(before, after).splitlines()
    assert lines[:2] == ["--- before", "+++ after"]
    return [line[0] + line[1:].strip() for line in lines[2:] if line[0] in "+-"]


def test_xml_07_a_change_is_shown_before_and_after() -> None:
    xml = read_case("xml-09-no-current")
    assert changes(xml, edit_definition(xml, Edit(memory_kib=1048576))) == [
        '-<memory unit="KiB">524288</memory>',
        '+<memory unit="KiB">1048576</memory>',
        '+<currentMemory unit="KiB">524288</currentMemory>',
    ]


def test_an_element_a_line_whatever_the_lines_of_the_document() -> None:
    xml = small_domain()
    assert changes(xml, edit_xml(xml, "<vcpu>2</vcpu>", "<vcpu>3</vcpu>")) == [
        "-<vcpu>2</vcpu>",
        "+<vcpu>3</vcpu>",
    ]


def test_xml_14_what_only_looks_different_is_no_change() -> None:
    xml = read_case("nova-26")
    assert diff_definitions(xml, xml.replace("'", '"').replace("\n    ", "\n")) == ""
    assert diff_definitions(xml, edit_definition(xml, Edit())) == ""


def test_passwords_are_not_shown() -> None:
    xml = small_domain(devices="<graphics type='vnc' passwd='s3cret'/>")
    assert changes(xml, edit_xml(xml, "type='vnc'", "type='spice'")) == [
        '-<graphics type="vnc" passwd="***"/>',
        '+<graphics type="spice" passwd="***"/>',
    ]
    assert changes(xml, edit_xml(xml, "s3cret", "0ther")) == [
        '-<graphics type="vnc" passwd="***"/>',
        '+<graphics type="vnc" passwd="*** (another)"/>',
    ]


def test_broken_documents_are_refused() -> None:
    with pytest.raises(FailedPreconditionError):
        diff_definitions(small_domain(), "<domain")
