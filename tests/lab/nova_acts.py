"""Acts of Nova on a server, and comparisons of what hvctl says with what libvirt, the guest and Nova say."""

from __future__ import annotations

import time
from typing import Any
from xml.etree import ElementTree as ET

import libvirt

from tests.hvsvc_process import HvsvcProcess
from tests.lab.books import Books
from tests.lab.cloud import Lab, Server, wait_until
from tests.lab.still import nova_compute_still

MIB = 1024
GIB = 1024 * MIB
#: asked for: ceilings and current values
MAX_VCPUS, MAX_KIB, VCPUS, KIB = 8, 2 * GIB, 4, GIB
#: bound for what hvsvc does by itself after the end of an action; without its being told, the sweep would, after 300 s.
#: It takes a second or two, which the tests print: a bound is no measure on a busy machine
SOON_S = 30.0

Sides = dict[str, Any]


def read_side(domain: libvirt.virDomain, flags: int) -> dict[str, int]:
    """The four numbers of one definition."""
    root = ET.fromstring(domain.XMLDesc(flags))
    vcpu = root.find("vcpu")
    assert vcpu is not None
    maximum = int(vcpu.text or 0)
    return {
        "maximum_vcpus": maximum,
        "current_vcpus": int(vcpu.get("current", maximum)),
        "maximum_kib": int(root.findtext("memory", "0")),
        "current_kib": int(root.findtext("currentMemory", "0")),
    }


def truth(lab: Lab, server: Server) -> Sides:
    """What libvirt, the guest, Nova and Placement say; not the live current memory, which moves after a start."""
    domain = lab.domain(server)
    running = bool(domain.isActive())
    seen = lab.nova_server(server.id)
    live = read_side(domain, 0) if running else None
    if live is not None:
        del live["current_kib"]
    return {
        "config": read_side(domain, libvirt.VIR_DOMAIN_XML_INACTIVE),
        "live": live,
        "id": domain.ID() if running else None,
        "guest_online": lab.guest_online(server) if running else None,
        "flavor": (seen.flavor["original_name"], seen.flavor["vcpus"], seen.flavor["ram"]),
        "allocation": Books(lab).size_if_any(server),
    }


def told(report: dict[str, Any]) -> Sides:
    """The same of a dominfo."""
    vcpus, memory, nova, books = (
        report["vcpus"],
        report["memory"],
        report["nova"],
        report.get("allocation"),
    )

    def side(name: str) -> dict[str, int]:
        return {
            "maximum_vcpus": vcpus[f"maximum_{name}"],
            "current_vcpus": vcpus[f"current_{name}"],
            "maximum_kib": memory[f"maximum_{name}_kib"],
            "current_kib": memory[f"current_{name}_kib"],
        }

    live = side("live") if "id" in report else None
    if live is not None:
        del live["current_kib"]
    return {
        "config": side("config"),
        "live": live,
        "id": report.get("id"),
        "guest_online": vcpus.get("guest_online"),
        "flavor": (nova["flavor"], nova["flavor_vcpus"], nova["flavor_memory_mib"]),
        "allocation": (books["vcpus"], books["memory_mib"]) if books else None,
    }


def expected_status(facts: Sides, max_vcpus: int = MAX_VCPUS) -> set[str]:
    """The drift that these facts make; below the ceiling the guest and its balloon count too, once settled."""
    if facts["flavor"] != ("small", 2, 512):
        return {"FLAVOR_CHANGED"}
    for side, status in (("config", "CEILING_LOST"), ("live", "PENDING_REBOOT")):
        found = facts[side]
        if found and (found["maximum_vcpus"] < max_vcpus or found["maximum_kib"] < MAX_KIB):
            return {status}
    return {"IN_SYNC", "SHRUNK"}


