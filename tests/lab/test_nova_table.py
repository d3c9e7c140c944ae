"""What a real Nova does to an edited definition, action by action, and that hvsvc tells it as it is.

After each action hvctl's report is compared with what libvirt, the guest and Nova say when asked directly. Under policy
`config` a lost ceiling must be stored again soon after the action's end, and one `hvctl reboot` must bring maximum and
current back.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any
from xml.etree import ElementTree as ET

import libvirt
import pytest

from tests.hvsvc_process import HvsvcProcess
from tests.lab.cloud import Lab, Server, wait_until

MIB = 1024
GIB = 1024 * MIB
#: asked for: ceilings and current values
MAX_VCPUS, MAX_KIB, VCPUS, KIB = 8, 2 * GIB, 4, GIB
#: bound for what hvsvc does after the end of an action
SOON_S = 2.0

Sides = dict[str, Any]


@pytest.fixture(scope="module")
def hvsvc(lab: Lab) -> Iterator[HvsvcProcess]:
    """The daemon, which stores a lost ceiling again; its back-off is short, since the actions follow each other."""
    sections = '[nova]\ncloud = "lab-admin"\n[drift]\nreapply = "config"\nbackoff_s = 0.5\n'
    environ = {"OS_CLIENT_CONFIG_FILE": str(lab.clouds_yaml)}
    with HvsvcProcess(lab.libvirt_uri, sections, environ=environ) as daemon:
        yield daemon


@pytest.fixture(scope="module")
def server(lab: Lab, hvsvc: HvsvcProcess) -> Server:
    """A server that was asked to have the sizes above, and has them."""
    made = lab.create_server("table")
    lab.wait_agent(made)
    grown = hvsvc.hvctl_json(
        *("scale", made.name, "--vcpus", str(VCPUS), "--memory", "1GiB"),
        *("--max-vcpus", str(MAX_VCPUS), "--max-memory", "2GiB", "--reboot", "soft"),
    )
    assert grown["outcome"] == "COMPLETE", grown
    return made


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
    """The ceilings and states as libvirt and Nova say; not the live current memory, which moves after a start."""
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
        "flavor": (seen.flavor["original_name"], seen.flavor["vcpus"], seen.flavor["ram"]),
    }


def told(report: dict[str, Any]) -> Sides:
    """The same of a dominfo."""
    vcpus, memory, nova = report["vcpus"], report["memory"], report["nova"]

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
        "flavor": (nova["flavor"], nova["flavor_vcpus"], nova["flavor_memory_mib"]),
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
    """Compares hvctl's reports with direct reads around them; again where those differ from each other."""
    for _ in range(20):
        before = truth(lab, server)
        domain = hvsvc.hvctl_json("dominfo", server.name)
        drift = hvsvc.hvctl_json("drift", server.name)
        if truth(lab, server) == before:
            assert told(domain) == before
            assert drift["status"] in expected_status(before, max_vcpus), (drift, before)
            assert domain["drift"]["status"] in expected_status(before, max_vcpus)
            return before
    raise AssertionError(f"{server.name} never stands still")


def check_settled(lab: Lab, hvsvc: HvsvcProcess, server: Server) -> None:
    """Once the guest is up: its CPUs and its balloon are as hvctl says, and all is as asked."""
    lab.wait_agent(server)

    def settled() -> dict[str, Any] | None:
        report: dict[str, Any] = hvsvc.hvctl_json("dominfo", server.name)
        online = sum(cpu["online"] for cpu in lab.agent(server, "guest-get-vcpus"))
        actual_kib = lab.domain(server).memoryStats()["actual"]
        told_now = report["vcpus"].get("guest_online"), report["memory"]["balloon_actual_kib"]
        same = told_now == (online, actual_kib)
        return report if same and told_now == (VCPUS, KIB) else None

    report = wait_until(f"{server.name} to be as asked", settled, 30)
    assert report is not None
    assert told(report)["config"] == {
        "maximum_vcpus": MAX_VCPUS,
        "current_vcpus": VCPUS,
        "maximum_kib": MAX_KIB,
        "current_kib": KIB,
    }
    assert report["drift"]["status"] == "IN_SYNC", report["drift"]
    assert lab.nova_server(server.id).status == "ACTIVE"


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


