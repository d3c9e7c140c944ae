"""The edit: it writes what it names, leaves everything else, and refuses what would do damage."""

from collections.abc import Callable
from dataclasses import dataclass, fields

import pytest

from hvsvc.domain.edit_definition import Edit, edit_definition
from hvsvc.domain.read_definition import parse_definition
from hvsvc.domain.topology import Topology, TopologyMode, TopologyPolicy, factor
from hvsvc.domain.xml_document import canonical
from tests.domain.golden import DATA, edit_xml, element, read_case, small_domain, without_edited_nodes

GIB_KIB = 1024 * 1024


@dataclass(frozen=True)
class Case:
    """One golden pair: <name>-in.xml edited becomes <name>-out.xml."""

    name: str
    edit: Edit


CASES = [
    Case("nova-26", Edit(maximum_vcpus=12, topology=Topology(12), memory_kib=16 * GIB_KIB)),
    Case("topo-02-four-cores", Edit(maximum_vcpus=8, topology=Topology(2, cores=4))),
    Case("topo-03-dies", Edit(maximum_vcpus=16, topology=Topology(4, dies=2, cores=2))),
    Case("topo-05-no-topology", Edit(maximum_vcpus=7)),
    Case("topo-06-memory-only", Edit(memory_kib=2 * GIB_KIB)),
    Case("topo-07-two-sockets", Edit(maximum_vcpus=8, topology=Topology(2, cores=4))),
    Case("topo-08-lower", Edit(maximum_vcpus=4, topology=Topology(4), memory_kib=524288)),
    Case("topo-09-short-list", Edit(maximum_vcpus=16, topology=Topology(4, cores=4), current_vcpus=5)),
    Case("topo-13-comments", Edit(maximum_vcpus=6, topology=Topology(6), memory_kib=2 * GIB_KIB)),
    Case("xml-02-metadata", Edit(maximum_vcpus=4, current_vcpus=3)),
    Case("xml-04-untouched", Edit(maximum_vcpus=4, topology=Topology(2, cores=2), memory_kib=2 * GIB_KIB)),
    Case("xml-05-nvram", Edit(maximum_vcpus=8, topology=Topology(8))),
    Case("xml-06-sysinfo-uuid", Edit(maximum_vcpus=4, topology=Topology(1, cores=4))),
    Case("xml-08-units", Edit(memory_kib=2 * GIB_KIB)),
    Case("xml-09-no-current", Edit(memory_kib=1 * GIB_KIB)),
    Case("numa-one-cell", Edit(maximum_vcpus=8, topology=Topology(8), memory_kib=2 * GIB_KIB)),
    Case("numa-01-two-cells", Edit(current_vcpus=3)),
    Case("numa-05-pinned", Edit(maximum_vcpus=8)),
    Case("mem-03-hostdev", Edit(maximum_vcpus=4, memory_kib=2 * GIB_KIB)),
    Case("mem-03-sev", Edit(maximum_vcpus=4, memory_kib=2 * GIB_KIB)),
    Case("mem-06-dimm", Edit(maximum_vcpus=4, topology=Topology(4))),
    Case("mem-09-hugepages", Edit(maximum_vcpus=4, memory_kib=2 * GIB_KIB)),
    Case("cpu-09-aarch64", Edit(maximum_vcpus=4, topology=Topology(1, cores=4), current_vcpus=4)),
    Case("s390x", Edit(maximum_vcpus=8, memory_kib=2 * GIB_KIB)),
    Case("ppc64", Edit(maximum_vcpus=32, topology=Topology(2, cores=2, threads=8), current_vcpus=16)),
]
each_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


def test_every_definition_in_the_data_has_a_case() -> None:
    assert {path.name.removesuffix("-in.xml") for path in DATA.glob("*-in.xml")} == {
        case.name for case in CASES
    }


@each_case
def test_golden(case: Case, golden: Callable[[str, str], None]) -> None:
    golden(case.name, edit_definition(read_case(case.name), case.edit))


@each_case
def test_topo_01_what_was_asked_is_there_and_the_topology_fits(case: Case) -> None:
    before = parse_definition(read_case(case.name))
    after = parse_definition(edit_definition(read_case(case.name), case.edit))
    for field in fields(case.edit):
        asked = getattr(case.edit, field.name)
        assert getattr(after, field.name) == (getattr(before, field.name) if asked is None else asked), (
            field.name
        )
    assert after.topology is None or after.topology.product == after.maximum_vcpus
    assert len(after.vcpus) in (0, after.maximum_vcpus)
    if len(after.numa_cells) == 1:
        assert after.numa_cells[0].memory_kib == after.memory_kib - (524288 if after.memory_devices else 0)


@each_case
def test_xml_04_nothing_else_is_touched(case: Case) -> None:
    xml = read_case(case.name)
    assert without_edited_nodes(edit_definition(xml, case.edit)) == without_edited_nodes(xml)


@each_case
def test_xml_14_the_same_edit_again_changes_nothing(case: Case) -> None:
    once = edit_definition(read_case(case.name), case.edit)
    assert edit_definition(once, case.edit) is once
    assert edit_definition(once, Edit()) is once


def test_topo_07_every_policy_gives_a_definition_that_fits() -> None:
    xml = read_case("topo-07-two-sockets")
    for mode in (TopologyMode.GROW_SOCKETS, TopologyMode.GROW_CORES):
        topology = factor(parse_definition(xml).topology, 12, TopologyPolicy(mode))
        after = parse_definition(edit_definition(xml, Edit(maximum_vcpus=12, topology=topology)))
        assert after.topology == topology
        assert after.topology is not None
        assert after.topology.product == after.maximum_vcpus == 12


