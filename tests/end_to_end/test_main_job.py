"""The main job through daemon and hvctl on a real guest: growth, and what must not be claimed."""

from __future__ import annotations

import json
import time

import libvirt
import pytest

from tests.guest_domains import GuestDomains, is_agent_up, read_guest_cpus, wait_for
from tests.hvsvc_process import HvsvcProcess
from tests.private_libvirtd import PrivateLibvirtd

pytestmark = pytest.mark.guest
GIB_KIB = 1024 * 1024
SMALL = {"vcpus": 2, "max_vcpus": 2, "memory_mib": 512, "max_memory_mib": 512}


def test_raise_then_grow(hvsvc: HvsvcProcess, domains: GuestDomains) -> None:
    domain = domains.boot(name="grows", **SMALL)  # type: ignore[arg-type]
    raised = hvsvc.hvctl_json(
        "raise", "grows", "--max-vcpus", "8", "--max-memory", "1GiB", "--reboot", "soft"
    )
    assert raised["outcome"] == "COMPLETE", raised
    domain_id = domain.ID()
    assert hvsvc.hvctl_json("vcpucount", "grows") == {
        "maximum_config": 8,
        "maximum_live": 8,
        "current_config": 2,
        "current_live": 2,
        "guest_present": 2,
        "guest_online": 2,
    }
    scaled = hvsvc.hvctl_json("scale", "grows", "--vcpus", "8", "--memory", "1GiB")
    assert scaled["outcome"] == "COMPLETE", scaled
    assert domain.ID() == domain_id
    assert read_guest_cpus(domain) == dict.fromkeys(range(8), True)
    assert scaled["after"]["memory"]["balloon_actual_kib"] == GIB_KIB
    assert scaled["after"]["memory"]["guest_total_kib"] > raised["after"]["memory"].get("guest_total_kib", 0)
    again = hvsvc.hvctl_json("scale", "grows", "--vcpus", "8", "--memory", "1GiB")
    assert (again["outcome"], again["changed"], again["steps"]) == ("COMPLETE", False, [])


def test_rb_07_memory_asked_before_the_guest_is_up_is_still_there_when_it_is(
    hvsvc: HvsvcProcess, domains: GuestDomains
) -> None:
    domain = domains.boot(name="boots", until="started")
    asked = hvsvc.hvctl_json("setmem", "boots", "1GiB")
    assert asked["outcome"] == "COMPLETE", asked
    domains.wait_until_booted(domain, agent=True)
    wait_for(lambda: domain.memoryStats().get("last_update", 0) > 0, "a report of the guest's balloon driver")
    time.sleep(3)  # a driver that was told less takes its memory within a second or two of its start
    assert domain.memoryStats()["actual"] == GIB_KIB
    again = hvsvc.hvctl_json("setmem", "boots", "1GiB")
    assert (again["outcome"], again["changed"], again["steps"]) == ("COMPLETE", False, [])


