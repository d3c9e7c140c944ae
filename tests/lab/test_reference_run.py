"""The main job on a real Nova: the reference run, 2 to 8 vCPUs, and each way in which it must not claim success."""

from __future__ import annotations

from collections.abc import Iterator

import libvirt
import pytest

from tests.hvsvc_process import HvsvcProcess
from tests.lab.cloud import Lab, Server, wait_until

GIB_KIB = 1024 * 1024
MIB_KIB = 1024


@pytest.fixture(scope="module")
def hvsvc(lab: Lab) -> Iterator[HvsvcProcess]:
    """The daemon on the lab's libvirt, with the administrator's credential."""
    environ = {"OS_CLIENT_CONFIG_FILE": str(lab.clouds_yaml)}
    with HvsvcProcess(lab.libvirt_uri, '[nova]\ncloud = "lab-admin"', environ=environ) as daemon:
        yield daemon


def vcpucount(hvsvc: HvsvcProcess, server: Server) -> dict[str, int]:
    counts: dict[str, int] = hvsvc.hvctl_json("vcpucount", server.name)
    return counts


def guest_total_kib(hvsvc: HvsvcProcess, server: Server) -> int:
    """What the guest says it has; 0 where it has not said so since its balloon moved: Nova has it report every 10 s."""
    total_kib: int = hvsvc.hvctl_json("dominfo", server.name)["memory"].get("guest_total_kib", 0)
    return total_kib


def test_the_whole_job(lab: Lab, hvsvc: HvsvcProcess) -> None:
    server = lab.create_server("web", image="lab-nocpuauto")
    lab.wait_agent(server)
    before = hvsvc.hvctl_json("dominfo", server.name)
    assert before["nova"]["server_id"] == before["uuid"] == server.id
    assert before["nova"]["flavor"] == "small"
    before_kib = wait_until(
        "a report of the guest's balloon driver", lambda: guest_total_kib(hvsvc, server), 60
    )
    assert vcpucount(hvsvc, server) == {
        "maximum_config": 2,
        "maximum_live": 2,
        "current_config": 2,
        "current_live": 2,
        "guest_present": 2,
        "guest_online": 2,
    }

    raised = hvsvc.hvctl_json(
        "raise", server.name, "--max-vcpus", "8", "--max-memory", "2GiB", "--reboot", "soft"
    )
    assert raised["outcome"] == "COMPLETE", raised
    assert raised["changed"] is True
    assert vcpucount(hvsvc, server) == {
        "maximum_config": 8,
        "maximum_live": 8,
        "current_config": 2,
        "current_live": 2,
        "guest_present": 2,
        "guest_online": 2,
    }
    seen = lab.nova_server(server.id)
    assert (seen.status, seen.task_state, seen.id) == ("ACTIVE", None, server.id)
    middle = hvsvc.hvctl_json("dominfo", server.name)
    assert middle["id"] != before["id"]
    assert middle["memory"]["maximum_live_kib"] == 2 * GIB_KIB
    assert middle["memory"]["balloon_actual_kib"] == 512 * MIB_KIB
    assert not middle.get("pending_reboot", False)

    scaled = hvsvc.hvctl_json("scale", server.name, "--vcpus", "8", "--memory", "1GiB")
    assert scaled["outcome"] == "COMPLETE", scaled
    assert vcpucount(hvsvc, server) == {
        "maximum_config": 8,
        "maximum_live": 8,
        "current_config": 8,
        "current_live": 8,
        "guest_present": 8,
        "guest_online": 8,
    }
    after = hvsvc.hvctl_json("dominfo", server.name)
    assert after["id"] == middle["id"], "growth must not reboot"
    assert after["memory"]["balloon_actual_kib"] == GIB_KIB
    wait_until(
        "the guest's own report of more memory",
        lambda: guest_total_kib(hvsvc, server) > before_kib + 400 * MIB_KIB,
        60,
    )
    online = [cpu for cpu in lab.agent(server, "guest-get-vcpus") if cpu["online"]]
    assert len(online) == 8, "the guest itself says so"

    again = hvsvc.hvctl_json("scale", server.name, "--vcpus", "8", "--memory", "1GiB", "--reboot", "soft")
    assert (again["outcome"], again.get("changed", False)) == ("COMPLETE", False)
    assert hvsvc.hvctl_json("dominfo", server.name)["etag"] == after["etag"]
    assert lab.domain_id(server) == after["id"]


