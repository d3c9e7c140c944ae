"""Devices that decide what can be changed: memory devices, what locks memory, balloon, guest agent."""

from __future__ import annotations

from lxml import etree

from hvsvc.domain.definition import Device
from hvsvc.domain.memory import parse_number
from hvsvc.domain.xml_values import child

AGENT_CHANNEL = "org.qemu.guest_agent.0"
_LOCKING_DEVICES = {
    "hostdev": ("pci", "mdev"),
    "interface": ("hostdev", "vdpa"),
    "disk": ("nvme", "vhostvdpa"),
}


def read_memory_devices(root: etree._Element) -> tuple[str, ...]:
    """The models of the memory devices: dimm, nvdimm, virtio-mem, virtio-pmem, sgx-epc."""
    return tuple(node.get("model", "memory device") for node in root.findall("devices/memory"))


def read_memory_locks(root: etree._Element) -> tuple[str, ...]:
    """What keeps all guest memory resident, in words: the balloon cannot give it back (case MEM-03).

    VFIO maps it for a device (PCI and mediated host devices, SR-IOV interfaces, NVMe disks),
    vhost-vdpa likewise, launchSecurity encrypts it. USB and SCSI host devices do not.
    """
    backing = ["memoryBacking locked"] if child(root, "memoryBacking/locked") is not None else []
    secured = [f"launchSecurity {node.get('type', '')}".rstrip() for node in root.findall("launchSecurity")]
    devices = [
        f"{tag} {node.get('type')}"
        for tag, types in _LOCKING_DEVICES.items()
        for node in root.findall(f"devices/{tag}")
        if node.get("type") in types
    ]
    return (*backing, *secured, *devices)


def read_identities(root: etree._Element) -> tuple[Device, ...]:
    """Disks, interfaces and host devices, by what stays the same between a stored and a running definition."""
    devices = [
        Device("disk", target.get("dev", ""), _disk_source(disk))
        for disk in root.findall("devices/disk")
        if (target := child(disk, "target")) is not None
    ]
    devices += [
        Device("interface", mac.get("address", "").lower())
        for interface in root.findall("devices/interface")
        if (mac := child(interface, "mac")) is not None
    ]
    devices += [
        Device(f"hostdev {hostdev.get('type')}", ":".join(str(value) for value in address.attrib.values()))
        for hostdev in root.findall("devices/hostdev")
        if hostdev.get("type") in ("pci", "mdev")
        and (address := child(hostdev, "source/address")) is not None
    ]
    return tuple(devices)


def _disk_source(disk: etree._Element) -> str:
    source = child(disk, "source")
    if source is None:
        return ""
    # libvirt adds an index, and more, to the source of a running disk
    named = (source.get(name) for name in ("file", "dev", "dir", "protocol", "pool", "name", "volume"))
    return " ".join(value for value in named if value)


def read_balloon(root: etree._Element) -> tuple[str, bool]:
    """The balloon's model, "" without one, and whether the guest is asked for statistics."""
    balloon = child(root, "devices/memballoon")
    if balloon is None:
        return "", False
    stats = child(balloon, "stats")
    period = "0" if stats is None else stats.get("period", "0")
    return balloon.get("model", ""), parse_number(period, "period of <stats>") > 0


def read_agent(root: etree._Element) -> tuple[bool, bool | None]:
    """Whether the guest agent's channel is there, and connected; None where the XML does not say (config)."""
    for target in root.findall("devices/channel/target"):
        if target.get("type") == "virtio" and target.get("name") == AGENT_CHANNEL:
            state = target.get("state")
            return True, None if state is None else state == "connected"
    return False, None
