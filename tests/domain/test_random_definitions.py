"""Random definitions: an edit does what it says or refuses, and nothing else ever happens."""

from contextlib import suppress

from hypothesis import event, given, settings
from hypothesis import strategies as st

from hvsvc.domain.define_loss import lost_by_define
from hvsvc.domain.edit_definition import Edit, edit_definition
from hvsvc.domain.read_definition import parse_definition
from hvsvc.domain.topology import TopologyMode, TopologyPolicy, factor
from hvsvc.domain.xml_diff import diff_definitions
from hvsvc.domain.xml_document import fingerprint
from hvsvc.errors import HvsvcError, Reason
from tests.domain.golden import small_domain, without_edited_nodes
from tests.domain.random_xml import Mutation, domains, edits, mutations

POLICIES = st.sampled_from(
    [TopologyPolicy(TopologyMode.GROW_SOCKETS), TopologyPolicy(TopologyMode.GROW_CORES)]
)


def edit_or_refuse(xml: str, edit: Edit) -> str | HvsvcError:
    """The edited definition, or the refusal; any other exception fails the test."""
    try:
        edited = edit_definition(xml, edit)
    except HvsvcError as err:
        event(err.reason.value)
        return err
    event("edited")
    return edited


def check(xml: str, edit: Edit, edited: str) -> None:
    """What is true of every edit that was not refused."""
    before, after = parse_definition(xml), parse_definition(edited)
    assert without_edited_nodes(edited) == without_edited_nodes(xml)
    for name in Edit.__dataclass_fields__:
        asked = getattr(edit, name)
        assert getattr(after, name) == (getattr(before, name) if asked is None else asked), name
    if after.maximum_vcpus != before.maximum_vcpus or after.topology != before.topology:
        assert after.topology is None or after.topology.product == after.maximum_vcpus
    assert after.current_vcpus <= after.maximum_vcpus
    assert after.current_memory_kib <= after.memory_kib
    if after.memory_kib != before.memory_kib:  # one that was broken before is libvirt's to refuse
        assert after.max_memory_kib is None or after.max_memory_kib >= after.memory_kib
    if after.vcpus:
        assert not after.vcpus[0].hotpluggable
        assert all(entry.enabled or entry.hotpluggable for entry in after.vcpus)
    if after.maximum_vcpus != before.maximum_vcpus and after.vcpus:
        assert [entry.id for entry in after.vcpus] == list(range(after.maximum_vcpus))
    assert edit_definition(edited, edit) is edited
    assert bool(diff_definitions(xml, edited)) == (fingerprint(xml) != fingerprint(edited))
    assert lost_by_define(xml, xml) == ()


@given(xml=domains(), edit=edits)
def test_xml_04_an_edit_changes_what_it_names_and_nothing_else(xml: str, edit: Edit) -> None:
    edited = edit_or_refuse(xml, edit)
    if isinstance(edited, str):
        check(xml, edit, edited)


@settings(max_examples=200)
@given(xml=domains(), policy=POLICIES, growth=st.integers(0, 40), memory=st.integers(0, 2**20))
def test_topo_01_a_raised_ceiling_always_fits_its_topology(
    xml: str, policy: TopologyPolicy, growth: int, memory: int
) -> None:
    before = parse_definition(xml)
    step = before.topology.product if before.topology is not None else 1
    maximum = -(-(before.maximum_vcpus + growth) // step) * step
    edit = Edit(
        maximum_vcpus=maximum,
        topology=factor(before.topology, maximum, policy),
        memory_kib=before.memory_kib + memory,
    )
    refusals = {
        Reason.SEVERAL_NUMA_CELLS: len(before.numa_cells) > 1,
        Reason.MEMORY_DEVICES: bool(before.memory_devices) and memory > 0,
    }
    edited = edit_or_refuse(xml, edit)
    if isinstance(edited, HvsvcError):
        assert refusals[edited.reason], edited
        return
    assert parse_definition(edited).current_vcpus == before.current_vcpus
    assert parse_definition(edited).current_memory_kib == before.current_memory_kib
    check(xml, edit, edited)


@settings(max_examples=300)
@given(xml=domains(), changes=mutations, edit=edits)
def test_broken_definitions_are_edited_rightly_or_refused(
    xml: str, changes: list[Mutation], edit: Edit
) -> None:
    for change in changes:
        xml = change.apply(xml)
    edited = edit_or_refuse(xml, edit)
    if isinstance(edited, HvsvcError):
        assert edited.status in ("INVALID_ARGUMENT", "FAILED_PRECONDITION")
        return
    check(xml, edit, edited)


@settings(max_examples=300)
@given(text=st.text() | st.text("<>/&;!?[]-'\"= domainvcpu\n0", max_size=200))
def test_any_text_is_read_or_refused(text: str) -> None:
    for read in (
        parse_definition,
        fingerprint,
        lambda xml: diff_definitions(xml, xml),
        lambda xml: lost_by_define(small_domain(), xml),
    ):
        with suppress(HvsvcError):
            read(text)
