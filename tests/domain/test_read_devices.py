"""Devices that decide what can be changed."""

import pytest

from hvsvc.domain.read_definition import parse_definition
from hvsvc.errors import FailedPreconditionError
from tests.domain.golden import read_case, small_domain


def test_mem_06_memory_devices_are_named_by_model() -> None:
    assert parse_definition(read_case("mem-06-dimm")).memory_devices == ("dimm",)
    devices = "".join(f"<memory model='{model}'/>" for model in ("nvdimm", "virtio-mem", "virtio-pmem"))
    found = parse_definition(small_domain(devices=devices))
    assert found.memory_devices == ("nvdimm", "virtio-mem", "virtio-pmem")


def test_mem_03_pci_mediated_and_sriov_devices_lock_the_memory_and_usb_does_not() -> None:
    assert parse_definition(read_case("mem-03-hostdev")).memory_locks == (
        "hostdev pci",
        "hostdev mdev",
        "interface hostdev",
    )


def test_mem_03_encrypted_and_locked_memory() -> None:
    found = parse_definition(read_case("mem-03-sev"))
    assert found.memory_locks == ("memoryBacking locked", "launchSecurity sev")


@pytest.mark.parametrize(
    ("device", "locks"),
    [
        ("<interface type='vdpa'/>", ("interface vdpa",)),
        ("<disk type='nvme'/>", ("disk nvme",)),
        ("<disk type='vhostvdpa'/>", ("disk vhostvdpa",)),
        ("<interface type='vhostuser'/>", ()),
        ("<interface type='bridge'/><disk type='file'/>", ()),
        ("<hostdev mode='subsystem' type='scsi'/>", ()),
        ("<hostdev mode='subsystem' type='scsi_host'/>", ()),
    ],
)
def test_mem_03_what_vfio_maps_is_locked(device: str, locks: tuple[str, ...]) -> None:
    assert parse_definition(small_domain(devices=device)).memory_locks == locks


def test_mem_09_hugepages_are_seen_and_nosharepages_is_no_lock() -> None:
    found = parse_definition(read_case("mem-09-hugepages"))
    assert found.hugepages
    assert found.memory_locks == ()
    assert not parse_definition(read_case("xml-04-untouched")).hugepages


@pytest.mark.parametrize(
    ("device", "model", "stats"),
    [
        ("<memballoon model='virtio'><stats period='10'/></memballoon>", "virtio", True),
        ("<memballoon model='virtio'><stats period='0'/></memballoon>", "virtio", False),
        ("<memballoon model='virtio'><stats/></memballoon>", "virtio", False),
        ("<memballoon model='virtio-non-transitional'/>", "virtio-non-transitional", False),
        ("<memballoon model='none'/>", "none", False),
        ("", "", False),
    ],
)
def test_mem_02_the_balloon_and_its_statistics(device: str, model: str, stats: bool) -> None:
    found = parse_definition(small_domain(devices=device))
    assert (found.balloon_model, found.balloon_stats) == (model, stats)


def test_a_broken_balloon_is_refused() -> None:
    for device in ("<memballoon><stats period='x'/></memballoon>", "<memballoon/><memballoon/>"):
        with pytest.raises(FailedPreconditionError, match=r"period of <stats>|<memballoon>"):
            parse_definition(small_domain(devices=device))


@pytest.mark.parametrize(
    ("target", "configured", "connected"),
    [
        ("type='virtio' name='org.qemu.guest_agent.0'", True, None),
        ("type='virtio' name='org.qemu.guest_agent.0' state='connected'", True, True),
        ("type='virtio' name='org.qemu.guest_agent.0' state='disconnected'", True, False),
        ("type='virtio' name='com.redhat.spice.0' state='connected'", False, None),
        ("type='xen' name='org.qemu.guest_agent.0'", False, None),
    ],
)
def test_ga_01_not_configured_and_not_connected_are_told_apart(
    target: str, configured: bool, connected: bool | None
) -> None:
    spice = "<channel type='spicevmc'><target type='virtio' name='com.redhat.spice.0'/></channel>"
    found = parse_definition(
        small_domain(devices=f"{spice}<channel type='unix'><target {target}/></channel>")
    )
    assert (found.agent_configured, found.agent_connected) == (configured, connected)