@pytest.mark.parametrize("action", [hard, stop_start, shelve, rebuild, resize_revert, unstartable])
def test_rb_03_where_nova_makes_the_definition_anew_it_is_stored_again_and_one_reboot_brings_all_back(
    lab: Lab, hvsvc: HvsvcProcess, server: Server, action: Callable[[Lab, Server], None]
) -> None:
    lab.wait_agent(server)
    action(lab, server)
    end_s = time.monotonic()
    domain = lab.domain(server)
    wait_until(
        "the ceiling in the stored definition",
        lambda: read_side(domain, libvirt.VIR_DOMAIN_XML_INACTIVE)["maximum_vcpus"] == MAX_VCPUS,
        SOON_S,
        interval_s=0.02,
    )
    took_s = time.monotonic() - end_s
    print(f"figure: {action.__name__}: stored again {took_s:.2f} s after the end", flush=True)
    facts = check_told(lab, hvsvc, server)
    assert facts["live"]["maximum_vcpus"] == 2, "Nova started it from the flavor"
    assert hvsvc.hvctl_json("drift", server.name)["status"] == "PENDING_REBOOT"
    lab.wait_agent(server)
    rebooted = hvsvc.hvctl_json("reboot", server.name)
    assert rebooted["outcome"] == "COMPLETE", rebooted
    check_told(lab, hvsvc, server)
    check_settled(lab, hvsvc, server)


def test_a_soft_reboot_keeps_and_applies_it(lab: Lab, hvsvc: HvsvcProcess, server: Server) -> None:
    lab.wait_agent(server)
    soft(lab, server)
    facts = check_told(lab, hvsvc, server)
    assert (facts["config"]["maximum_vcpus"], facts["live"]["maximum_vcpus"]) == (MAX_VCPUS, MAX_VCPUS)
    check_settled(lab, hvsvc, server)


def test_off_and_on_behind_nova_keeps_and_applies_it(lab: Lab, hvsvc: HvsvcProcess, server: Server) -> None:
    domain = lab.domain(server)
    was = domain.ID()
    domain.destroy()
    domain.create()
    assert domain.ID() != was
    facts = check_told(lab, hvsvc, server)
    assert facts["live"]["maximum_vcpus"] == MAX_VCPUS
    check_settled(lab, hvsvc, server)


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
    wait_until("the second boot", lambda: lab.console(server).count("BOOTED") > was, 60)


def nothing(lab: Lab, server: Server) -> None:
    """The action has no second half."""


@pytest.mark.parametrize(
    ("there", "back"),
    [(pause, unpause), (suspend, resume), (reboot_inside, nothing)],
    ids=lambda act: act.__name__,
)
def test_what_keeps_a_pending_ceiling_without_applying_it(
    lab: Lab,
    hvsvc: HvsvcProcess,
    server: Server,
    there: Callable[[Lab, Server], None],
    back: Callable[[Lab, Server], None],
) -> None:
    lab.wait_agent(server)
    assert hvsvc.hvctl_json("raise", server.name, "--max-vcpus", "10")["outcome"] == "PENDING_REBOOT"
    check_told(lab, hvsvc, server, max_vcpus=10)
    for action in (there, back):
        action(lab, server)
        facts = check_told(lab, hvsvc, server, max_vcpus=10)
        assert facts["config"]["maximum_vcpus"] == 10
        assert facts["live"] is None or facts["live"]["maximum_vcpus"] == MAX_VCPUS
    assert hvsvc.hvctl_json("drift", server.name)["status"] == "PENDING_REBOOT"
    lab.wait_agent(server)
    hvsvc.hvctl_json("raise", server.name, "--max-vcpus", str(MAX_VCPUS))
    check_settled(lab, hvsvc, server)


def test_a_rescued_server_is_left_alone_and_has_it_back_after_unrescue(
    lab: Lab, hvsvc: HvsvcProcess, server: Server
) -> None:
    compute = lab.cloud("admin").compute
    compute.rescue_server(server.id)
    wait_status(lab, server, "RESCUE", other_id=lab.domain_id(server))
    facts = check_told(lab, hvsvc, server)
    assert facts["config"]["maximum_vcpus"] == 2, "the definition is that of the rescue"
    wait_until(
        "hvsvc to say why it waits",
        lambda: "RESCUE" in hvsvc.hvctl_json("drift", server.name).get("waits_for", ""),
        5,
    )
    assert check_told(lab, hvsvc, server)["config"]["maximum_vcpus"] == 2
    was = lab.domain_id(server)
    compute.unrescue_server(server.id)
    wait_status(lab, server, "ACTIVE", other_id=was)
    facts = check_told(lab, hvsvc, server)
    assert facts["live"]["maximum_vcpus"] == MAX_VCPUS
    check_settled(lab, hvsvc, server)