def check_told(lab: Lab, hvsvc: HvsvcProcess, server: Server, max_vcpus: int = MAX_VCPUS) -> Sides:
    """Compares hvctl's reports with direct reads right before and right after them; returns the later.

    A guest that boots does not stand still: each fact must be what one of the two found. Only where one changed
    between them, and was told as neither, it may have changed twice: then all is read once more.
    """
    began_s = time.monotonic()
    before = truth(lab, server)
    for _ in range(20):
        domain = hvsvc.hvctl_json("dominfo", server.name)
        drift = hvsvc.hvctl_json("drift", server.name)
        took_s = time.monotonic() - began_s
        after = truth(lab, server)
        found = told(domain)
        wrong = {name for name in found if found[name] not in (before[name], after[name])}
        assert all(before[name] != after[name] for name in wrong), (wrong, found, before, after)
        if not wrong:
            print(f"figure: told as it was {took_s:.2f} s after being asked", flush=True)
            expected = expected_status(before, max_vcpus) | expected_status(after, max_vcpus)
            assert drift["status"] in expected, (drift, before, after)
            assert domain["drift"]["status"] in expected, (domain["drift"], before, after)
            return after
        began_s, before = time.monotonic(), after
    raise AssertionError(f"{server.name} never stands still")


def check_settled(lab: Lab, hvsvc: HvsvcProcess, server: Server) -> None:
    """Once the guest is up: its CPUs, its balloon and Placement are as hvctl says, and all is as asked."""
    lab.wait_agent(server)
    seen: list[Any] = []

    def settled() -> dict[str, Any] | None:
        report: dict[str, Any] = hvsvc.hvctl_json("dominfo", server.name)
        actual_kib = lab.domain(server).memoryStats()["actual"]
        told_now = told(report)
        numbers = told_now["guest_online"], report["memory"]["balloon_actual_kib"], told_now["allocation"]
        direct = lab.guest_online(server), actual_kib, Books(lab).size_if_any(server)
        seen[:] = numbers, direct
        return report if numbers == direct == (VCPUS, KIB, (VCPUS, KIB // MIB)) else None

    try:
        report = wait_until(f"{server.name} to be as asked", settled, 120)
    except AssertionError as err:
        raise AssertionError(f"guest_online, balloon, allocation: told and found {seen}") from err
    assert report is not None
    assert told(report)["config"] == {
        "maximum_vcpus": MAX_VCPUS,
        "current_vcpus": VCPUS,
        "maximum_kib": MAX_KIB,
        "current_kib": KIB,
    }
    assert report["drift"]["status"] == "IN_SYNC", report["drift"]
    assert lab.nova_server(server.id).status == "ACTIVE"


def reboot_to_the_record(lab: Lab, hvsvc: HvsvcProcess, server: Server) -> None:
    """One `hvctl reboot` brings maximum and current back. Where the guest hangs in this boot, that is not COMPLETE."""
    lab.wait_agent(server)
    rebooted = hvsvc.hvctl("reboot", server.name, "-f", "json")
    assert "outcome" in rebooted.json, rebooted
    if rebooted.json["outcome"] != "COMPLETE" and not lab.has_booted(server):
        assert rebooted.code == 7, rebooted
        print(f"the guest hung: {rebooted.json['reasons']}", flush=True)
        lab.wait_agent(server)
        rebooted = hvsvc.hvctl("reboot", server.name, "-f", "json")
    assert (rebooted.code, rebooted.json["outcome"]) == (0, "COMPLETE"), rebooted


def wait_status(lab: Lab, server: Server, status: str, *, other_id: int | None = None) -> None:
    """Until Nova shows the status without a task, and with `other_id` libvirt runs it under another id than that."""

    def reached() -> bool:
        seen = lab.nova_server(server.id)
        assert seen.status != "ERROR", seen.fault
        if (seen.status, seen.task_state) != (status, None):
            return False
        return other_id is None or lab.domain_id(server) not in (None, other_id)

    wait_until(f"{server.name} to be {status}", reached, 150, interval_s=0.05)


def hard(lab: Lab, server: Server) -> None:
    was = lab.domain_id(server)
    lab.cloud("admin").compute.reboot_server(server.id, "HARD")
    wait_status(lab, server, "ACTIVE", other_id=was)


def soft(lab: Lab, server: Server) -> None:
    """The caller has waited for the agent: a guest that still boots misses the power button."""
    was = lab.domain_id(server)
    lab.cloud("admin").compute.reboot_server(server.id, "SOFT")
    wait_status(lab, server, "ACTIVE", other_id=was)


def stop_start(lab: Lab, server: Server) -> None:
    compute = lab.cloud("admin").compute
    compute.stop_server(server.id)
    wait_status(lab, server, "SHUTOFF")
    compute.start_server(server.id)
    wait_status(lab, server, "ACTIVE", other_id=-1)


def shelve(lab: Lab, server: Server) -> None:
    compute = lab.cloud("admin").compute
    compute.shelve_server(server.id)
    wait_status(lab, server, "SHELVED_OFFLOADED")
    compute.unshelve_server(server.id)
    wait_status(lab, server, "ACTIVE", other_id=-1)


def rebuild(lab: Lab, server: Server) -> None:
    was = lab.domain_id(server)
    cloud = lab.cloud("admin")
    image = cloud.image.find_image("lab", ignore_missing=False).id
    cloud.compute.rebuild_server(server.id, image=image)
    wait_status(lab, server, "ACTIVE", other_id=was)


def resize(lab: Lab, server: Server) -> None:
    compute = lab.cloud("admin").compute
    compute.resize_server(server.id, compute.find_flavor("big", ignore_missing=False).id)
    wait_status(lab, server, "VERIFY_RESIZE")


def resize_revert(lab: Lab, server: Server) -> None:
    resize(lab, server)
    lab.cloud("admin").compute.revert_server_resize(server.id)
    wait_status(lab, server, "ACTIVE", other_id=-1)


def unstartable(lab: Lab, server: Server) -> None:
    """A definition of 4 TiB, which no one asked hvsvc for; Nova's soft reboot cannot start it."""
    domain = lab.domain(server)
    stored = domain.XMLDesc(libvirt.VIR_DOMAIN_XML_INACTIVE | libvirt.VIR_DOMAIN_XML_SECURE)
    root = ET.fromstring(stored)
    memory = root.find("memory")
    assert memory is not None
    memory.text = str(4 * 1024 * GIB)
    lab.libvirt.defineXML(ET.tostring(root, encoding="unicode"))
    soft(lab, server)


def pause(lab: Lab, server: Server) -> None:
    compute = lab.cloud("admin").compute
    compute.pause_server(server.id)
    wait_status(lab, server, "PAUSED")


def unpause(lab: Lab, server: Server) -> None:
    lab.cloud("admin").compute.unpause_server(server.id)
    wait_status(lab, server, "ACTIVE")


def suspend(lab: Lab, server: Server) -> None:
    lab.cloud("admin").compute.suspend_server(server.id)
    wait_status(lab, server, "SUSPENDED")


def resume(lab: Lab, server: Server) -> None:
    lab.cloud("admin").compute.resume_server(server.id)
    wait_status(lab, server, "ACTIVE", other_id=-1)


def reboot_inside(lab: Lab, server: Server) -> None:
    was = lab.console(server).count("BOOTED")
    lab.domain(server).reboot(libvirt.VIR_DOMAIN_REBOOT_GUEST_AGENT)
    lab.wait_boots(server, was + 1)


def off_and_on(lab: Lab, server: Server) -> None:
    """Behind Nova, which stops a server for good that it sees off."""
    domain = lab.domain(server)
    with nova_compute_still():
        domain.destroy()
        domain.create()


def nothing(lab: Lab, server: Server) -> None:
    """The action has no second half."""
