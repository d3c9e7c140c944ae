"""Reading: every value, libvirt's own defaults, and refusals that name the element."""

import dataclasses

import pytest

from hvsvc.domain.definition import Definition, Device, NumaCell, VcpuEntry, VcpuPin
from hvsvc.domain.read_definition import parse_definition
from hvsvc.domain.topology import Topology
from hvsvc.errors import FailedPreconditionError, Reason
from tests.domain.golden import read_case, small_domain


def test_a_nova_domain_is_read_wholly() -> None:
    found = parse_definition(read_case("nova-26"))
    assert found.nova is not None
    assert dataclasses.replace(found, nova=None) == Definition(
        name="instance-0000335c",
        uuid="6b5f16a8-3a41-426d-8a29-7cd0beda2ea6",
        virt_type="kvm",
        os_type="hvm",
        arch="x86_64",
        machine="pc-i440fx-7.2",
        emulator="/usr/bin/qemu-system-x86_64",
        maximum_vcpus=8,
        current_vcpus=8,
        cpuset="",
        vcpus=(),
        topology=Topology(8),
        memory_kib=12582912,
        current_memory_kib=12582912,
        max_memory_kib=None,
        numa_cells=(),
        vcpu_pins=(),
        vcpu_tunings=(),
        hugepages=False,
        memory_devices=(),
        memory_locks=(),
        balloon_model="virtio",
        balloon_stats=True,
        agent_configured=True,
        agent_connected=None,
        acpi=True,
        extended_interrupts=False,
        nova=None,
        devices=(
            Device("disk", "vda", "/var/lib/nova/instances/6b5f16a8-3a41-426d-8a29-7cd0beda2ea6/disk"),
            Device("interface", "fa:16:3e:4c:2c:30"),
        ),
        on_poweroff="destroy",
    )


def test_the_least_domain_has_libvirts_defaults() -> None:
    found = parse_definition(small_domain(vcpu=""))
    assert (found.maximum_vcpus, found.current_vcpus) == (1, 1)
    assert found.current_memory_kib == found.memory_kib == 1048576
    assert found.topology is None
    assert (found.emulator, found.balloon_model, found.balloon_stats) == ("", "", False)
    assert (found.acpi, found.agent_configured, found.nova) == (False, False, None)


def test_cpu_13_current_is_the_number_of_enabled_vcpus() -> None:
    entries = "".join(
        f"<vcpu id='{number}' enabled='{enabled}' hotpluggable='yes'/>"
        for number, enabled in ((1, "no"), (0, "yes"), (2, "yes"))
    )
    # libvirt 9.0 stores current 2 for it
    found = parse_definition(small_domain(vcpu=f"<vcpu current='1'>4</vcpu><vcpus>{entries}</vcpus>"))
    assert (found.maximum_vcpus, found.current_vcpus) == (4, 2)
    assert [entry.id for entry in found.vcpus] == [0, 1, 2]


def test_topo_09_a_short_list_is_read_as_it_is() -> None:
    found = parse_definition(read_case("topo-09-short-list"))
    assert found.vcpus == (
        VcpuEntry(0, enabled=True, hotpluggable=False, order=1),
        VcpuEntry(1, enabled=True, hotpluggable=True, order=2),
        VcpuEntry(2, enabled=False, hotpluggable=True),
        VcpuEntry(3, enabled=False, hotpluggable=True),
    )
    assert (found.maximum_vcpus, found.current_vcpus) == (8, 2)


def test_absent_hotpluggable_follows_enabled() -> None:
    vcpu = "<vcpu>2</vcpu><vcpus><vcpu id='0' enabled='yes'/><vcpu id='1' enabled='no'/></vcpus>"
    assert parse_definition(small_domain(vcpu=vcpu)).vcpus == (
        VcpuEntry(0, enabled=True, hotpluggable=False),
        VcpuEntry(1, enabled=False, hotpluggable=True),
    )


def test_topo_03_absent_factors_are_one() -> None:
    found = parse_definition(read_case("topo-03-dies"))
    assert found.topology == Topology(2, dies=2, cores=2)
    cpu = "<cpu><topology sockets='1' clusters='2' threads='2'/></cpu>"
    assert parse_definition(small_domain(cpu=cpu)).topology == Topology(1, clusters=2, threads=2)