def test_rb_03_under_policy_report_a_lost_ceiling_is_told_and_left(
    lab: Lab, hvsvc: HvsvcProcess, server: Server
) -> None:
    assert hvsvc.hvctl_json("drift", server.name, "--policy", "report")["policy"] == "REPORT"
    hard(lab, server)
    facts = check_told(lab, hvsvc, server)
    assert facts["config"]["maximum_vcpus"] == 2
    drift = hvsvc.hvctl_json("drift", server.name)
    assert drift["status"] == "CEILING_LOST"
    assert "stored maximum vCPUs: 8 asked, 2 found" in drift["differences"]
    assert server.name in hvsvc.hvctl("drift").stdout
    began_s = time.monotonic()
    assert hvsvc.hvctl_json("drift", server.name, "--policy", "config")["policy"] == "CONFIG"
    wait_until(
        "the ceiling in the stored definition",
        lambda: hvsvc.hvctl_json("drift", server.name)["status"] == "PENDING_REBOOT",
        5,
    )
    print(f"figure: policy set: stored again after {time.monotonic() - began_s:.2f} s", flush=True)


@pytest.mark.parametrize("image", ["lab-deaf", "lab-noacpi"])
def test_a_soft_reboot_that_fell_back_loses_it_and_it_is_stored_again(
    lab: Lab, hvsvc: HvsvcProcess, image: str
) -> None:
    server = lab.create_server("fallen", image=image)
    if image == "lab-noacpi":
        lab.wait_agent(server)
    hvsvc.hvctl("raise", server.name, "--max-vcpus", str(MAX_VCPUS), "--max-memory", "2GiB")
    soft(lab, server)
    end_s = time.monotonic()
    domain = lab.domain(server)
    wait_until(
        "the ceiling in the stored definition",
        lambda: read_side(domain, libvirt.VIR_DOMAIN_XML_INACTIVE)["maximum_vcpus"] == MAX_VCPUS,
        SOON_S,
        interval_s=0.02,
    )
    print(f"figure: {image}: stored again {time.monotonic() - end_s:.2f} s after the end", flush=True)
    facts = check_told(lab, hvsvc, server)
    assert facts["live"]["maximum_vcpus"] == 2, "the reboot was a hard one"
    lab.delete_server(server)


def test_a_resize_supersedes_the_record_and_a_delete_drops_it(lab: Lab, hvsvc: HvsvcProcess) -> None:
    server = lab.create_server("resized")
    hvsvc.hvctl_json("raise", server.name, "--max-vcpus", str(MAX_VCPUS), "--max-memory", "2GiB")
    resize(lab, server)
    assert hvsvc.hvctl_json("drift", server.name)["status"] == "FLAVOR_CHANGED"
    lab.cloud("admin").compute.confirm_server_resize(server.id)
    wait_status(lab, server, "ACTIVE")
    facts = check_told(lab, hvsvc, server)
    assert facts["flavor"] == ("big", 4, 1024)
    assert facts["config"]["maximum_vcpus"] == 4, "nothing is re-applied against a resize"
    lab.delete_server(server)
    wait_until("the record to be dropped", lambda: hvsvc.hvctl("drift", server.id, "-f", "json").code == 3, 5)


def test_a_shelved_server_has_moved_and_is_not_deleted(lab: Lab, hvsvc: HvsvcProcess) -> None:
    server = lab.create_server("shelved")
    hvsvc.hvctl_json("raise", server.name, "--max-vcpus", str(MAX_VCPUS))
    lab.cloud("admin").compute.shelve_server(server.id)
    wait_status(lab, server, "SHELVED_OFFLOADED")
    for name in (server.id, server.name, server.libvirt_name):
        drift = hvsvc.hvctl_json("drift", name)
        assert drift["status"] == "MOVED"
    assert "SHELVED_OFFLOADED" in drift["differences"][0]
    assert hvsvc.hvctl_json("forget", server.name)["desired"]["max_vcpus"] == MAX_VCPUS
    assert hvsvc.hvctl("drift", server.id).code == 3
    lab.delete_server(server)
