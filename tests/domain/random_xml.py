"""Random domain XML with the traits of the field cases, valid and broken."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from hypothesis import strategies as st

from hvsvc.domain.definition import VcpuEntry
from hvsvc.domain.edit_definition import Edit
from hvsvc.domain.topology import Topology

_UUID = "7a1c0de0-0000-4000-8000-0000000000ff"
_DEVICES = (
    "<memory model='dimm'><target><size>1024</size></target></memory>",
    "<hostdev mode='subsystem' type='pci'><source/></hostdev>",
    "<channel type='unix'><target type='virtio' name='org.qemu.guest_agent.0' state='connected'/></channel>",
    "<interface type='vhostuser'><source type='unix' path='/x' mode='server'/></interface>",
    "<interface type='bridge'><virtualport type='openvswitch'><parameters interfaceid='i'/></virtualport></interface>",
    "<graphics type='vnc' passwd='a&quot;b'/>",
    "<memballoon model='none'/>",
    "<iommu model='intel'><driver eim='on'/></iommu>",
)
_PARTS = (
    "<!-- a comment -->",
    "<?keep this?>",
    "<metadata><x xmlns='urn:y'><a/>text</x><n:i xmlns:n='http://openstack.org/xmlns/libvirt/nova/1.1'/></metadata>",
    "<metadata><rel:x xmlns:rel='not/absolute'> <![CDATA[<&]]> </rel:x></metadata>",
    "<description>\n  lines &amp; blanks \n</description>",
    "<memoryBacking><hugepages/><nosharepages/></memoryBacking>",
    "<cputune><shares>9</shares><vcpupin vcpu='1' cpuset='0-3,^2'/><vcpusched vcpus='0-1' scheduler='rr'/></cputune>",
    "<numatune><memory mode='strict' nodeset='0'/></numatune>",
    "<memtune><hard_limit unit='GiB'>1000</hard_limit></memtune>",
    "<launchSecurity type='sev'/>",
    "<features><acpi/></features>",
    "<q:commandline xmlns:q='http://libvirt.org/schemas/domain/qemu/1.0'><q:arg value='-x'/></q:commandline>",
    "<seclabel type='none'/>",
)
_BROKEN = (
    "<vcpu>\n 4\n</vcpu>",
    "<vcpu>4294967295</vcpu>",
    "<vcpu>-1</vcpu>",
    "<memory unit='QiB'>1</memory>",
    "<memory>1e9</memory>",
    "<currentMemory>99999999999999999999</currentMemory>",
    "<vcpus><vcpu id='9999999' enabled='yes'/></vcpus>",
    "<vcpus><vcpu id='0'/></vcpus>",
    "<cpu><topology sockets='0' cores='1' threads='1'/></cpu>",
    "<cpu><numa><cell memory='x'/></numa></cpu>",
    "<cputune><vcpupin vcpu='0' cpuset='0-4294967295'/></cputune>",
    "<name/>",
    "<uuid>x</uuid>",
    "</domain><domain>",
    "&entity;",
    "<!DOCTYPE domain>",
    "\x00",
    "\ud800",
    "<a>" * 300,
)

#: an attribute's value, or text between two tags
_VALUE = re.compile("(?<=')[^'<>]*(?=')|(?<=>)[^<>]+(?=</)")
_places = st.floats(0, 1, exclude_max=True)
small = st.integers(1, 4)
topologies = st.builds(Topology, sockets=small, dies=small, clusters=small, cores=small, threads=small)


@st.composite
def domains(draw: st.DrawFn) -> str:
    """A definition that libvirt could have stored; its topology need not fit its maximum."""
    maximum = draw(st.integers(1, 24))
    current = draw(st.integers(1, maximum))
    memory = draw(st.integers(1024, 2**24))
    parts = [
        "<name>random</name>",
        f"<uuid>{_UUID}</uuid>",
        f"<memory unit='KiB' dumpCore='off'>{memory}</memory>",
        *draw(st.lists(st.sampled_from(_PARTS), unique_by=lambda part: part[:9], max_size=6)),
        _vcpus(draw, maximum, current),
        f"<os><type arch='{draw(st.sampled_from(['x86_64', 'aarch64', 's390x']))}' machine='m'>hvm</type></os>",
        _cpu(draw, maximum, memory),
        f"<devices>{''.join(draw(st.lists(st.sampled_from(_DEVICES), unique=True, max_size=4)))}</devices>",
    ]
    if draw(st.booleans()):
        parts.append(f"<currentMemory>{draw(st.integers(1, memory))}</currentMemory>")
    if draw(st.booleans()):
        parts.append(
            f"<maxMemory slots='2' unit='b'>{(memory + draw(st.integers(0, 4096))) * 1024}</maxMemory>"
        )
    order = draw(st.permutations(parts))
    blank = draw(st.sampled_from(["", "\n  ", " "]))
    return f"<domain type='kvm'>{blank}{blank.join(order)}\n</domain>"


@st.composite
def vcpu_lists(draw: st.DrawFn, maximum: int = 8) -> tuple[VcpuEntry, ...]:
    """A list that libvirt could have stored for a maximum: vCPUs always there, plugged ones, and others."""
    boot = draw(st.integers(1, maximum))
    plugged = draw(st.sets(st.integers(boot, maximum - 1))) if boot < maximum else set()
    orders = [1, *draw(st.permutations(range(2, maximum + 3)))]
    orders[:boot] = sorted(orders[:boot])
    ordered = draw(st.booleans())
    return tuple(
        VcpuEntry(
            id=number,
            enabled=number < boot or number in plugged,
            hotpluggable=number >= boot,
            order=orders[number] if ordered and (number < boot or number in plugged) else None,
        )
        for number in range(maximum)
    )


def write_vcpus(entries: Iterable[VcpuEntry]) -> str:
    """The entries as libvirt writes them."""
    text = ""
    for entry in entries:
        order = f" order='{entry.order}'" if entry.order is not None else ""
        enabled, plug = ("yes" if flag else "no" for flag in (entry.enabled, entry.hotpluggable))
        text += f"\n    <vcpu id='{entry.id}' enabled='{enabled}' hotpluggable='{plug}'{order}/>"
    return f"<vcpus>{text}\n  </vcpus>"


def _vcpus(draw: st.DrawFn, maximum: int, current: int) -> str:
    kind = draw(st.sampled_from(["plain", "current", "list"]))
    if kind == "plain":
        return f"<vcpu placement='static'>{maximum}</vcpu>"
    if kind == "current":
        return f"<vcpu current='{current}'>{maximum}</vcpu>"
    entries = draw(vcpu_lists(maximum))
    return f"<vcpu current='{sum(entry.enabled for entry in entries)}'>{maximum}</vcpu>{write_vcpus(entries)}"


def _cpu(draw: st.DrawFn, maximum: int, memory: int) -> str:
    inner = ""
    if draw(st.booleans()):
        topology = draw(topologies)
        inner += (
            f"<topology sockets='{topology.sockets}' cores='{topology.cores}' threads='{topology.threads}'/>"
        )
    if draw(st.booleans()):
        cell = f"<cell id='0' cpus='0-{maximum - 1}' memory='{memory}' discard='yes'/>"
        other = draw(st.sampled_from(["", "<cell id='1' memory='0' unit='KiB'/>"]))
        inner += f"<numa>{cell}{other}</numa>"
    return (
        f"<cpu><model>m</model>{inner}<feature name='f'/></cpu>"
        if inner
        else draw(st.sampled_from(["", "<cpu/>"]))
    )


@dataclass(frozen=True)
class Mutation:
    """A piece of text put in place of some characters; with `length` None in place of one whole value."""

    at: float
    length: int | None
    text: str

    def apply(self, xml: str) -> str:
        """The text with the mutation in it."""
        if self.length is None:
            spans = [match.span() for match in _VALUE.finditer(xml)]
            start, end = spans[int(self.at * len(spans))] if spans else (0, 0)
        else:
            start = int(self.at * len(xml))
            end = start + self.length
        return xml[:start] + self.text + xml[end:]


_ODD = ["", "0", "1", "-1", " 2", "2 ", "+3", "007", "9" * 9, "9" * 20, "0-3", "1,0", "yes", "no", "b", "MB"]
_odd_text = st.text(st.characters(exclude_characters="'<>&", exclude_categories=["C"]), max_size=4)
_broken_text = st.sampled_from(_BROKEN) | st.text(max_size=5) | st.sampled_from("'<>&-0")
_values = st.builds(Mutation, _places, st.none(), st.sampled_from(_ODD) | _odd_text)
_breaks = st.builds(Mutation, _places, st.integers(0, 40), _broken_text)
mutations = st.lists(_values, min_size=1, max_size=2) | st.lists(_breaks, min_size=1, max_size=3)

edits = st.builds(
    Edit,
    maximum_vcpus=st.none() | st.integers(1, 64),
    topology=st.none() | topologies,
    current_vcpus=st.none() | st.integers(1, 64),
    memory_kib=st.none() | st.integers(1, 2**25),
    current_memory_kib=st.none() | st.integers(1, 2**25),
)
