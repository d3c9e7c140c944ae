"""What hvctl says of a domain is what virsh prints for it, field by field."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.guest_domains import GuestDomains
from tests.hvsvc_process import HvsvcProcess
from tests.private_libvirtd import PrivateLibvirtd


def read_dominfo(libvirtd: PrivateLibvirtd, name: str) -> dict[str, str]:
    lines = libvirtd.virsh("dominfo", name).splitlines()
    return {
        key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines) if key.strip()
    }


def read_vcpucount(libvirtd: PrivateLibvirtd, name: str) -> dict[str, int]:
    rows = re.findall(r"(\w+)\s+(\w+)\s+(\d+)", libvirtd.virsh("vcpucount", name))
    return {f"{kind}_{where}": int(count) for kind, where, count in rows}


def as_dominfo(domain: dict[str, Any]) -> dict[str, str]:
    """A Domain in virsh's words; the two figures that move by themselves are compared apart."""
    memory, vcpus = domain["memory"], domain["vcpus"]
    running = "id" in domain
    found = {
        "Id": str(domain.get("id", "-")),
        "Name": domain["libvirt_name"],
        "UUID": domain["uuid"],
        "OS Type": domain["os_type"],
        "State": domain["state"].lower().replace("_", " "),
        "CPU(s)": str(vcpus["current_live"] if running else vcpus["current_config"]),
        "Max memory": f"{memory['maximum_live_kib'] if running else memory['maximum_config_kib']} KiB",
        "Used memory": f"{memory['current_live_kib'] if running else memory['current_config_kib']} KiB",
        "Persistent": "yes" if domain["persistent"] else "no",
        "Autostart": "enable" if domain["autostart"] else "disable",
        "Managed save": "yes" if domain["managed_save"] else "no",
        "Security model": domain["security_model"],
        "Security DOI": domain["security_doi"],
    }
    if "autostart_once" in domain:
        found["Autostart Once"] = "enable" if domain["autostart_once"] else "disable"
    if domain.get("messages"):
        found["Messages"] = domain["messages"][0]
    if "security_label" in domain:
        enforcing = "enforcing" if domain["security_enforcing"] else "permissive"
        found["Security label"] = f"{domain['security_label']} ({enforcing})"
    return found


@pytest.mark.guest
def test_dominfo_and_vcpucount_of_a_running_domain(
    hvsvc: HvsvcProcess, domains: GuestDomains, private_libvirtd: PrivateLibvirtd
) -> None:
    name = domains.boot(name="parity-live", vcpus=3, max_vcpus=6).name()
    before = read_dominfo(private_libvirtd, name)
    domain = hvsvc.hvctl_json("dominfo", name)
    after = read_dominfo(private_libvirtd, name)
    cpu_time_s = float(domain["cpu_time"].removesuffix("s"))
    printed = [float(info.pop("CPU time").removesuffix("s")) for info in (before, after)]
    assert printed[0] - 0.1 <= cpu_time_s <= printed[1] + 0.1
    assert as_dominfo(domain) == before == after

    counts = hvsvc.hvctl_json("vcpucount", name)
    assert (counts.pop("guest_present"), counts.pop("guest_online")) == (3, 3)
    assert counts == read_vcpucount(private_libvirtd, name)


@pytest.mark.guest
def test_config_and_live_apart(
    hvsvc: HvsvcProcess, domains: GuestDomains, private_libvirtd: PrivateLibvirtd
) -> None:
    name = domains.boot(name="parity-apart", vcpus=2, max_vcpus=4).name()
    private_libvirtd.virsh("setvcpus", name, "3", "--live")
    private_libvirtd.virsh("setmem", name, "400M", "--config")
    counts = hvsvc.hvctl_json("vcpucount", name)
    assert counts.pop("guest_online") == 2
    counts.pop("guest_present")
    assert counts == read_vcpucount(private_libvirtd, name)
    domain = hvsvc.hvctl_json("dominfo", name)
    assert "CONFIG_LIVE_DIFFER" in [each["reason"] for each in domain["conditions"]]
    assert domain["memory"]["current_config_kib"] == 400 * 1024
    assert domain["memory"]["balloon_actual_kib"] == 512 * 1024
    info = read_dominfo(private_libvirtd, name)
    assert as_dominfo(domain)["Used memory"] == info["Used memory"]


def test_a_domain_that_is_off(
    hvsvc: HvsvcProcess, domains: GuestDomains, private_libvirtd: PrivateLibvirtd
) -> None:
    made = domains.define(name="parity-off", vcpus=2, max_vcpus=8)
    made.setAutostart(1)
    domain = hvsvc.hvctl_json("dominfo", "parity-off")
    info = read_dominfo(private_libvirtd, "parity-off")
    assert "CPU time" not in info
    assert "cpu_time" not in domain
    assert as_dominfo(domain) == info
    assert hvsvc.hvctl_json("vcpucount", "parity-off") == read_vcpucount(private_libvirtd, "parity-off")
    assert "current_live" not in domain["vcpus"]


def test_xml_13_a_transient_domain(
    hvsvc: HvsvcProcess, domains: GuestDomains, private_libvirtd: PrivateLibvirtd
) -> None:
    xml = domains.render_xml(name="parity-transient", vcpus=2, max_vcpus=4)
    domain = domains.connection.createXML(xml)
    try:
        found = hvsvc.hvctl_json("dominfo", "parity-transient")
        info = read_dominfo(private_libvirtd, "parity-transient")
        info.pop("CPU time")
        # no guest is waited for: the memory moves while the balloon comes up
        seen = as_dominfo(found)
        assert {key: seen[key] for key in info if key != "Used memory"} == {
            key: value for key, value in info.items() if key != "Used memory"
        }
        counts = hvsvc.hvctl_json("vcpucount", "parity-transient")
        assert {"maximum_config", "current_config"}.isdisjoint(counts)
        live = {key: counts[key] for key in ("maximum_live", "current_live")}
        assert live == read_vcpucount(private_libvirtd, "parity-transient")
    finally:
        domain.destroy()
