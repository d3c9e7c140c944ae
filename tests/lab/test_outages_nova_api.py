"""nova-api really stopped in the middle of what hvsvc does: bounded, told as it is, well again."""

from __future__ import annotations

from collections.abc import Iterator

import libvirt
import pytest

from tests.lab.cloud import Lab, Server, wait_until
from tests.lab.nova_acts import wait_status
from tests.lab.outage import (
    ACTION,
    CALL_S,
    CEILINGS,
    SHORT_S,
    Cloud,
    Services,
    Started,
    bounded,
    ceilings,
    check_report,
    libvirt_sides,
    reason_of,
    reasons_of,
    settled,
    wait_drift,
)

pytestmark = [pytest.mark.nova_long, pytest.mark.usefixtures("services")]
#: how a service is away, and how hvsvc tells that
AWAY = pytest.mark.parametrize(
    ("how", "reason"), [("stop", "NOVA_UNAVAILABLE"), ("freeze", "CALL_TIMED_OUT")], ids=["stop", "freeze"]
)


@pytest.fixture(scope="module")
def servers(lab: Lab) -> Iterator[dict[str, Server]]:
    made = {name: lab.create_server(name, booted=False) for name in ("outage", "resize", "confirmResize")}
    yield made
    for each in made.values():
        lab.delete_server(each)


@pytest.fixture(scope="module")
def server(servers: dict[str, Server]) -> Server:
    return servers["outage"]


@AWAY
def test_without_nova_api_what_needs_no_reboot_is_done_and_not_claimed(
    lab: Lab, cloud: Cloud, services: Services, server: Server, how: str, reason: str
) -> None:
    before = settled(lab, server)
    with cloud.hvsvc() as hvsvc:
        wanted, live = next(CEILINGS), ceilings(lab, server)[1]
        hvsvc.hvctl_json("dominfo", server.name)  # signs in: how long Keystone takes is not the question
        getattr(services, how)("nova-api")
        refused = bounded(hvsvc, "raise", server.name, "--max-vcpus", str(wanted), "--reboot", "soft")
        assert (refused.code, reason_of(refused)) == (6, reason), refused
        refused = bounded(hvsvc, "reboot", server.name)
        assert (refused.code, reason_of(refused)) == (6, reason), refused
        assert ceilings(lab, server)[0] != wanted, "nothing was touched"

        raised = bounded(hvsvc, "raise", server.name, "--max-vcpus", str(wanted))
        assert raised.code == 7, raised
        assert "NOVA_STATE_UNKNOWN" in reasons_of(raised)
        room = bounded(hvsvc, "headroom", server.name, "--memory", "1GiB")
        assert room.code == 7, room
        assert "NOVA_STATE_UNKNOWN" in reasons_of(room)
        moved = bounded(hvsvc, "setmem", server.name, "480MiB")
        assert moved.code == 7, moved
        assert "NOVA_STATE_UNKNOWN" in reasons_of(moved)
        check_report(lab, hvsvc, server, "PENDING_REBOOT")
        assert ceilings(lab, server) == (wanted, live)

        services.back("nova-api")
        assert lab.domain_id(server) == before, "nobody rebooted"
        done = bounded(hvsvc, "reboot", server.name)
        assert (done.code, done.json["outcome"]) == (0, "COMPLETE"), done
        check_report(lab, hvsvc, server, "IN_SYNC")


def test_nova_api_that_stops_before_it_is_asked_to_reboot(
    lab: Lab, cloud: Cloud, services: Services, server: Server
) -> None:
    before = settled(lab, server)
    with cloud.hvsvc() as hvsvc:
        wanted, live = next(CEILINGS), ceilings(lab, server)[1]
        cloud.nova.at(ACTION, lambda: services.stop("nova-api"))
        asked = ("raise", server.name, "--max-vcpus", str(wanted), "--reboot", "soft")
        answer = bounded(hvsvc, *asked)
        assert (answer.code, reason_of(answer)) == (6, "NOVA_UNAVAILABLE"), answer
        assert "whether Nova took it is not known" in answer.json["error"]["message"]
        check_report(lab, hvsvc, server, "PENDING_REBOOT")
        services.back("nova-api")
        assert lab.nova_server(server.id).task_state is None
        assert (lab.domain_id(server), ceilings(lab, server)) == (before, (wanted, live))
        done = bounded(hvsvc, *asked)
        assert (done.code, done.json["outcome"]) == (0, "COMPLETE"), done
        check_report(lab, hvsvc, server, "IN_SYNC")


def test_nova_api_that_hangs_with_the_request_reboots_when_it_goes_on(
    lab: Lab, cloud: Cloud, services: Services, server: Server
) -> None:
    before = settled(lab, server)
    with cloud.hvsvc() as hvsvc:
        wanted = next(CEILINGS)
        cloud.nova.at(ACTION, lambda: services.freeze("nova-api"))
        answer = bounded(hvsvc, "raise", server.name, "--max-vcpus", str(wanted), "--reboot", "soft")
        assert (answer.code, reason_of(answer)) == (6, "CALL_TIMED_OUT"), answer
        assert "whether Nova took it is not known" in answer.json["error"]["message"]
        check_report(lab, hvsvc, server, "PENDING_REBOOT")
        assert lab.domain_id(server) == before
        services.back("nova-api")
        wait_status(lab, server, "ACTIVE", other_id=before)
        assert ceilings(lab, server) == (wanted, wanted)
        wait_drift(hvsvc, server, "IN_SYNC")


