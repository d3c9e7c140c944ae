"""Parses domain XML as hostile input, and compares documents by their canonical form."""

from __future__ import annotations

import hashlib

from lxml import etree

from hvsvc.errors import FailedPreconditionError, Reason

#: far above any real definition (some tens of KiB), far below what would hurt
MAX_BYTES = 4 * 1024 * 1024


def broken(message: str) -> FailedPreconditionError:
    """The refusal of a definition that does not say what it must; `message` names the element."""
    return FailedPreconditionError(
        Reason.BROKEN_DEFINITION,
        f"the domain's definition is broken: {message}; nothing was changed; correct it first (virsh edit)",
    )


def parse_document(xml: str, *, keep_blanks: bool = True) -> etree._Element:
    """Parses a whole domain document and returns its `<domain>` element.

    No DTD, entity or network is ever used: a document with a DOCTYPE is refused,
    which also rules out every entity of its own. Without `keep_blanks` the whitespace
    between elements is left out; text-only elements keep theirs.

    :raises FailedPreconditionError: BROKEN_DEFINITION when it is no well-formed XML,
        is larger than 4 MiB, has a DOCTYPE, or its root is not `<domain>`.
    """
    try:
        data = xml.encode("utf-8")
    except UnicodeEncodeError as err:
        raise broken("it holds characters that no XML can hold") from err
    if len(data) > MAX_BYTES:
        raise broken(f"it has {len(data)} bytes; at most {MAX_BYTES} are read")
    # one for each document: a parser belongs to one thread, and making it costs little beside the parse
    parser = etree.XMLParser(
        encoding="utf-8",
        resolve_entities=False,
        no_network=True,
        huge_tree=False,
        load_dtd=False,
        remove_blank_text=not keep_blanks,
        strip_cdata=False,
    )
    try:
        root = etree.fromstring(data, parser)
    except etree.XMLSyntaxError as err:
        raise broken(f"it is not well-formed XML ({err.msg})") from err
    if root.getroottree().docinfo.internalDTD is not None:
        raise broken("it has a DOCTYPE, which no domain XML needs")
    if root.tag != "domain":
        raise broken(f"its root is <{root.tag}>, not <domain>")
    return root


def canonical(xml: str) -> bytes:
    """The document's canonical form: equal for documents that say the same.

    Attribute order, quotes, character references and whitespace between elements do
    not count; comments, prefixes and every other text do.

    :raises FailedPreconditionError: as `parse_document`.
    """
    return canonical_element(parse_document(xml, keep_blanks=False))


def canonical_element(element: etree._Element) -> bytes:
    """The canonical form of one node of a document parsed without blanks, its tail left out."""
    if isinstance(element, (etree._Comment, etree._ProcessingInstruction)):
        # libxml2 2.14 crashes on the canonical form of a lone comment
        return etree.tostring(element, encoding="utf-8", with_tail=False)
    try:
        return bytes(etree.tostring(element, method="c14n", with_comments=True, with_tail=False))
    except etree.C14NError:
        # Canonical XML 1.0 refuses relative namespace URIs, which libvirt lets pass in metadata; 2.0 takes them.
        text = etree.tostring(element, encoding="unicode", with_tail=False)
        return str(etree.canonicalize(text, with_comments=True)).encode("utf-8")


def fingerprint(xml: str) -> str:
    """SHA-256 of the canonical form, in hex: the etag of a stored definition (AIP-154).

    :raises FailedPreconditionError: as `parse_document`.
    """
    return hashlib.sha256(canonical(xml)).hexdigest()
