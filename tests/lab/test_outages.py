"""nova-compute really stopped in the middle of what hvsvc does: bounded, told as it is, well again without help."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import libvirt
import pytest

from tests.hvsvc_process import HvsvcProcess
from tests.lab.books import Books
from tests.lab.cloud import Lab, Server, wait_until
from tests.lab.nova_acts import wait_status
from tests.lab.outage import (
    ACTION,
    CEILINGS,
    SHORT_S,
    Cloud,
    Services,
    Started,
    bounded,
    ceilings,
    check_report,
    reason_of,
    settled,
    wait_drift,
    wait_task,
)

pytestmark = [pytest.mark.nova_long, pytest.mark.usefixtures("services")]


@pytest.fixture(scope="module")
def servers(lab: Lab) -> Iterator[dict[str, Server]]:
    """All of them at once: after a restart of nova-compute, building one has to wait for its first report."""
    images = {"outage": "lab", "stubborn": "lab-noacpi", "resized": "lab"}
    made = {name: lab.create_server(name, image=image, booted=False) for name, image in images.items()}
    yield made
    for each in made.values():
        lab.delete_server(each)


@pytest.fixture(scope="module")
def server(servers: dict[str, Server]) -> Server:
    return servers["outage"]


@pytest.fixture(scope="module", autouse=True)
def reported(lab: Lab) -> Iterator[None]:
    """Whoever comes next may build servers."""
    yield
    Services(lab).wait_reported()


def still_busy(hvsvc: HvsvcProcess, server: Server) -> None:
    """Nothing changes a server on which Nova still has a task."""
    for words in (
        ("raise", server.name, "--max-vcpus", "16"),
        ("headroom", server.name, "--vcpus", "16"),
        ("reboot", server.name),
    ):
        answer = bounded(hvsvc, *words)
        assert (answer.code, reason_of(answer)) == (5, "SERVER_BUSY"), answer


def test_without_nova_compute_what_needs_no_reboot_is_done(
    lab: Lab, cloud: Cloud, services: Services, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", str(cloud.clouds_yaml))
    before = settled(lab, server)
    with cloud.hvsvc(policy="enforce") as hvsvc:
        services.stop("nova-compute")
        wanted = next(CEILINGS)
        raised = bounded(hvsvc, "raise", server.name, "--max-vcpus", str(wanted))
        assert (raised.code, raised.json["outcome"]) == (0, "PENDING_REBOOT"), raised
        room = bounded(hvsvc, "headroom", server.name, "--memory", "1GiB")
        assert (room.code, room.json["outcome"]) == (0, "PENDING_REBOOT"), room
        grown = bounded(hvsvc, "setmem", server.name, "480MiB")
        assert (grown.code, grown.json["outcome"]) == (0, "COMPLETE"), grown
        check_report(lab, hvsvc, server, "PENDING_REBOOT")
        assert Books(lab).size(server) == (2, 512)

        # once Nova itself knows, it is not asked for what it would only keep for later
        api = lab.cloud("admin").compute
        (service,) = api.services(binary="nova-compute")
        path = f"/os-services/{service.id}"
        try:
            assert api.put(path, json={"forced_down": True}, microversion="2.53").status_code == 200
            for words in (("reboot",), ("raise", "--max-vcpus", str(wanted + 1), "--reboot", "soft")):
                answer = bounded(hvsvc, words[0], server.name, *words[1:])
                assert (answer.code, reason_of(answer)) == (6, "NOVA_UNAVAILABLE"), answer
                assert answer.json["error"]["metadata"]["hostStatus"] == "DOWN"
            size = ("--vcpus", "4", "--memory", "1GiB", "--via", "resize", "--reboot", "soft")
            answer = bounded(hvsvc, "--cloud", "lab-admin", "scale", server.name, *size)
            assert (answer.code, reason_of(answer)) == (6, "NOVA_UNAVAILABLE"), answer
        finally:
            assert api.put(path, json={"forced_down": False}, microversion="2.53").status_code == 200
        assert ceilings(lab, server) == (wanted, 2)
        assert lab.nova_server(server.id).task_state is None

        services.back("nova-compute")
        services.wait_reported()
        done = bounded(hvsvc, "reboot", server.name)
        assert (done.code, done.json["outcome"]) == (0, "COMPLETE"), done
        assert lab.domain_id(server) != before
        check_report(lab, hvsvc, server, "IN_SYNC")


def test_a_reboot_asked_for_while_nova_compute_is_away_is_done_when_it_is_back(
    lab: Lab, cloud: Cloud, services: Services, server: Server
) -> None:
    before = settled(lab, server)
    with cloud.hvsvc(reboot_s=SHORT_S) as hvsvc:
        wanted, live = next(CEILINGS), ceilings(lab, server)[1]
        cloud.nova.at(ACTION, lambda: services.stop("nova-compute"))
        asked = ("raise", server.name, "--max-vcpus", str(wanted), "--reboot", "soft")
        answer = bounded(hvsvc, *asked, wait_s=SHORT_S)
        assert (answer.code, reason_of(answer)) == (6, "CALL_TIMED_OUT"), answer
        assert "task_state rebooting" in answer.json["error"]["message"]
        assert "Nova may still do it" in answer.json["error"]["message"]
        assert lab.nova_server(server.id).task_state == "rebooting"
        assert ceilings(lab, server) == (wanted, live)
        check_report(lab, hvsvc, server, "PENDING_REBOOT")
        still_busy(hvsvc, server)

        services.back("nova-compute")
        wait_status(lab, server, "ACTIVE", other_id=before)
        assert ceilings(lab, server) == (wanted, wanted), "Nova kept the request, and rebooted softly"
        wait_drift(hvsvc, server, "IN_SYNC")
        again = bounded(hvsvc, *asked)
        assert (again.code, again.json["outcome"]) == (0, "COMPLETE"), again
        assert not again.json.get("changed", False)


@pytest.mark.parametrize("back_in_time", [False, True], ids=["late", "in time"])
def test_nova_compute_that_dies_when_the_guest_is_off_reboots_hard_when_it_is_back(
    lab: Lab, cloud: Cloud, services: Services, server: Server, back_in_time: bool
) -> None:
    before = settled(lab, server)
    with cloud.hvsvc(reboot_s=90 if back_in_time else SHORT_S, drift='reapply = "config"') as hvsvc:
        wanted = next(CEILINGS)
        assert (
            hvsvc.hvctl_json("raise", server.name, "--max-vcpus", str(wanted))["outcome"] == "PENDING_REBOOT"
        )
        running = Started(hvsvc, "reboot", server.name)
        wait_task(lab, server, lambda task: task == "reboot_started")
        services.freeze("nova-compute")
        domain = lab.domain(server)
        with contextlib.suppress(libvirt.libvirtError):
            domain.shutdown()  # where it was frozen before it could ask the guest itself
        wait_until("guest to be off", lambda: not domain.isActive(), 30, interval_s=0.02)
        services.stop("nova-compute")
        if back_in_time:
            services.back("nova-compute")
            answer = running.ended(90)
            assert (answer.code, reason_of(answer)) == (4, "CEILING_LOST"), answer
        else:
            answer = running.ended(SHORT_S)
            assert (answer.code, reason_of(answer)) == (6, "CALL_TIMED_OUT"), answer
            assert "the domain is shut off" in answer.json["error"]["message"]
            assert answer.json["error"]["step_failure"]["now"]["state"] == "SHUT_OFF"
            assert check_report(lab, hvsvc, server, "IN_SYNC")["id"] is None
            assert ceilings(lab, server) == (wanted, None)
            still_busy(hvsvc, server)
            services.back("nova-compute")
        wait_status(lab, server, "ACTIVE", other_id=before)
        wait_until("the ceiling in the stored definition", lambda: ceilings(lab, server) == (wanted, 2), 10)
        check_report(lab, hvsvc, server, "PENDING_REBOOT")
        lab.wait_agent(server)
        done = bounded(hvsvc, "reboot", server.name)
        assert (done.code, done.json["outcome"]) == (0, "COMPLETE"), done
        check_report(lab, hvsvc, server, "IN_SYNC")


def test_nova_compute_that_dies_while_the_guest_is_still_up_drops_the_reboot(
    lab: Lab, cloud: Cloud, services: Services, servers: dict[str, Server]
) -> None:
    server = servers["stubborn"]
    before = settled(lab, server)
    with cloud.hvsvc(reboot_s=90) as hvsvc:
        wanted = next(CEILINGS)
        running = Started(hvsvc, "raise", server.name, "--max-vcpus", str(wanted), "--reboot", "soft")
        wait_task(lab, server, lambda task: task == "reboot_started")
        services.stop("nova-compute")
        services.back("nova-compute")
        answer = running.ended(90)
        assert (answer.code, reason_of(answer)) == (4, "REBOOT_NOT_APPLIED"), answer
        assert lab.domain_id(server) == before
        seen = lab.nova_server(server.id)
        assert (seen.status, seen.task_state) == ("ACTIVE", None)
        assert ceilings(lab, server) == (wanted, 2)
        check_report(lab, hvsvc, server, "PENDING_REBOOT")
        again = hvsvc.hvctl_json("raise", server.name, "--max-vcpus", str(wanted))
        assert again["outcome"] == "PENDING_REBOOT", "nothing is locked"


def test_a_domain_that_is_gone_in_the_middle_of_a_hard_reboot_is_no_deleted_one(
    lab: Lab, cloud: Cloud, services: Services, server: Server
) -> None:
    before = settled(lab, server)
    with cloud.hvsvc(drift='reapply = "config"') as hvsvc:
        wanted = next(CEILINGS)
        hvsvc.hvctl_json("raise", server.name, "--max-vcpus", str(wanted))
        lab.cloud("admin").compute.reboot_server(server.id, "HARD")
        wait_until("domain to be undefined", lambda: not is_defined(lab, server), 60, interval_s=0.005)
        services.freeze("nova-compute")
        assert not is_defined(lab, server)
        services.stop("nova-compute")
        drift = hvsvc.hvctl_json("drift", server.name)
        assert drift["status"] not in {"GONE", "IN_SYNC"}, drift
        print(f"figure: in the middle of a hard reboot: {drift['status']} {drift['differences']}")
        assert hvsvc.hvctl("dominfo", server.id).code == 3
        services.back("nova-compute")
        wait_status(lab, server, "ACTIVE", other_id=before)
        wait_until("the ceiling in the stored definition", lambda: ceilings(lab, server) == (wanted, 2), 10)
        check_report(lab, hvsvc, server, "PENDING_REBOOT")


def is_defined(lab: Lab, server: Server) -> bool:
    try:
        lab.domain(server)
    except libvirt.libvirtError:
        return False
    return True


def test_a_resize_asked_for_while_nova_compute_is_away_ends_in_error_when_it_is_back(
    lab: Lab, cloud: Cloud, services: Services, servers: dict[str, Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", str(cloud.clouds_yaml))
    server = servers["resized"]
    before = settled(lab, server)
    with cloud.hvsvc() as hvsvc:
        cloud.nova.at(ACTION, lambda: services.stop("nova-compute"))
        words = ("scale", server.name, "--vcpus", "4", "--memory", "1GiB", "--via", "resize")
        answer = bounded(
            hvsvc, "--cloud", "lab-demo", "--timeout", "15", *words, "--reboot", "soft", wait_s=15
        )
        assert (answer.code, reason_of(answer)) == (6, "CALL_TIMED_OUT"), answer
        assert lab.domain_id(server) == before
        check_report(lab, hvsvc, server)
        print(f"figure: task without nova-compute: {lab.nova_server(server.id).task_state}", flush=True)

        services.back("nova-compute")
        # it clears the task, then takes the request up, which no longer fits: a fault of Nova's own
        wait_until("end of the resize", lambda: lab.nova_server(server.id).status == "ERROR", 60)
        assert lab.nova_server(server.id).flavor.original_name == "small"
        assert lab.domain_id(server) == before, "it runs on as before"
        check_report(lab, hvsvc, server)
        print(f"figure: task that stays: {lab.nova_server(server.id).task_state}", flush=True)
        refused = bounded(hvsvc, "raise", server.name, "--max-vcpus", "4")
        assert (refused.code, reason_of(refused)) == (4, "SERVER_NOT_ACTIVE"), refused
        lab.cloud("admin").compute.reset_server_state(server.id, "active")
        raised = bounded(hvsvc, "raise", server.name, "--max-vcpus", "4")
        assert (raised.code, raised.json["outcome"]) == (0, "PENDING_REBOOT"), raised