def test_shrinking_memory_down_to_the_floor(hvsvc: HvsvcProcess, domains: GuestDomains) -> None:
    domains.boot(name="shrinks", memory_mib=1024, max_memory_mib=1024)
    refused = hvsvc.hvctl("setmem", "shrinks", "128MiB", "-f", "json")
    assert refused.code == 4, refused
    error = refused.json["error"]
    assert error["reason"] == "BELOW_MEMORY_FLOOR"
    floor_mib = -(-int(error["metadata"]["lowestKib"]) // 1024)
    assert 128 < floor_mib < 700
    done = hvsvc.hvctl_json("setmem", "shrinks", "768MiB")
    assert done["outcome"] == "COMPLETE", done
    assert done["after"]["memory"]["balloon_actual_kib"] == 768 * 1024
    refused = hvsvc.hvctl("setvcpus", "shrinks", "1", "-f", "json")
    assert (refused.code, refused.json["error"]["reason"]) == (4, "LIVE_VCPU_SHRINK")


def test_ga_01_agent_absent_is_unconfirmed_exit_7(hvsvc: HvsvcProcess, domains: GuestDomains) -> None:
    domains.boot(name="no-channel", agent=False)
    grown = hvsvc.hvctl("scale", "no-channel", "--vcpus", "4", "-f", "json")
    assert grown.code == 7, grown
    assert grown.json["outcome"] == "UNCONFIRMED"
    assert grown.json["after"]["vcpus"]["current_live"] == 4
    assert grown.json["reasons"][0]["metadata"]["agent"] == "AGENT_NOT_CONFIGURED"
    domains.boot(name="nobody-listens", words="nocpuauto noga")
    grown = hvsvc.hvctl("scale", "nobody-listens", "--vcpus", "4", "-f", "json")
    assert grown.code == 7, grown
    assert grown.json["reasons"][0]["metadata"]["agent"] == "AGENT_NOT_CONNECTED"


def test_mem_02_balloon_missing_is_refused_before_any_change_exit_4(
    hvsvc: HvsvcProcess, domains: GuestDomains, private_libvirtd: PrivateLibvirtd
) -> None:
    domains.boot(name="no-balloon", balloon="none", max_memory_mib=1024, memory_mib=512)
    before = private_libvirtd.virsh("dumpxml", "no-balloon", "--inactive")
    for words in (
        ("scale", "no-balloon", "--vcpus", "4", "--memory", "768MiB"),
        ("setmem", "no-balloon", "768MiB"),
    ):
        refused = hvsvc.hvctl(*words, "-f", "json")
        assert refused.code == 4, refused
        assert refused.json["error"]["reason"] == "NO_BALLOON"
    assert private_libvirtd.virsh("dumpxml", "no-balloon", "--inactive") == before
    assert hvsvc.hvctl_json("vcpucount", "no-balloon")["current_live"] == 2


def test_mem_01_without_a_balloon_driver_nothing_is_taken_from_the_guest(
    hvsvc: HvsvcProcess, domains: GuestDomains
) -> None:
    domain = domains.boot(name="no-driver", words="nocpuauto noballoon")
    refused = hvsvc.hvctl("setmem", "no-driver", "768MiB", "--live", "-f", "json")
    assert refused.code == 4, refused
    assert refused.json["error"]["reason"] == "MEMORY_USE_UNKNOWN"
    assert domain.memoryStats()["actual"] == GIB_KIB, "libvirt's setmem would have said rc 0 and done nothing"


def test_cpu_02_a_guest_that_never_sees_its_cpus_is_partial(
    hvsvc: HvsvcProcess, domains: GuestDomains
) -> None:
    domains.boot(name="blind", words="nocpuauto nr_cpus=2")
    grown = hvsvc.hvctl("setvcpus", "blind", "4", "-f", "json")
    assert grown.code == 7, grown
    assert grown.json["outcome"] == "PARTIAL"
    reason = grown.json["reasons"][0]
    assert reason["reason"] == "GUEST_CPUS_OFFLINE"
    assert (reason["metadata"]["currentLive"], reason["metadata"]["guestOnline"]) == ("4", "2")


def test_cpu_04_a_guest_that_refuses_to_online_is_partial(hvsvc: HvsvcProcess, domains: GuestDomains) -> None:
    domains.boot(
        name="refuses",
        words="nocpuauto nosmt=force",
        cpu_model="Nehalem",
        topology={"sockets": 1, "cores": 4, "threads": 2},
    )
    asked = hvsvc.hvctl("setvcpus", "refuses", "2", "--online", "all", "-f", "json")
    assert asked.code == 7, asked
    assert asked.json["outcome"] == "PARTIAL"
    assert asked.json["reasons"][0]["metadata"]["offlineIds"] == "1"
    assert "refused" in asked.json["steps"][-1]["evidence"]


def test_rb_01_a_guest_that_libvirt_restarts_in_its_process_is_left_alone(
    hvsvc: HvsvcProcess, domains: GuestDomains
) -> None:
    def restart(xml: str) -> str:
        return xml.replace("</vcpu>", "</vcpu><on_poweroff>restart</on_poweroff>", 1)

    domain = domains.boot(name="restarts", edit=restart, **SMALL)  # type: ignore[arg-type]
    booted = domains.read_console(domain).count("BOOTED")
    for words in (("reboot", "restarts"), ("raise", "restarts", "--max-vcpus", "8", "--reboot", "soft")):
        answer = hvsvc.hvctl(*words, "-f", "json")
        assert (answer.code, answer.json["error"]["reason"]) == (4, "UNSUPPORTED_DEFINITION"), answer
    assert hvsvc.hvctl_json("vcpucount", "restarts")["maximum_config"] == 2
    assert is_agent_up(domain)
    assert domains.read_console(domain).count("BOOTED") == booted
    domain.setLifecycleAction(
        libvirt.VIR_DOMAIN_LIFECYCLE_POWEROFF, libvirt.VIR_DOMAIN_LIFECYCLE_ACTION_DESTROY, 3
    )
    assert hvsvc.hvctl_json("reboot", "restarts")["outcome"] == "COMPLETE"


def test_rb_04_a_plain_guest_that_ignores_shutdown(hvsvc: HvsvcProcess, domains: GuestDomains) -> None:
    domain = domains.boot(name="ignores", words="nocpuauto noacpid", **SMALL)  # type: ignore[arg-type]
    answer = hvsvc.hvctl("raise", "ignores", "--max-vcpus", "8", "--reboot", "soft", "-f", "json")
    assert answer.code == 4, answer
    assert answer.json["error"]["reason"] == "SHUTDOWN_IGNORED"
    assert domain.isActive()
    found = hvsvc.hvctl_json("dominfo", "ignores")
    assert found["vcpus"]["maximum_live"] == 2
    assert found["pending_reboot"] is True


def test_mem_10_a_ceiling_that_cannot_start_is_taken_back(
    private_libvirtd: PrivateLibvirtd, domains: GuestDomains
) -> None:
    domains.boot(name="too-much", **SMALL)  # type: ignore[arg-type]
    with HvsvcProcess(private_libvirtd.uri, "[limits]\nmemory_overcommit_ratio = 100\n") as bold:
        answer = bold.hvctl("raise", "too-much", "--max-memory", "2000GiB", "--reboot", "soft", "-f", "json")
        assert answer.code == 4, answer
        assert answer.json["error"]["reason"] == "START_FAILED"
        found = bold.hvctl_json("dominfo", "too-much")
    assert found["state"] == "RUNNING"
    assert found["memory"]["maximum_config_kib"] == found["memory"]["maximum_live_kib"] == 512 * 1024


def test_api_02_two_callers_at_once_one_gets_aborted(hvsvc: HvsvcProcess, domains: GuestDomains) -> None:
    # a guest that never shows its CPUs is waited for, for seconds: so the second one comes while the first one runs
    domains.boot(name="contested", words="nocpuauto nr_cpus=2")
    first = hvsvc.hvctl_start("scale", "contested", "--vcpus", "4", "-f", "json")
    second = hvsvc.hvctl_start("scale", "contested", "--vcpus", "6", "-f", "json")
    for process in (first, second):
        process.wait(60)
    codes = sorted((first.returncode, second.returncode))
    assert codes == [5, 7], [process.communicate() for process in (first, second)]
    won, lost = (4, second) if first.returncode == 7 else (6, first)
    assert json.loads(lost.communicate()[0])["error"]["reason"] == "DOMAIN_BUSY"
    counts = hvsvc.hvctl_json("vcpucount", "contested")
    assert (counts["current_live"], counts["current_config"]) == (won, won)


def test_api_02_an_outside_edit_between_plan_and_define_is_not_lost(
    hvsvc: HvsvcProcess, domains: GuestDomains, private_libvirtd: PrivateLibvirtd
) -> None:
    domains.define(name="edited", vcpus=2, max_vcpus=4)
    etag = hvsvc.hvctl_json("plan", "edited", "--max-vcpus", "8")["etag"]
    private_libvirtd.virsh("desc", "edited", "--config", "an operator was here")
    answer = hvsvc.hvctl("raise", "edited", "--max-vcpus", "8", "--etag", etag, "-f", "json")
    assert answer.code == 5, answer
    assert answer.json["error"]["reason"] == "DEFINITION_CHANGED"
    xml = private_libvirtd.virsh("dumpxml", "edited", "--inactive")
    assert "an operator was here" in xml
    assert ">4</vcpu>" in xml