@AWAY
def test_nova_api_that_goes_away_once_it_took_the_reboot(
    lab: Lab, cloud: Cloud, services: Services, server: Server, how: str, reason: str
) -> None:
    before = settled(lab, server)
    with cloud.hvsvc(reboot_s=SHORT_S) as hvsvc:
        wanted = next(CEILINGS)
        cloud.nova.at(ACTION, lambda: getattr(services, how)("nova-api"), answered=True)
        asked = ("raise", server.name, "--max-vcpus", str(wanted), "--reboot", "soft")
        answer = bounded(hvsvc, *asked, wait_s=SHORT_S)
        assert answer.code == 7, answer
        assert "NOVA_STATE_UNKNOWN" in reasons_of(answer)
        assert lab.domain_id(server) != before
        assert ceilings(lab, server) == (wanted, wanted)
        check_report(lab, hvsvc, server, "IN_SYNC")
        services.back("nova-api")
        done = bounded(hvsvc, *asked)
        assert (done.code, done.json["outcome"]) == (0, "COMPLETE"), done


def test_nova_api_that_is_back_before_the_wait_is_over(
    lab: Lab, cloud: Cloud, services: Services, server: Server
) -> None:
    before = settled(lab, server)
    with cloud.hvsvc() as hvsvc:
        wanted = next(CEILINGS)
        taken = cloud.nova.at(ACTION, lambda: services.stop("nova-api"), answered=True)
        asked = ("raise", server.name, "--max-vcpus", str(wanted), "--reboot", "soft")
        running = Started(hvsvc, *asked)
        taken.wait()
        wait_until("restart of the domain", lambda: lab.domain_id(server) not in (before, None), 60)
        services.back("nova-api")
        answer = running.ended(60)
        assert (answer.code, answer.json["outcome"]) == (0, "COMPLETE"), answer
        check_report(lab, hvsvc, server, "IN_SYNC")


def test_what_is_lost_while_nova_api_is_away_is_stored_again_when_it_is_back(
    lab: Lab, cloud: Cloud, services: Services, server: Server
) -> None:
    before = settled(lab, server)
    with cloud.hvsvc(drift='reapply = "config"') as hvsvc:
        wanted = next(CEILINGS)
        hvsvc.hvctl_json("raise", server.name, "--max-vcpus", str(wanted))
        lab.cloud("admin").compute.reboot_server(server.id, "HARD")
        services.stop("nova-api")
        wait_until("restart of the domain", lambda: lab.domain_id(server) not in (before, None), 60)
        wait_drift(hvsvc, server, "CEILING_LOST")
        wait_until(
            "hvsvc to say why it waits",
            lambda: "is not known" in hvsvc.hvctl_json("drift", server.name).get("waits_for", ""),
            CALL_S + 10,
        )
        assert ceilings(lab, server) == (2, 2)
        check_report(lab, hvsvc, server, "CEILING_LOST")
        services.back("nova-api")
        wait_drift(hvsvc, server, "PENDING_REBOOT")
        assert ceilings(lab, server) == (wanted, 2)


@pytest.mark.parametrize("action", ["resize", "confirmResize"])
def test_a_resize_through_a_nova_api_that_goes_away(
    lab: Lab,
    cloud: Cloud,
    services: Services,
    servers: dict[str, Server],
    monkeypatch: pytest.MonkeyPatch,
    action: str,
) -> None:
    monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", str(cloud.clouds_yaml))
    server = servers[action]
    settled(lab, server)
    with cloud.hvsvc() as hvsvc:
        body = rb"\"" + action.encode() + rb"\""
        size = ("--vcpus", "4", "--memory", "1GiB")
        words = ("--cloud", "lab-demo", "scale", server.name, *size, "--via", "resize", "--reboot", "soft")
        if action == "resize":
            taken = cloud.nova.at(body, lambda: services.stop("nova-api"), answered=True)
            running = Started(hvsvc, *words)
            taken.wait()
            wait_until("the domain of the flavor", lambda: running_maximum(lab, server) == 4, 60)
            services.back("nova-api")
            answer = running.ended(120)
            assert (answer.code, answer.json["outcome"]) == (0, "COMPLETE"), answer
            seen = lab.nova_server(server.id)
            assert (seen.status, seen.flavor.original_name) == ("ACTIVE", "big")
        else:
            cloud.nova.at(body, lambda: services.stop("nova-api"))
            answer = bounded(hvsvc, *words, wait_s=90)
            assert (answer.code, reason_of(answer)) == (6, "NOVA_UNAVAILABLE"), answer
            assert f"openstack server resize confirm {server.id}" in answer.json["error"]["message"]
            services.back("nova-api")
            assert lab.nova_server(server.id).status == "VERIFY_RESIZE"
        check_report(lab, hvsvc, server)


def running_maximum(lab: Lab, server: Server) -> int | None:
    """Of a domain that Nova may be making anew."""
    try:
        live = libvirt_sides(lab, server)["live"]
    except libvirt.libvirtError:
        return None
    return live and int(live["maximum_vcpus"])