def test_one_call_does_the_whole_job(lab: Lab, hvsvc: HvsvcProcess) -> None:
    server = lab.create_server("db", image="lab-nocpuauto")
    lab.wait_agent(server)
    done = hvsvc.hvctl_json("scale", server.name, "--vcpus", "4", "--memory", "1GiB", "--reboot", "soft")
    assert done["outcome"] == "COMPLETE", done
    kinds = [step["kind"] for step in done["steps"]]
    assert kinds == [
        "DEFINE_CONFIG",
        "REBOOT",
        "WAIT_GUEST",
        "SET_MEMORY_LIVE",
        "SET_VCPUS_LIVE",
        "ONLINE_GUEST_CPUS",
        "DEFINE_CONFIG",
    ]
    assert vcpucount(hvsvc, server)["guest_online"] == 4


def test_rb_08_above_the_ceiling_without_consent_nothing_is_touched(lab: Lab, hvsvc: HvsvcProcess) -> None:
    server = lab.create_server("calm")
    inactive = libvirt.VIR_DOMAIN_XML_INACTIVE
    before = lab.domain(server).XMLDesc(inactive), lab.domain_id(server)
    answer = hvsvc.hvctl("scale", server.name, "--vcpus", "8", "-f", "json")
    assert answer.code == 4, answer
    error = answer.json["error"]
    assert error["reason"] == "REBOOT_REQUIRED"
    assert "--reboot soft" in error["message"]
    assert "ceiling: 2 vCPUs" in error["message"]
    assert (lab.domain(server).XMLDesc(inactive), lab.domain_id(server)) == before
    assert lab.nova_server(server.id).status == "ACTIVE"


def test_agent_absent_is_unconfirmed(lab: Lab, hvsvc: HvsvcProcess) -> None:
    server = lab.create_server("mute", image="lab-noga")
    raised = hvsvc.hvctl("raise", server.name, "--max-vcpus", "8", "--reboot", "soft", "-f", "json")
    assert raised.code == 7, raised
    assert raised.json["outcome"] == "UNCONFIRMED"
    grown = hvsvc.hvctl("scale", server.name, "--vcpus", "4", "-f", "json")
    assert grown.code == 7, grown
    assert grown.json["outcome"] == "UNCONFIRMED"
    assert grown.json["after"]["vcpus"]["current_live"] == 4
    assert "guest_online" not in grown.json["after"]["vcpus"]


def test_a_locked_server_is_not_rebooted(lab: Lab, hvsvc: HvsvcProcess) -> None:
    server = lab.create_server("locked")
    lab.cloud("demo").compute.lock_server(server.id)
    domain_id = lab.domain_id(server)
    try:
        answer = hvsvc.hvctl("raise", server.name, "--max-vcpus", "4", "--reboot", "soft", "-f", "json")
        assert answer.code == 4, answer
        assert answer.json["error"]["reason"] == "SERVER_LOCKED"
        assert lab.domain_id(server) == domain_id
    finally:
        lab.cloud("demo").compute.unlock_server(server.id)


def test_a_stopped_server_is_not_edited(lab: Lab, hvsvc: HvsvcProcess) -> None:
    server = lab.create_server("off")
    lab.cloud("demo").compute.stop_server(server.id)
    wait_until(
        "SHUTOFF", lambda: (s := lab.nova_server(server.id)).status == "SHUTOFF" and s.task_state is None, 60
    )
    answer = hvsvc.hvctl("raise", server.name, "--max-vcpus", "4", "-f", "json")
    assert answer.code == 4, answer
    assert answer.json["error"]["reason"] == "NOVA_START_DISCARDS"
