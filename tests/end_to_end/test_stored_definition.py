"""What the stored definition gives at the next start: told, kept where asked, refused where it is an old one."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import libvirt
import pytest

from tests.guest_domains import GuestDomains, read_guest_cpus, wait_for
from tests.hvsvc_process import HvsvcProcess
from tests.private_libvirtd import PrivateLibvirtd

pytestmark = pytest.mark.guest
MIB_KIB = 1024
SMALL: dict[str, Any] = {"vcpus": 2, "max_vcpus": 2, "memory_mib": 512, "max_memory_mib": 512}
RAISE = ("--max-vcpus", "4", "--max-memory", "1GiB")


@pytest.fixture
def disk(private_libvirtd: PrivateLibvirtd) -> Callable[[str], Path]:
    """Makes an empty disk that QEMU's user may open."""

    def make(name: str) -> Path:
        path = private_libvirtd.path / name
        with path.open("wb") as file:
            file.truncate(1024 * 1024)
        if os.geteuid() == 0:
            shutil.chown(path, "nobody", "nogroup")
        return path

    return make


def disk_xml(path: Path, target: str = "vda") -> str:
    """A disk of a domain."""
    return (
        f"<disk type='file' device='disk'><driver name='qemu' type='raw'/><source file='{path}'/>"
        f"<target dev='{target}' bus='virtio'/></disk>"
    )


def stored_xml(domain: libvirt.virDomain) -> str:
    """The stored definition."""
    xml: str = domain.XMLDesc(libvirt.VIR_DOMAIN_XML_INACTIVE)
    return xml


def start_anew(domains: GuestDomains, domain: libvirt.virDomain) -> None:
    """Ends and starts the domain past hvsvc, so that the stored definition decides."""
    domain.destroy()
    domain.create()
    domains.wait_until_booted(domain)


def test_rb_02_a_reboot_onto_other_disks_is_refused(
    hvsvc: HvsvcProcess, domains: GuestDomains, disk: Callable[[str], Path]
) -> None:
    used, other = disk("used.img"), disk("other.img")
    domain = domains.boot(name="moved", devices=disk_xml(used), **SMALL)
    assert hvsvc.hvctl_json("raise", "moved", *RAISE)["outcome"] == "PENDING_REBOOT"
    domains.connection.defineXML(stored_xml(domain).replace(str(used), str(other)))
    before, domain_id = stored_xml(domain), domain.ID()
    for words in (
        ("reboot", "moved"),
        ("raise", "moved", "--max-vcpus", "8", "--reboot", "soft"),
        ("scale", "moved", "--vcpus", "4", "--reboot", "soft"),
    ):
        refused = hvsvc.hvctl(*words, "-f", "json")
        assert refused.code == 4, refused
        error = refused.json["error"]
        assert error["reason"] == "DEFINITIONS_DIFFER"
        assert error["metadata"]["disks"] == f"vda is {used}, stored is {other}"
    assert (stored_xml(domain), domain.ID()) == (before, domain_id), "nothing was changed, nobody rebooted"
    assert hvsvc.hvctl_json("vcpucount", "moved")["maximum_live"] == 2
    planned = hvsvc.hvctl_json("plan", "moved", "--vcpus", "4", "--reboot", "soft")
    assert [each["reason"] for each in planned["blockers"]] == ["DEFINITIONS_DIFFER"]


def test_rb_02_a_reboot_that_brings_other_devices_says_so(
    hvsvc: HvsvcProcess, domains: GuestDomains, disk: Callable[[str], Path]
) -> None:
    used, gone, more = disk("same.img"), disk("gone.img"), disk("more.img")
    domain = domains.boot(name="changed", devices=disk_xml(used) + disk_xml(gone, "vdb"), **SMALL)
    assert hvsvc.hvctl_json("raise", "changed", *RAISE)["outcome"] == "PENDING_REBOOT"
    stored = stored_xml(domain)
    domains.connection.defineXML(stored.replace(str(gone), str(more)).replace("'vdb'", "'vdc'"))
    rebooted = hvsvc.hvctl_json("reboot", "changed")
    assert rebooted["outcome"] == "COMPLETE", rebooted
    (told,) = [each for each in rebooted["reasons"] if each["reason"] == "DEFINITIONS_DIFFER"]
    assert told["metadata"]["differences"] == f"disk vdb {gone} would be gone; disk vdc {more} would be added"
    assert rebooted["after"]["vcpus"]["maximum_live"] == 4
    assert str(more) in domain.XMLDesc()


