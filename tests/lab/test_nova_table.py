"""What a real Nova does to an edited definition, action by action, and that hvsvc tells it as it is.

After each action hvctl's report is compared with what libvirt, the guest and Nova say when asked directly. Under policy
`config` a lost ceiling must be stored again soon after the action's end, and one `hvctl reboot` must bring maximum and
current back.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import libvirt
import pytest

from tests.hvsvc_process import HvsvcProcess
from tests.lab.cloud import Lab, Server, wait_until
from tests.lab.nova_acts import (
    MAX_VCPUS,
    MIB,
    SOON_S,
    VCPUS,
    check_settled,
    check_told,
    hard,
    nothing,
    off_and_on,
    pause,
    read_side,
    reboot_inside,
    reboot_to_the_record,
    rebuild,
    resize,
    resize_revert,
    resume,
    shelve,
    soft,
    stop_start,
    suspend,
    unpause,
    unstartable,
    wait_status,
)


@pytest.fixture(scope="module")
def hvsvc(lab: Lab) -> Iterator[HvsvcProcess]:
    """The daemon, which stores a lost ceiling again; its back-off is short, since the actions follow each other."""
    sections = (
        '[nova]\ncloud = "lab-admin"\n[placement]\npolicy = "enforce"\n'
        '[drift]\nreapply = "config"\nbackoff_s = 0.5\n'
    )
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


@contextmanager
def stored_again(lab: Lab, server: Server, what: str) -> Iterator[None]:
    """After the `with` begins, the ceiling comes into the stored definition again; seen from beside what it does."""
    domain = lab.domain(server)

    def stored() -> bool:
        return read_side(domain, libvirt.VIR_DOMAIN_XML_INACTIVE)["maximum_vcpus"] == MAX_VCPUS

    with ThreadPoolExecutor(1) as beside:
        began_s = time.monotonic()
        waiting = beside.submit(wait_until, "the ceiling in the stored definition", stored, SOON_S, 0.02)
        waiting.add_done_callback(
            lambda _: print(f"figure: {what}: stored again {time.monotonic() - began_s:.2f} s after the end")
        )
        yield
        waiting.result()


@pytest.mark.parametrize("action", [hard, stop_start, shelve, rebuild, resize_revert, unstartable])
def test_rb_03_where_nova_makes_the_definition_anew_it_is_stored_again_and_one_reboot_brings_all_back(
    lab: Lab, hvsvc: HvsvcProcess, server: Server, action: Callable[[Lab, Server], None]
) -> None:
    lab.wait_agent(server)
    action(lab, server)
    with stored_again(lab, server, action.__name__):
        check_told(lab, hvsvc, server)
    facts = check_told(lab, hvsvc, server)
    assert facts["live"]["maximum_vcpus"] == 2, "Nova started it from the flavor"
    assert hvsvc.hvctl_json("drift", server.name)["status"] == "PENDING_REBOOT"
    reboot_to_the_record(lab, hvsvc, server)
    check_told(lab, hvsvc, server)
    check_settled(lab, hvsvc, server)


def test_a_soft_reboot_keeps_and_applies_it(lab: Lab, hvsvc: HvsvcProcess, server: Server) -> None:
    lab.wait_agent(server)
    soft(lab, server)
    facts = check_told(lab, hvsvc, server)
    assert (facts["config"]["maximum_vcpus"], facts["live"]["maximum_vcpus"]) == (MAX_VCPUS, MAX_VCPUS)
    check_settled(lab, hvsvc, server)


def test_off_and_on_behind_nova_keeps_and_applies_it(lab: Lab, hvsvc: HvsvcProcess, server: Server) -> None:
    was = lab.domain_id(server)
    off_and_on(lab, server)
    assert lab.domain_id(server) not in (was, None)
    facts = check_told(lab, hvsvc, server)
    assert facts["live"]["maximum_vcpus"] == MAX_VCPUS
    check_settled(lab, hvsvc, server)


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
    was = lab.domain_id(server)
    compute.rescue_server(server.id)
    wait_status(lab, server, "RESCUE", other_id=was)
    facts = check_told(lab, hvsvc, server)
    assert facts["config"]["maximum_vcpus"] == 2, "the definition is that of the rescue"
    wait_until(
        "hvsvc to say why it waits",
        lambda: "RESCUE" in hvsvc.hvctl_json("drift", server.name).get("waits_for", ""),
        SOON_S,
    )
    assert check_told(lab, hvsvc, server)["config"]["maximum_vcpus"] == 2
    was = lab.domain_id(server)
    compute.unrescue_server(server.id)
    wait_status(lab, server, "ACTIVE", other_id=was)
    facts = check_told(lab, hvsvc, server)
    assert facts["live"]["maximum_vcpus"] == MAX_VCPUS
    check_settled(lab, hvsvc, server)


def test_under_policy_live_memory_taken_behind_hvsvc_comes_back(
    lab: Lab, hvsvc: HvsvcProcess, server: Server
) -> None:
    lab.wait_agent(server)
    assert hvsvc.hvctl_json("drift", server.name, "--policy", "live")["policy"] == "LIVE"
    domain_id = lab.domain_id(server)
    lab.domain(server).setMemoryFlags(
        512 * MIB, libvirt.VIR_DOMAIN_AFFECT_LIVE | libvirt.VIR_DOMAIN_AFFECT_CONFIG
    )
    wait_until(
        f"{server.name} to be as asked",
        lambda: hvsvc.hvctl_json("drift", server.name)["status"] == "IN_SYNC",
        120,
    )
    check_settled(lab, hvsvc, server)
    assert lab.domain_id(server) == domain_id, "nothing is rebooted"
    hvsvc.hvctl_json("drift", server.name, "--policy", "default")


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
        SOON_S,
    )
    print(f"figure: policy set: stored again after {time.monotonic() - began_s:.2f} s", flush=True)


@pytest.mark.parametrize("image", ["lab-deaf", "lab-noacpi"])
def test_rb_04_a_soft_reboot_that_fell_back_is_ceiling_lost_and_it_is_stored_again(
    lab: Lab, hvsvc: HvsvcProcess, image: str
) -> None:
    server = lab.create_server("fallen", image=image)
    if image == "lab-noacpi":
        lab.wait_agent(server)
    answer = hvsvc.hvctl(
        *("raise", server.name, "--max-vcpus", str(MAX_VCPUS), "--max-memory", "2GiB"),
        *("--reboot", "soft", "-f", "json"),
    )
    with stored_again(lab, server, image):
        check_told(lab, hvsvc, server)
    assert answer.code == 4, answer
    assert answer.json["error"]["reason"] == "CEILING_LOST"
    assert "outcome" not in answer.json
    facts = check_told(lab, hvsvc, server)
    assert facts["live"]["maximum_vcpus"] == 2, "the reboot was a hard one"
    assert lab.nova_server(server.id).status == "ACTIVE"
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
    wait_until("the record to be dropped", lambda: hvsvc.hvctl("drift", server.id).code == 3, SOON_S)


def test_a_shelved_server_has_moved_and_is_not_deleted(lab: Lab, hvsvc: HvsvcProcess) -> None:
    server = lab.create_server("shelved")
    hvsvc.hvctl_json("raise", server.name, "--max-vcpus", str(MAX_VCPUS))
    lab.cloud("admin").compute.shelve_server(server.id)
    wait_status(lab, server, "SHELVED_OFFLOADED")
    drift: dict[str, Any] = {}
    for name in (server.id, server.name, server.libvirt_name):
        drift = hvsvc.hvctl_json("drift", name)
        assert drift["status"] == "MOVED"
    assert "SHELVED_OFFLOADED" in drift["differences"][0]
    assert hvsvc.hvctl_json("forget", server.name)["desired"]["max_vcpus"] == MAX_VCPUS
    assert hvsvc.hvctl("drift", server.id).code == 3
    lab.delete_server(server)
