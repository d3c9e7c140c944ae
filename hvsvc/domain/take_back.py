"""The definition to go back to, where the stored one does not start."""

from __future__ import annotations

from hvsvc.domain.ceiling import same_ceiling
from hvsvc.domain.definition import Definition
from hvsvc.domain.edit_definition import Edit, edit_definition
from hvsvc.domain.read_definition import parse_definition
from hvsvc.domain.xml_document import fingerprint
from hvsvc.errors import HvsvcError


def take_back(stored_xml: str, kept_xml: str | None, ran: Definition) -> str:
    """The stored definition with the ceiling that ran; `stored_xml` itself where it has it already.

    Only the ceiling is taken back: whatever else somebody changed since the domain was
    started is theirs, and stays. So `kept_xml`, the definition that hvsvc replaced last,
    is what comes back only where it has that ceiling and differs from the stored one by
    nothing but hvsvc's own edit.

    :raises HvsvcError: as `edit_definition`, where the ceiling cannot be taken back alone.
    """
    stored = parse_definition(stored_xml)
    if same_ceiling(stored, ran):
        return stored_xml
    if kept_xml is not None and _is_ours(stored_xml, stored, kept_xml, ran):
        return kept_xml
    return edit_definition(
        stored_xml,
        Edit(
            maximum_vcpus=ran.maximum_vcpus,
            topology=ran.topology,
            current_vcpus=min(stored.current_vcpus, ran.maximum_vcpus),
            memory_kib=ran.memory_kib,
            current_memory_kib=min(stored.current_memory_kib, ran.memory_kib),
        ),
    )


def _is_ours(stored_xml: str, stored: Definition, kept_xml: str, ran: Definition) -> bool:
    try:
        if not same_ceiling(parse_definition(kept_xml), ran):
            return False
        edited = edit_definition(
            kept_xml,
            Edit(
                maximum_vcpus=stored.maximum_vcpus,
                topology=stored.topology,
                current_vcpus=stored.current_vcpus,
                memory_kib=stored.memory_kib,
                current_memory_kib=stored.current_memory_kib,
            ),
        )
    except HvsvcError:
        return False
    return fingerprint(edited) == fingerprint(stored_xml)