def test_xml_08_sizes_of_every_element_are_kib() -> None:
    found = parse_definition(read_case("xml-08-units"))
    assert (found.memory_kib, found.current_memory_kib) == (1000000, 524288)
    memory = "<maxMemory slots='4' unit='G'>2</maxMemory><memory unit='GiB'>1</memory>"
    cell = "<cpu><numa><cell cpus='0-1' memory='1024' unit='MiB'/></numa></cpu>"
    found = parse_definition(small_domain(memory=memory, cpu=cell))
    assert (found.max_memory_kib, found.memory_kib) == (2097152, 1048576)
    assert found.numa_cells == (NumaCell(0, "0-1", 1048576),)


def test_numa_01_cells_are_read_with_their_cpus() -> None:
    assert parse_definition(read_case("numa-01-two-cells")).numa_cells == (
        NumaCell(0, "0-1", 524288),
        NumaCell(1, "2-3", 524288),
    )
    cells = "<cell memory='1'/><cell id='5' memory='2' cpus='1'/>"
    found = parse_definition(small_domain(cpu=f"<cpu><numa>{cells}</numa></cpu>"))
    assert found.numa_cells == (NumaCell(0, "", 1), NumaCell(5, "1", 2))


def test_numa_05_pins_and_tunings_are_read() -> None:
    found = parse_definition(read_case("numa-05-pinned"))
    assert found.vcpu_pins == (
        VcpuPin(0, "0"),
        VcpuPin(1, "1"),
        VcpuPin(2, "0"),
        VcpuPin(3, "0-1,^1"),
    )
    assert found.vcpu_tunings == ("vcpusched 2-3",)


def test_numa_05_a_cpuset_of_all_vcpus_is_read() -> None:
    assert parse_definition(small_domain(vcpu="<vcpu cpuset='0-3,^2'>2</vcpu>")).cpuset == "0-3,^2"


def test_topo_11_extended_interrupt_mode_is_read() -> None:
    iommu = "<iommu model='intel'><driver intremap='on' eim='{}'/></iommu>"
    assert parse_definition(small_domain(devices=iommu.format("on"))).extended_interrupts
    assert not parse_definition(small_domain(devices=iommu.format("off"))).extended_interrupts
    assert not parse_definition(small_domain()).extended_interrupts


def test_xml_06_the_uuid_is_written_one_way() -> None:
    xml = small_domain().replace("7a1c0de0-0000-4000-8000-000000000001", "7A1C0DE0000040008000000000000001")
    assert parse_definition(xml).uuid == "7a1c0de0-0000-4000-8000-000000000001"


def vcpus(*entries: str, maximum: int = 2) -> str:
    """A `<vcpu>` with a list of entries' attributes."""
    return f"<vcpu>{maximum}</vcpu><vcpus>{''.join(f'<vcpu {entry}/>' for entry in entries)}</vcpus>"


