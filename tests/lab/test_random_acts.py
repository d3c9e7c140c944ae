"""Acts on a server in random order: whatever comes after what, hvsvc tells the truth and leaves the server well.

HVSVC_SEED     the order; printed, so that a failure can be repeated
HVSVC_ROUNDS   how many acts, default 4; 50 for the whole
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator

import libvirt
import pytest

from tests.hvsvc_process import HvsvcProcess
from tests.lab.cloud import Lab, Server, wait_until
from tests.lab.nova_acts import (
    MAX_VCPUS,
    SOON_S,
    check_told,
    hard,
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

pytestmark = pytest.mark.nova_long
SEED = int(os.environ.get("HVSVC_SEED", "20261130"))
ROUNDS = int(os.environ.get("HVSVC_ROUNDS", "4"))


@pytest.fixture(scope="module")
def hvsvc(lab: Lab) -> Iterator[HvsvcProcess]:
    """The daemon, which stores a lost ceiling again."""
    sections = (
        '[nova]\ncloud = "lab-admin"\n[placement]\npolicy = "enforce"\n'
        '[drift]\nreapply = "config"\nbackoff_s = 0.5\n'
    )
    environ = {"OS_CLIENT_CONFIG_FILE": str(lab.clouds_yaml)}
    with HvsvcProcess(lab.libvirt_uri, sections, environ=environ) as daemon:
        yield daemon


def pause_unpause(lab: Lab, server: Server) -> None:
    pause(lab, server)
    unpause(lab, server)


def suspend_resume(lab: Lab, server: Server) -> None:
    suspend(lab, server)
    resume(lab, server)


def rescue_unrescue(lab: Lab, server: Server) -> None:
    compute = lab.cloud("admin").compute
    was = lab.domain_id(server)
    compute.rescue_server(server.id)
    wait_status(lab, server, "RESCUE", other_id=was)
    was = lab.domain_id(server)
    compute.unrescue_server(server.id)
    wait_status(lab, server, "ACTIVE", other_id=was)


def resize_there_and_back(lab: Lab, server: Server) -> None:
    """Confirmed both times: the server has the flavor of its record again in the end."""
    compute = lab.cloud("admin").compute
    resize(lab, server)
    compute.confirm_server_resize(server.id)
    wait_status(lab, server, "ACTIVE")
    compute.resize_server(server.id, compute.find_flavor("small", ignore_missing=False).id)
    wait_status(lab, server, "VERIFY_RESIZE")
    compute.confirm_server_resize(server.id)
    wait_status(lab, server, "ACTIVE")


ACTS: tuple[Callable[[Lab, Server], None], ...] = (
    hard,
    soft,
    stop_start,
    shelve,
    rebuild,
    resize_revert,
    resize_there_and_back,
    unstartable,
    pause_unpause,
    suspend_resume,
    rescue_unrescue,
    reboot_inside,
    off_and_on,
)


def deal(order: random.Random) -> Iterator[Callable[[Lab, Server], None]]:
    """All of them in a random order, then again in another: none is left out by chance."""
    while True:
        yield from order.sample(ACTS, len(ACTS))


@pytest.mark.timeout(300 + 150 * ROUNDS)
def test_whatever_comes_after_what(lab: Lab, hvsvc: HvsvcProcess) -> None:
    """hvctl reboot is the fourteenth act; it is asked for after each one that lost the ceiling."""
    print(f"HVSVC_SEED={SEED} HVSVC_ROUNDS={ROUNDS}", flush=True)
    order = deal(random.Random(SEED))
    server = lab.create_server("random")
    lab.wait_agent(server)
    hvsvc.hvctl_json(
        *("scale", server.name, "--vcpus", "4", "--memory", "1GiB"),
        *("--max-vcpus", str(MAX_VCPUS), "--max-memory", "2GiB", "--reboot", "soft"),
    )
    for number in range(ROUNDS):
        act = next(order)
        print(f"round {number}: {act.__name__}", flush=True)
        lab.wait_agent(server)
        act(lab, server)
        domain_id = lab.domain_id(server)
        check_told(lab, hvsvc, server)
        domain = lab.domain(server)
        wait_until(
            "the ceiling in the stored definition",
            lambda domain=domain: (  # type: ignore[misc]
                read_side(domain, libvirt.VIR_DOMAIN_XML_INACTIVE)["maximum_vcpus"] >= MAX_VCPUS
            ),
            SOON_S,
        )
        facts = check_told(lab, hvsvc, server)
        assert lab.domain_id(server) == domain_id, "re-applying reboots nothing"
        assert lab.nova_server(server.id).status == "ACTIVE"
        if facts["live"]["maximum_vcpus"] < MAX_VCPUS:
            reboot_to_the_record(lab, hvsvc, server)
            check_told(lab, hvsvc, server)
