"""A stored definition that is not that of the running domain, apart from its size."""

from __future__ import annotations

from typing import Any

import pytest

from hvsvc.domain.definitions_differ import check_same_disks, warn_other_devices
from hvsvc.domain.facts import DomainFacts
from hvsvc.domain.plan import plan_change
from hvsvc.domain.target import Method, RebootMode, Target
from hvsvc.errors import Reason
from tests.fakes.worlds import facts, world

DISK = "<disk type='block' device='disk'><source dev='/dev/sdb'{}/><target dev='vda'/></disk>"
VOLUME = "<disk type='network' device='disk'><source protocol='rbd' name='vms/{}'/><target dev='vdb'/></disk>"
NIC = "<interface type='bridge'><mac address='{}'/><source bridge='br0'/></interface>"
PCI = "<hostdev mode='subsystem' type='pci'><source><address domain='0x0' bus='0x3'/></source></hostdev>"


def domain(stored: str, running: str, **live: Any) -> DomainFacts:
    return facts({"nova": True, "devices": stored}, {"nova": True, "devices": running, **live})


def test_what_libvirt_adds_to_a_running_disk_is_no_difference() -> None:
    same = domain(
        DISK.format("") + VOLUME.format(1) + NIC.format("52:54:00:AA:00:01") + PCI,
        DISK.format(" index='2'") + VOLUME.format(1) + NIC.format("52:54:00:aa:00:01") + PCI,
    )
    assert [*check_same_disks(same)] == []
    assert warn_other_devices(same) == ()


@pytest.mark.parametrize(
    "target",
    [
        Target(Method.REBOOT_DOMAIN),
        Target(Method.RAISE_CEILING, max_vcpus=8, reboot=RebootMode.SOFT),
        Target(Method.SCALE_DOMAIN, vcpus=8, reboot=RebootMode.SOFT),
    ],
)
def test_rb_02_no_reboot_onto_other_disks(target: Target) -> None:
    stale = domain(DISK.format("") + VOLUME.format(1), DISK.format("") + VOLUME.format(2))
    (refused,) = plan_change(world(stale), target).blockers
    assert refused.reason is Reason.DEFINITIONS_DIFFER
    assert refused.metadata == {"disks": "vdb is rbd vms/2, stored is rbd vms/1"}


def test_rb_02_a_change_without_a_reboot_is_not_refused_for_them() -> None:
    stale = domain(VOLUME.format(1), VOLUME.format(2))
    plan = plan_change(world(stale), Target(Method.RAISE_CEILING, max_vcpus=8))
    assert plan.blockers == ()


@pytest.mark.parametrize(
    ("stored", "running", "words"),
    [
        ("", DISK.format(""), "disk vda /dev/sdb would be gone"),
        (NIC.format("52:54:00:aa:00:01"), "", "interface 52:54:00:aa:00:01 would be added"),
        (PCI, "", "hostdev pci 0x0:0x3 would be added"),
    ],
)
def test_rb_02_other_devices_are_told(stored: str, running: str, words: str) -> None:
    plan = plan_change(world(domain(stored, running)), Target(Method.REBOOT_DOMAIN))
    (note,) = [note for note in plan.warnings if note.reason is Reason.DEFINITIONS_DIFFER]
    assert words in note.message
    assert not [error for error in plan.blockers if error.reason is Reason.DEFINITIONS_DIFFER]


def test_rb_02_another_machine_is_told() -> None:
    (note,) = warn_other_devices(domain("", "", machine="pc-q35-6.2"))
    assert note.metadata == {"differences": "machine is pc-q35-6.2, stored is pc-q35-7.2"}


def test_a_domain_with_one_definition_has_nothing_to_compare() -> None:
    off = facts({"devices": DISK.format("")}, running=False)
    assert [*check_same_disks(off)] == []
    assert warn_other_devices(off) == ()
