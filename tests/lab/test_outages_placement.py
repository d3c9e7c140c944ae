"""Placement really stopped in the middle of what hvsvc does, under policy enforce: bounded, told, well again."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import libvirt
import pytest

from tests.lab.books import Books
from tests.lab.cloud import Lab, Server, wait_until
from tests.lab.outage import (
    Cloud,
    Services,
    bounded,
    check_report,
    libvirt_sides,
    reason_of,
    reasons_of,
    wait_drift,
)

pytestmark = [pytest.mark.nova_long, pytest.mark.usefixtures("services")]
PUT, GET = rb"PUT /allocations/", rb"GET /allocations/"
MAX_VCPUS, MIB = 12, 1024
#: each test grows the same domain a little further
SIZES = itertools.count(3)


@pytest.fixture(scope="module")
def server(lab: Lab, cloud: Cloud) -> Iterator[Server]:
    """One with room to grow."""
    made = lab.create_server("outage")
    lab.wait_agent(made)
    with cloud.hvsvc() as hvsvc:
        words = ("--max-vcpus", str(MAX_VCPUS), "--max-memory", "1GiB", "--reboot", "soft")
        assert hvsvc.hvctl_json("raise", made.name, *words)["outcome"] == "COMPLETE"
    yield made
    lab.delete_server(made)


def live_vcpus(lab: Lab, server: Server) -> int:
    number: int = libvirt_sides(lab, server)["live"]["current_vcpus"]
    return number


def stop_after_the_read_back(cloud: Cloud, services: Services) -> None:
    """Placement stops when hvsvc has raised the allocation and read it back."""
    cloud.placement.at(
        PUT,
        lambda: cloud.placement.at(GET, lambda: services.stop("placement"), answered=True),
        answered=True,
    )


@pytest.mark.parametrize(
    ("how", "reason"),
    [("stop", "PLACEMENT_UNAVAILABLE"), ("freeze", "CALL_TIMED_OUT")],
    ids=["stop", "freeze"],
)
def test_without_placement_nothing_grows(
    lab: Lab, cloud: Cloud, services: Services, server: Server, how: str, reason: str
) -> None:
    with cloud.hvsvc(policy="enforce") as hvsvc:
        vcpus, before = next(SIZES), libvirt_sides(lab, server)
        getattr(services, how)("placement")
        answer = bounded(hvsvc, "scale", server.name, "--vcpus", str(vcpus))
        assert (answer.code, reason_of(answer)) == (6, reason), answer
        assert libvirt_sides(lab, server) == before
        shown = hvsvc.hvctl_json("dominfo", server.name)
        assert "allocation" not in shown
        assert reason in [condition["reason"] for condition in shown["conditions"]]
        check_report(lab, hvsvc, server)
        # a ceiling claims nothing in Placement
        room = bounded(hvsvc, "headroom", server.name, "--vcpus", str(MAX_VCPUS))
        assert (room.code, room.json["outcome"]) in {(0, "COMPLETE"), (7, "UNCONFIRMED")}, room

        services.back("placement")
        done = bounded(hvsvc, "scale", server.name, "--vcpus", str(vcpus))
        assert (done.code, done.json["outcome"]) == (0, "COMPLETE"), done
        assert (live_vcpus(lab, server), lab.guest_online(server)) == (vcpus, vcpus)
        assert Books(lab).size(server) == (vcpus, 512)
        check_report(lab, hvsvc, server, "IN_SYNC")


def test_placement_that_stops_with_the_new_allocation_written_and_its_answer_lost(
    lab: Lab, cloud: Cloud, services: Services, server: Server
) -> None:
    def stop() -> None:
        services.stop("placement")
        cloud.placement.cut()

    with cloud.hvsvc(policy="enforce") as hvsvc:
        vcpus, before = next(SIZES), live_vcpus(lab, server)
        cloud.placement.at(PUT, stop, answered=True)
        answer = bounded(hvsvc, "scale", server.name, "--vcpus", str(vcpus))
        assert (answer.code, reason_of(answer)) == (6, "PLACEMENT_UNAVAILABLE"), answer
        assert "may have been written" in answer.json["error"]["message"]
        assert live_vcpus(lab, server) == before
        check_report(lab, hvsvc, server)

        cloud.placement.mend()
        services.back("placement")
        assert Books(lab).size(server) in {(vcpus, 512), (before, 512)}
        wait_until("allocation of the truth", lambda: Books(lab).size(server) == (before, 512), 20)
        done = bounded(hvsvc, "scale", server.name, "--vcpus", str(vcpus))
        assert (done.code, done.json["outcome"]) == (0, "COMPLETE"), done
        assert Books(lab).size(server) == (vcpus, 512)


def test_placement_that_stops_once_the_growth_is_allocated(
    lab: Lab, cloud: Cloud, services: Services, server: Server
) -> None:
    with cloud.hvsvc(policy="enforce") as hvsvc:
        vcpus = next(SIZES)
        stop_after_the_read_back(cloud, services)
        answer = bounded(hvsvc, "scale", server.name, "--vcpus", str(vcpus), "--memory", "640MiB")
        assert answer.code == 7, answer
        assert "PLACEMENT_UNAVAILABLE" in reasons_of(answer)
        assert answer.json["steps"][0]["kind"] == "SET_ALLOCATION"
        assert answer.json["steps"][0]["state"] == "DONE"
        assert (live_vcpus(lab, server), lab.guest_online(server)) == (vcpus, vcpus)
        check_report(lab, hvsvc, server)

        services.back("placement")
        assert Books(lab).size(server) == (vcpus, 640)
        again = bounded(hvsvc, "scale", server.name, "--vcpus", str(vcpus), "--memory", "640MiB")
        assert (again.code, again.json["outcome"]) == (0, "COMPLETE"), again
        assert again.json["after"]["allocation"]["vcpus"] == vcpus
        check_report(lab, hvsvc, server, "IN_SYNC")


def test_placement_that_stops_before_the_reboot_of_a_growth(
    lab: Lab, cloud: Cloud, services: Services, server: Server
) -> None:
    before = lab.domain_id(server)
    with cloud.hvsvc(policy="enforce") as hvsvc:
        vcpus = next(SIZES)
        asked = ("scale", server.name, "--vcpus", str(vcpus), "--max-vcpus", str(MAX_VCPUS + 2))
        stop_after_the_read_back(cloud, services)
        answer = bounded(hvsvc, *asked, "--reboot", "soft", wait_s=60)
        assert (answer.code, reason_of(answer)) == (6, "PLACEMENT_UNAVAILABLE"), answer
        assert lab.domain_id(server) != before
        sides = check_report(lab, hvsvc, server, "SHRUNK")
        assert sides["config"]["maximum_vcpus"] == sides["live"]["maximum_vcpus"] == MAX_VCPUS + 2
        assert sides["live"]["current_vcpus"] < vcpus, "what could not be allocated did not grow"

        services.back("placement")
        done = bounded(hvsvc, *asked, "--reboot", "soft", wait_s=60)
        assert (done.code, done.json["outcome"]) == (0, "COMPLETE"), done
        assert Books(lab).size(server)[0] == vcpus == lab.guest_online(server)
        check_report(lab, hvsvc, server, "IN_SYNC")


def test_what_needs_placement_to_be_grown_again_is_when_it_is_back(
    lab: Lab, cloud: Cloud, services: Services, server: Server
) -> None:
    with cloud.hvsvc(policy="enforce", drift='reapply = "live"\nattempts = 1') as hvsvc:
        assert hvsvc.hvctl_json("setmem", server.name, "800MiB")["outcome"] == "COMPLETE"
        services.stop("placement")
        lab.domain(server).setMemoryFlags(
            600 * MIB, libvirt.VIR_DOMAIN_AFFECT_LIVE | libvirt.VIR_DOMAIN_AFFECT_CONFIG
        )
        wait_until(
            "several attempts in vain",
            lambda: sum(each["event"] == "reapply_failed" for each in hvsvc.events()) > 2,
            60,
        )
        drift = hvsvc.hvctl_json("drift", server.name)
        assert drift["status"] == "SHRUNK"
        assert "Placement" in drift["waits_for"], drift
        services.back("placement")
        wait_drift(hvsvc, server, "IN_SYNC", 60)
        assert lab.domain(server).memoryStats()["actual"] == 800 * MIB
        assert Books(lab).size(server)[1] == 800
        assert "reapply_given_up" not in hvsvc.read_log()