def test_rb_03_a_ceiling_that_a_new_definition_lost_is_told_and_under_policy_config_stored_again(
    hvsvc: HvsvcProcess, domains: GuestDomains
) -> None:
    domain = domains.boot(name="anew", **SMALL)
    original = stored_xml(domain)
    sizes = ("--vcpus", "4", "--memory", "1GiB")
    grown = hvsvc.hvctl_json("scale", "anew", *sizes, "--reboot", "soft")
    assert grown["outcome"] == "COMPLETE", grown
    assert hvsvc.hvctl_json("drift", "anew")["status"] == "IN_SYNC"
    domain_id = domain.ID()

    # policy report, the default: the first look after it tells it, and nothing is written
    domains.connection.defineXML(original)
    lost = hvsvc.hvctl_json("drift", "anew")
    assert lost["status"] == "CEILING_LOST"
    assert lost["differences"] == [
        "stored maximum vCPUs: 4 asked, 2 found",
        "stored maximum memory: 1 GiB asked, 512 MiB found",
    ]
    assert hvsvc.hvctl_json("dominfo", "anew")["drift"]["status"] == "CEILING_LOST"
    # a reboot would take away what still runs of it
    refused = hvsvc.hvctl("reboot", "anew", "-f", "json")
    assert (refused.code, refused.json["error"]["reason"]) == (4, "CEILING_NOT_STORED")
    assert domain.ID() == domain_id
    start_anew(domains, domain)
    counts = hvsvc.hvctl_json("vcpucount", "anew")
    assert (counts["maximum_config"], counts["maximum_live"], counts["guest_online"]) == (2, 2, 2)

    # policy config stores it again, without a reboot
    domain_id = domain.ID()
    hvsvc.hvctl_json("drift", "anew", "--policy", "config")
    wait_for(lambda: "current='2'>4</vcpu>" in stored_xml(domain), "ceiling in the stored definition", 20)
    domains.connection.defineXML(original)
    wait_for(lambda: "current='2'>4</vcpu>" in stored_xml(domain), "ceiling once more", 60)
    wait_for(lambda: hvsvc.hvctl_json("drift", "anew")["status"] == "PENDING_REBOOT", "pending reboot", 20)
    assert domain.ID() == domain_id
    assert hvsvc.hvctl_json("vcpucount", "anew")["maximum_live"] == 2

    # and one reboot brings all of it back
    wait_for(lambda: all(each["done"] for each in hvsvc.hvctl_json("operations", "list")), "its end", 20)
    rebooted = hvsvc.hvctl_json("reboot", "anew")
    assert rebooted["outcome"] == "COMPLETE", rebooted
    assert hvsvc.hvctl_json("drift", "anew")["status"] == "IN_SYNC"
    assert read_guest_cpus(domain) == dict.fromkeys(range(4), True)
    assert rebooted["after"]["memory"]["balloon_actual_kib"] == 1024 * MIB_KIB


def test_cpu_10_what_grew_live_alone_is_told_and_gone_at_the_next_start(
    hvsvc: HvsvcProcess, domains: GuestDomains
) -> None:
    domain = domains.boot(name="live-only", vcpus=2, max_vcpus=4)
    grown = hvsvc.hvctl_json("setvcpus", "live-only", "4", "--live")
    assert grown["outcome"] == "COMPLETE", grown
    counts = hvsvc.hvctl_json("vcpucount", "live-only")
    assert (counts["current_config"], counts["current_live"], counts["guest_online"]) == (2, 4, 4)
    (told,) = [
        each
        for each in hvsvc.hvctl_json("dominfo", "live-only")["conditions"]
        if each["reason"] == "CONFIG_LIVE_DIFFER"
    ]
    assert "4" in told["message"]
    assert "2" in told["message"]
    start_anew(domains, domain)
    counts = hvsvc.hvctl_json("vcpucount", "live-only")
    assert (counts["current_config"], counts["current_live"], counts["guest_online"]) == (2, 2, 2)
    assert hvsvc.hvctl("drift", "live-only").code == 3, "it was meant to end with the next start"


def test_cpu_10_by_default_the_next_start_keeps_what_grew(hvsvc: HvsvcProcess, domains: GuestDomains) -> None:
    domain = domains.boot(name="kept", vcpus=2, max_vcpus=4)
    grown = hvsvc.hvctl_json("setvcpus", "kept", "4")
    assert grown["outcome"] == "COMPLETE", grown
    conditions = hvsvc.hvctl_json("dominfo", "kept").get("conditions", [])
    assert "CONFIG_LIVE_DIFFER" not in [each["reason"] for each in conditions]
    start_anew(domains, domain)
    counts = hvsvc.hvctl_json("vcpucount", "kept")
    assert (counts["current_config"], counts["current_live"], counts["guest_online"]) == (4, 4, 4)
