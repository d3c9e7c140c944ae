"""Which definition comes back where the stored one does not start."""

from __future__ import annotations

import pytest

from hvsvc.domain.edit_definition import Edit, edit_definition
from hvsvc.domain.read_definition import parse_definition
from hvsvc.domain.take_back import take_back
from hvsvc.domain.topology import Topology
from tests.fakes.worlds import GIB, MIB, domain_xml

BEFORE = domain_xml(maximum=2, current=2, memory_kib=512 * MIB)
RAISED = edit_definition(
    BEFORE,
    Edit(maximum_vcpus=8, topology=Topology(sockets=8), memory_kib=2 * GIB, current_memory_kib=GIB),
)
RAN = parse_definition(BEFORE)


def test_the_definition_that_hvsvc_replaced_comes_back_as_it_was() -> None:
    assert take_back(RAISED, BEFORE, RAN) == BEFORE


def test_a_definition_with_the_ceiling_that_ran_is_left_as_it_is() -> None:
    other = BEFORE.replace("<memballoon", "<rng model='virtio'/><memballoon")
    assert take_back(other, BEFORE, RAN) == other


@pytest.mark.parametrize("kept", [None, "not XML", BEFORE, domain_xml(maximum=4, current=2)])
def test_xml_04_what_somebody_else_changed_stays(kept: str | None) -> None:
    edited = RAISED.replace("<memballoon", "<rng model='virtio'/><memballoon")
    back = take_back(edited, kept, RAN)
    assert "<rng " in back
    found = parse_definition(back)
    assert (found.maximum_vcpus, found.current_vcpus, found.topology) == (2, 2, Topology(sockets=2))
    assert (found.memory_kib, found.current_memory_kib) == (512 * MIB, 512 * MIB)


def test_boot_values_stay_where_they_fit() -> None:
    found = parse_definition(take_back(edit_definition(RAISED, Edit(current_vcpus=1)), None, RAN))
    assert (found.maximum_vcpus, found.current_vcpus) == (2, 1)
