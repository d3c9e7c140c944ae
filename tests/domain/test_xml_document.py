"""Documents: hostile ones are refused, and equal ones compare equal."""

import re

import pytest

from hvsvc.domain.xml_document import MAX_BYTES, canonical, fingerprint, parse_document
from hvsvc.errors import FailedPreconditionError, Reason
from tests.domain.golden import edit_xml, read_case, small_domain

LAUGHS = "".join(f"<!ENTITY l{n} '{f'&l{n - 1};' * 10}'>" for n in range(1, 10))


@pytest.mark.parametrize(
    ("xml", "words"),
    [
        ("", "well-formed"),
        (" ", "well-formed"),
        ("not xml", "well-formed"),
        ("<domain>", "well-formed"),
        ("<domain/><domain/>", "well-formed"),
        ("<domain a='1' a='2'/>", "well-formed"),
        ("<domain>&undeclared;</domain>", "well-formed"),
        ("<domain>\x00</domain>", "well-formed"),
        ("<domain>\ud800</domain>", "characters"),
        ("<x:domain/>", "well-formed"),
        ("<domain>" + "<a>" * 300 + "</a>" * 300 + "</domain>", "well-formed"),
        ("<domstatus/>", "<domstatus>"),
        ("<domain xmlns='urn:other'/>", "not <domain>"),
        ("<!DOCTYPE domain><domain/>", "DOCTYPE"),
        ("<!DOCTYPE domain SYSTEM 'file:///etc/passwd'><domain/>", "DOCTYPE"),
        ("<!DOCTYPE d [<!ENTITY f SYSTEM 'file:///etc/passwd'>]><domain>&f;</domain>", "DOCTYPE"),
        (f"<!DOCTYPE d [<!ENTITY l0 'ha'>{LAUGHS}]><domain>&l9;</domain>", "DOCTYPE|well-formed"),
        (f"<!DOCTYPE d [<!ENTITY l0 'ha'>{LAUGHS}]><domain a='&l9;'/>", "DOCTYPE|well-formed"),
        ("<!DOCTYPE d [<!ATTLIST domain type CDATA 'kvm'>]><domain/>", "DOCTYPE"),
        ("<domain>" + "x" * MAX_BYTES + "</domain>", "at most 4194304"),
    ],
)
def test_hostile_documents_are_refused(xml: str, words: str) -> None:
    with pytest.raises(FailedPreconditionError) as caught:
        parse_document(xml)
    assert caught.value.reason is Reason.BROKEN_DEFINITION
    assert re.search(words, caught.value.message), caught.value.message
    assert len(caught.value.message) < 300


def test_a_declared_encoding_does_not_garble_the_text() -> None:
    root = parse_document("<?xml version='1.0' encoding='ISO-8859-1'?><domain><name>Größe</name></domain>")
    assert root.findtext("name") == "Größe"


def test_xml_14_what_only_looks_different_has_the_same_fingerprint() -> None:
    xml = small_domain(cpu="<cpu mode='custom'><topology sockets='2' cores='1' threads='1'/></cpu>")
    for same in (
        xml.replace("'", '"'),
        edit_xml(xml, "<topology sockets='2' cores='1'", "<topology cores='1'   sockets='2'"),
        edit_xml(xml, "<devices></devices>", "<devices/>"),
        edit_xml(xml, "<name>small", "<name>sm&#97;ll"),
        xml.replace("><", ">\n  <").replace("<devices>\n  </devices>", "<devices/>"),
        f"<?xml version='1.0'?>\n{xml}\n",
    ):
        assert fingerprint(same) == fingerprint(xml)
        assert canonical(same) == canonical(xml)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("<vcpu>2</vcpu>", "<vcpu>3</vcpu>"),
        ("<vcpu>2</vcpu>", "<vcpu> 2</vcpu>"),
        ("<vcpu>2</vcpu>", "<vcpu current='2'>2</vcpu>"),
        ("<vcpu>2</vcpu>", "<vcpu>2</vcpu><!-- two -->"),
        ("<name>small</name>", "<name> </name>"),
        ("type='qemu'", "type='kvm'"),
        ("type='qemu'", "type='qemu' xmlns:qemu='http://libvirt.org/schemas/domain/qemu/1.0'"),
    ],
)
def test_what_is_different_has_another_fingerprint(old: str, new: str) -> None:
    xml = small_domain()
    assert fingerprint(edit_xml(xml, old, new)) != fingerprint(xml)


def test_xml_02_prefixes_and_relative_namespaces_count() -> None:
    xml = read_case("xml-02-metadata")
    assert 'xmlns:own="not/absolute"' in xml
    assert fingerprint(xml) != fingerprint(xml.replace("ns0:", "ns1:").replace(":ns0", ":ns1"))
    assert fingerprint(xml) == fingerprint(edit_xml(xml, 'own:b="2" own:a="1"', 'own:a="1" own:b="2"'))


def test_a_fingerprint_is_a_sha_256_in_hex() -> None:
    assert re.fullmatch("[0-9a-f]{64}", fingerprint(small_domain()))
