"""Edits that libvirt would refuse, clamp or fill in silently are refused before anything is written."""

import pytest

from hvsvc.domain.edit_definition import Edit, edit_definition
from hvsvc.domain.read_definition import parse_definition
from hvsvc.domain.topology import Topology
from hvsvc.errors import FailedPreconditionError, HvsvcError, InvalidArgumentError, Reason
from tests.domain.golden import read_case, small_domain

GIB_KIB = 1024 * 1024


def refused(xml: str, edit: Edit) -> HvsvcError:
    with pytest.raises(HvsvcError) as caught:
        edit_definition(xml, edit)
    return caught.value


@pytest.mark.parametrize(
    ("case", "edit", "reason"),
    [
        ("topo-08-lower", Edit(maximum_vcpus=2, topology=Topology(2)), Reason.MAXIMUM_BELOW_CURRENT),
        ("topo-08-lower", Edit(current_vcpus=9), Reason.MAXIMUM_BELOW_CURRENT),
        ("xml-08-units", Edit(memory_kib=524287), Reason.MAXIMUM_BELOW_CURRENT),
        ("xml-08-units", Edit(current_memory_kib=1000001), Reason.MAXIMUM_BELOW_CURRENT),
        ("xml-09-no-current", Edit(memory_kib=262144), Reason.MAXIMUM_BELOW_CURRENT),
        ("topo-02-four-cores", Edit(maximum_vcpus=8), Reason.TOPOLOGY_NOT_FACTORABLE),
        ("topo-02-four-cores", Edit(topology=Topology(8)), Reason.TOPOLOGY_NOT_FACTORABLE),
        ("topo-05-no-topology", Edit(maximum_vcpus=0), Reason.INVALID_VALUE),
        ("topo-05-no-topology", Edit(maximum_vcpus=65536), Reason.INVALID_VALUE),
        ("topo-05-no-topology", Edit(maximum_vcpus=2**32), Reason.INVALID_VALUE),
        ("topo-05-no-topology", Edit(current_vcpus=-1), Reason.INVALID_VALUE),
        ("topo-05-no-topology", Edit(memory_kib=0), Reason.INVALID_VALUE),
        ("topo-05-no-topology", Edit(memory_kib=2**63), Reason.INVALID_VALUE),
        ("topo-05-no-topology", Edit(current_memory_kib=0), Reason.INVALID_VALUE),
    ],
)
def test_xml_10_wrong_values_are_refused_and_never_clamped(case: str, edit: Edit, reason: Reason) -> None:
    err = refused(read_case(case), edit)
    assert isinstance(err, InvalidArgumentError)
    assert err.reason is reason
    assert err.field


@pytest.mark.parametrize(
    ("case", "edit", "reason"),
    [
        (
            "numa-01-two-cells",
            Edit(maximum_vcpus=8, topology=Topology(4, cores=2)),
            Reason.SEVERAL_NUMA_CELLS,
        ),
        ("numa-01-two-cells", Edit(memory_kib=2 * GIB_KIB), Reason.SEVERAL_NUMA_CELLS),
        ("mem-06-dimm", Edit(memory_kib=2 * GIB_KIB), Reason.MEMORY_DEVICES),
        ("numa-05-pinned", Edit(maximum_vcpus=3, current_vcpus=3), Reason.PINNED),
        ("ppc64", Edit(current_vcpus=9), Reason.UNSUPPORTED_DEFINITION),
    ],
)
def test_numa_02_edits_that_would_damage_something_are_refused(case: str, edit: Edit, reason: Reason) -> None:
    err = refused(read_case(case), edit)
    assert isinstance(err, FailedPreconditionError)
    assert err.reason is reason
    assert "nothing was changed" in err.message or "ask for" in err.message


def test_numa_05_a_pin_is_never_lost_and_its_vcpus_are_named() -> None:
    err = refused(read_case("numa-05-pinned"), Edit(maximum_vcpus=2, current_vcpus=2))
    assert err.metadata == {"vcpus": "2-3", "asked": "2"}
    assert "2-3" in err.message


def test_topo_08_both_lowered_together_are_taken() -> None:
    edited = edit_definition(small_domain(vcpu="<vcpu>4</vcpu>"), Edit(maximum_vcpus=2, current_vcpus=1))
    after = parse_definition(edited)
    assert (after.maximum_vcpus, after.current_vcpus) == (2, 1)


def test_topo_06_memory_alone_never_judges_the_topology() -> None:
    cpu = "<cpu><topology sockets='1' cores='1' threads='2'/></cpu>"
    broken_before = small_domain(vcpu="<vcpu current='2'>6</vcpu>", cpu=cpu)
    after = parse_definition(edit_definition(broken_before, Edit(memory_kib=2 * GIB_KIB)))
    assert (after.memory_kib, after.topology) == (2 * GIB_KIB, Topology(1, threads=2))
    assert refused(broken_before, Edit(maximum_vcpus=8)).reason is Reason.TOPOLOGY_NOT_FACTORABLE


def test_a_topology_with_a_factor_to_come_is_not_guessed_at() -> None:
    cpu = "<cpu><topology sockets='1' modules='2' cores='1' threads='1'/></cpu>"
    xml = small_domain(cpu=cpu)
    err = refused(xml, Edit(maximum_vcpus=4, topology=Topology(4)))
    assert (err.reason, err.metadata) == (Reason.UNSUPPORTED_DEFINITION, {"unknown": "modules"})
    assert 'modules="2"' in edit_definition(xml, Edit(memory_kib=2 * GIB_KIB))


def test_memory_above_its_limit_would_kill_the_domain() -> None:
    xml = small_domain(more="<memtune><hard_limit unit='MiB'>1536</hard_limit></memtune>")
    err = refused(xml, Edit(memory_kib=2 * GIB_KIB))
    assert err.reason is Reason.UNSUPPORTED_DEFINITION
    assert err.metadata["highestKib"] == str(1536 * 1024)
    after = parse_definition(edit_definition(xml, Edit(memory_kib=1536 * 1024)))
    assert after.memory_kib == 1536 * 1024


@pytest.mark.parametrize(
    "xml", ["", "<domain/>", small_domain(vcpu="<vcpu>x</vcpu>"), small_domain(memory="")]
)
def test_broken_definitions_are_refused_even_where_the_broken_part_is_not_edited(xml: str) -> None:
    for edit in (Edit(), Edit(memory_kib=GIB_KIB), Edit(current_vcpus=1)):
        assert refused(xml, edit).reason is Reason.BROKEN_DEFINITION