def test_xml_01_two_edits_are_both_there() -> None:
    first = edit_definition(read_case("nova-26"), Edit(maximum_vcpus=12, topology=Topology(12)))
    both = edit_definition(first, Edit(memory_kib=16 * GIB_KIB))
    at_once = Edit(maximum_vcpus=12, topology=Topology(12), memory_kib=16 * GIB_KIB)
    assert canonical(both) == canonical(edit_definition(read_case("nova-26"), at_once))


def test_xml_02_metadata_survives_with_its_prefixes() -> None:
    xml = read_case("xml-02-metadata")
    edited = edit_definition(xml, Edit(maximum_vcpus=4, current_vcpus=3))
    start, end = xml.index("<metadata>"), xml.index("</metadata>")
    assert xml[start:end] in edited


def test_topo_13_text_keeps_its_blanks_and_numbers_get_none() -> None:
    edited = edit_definition(read_case("topo-13-comments"), Edit(maximum_vcpus=6, topology=Topology(6)))
    assert '<vcpu current="2">6</vcpu>' in edited
    assert "\n    two lines, kept   as they are\n  <" in edited
    for comment in (
        "<!-- stored by hand -->",
        "<!-- who: ops -->",
        "<!-- four on Mondays -->",
        "<!-- flat -->",
    ):
        assert comment in edited


def test_xml_09_the_boot_allocation_stays_when_the_maximum_rises() -> None:
    xml = read_case("xml-09-no-current")
    assert "currentMemory" not in xml
    after = parse_definition(edit_definition(xml, Edit(memory_kib=1048576)))
    assert (after.memory_kib, after.current_memory_kib) == (1048576, 524288)
    empty = edit_xml(xml, "</memory>", "</memory><currentMemory/>")
    assert parse_definition(edit_definition(empty, Edit(memory_kib=1048576))).current_memory_kib == 524288


def test_xml_09_both_numbers_can_be_asked_at_once() -> None:
    edit = Edit(memory_kib=4 * GIB_KIB, current_memory_kib=2 * GIB_KIB)
    after = parse_definition(edit_definition(read_case("xml-09-no-current"), edit))
    assert (after.memory_kib, after.current_memory_kib) == (4 * GIB_KIB, 2 * GIB_KIB)


def test_xml_08_a_value_that_stays_keeps_its_unit_and_a_new_one_is_kib() -> None:
    edited = edit_definition(read_case("xml-08-units"), Edit(memory_kib=2 * GIB_KIB))
    assert '<memory unit="KiB" dumpCore="off">2097152</memory>' in edited
    assert '<currentMemory unit="b">536870912</currentMemory>' in edited


def test_mem_06_max_memory_keeps_its_room_above_the_memory() -> None:
    # QEMU does not start with memory slots and no room above the memory
    after = parse_definition(edit_definition(read_case("numa-one-cell"), Edit(memory_kib=3 * GIB_KIB)))
    assert (after.memory_kib, after.max_memory_kib) == (3 * GIB_KIB, 4 * GIB_KIB)
    below = parse_definition(edit_definition(read_case("numa-one-cell"), Edit(memory_kib=2 * GIB_KIB - 1024)))
    assert below.max_memory_kib == 2 * GIB_KIB


def test_cpu_09_single_vcpus_are_listed_only_where_they_can_be_plugged() -> None:
    for arch, listed in (
        ("x86_64", 4),
        ("i686", 4),
        ("aarch64", 0),
        ("riscv64", 0),
        ("s390x", 0),
        ("ppc64", 0),
    ):
        after = parse_definition(edit_definition(small_domain(arch=arch), Edit(maximum_vcpus=4)))
        assert (len(after.vcpus), after.current_vcpus, after.maximum_vcpus) == (listed, 2, 4), arch
    edited = edit_definition(read_case("cpu-09-aarch64"), CASES[-3].edit)
    assert "<vcpus>" not in edited
    assert "current" not in element(edited, "vcpu").attrib


def test_a_list_is_made_only_where_vcpus_are_left_to_plug() -> None:
    for edit in (
        Edit(maximum_vcpus=4, current_vcpus=4),
        Edit(current_vcpus=1),
        Edit(maximum_vcpus=1, current_vcpus=1),
    ):
        assert parse_definition(edit_definition(small_domain(), edit)).vcpus == ()


def test_a_missing_vcpu_element_is_made_beside_the_memory() -> None:
    edited = edit_definition(small_domain(vcpu=""), Edit(maximum_vcpus=2))
    assert '</memory><vcpu current="1">2</vcpu><vcpus>' in edited


def test_unknown_neighbours_of_the_topology_stay_in_place() -> None:
    cpu = "<cpu mode='host-model'><model>a</model><cache level='3'/><feature name='b' policy='force'/></cpu>"
    edited = edit_definition(small_domain(cpu=cpu), Edit(maximum_vcpus=4, topology=Topology(1, cores=4)))
    assert '<model>a</model><topology sockets="1" cores="4" threads="1"/><cache level="3"/>' in edited


def test_topo_03_dies_and_clusters_are_written_only_where_they_mean_something() -> None:
    edited = edit_definition(small_domain(), Edit(maximum_vcpus=8, topology=Topology(2, clusters=2, cores=2)))
    assert '<topology sockets="2" clusters="2" cores="2" threads="1"/>' in edited
    cpu = "<cpu><topology sockets='1' dies='1' cores='2' threads='1'/></cpu>"
    edited = edit_definition(small_domain(cpu=cpu), Edit(maximum_vcpus=4, topology=Topology(2, cores=2)))
    assert '<topology sockets="2" dies="1" cores="2" threads="1"/>' in edited
