"""Everything an operator asks beside a domain whose QEMU has stopped (case GA-07)."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import libvirt
import pytest

from hvsvc.adapters.libvirt_unread import DEFINITION_WAITS_SINCE
from tests.guest_domains import GuestDomains, wait_for
from tests.hvsvc_process import HvsvcProcess
from tests.private_libvirtd import PrivateLibvirtd

DEFINITION_WAITS = libvirt.getVersion() >= DEFINITION_WAITS_SINCE
#: each, its process included; libvirt itself waits 30 s
BOUND_S = 20


@contextmanager
def silent(libvirtd: PrivateLibvirtd, domain: libvirt.virDomain) -> Iterator[None]:
    """Its QEMU is stopped, and another client of libvirt waits for it."""
    pid = int((libvirtd.path / f"r/libvirt/qemu/run/{domain.name()}.pid").read_text())
    os.kill(pid, signal.SIGSTOP)
    asking = subprocess.Popen(
        ["virsh", "-c", libvirtd.uri, "dommemstat", domain.name()], stdout=subprocess.DEVNULL
    )
    try:
        wait_for(
            lambda: domain.controlInfo()[0] == libvirt.VIR_DOMAIN_CONTROL_OCCUPIED, "one that waits for QEMU"
        )
        yield
    finally:
        os.kill(pid, signal.SIGCONT)
        assert asking.wait(60) == 0


def by_name(domains: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {domain["libvirt_name"]: domain for domain in domains}


@pytest.mark.guest
def test_ga_07_all_other_domains_and_the_host_are_reported_as_ever(
    hvsvc: HvsvcProcess, domains: GuestDomains, private_libvirtd: PrivateLibvirtd
) -> None:
    for name in ("well-1", "stuck", "well-2"):
        domains.boot(name=name, until="booted" if name == "stuck" else "started")
    stuck = domains.connection.lookupByName("stuck")
    room = hvsvc.hvctl_json("host")
    with silent(private_libvirtd, stuck):
        for _ in range(3):
            listed = hvsvc.hvctl("list", "-f", "json", timeout_s=BOUND_S)
            assert listed.code == 0, listed
            found = by_name(listed.json)
            for name in ("well-1", "well-2"):
                assert found[name]["vcpus"]["maximum_config"] == 8
                assert found[name]["memory"]["balloon_actual_kib"] > 0
            assert (found["stuck"]["id"], found["stuck"]["state"]) == (stuck.ID(), "RUNNING")
            assert (found["stuck"]["vcpus"]["maximum_live"], found["stuck"]["vcpus"]["current_live"]) == (
                8,
                2,
            )
            told = {each["reason"]: each["message"] for each in found["stuck"].get("conditions", [])}
            assert ("CALL_TIMED_OUT" in told) == DEFINITION_WAITS
            assert ("maximum_config" in found["stuck"]["vcpus"]) != DEFINITION_WAITS
        assert hvsvc.hvctl("dominfo", "well-1", "--no-guest", timeout_s=BOUND_S).code == 0
        during = hvsvc.hvctl("host", "-f", "json", timeout_s=BOUND_S).json
        for same in ("running_domains", "current_vcpus", "maximum_vcpus", "maximum_memory_kib"):
            assert during[same] == room[same]
        if DEFINITION_WAITS:
            for words in (
                ("dominfo", "stuck"),
                ("plan", "stuck", "--vcpus", "4"),
                ("setvcpus", "stuck", "4"),
            ):
                answer = hvsvc.hvctl(*words, timeout_s=BOUND_S)
                assert (answer.code, "CALL_TIMED_OUT" in answer.stderr) == (6, True), answer
                assert "its QEMU has not answered libvirt" in answer.stderr
    wait_for(lambda: hvsvc.hvctl("dominfo", "stuck").code == 0, "an answer about the domain that goes on")
    assert stuck.info()[3] == 2