@pytest.mark.parametrize(
    ("xml", "element"),
    [
        ("<domain type='qemu'/>", "<name>"),
        (small_domain().replace("<name>small</name>", "<name/>"), "<name>"),
        (small_domain().replace("<name>small", "<name>a</name><name>small"), "<name>"),
        (small_domain().replace("<name>small", "<name><b/>small"), "<name>"),
        (small_domain().replace("7a1c0de0-0000-4000-8000-000000000001", "none"), "<uuid>"),
        (small_domain().replace("<uuid>7a1c0de0-0000-4000-8000-000000000001</uuid>", ""), "<uuid>"),
        (small_domain().replace(" type='qemu'", ""), "<domain> lacks the attribute type"),
        (small_domain(memory=""), "<memory>"),
        (small_domain(memory="<memory>0</memory>"), "<memory>"),
        (small_domain(memory="<memory/>"), "<memory>"),
        (small_domain(memory="<memory>-1</memory>"), "<memory>"),
        (small_domain(memory="<memory unit='QiB'>1</memory>"), "<memory>"),
        (small_domain(memory="<memory>1</memory><memory>1</memory>"), "<memory>"),
        (small_domain(memory="<memory><x/>1</memory>"), "<memory>"),
        (small_domain(memory="<memory>1<!-- one --></memory>"), "<memory>"),
        (small_domain(memory="<memory>99999999999999999999</memory>"), "<memory>"),
        (small_domain(memory="<memory>10</memory><currentMemory>11</currentMemory>"), "<currentMemory>"),
        (small_domain(memory="<memory>10</memory><currentMemory>x</currentMemory>"), "<currentMemory>"),
        (small_domain(memory="<maxMemory>x</maxMemory><memory>10</memory>"), "<maxMemory>"),
        (small_domain(vcpu="<vcpu/>"), "<vcpu>"),
        (small_domain(vcpu="<vcpu>0</vcpu>"), "<vcpu>"),
        (small_domain(vcpu="<vcpu>\n 4\n</vcpu>"), "<vcpu>"),
        (small_domain(vcpu="<vcpu>4294967295</vcpu>"), "<vcpu>"),
        (small_domain(vcpu="<vcpu>2</vcpu><vcpu>3</vcpu>"), "<vcpu>"),
        (small_domain(vcpu="<vcpu current='3'>2</vcpu>"), "current of <vcpu>"),
        (small_domain(vcpu="<vcpu current='0'>2</vcpu>"), "current of <vcpu>"),
        (small_domain(vcpu="<vcpu current=''>2</vcpu>"), "current of <vcpu>"),
        (small_domain(vcpu="<vcpu cpuset='0-'>2</vcpu>"), "cpuset of <vcpu>"),
        (small_domain(vcpu="<vcpu cpuset='0-4294967295'>2</vcpu>"), "cpuset of <vcpu>"),
        (small_domain(vcpu=vcpus("id='2' enabled='yes'")), "<vcpus> lists vCPU 2"),
        (
            small_domain(vcpu=vcpus("id='0' enabled='yes'", "id='0' enabled='no'")),
            "<vcpus> lists vCPU 0 twice",
        ),
        (small_domain(vcpu=vcpus("enabled='yes'")), "lacks the attribute id"),
        (small_domain(vcpu=vcpus("id='0'")), "lacks the attribute enabled"),
        (small_domain(vcpu=vcpus("id='0' enabled='1'")), "enabled of <vcpu>"),
        (small_domain(vcpu=vcpus("id='0' enabled='yes' hotpluggable=''")), "hotpluggable of <vcpu>"),
        (small_domain(vcpu=vcpus("id='0' enabled='yes' order='-1'")), "order of <vcpu>"),
        (small_domain(vcpu=vcpus("id='0' enabled='no'")), "<vcpus> enables no vCPU"),
        (small_domain(cpu="<cpu><topology sockets='0'/></cpu>"), "sockets of <topology>"),
        (small_domain(cpu="<cpu><topology sockets='2' dies='x'/></cpu>"), "dies of <topology>"),
        (small_domain(cpu="<cpu><topology cores='99999999999'/></cpu>"), "cores of <topology>"),
        (small_domain(cpu="<cpu><topology/><topology/></cpu>"), "<topology>"),
        (small_domain(cpu="<cpu/><cpu/>"), "<cpu> stands there 2 times"),
        (small_domain(cpu="<cpu><numa/><numa/></cpu>"), "<numa> stands there 2 times"),
        (small_domain(vcpu="<vcpu>2</vcpu><vcpus/><vcpus/>"), "<vcpus> stands there 2 times"),
        (small_domain(cpu="<cpu><numa><cell cpus='0'/></numa></cpu>"), "memory"),
        (small_domain(cpu="<cpu><numa><cell cpus='0-2' memory='1'/></numa></cpu>"), "cpus of <cell>"),
        (small_domain(cpu="<cpu><numa><cell cpus='0-9999999' memory='1'/></numa></cpu>"), "cpus of <cell>"),
        (small_domain(cpu="<cpu><numa><cell id='a' memory='1'/></numa></cpu>"), "id of <cell>"),
    ],
)
def test_broken_definitions_are_refused_by_element(xml: str, element: str) -> None:
    with pytest.raises(FailedPreconditionError) as caught:
        parse_definition(xml)
    assert caught.value.reason is Reason.BROKEN_DEFINITION
    assert element in caught.value.message
