"""What about a domain or its server forbids a change, whatever the target."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hvsvc.domain.facts import DomainState
from hvsvc.domain.obstacles import (
    check_cpuset,
    check_editable,
    check_reboot,
    check_server,
    find_tied_resources,
    runs_elsewhere,
)
from hvsvc.domain.plan import plan_change
from hvsvc.domain.plan_allocation import check_settled
from hvsvc.domain.read_definition import parse_definition
from hvsvc.domain.target import Affect, Method, RebootMode, Target
from hvsvc.domain.world import World
from hvsvc.errors import AbortedError, HvsvcError, Reason
from tests.fakes.worlds import GIB, HOST, MIB, SERVER, domain_xml, facts, world

TWO_CELLS = "<numa><cell id='0' cpus='0-1' memory='262144'/><cell id='1' cpus='2-3' memory='262144'/></numa>"
ONE_CELL = "<numa><cell id='0' cpus='0-3' memory='524288' unit='KiB'/></numa>"
FOUR: dict[str, Any] = {"maximum": 4, "current": 4}


def tied(**xml: Any) -> list[HvsvcError]:
    return list(find_tied_resources(parse_definition(domain_xml(**{**FOUR, **xml}))))


def test_numa_01_several_cells_are_refused_and_named() -> None:
    (error,) = tied(cpu=TWO_CELLS)
    assert error.reason is Reason.SEVERAL_NUMA_CELLS
    assert error.metadata == {"cells": "cell 0: CPUs 0-1; cell 1: CPUs 2-3"}
    assert tied(cpu=ONE_CELL) == []


@pytest.mark.parametrize(
    "target",
    [
        Target(Method.RAISE_CEILING, max_vcpus=8),
        Target(Method.RAISE_CEILING, max_memory_kib=GIB),
        Target(Method.RAISE_CEILING, max_vcpus=2, boot_vcpus=2),
        Target(Method.SET_VCPUS, vcpus=3, affect=Affect.CONFIG),
        Target(Method.SET_MEMORY, memory_kib=400 * MIB, affect=Affect.CONFIG),
        Target(Method.SCALE_DOMAIN, vcpus=8, reboot=RebootMode.SOFT),
    ],
)
def test_numa_02_a_change_of_several_cells_either_way_is_a_clear_refusal(target: Target) -> None:
    plan = plan_change(world(facts({**FOUR, "cpu": TWO_CELLS})), target)
    assert plan.blockers[0].reason is Reason.SEVERAL_NUMA_CELLS
    assert plan.blockers[0].status == "FAILED_PRECONDITION"
    assert "cell 1: CPUs 2-3" in plan.blockers[0].message
    assert [error.reason for error in plan.blockers].count(Reason.SEVERAL_NUMA_CELLS) == 1


def test_numa_02_a_single_cell_follows_the_maximum() -> None:
    plan = plan_change(world(facts({**FOUR, "cpu": ONE_CELL})), Target(Method.RAISE_CEILING, max_vcpus=8))
    assert plan.blockers == ()
    xml = plan.steps[0].xml
    assert xml is not None
    assert [cell.cpus for cell in parse_definition(xml).numa_cells] == ["0-7"]


def test_numa_05_pinned_domains_are_refused_with_their_pins() -> None:
    pins = "<cputune><vcpupin vcpu='0' cpuset='1'/><vcpupin vcpu='3' cpuset='2-3'/></cputune>"
    (error,) = tied(extra=pins)
    assert error.reason is Reason.PINNED
    assert error.metadata == {"pins": "0 to 1, 3 to 2-3"}
    (tuned,) = tied(extra="<cputune><vcpusched vcpus='2-3' scheduler='fifo' priority='1'/></cputune>")
    assert (tuned.reason, tuned.metadata) == (Reason.PINNED, {"tunings": "vcpusched 2-3"})
    bound = "<numatune><memory mode='strict' nodeset='0'/></numatune>"
    (memory,) = tied(extra=bound)
    assert (memory.reason, memory.metadata) == (Reason.PINNED, {"tunings": "memory strict 0"})


@pytest.mark.parametrize(
    ("xml", "reason"),
    [
        ({"extra": "<memoryBacking><hugepages/></memoryBacking>"}, Reason.HUGEPAGES),
        ({"extra": "<memoryBacking><locked/></memoryBacking>"}, Reason.MEMORY_LOCKED),
        (
            {"devices": "<hostdev mode='subsystem' type='pci'><source/></hostdev>"},
            Reason.MEMORY_LOCKED,
        ),
        ({"extra": "<launchSecurity type='sev'/>"}, Reason.MEMORY_LOCKED),
        ({"devices": "<memory model='dimm'><target><size>1</size></target></memory>"}, Reason.MEMORY_DEVICES),
    ],
)
def test_tied_memory_is_refused(xml: dict[str, str], reason: Reason) -> None:
    (error,) = tied(**xml)
    assert error.reason is reason
    assert ";" in error.message


def test_a_tied_domain_may_still_be_rebooted() -> None:
    there = world(facts({**FOUR, "cpu": TWO_CELLS}))
    assert plan_change(there, Target(Method.REBOOT_DOMAIN)).blockers == ()


@pytest.mark.parametrize(
    ("cpuset", "missing"), [("0-7", ""), ("", ""), ("2,^2,3", ""), ("6-9", "8-9"), ("32-35", "32-35")]
)
def test_numa_04_vcpus_to_come_need_every_cpu_of_their_set(cpuset: str, missing: str) -> None:
    definition = parse_definition(domain_xml(cpuset=cpuset))
    errors = list(check_cpuset(definition, HOST))
    assert [error.metadata["missing"] for error in errors] == ([missing] if missing else [])
    assert all(error.reason is Reason.CPUSET_NOT_ON_HOST for error in errors)


def test_numa_04_only_a_growth_is_refused_for_it() -> None:
    there = world(facts({"maximum": 8, "current": 2, "cpuset": "100-103"}))
    grow = Target(Method.SET_VCPUS, vcpus=4)
    assert [e.reason for e in plan_change(there, grow).blockers] == [Reason.CPUSET_NOT_ON_HOST]
    assert plan_change(there, replace(grow, affect=Affect.CONFIG)).blockers == ()
    small = world(facts({"cpuset": "100-103"}))
    scale = Target(Method.SCALE_DOMAIN, vcpus=8, reboot=RebootMode.SOFT)
    assert Reason.CPUSET_NOT_ON_HOST in [error.reason for error in plan_change(small, scale).blockers]


def test_xml_13_a_transient_domain_is_neither_edited_nor_rebooted() -> None:
    domain = replace(facts(), config=None, config_xml=None, persistent=False)
    assert [error.reason for error in check_editable(domain)] == [Reason.TRANSIENT_DOMAIN]
    reboot = plan_change(world(domain), Target(Method.REBOOT_DOMAIN))
    assert [error.reason for error in reboot.blockers] == [Reason.TRANSIENT_DOMAIN]
    assert "vanish" in reboot.blockers[0].message


def test_a_saved_image_is_left_as_its_owner_says() -> None:
    saved = facts(running=False, managed_save=True)
    (plain,) = check_editable(saved)
    assert "managedsave-remove" in plain.message
    (nova,) = check_editable(facts({"nova": True}, running=False, managed_save=True))
    assert plain.reason is nova.reason is Reason.MANAGED_SAVE_IMAGE
    assert "openstack server resume" in nova.message
    assert "managedsave-remove" not in nova.message
    assert list(check_editable(facts())) == []


def of_server(there: World) -> list[Reason]:
    return [error.reason for error in check_server(there)]


def test_a_server_nova_works_on_is_busy_whatever_its_status() -> None:
    there = world(facts({"nova": True}), server=replace(SERVER, task_state="rebooting", status="REBOOT"))
    (error,) = check_server(there)
    assert isinstance(error, AbortedError)
    assert error.metadata == {"taskState": "rebooting"}


def test_a_task_that_stayed_on_a_server_in_error_is_not_waited_for() -> None:
    there = world(
        facts({"nova": True}), server=replace(SERVER, task_state="resize_migrating", status="ERROR")
    )
    (error,) = check_server(there)
    assert (error.reason, error.metadata) == (Reason.SERVER_NOT_ACTIVE, {"status": "ERROR"})


@pytest.mark.parametrize(
    ("there", "here", "elsewhere"),
    [
        ("cmp2", "cmp1", True),
        ("cmp2.example.org", "cmp1.example.org", True),
        ("cmp1.example.org", "cmp1.example.org", False),
        # whether the resolver adds the domain is no other host
        ("cmp1.example.org", "CMP1", False),
        ("cmp1", "cmp1.example.org", False),
        # a member's credential is not told; and libvirt may not be
        (None, "cmp1", False),
        ("", "cmp1", False),
        ("cmp2", "", False),
    ],
)
def test_a_server_that_nova_runs_on_another_host_is_left_alone(
    there: str | None, here: str, elsewhere: bool
) -> None:
    # after an evacuation the old host may still run the domain, and Nova would reboot the new one
    found = world(
        facts({"nova": True}),
        server=replace(SERVER, hypervisor_hostname=there),
        host=replace(HOST, hostname=here),
    )
    assert of_server(found) == ([Reason.SERVER_ELSEWHERE] if elsewhere else [])
    assert [error.reason for error in check_settled(found)] == of_server(found)
    assert runs_elsewhere(found) is elsewhere


@pytest.mark.parametrize(
    ("status", "reasons"),
    [
        ("ACTIVE", []),
        ("PAUSED", []),
        ("SHUTOFF", [Reason.NOVA_START_DISCARDS]),
        ("RESCUE", [Reason.SERVER_NOT_ACTIVE]),
        ("ERROR", [Reason.SERVER_NOT_ACTIVE]),
        ("VERIFY_RESIZE", [Reason.SERVER_NOT_ACTIVE]),
    ],
)
def test_statuses_in_which_an_edit_stays(status: str, reasons: list[Reason]) -> None:
    assert of_server(world(facts({"nova": True}), server=replace(SERVER, status=status))) == reasons


def test_an_edit_of_a_server_that_is_off_would_be_lost_even_where_nova_cannot_be_asked() -> None:
    off = facts({"nova": True}, running=False)
    assert of_server(world(off, server=None)) == [Reason.NOVA_START_DISCARDS]
    assert of_server(world(off)) == [Reason.NOVA_START_DISCARDS]
    suspended = world(replace(off, managed_save=True), server=replace(SERVER, status="SUSPENDED"))
    assert of_server(suspended) == []
    assert of_server(world(facts(running=False))) == []
    assert of_server(world(facts({"nova": True}), server=None)) == []


def of_reboot(domain: Any, **changes: Any) -> list[Reason]:
    return [error.reason for error in check_reboot(world(domain, **changes))]


@pytest.mark.parametrize(
    ("arch", "acpi", "agent", "reasons"),
    [
        ("x86_64", True, None, []),
        ("x86_64", False, "connected", []),
        ("x86_64", False, "disconnected", [Reason.NO_ACPI]),
        ("i686", False, None, [Reason.NO_ACPI]),
        ("s390x", False, None, []),
        ("ppc64le", False, None, []),
    ],
)
def test_rb_04_a_guest_that_cannot_be_asked_to_shut_down(
    arch: str, acpi: bool, agent: str | None, reasons: list[Reason]
) -> None:
    assert of_reboot(facts({"arch": arch, "acpi": acpi, "agent": agent})) == reasons


def test_rb_01_a_guest_that_is_restarted_in_its_process_is_not_asked_to_shut_down() -> None:
    extra = "<on_poweroff>{}</on_poweroff>"
    restarts = facts({"extra": extra.format("restart")})
    refused = list(check_reboot(world(restarts)))
    assert [error.reason for error in refused] == [Reason.UNSUPPORTED_DEFINITION]
    assert "set-lifecycle-action" in refused[0].message
    stored_only = facts({"extra": extra.format("restart")}, live={})
    for domain in (stored_only, facts({"extra": extra.format("destroy")}), facts()):
        assert list(check_reboot(world(domain))) == [], "what runs decides"


@pytest.mark.parametrize(
    "state", [state for state in DomainState if state not in (DomainState.RUNNING, DomainState.IDLE)]
)
def test_rb_06_only_a_running_domain_is_rebooted(state: DomainState) -> None:
    (error,) = check_reboot(world(facts(state=state)))
    assert error.reason is Reason.DOMAIN_NOT_RUNNING
    assert error.metadata == {"state": state.value}


def test_a_nova_domain_is_rebooted_through_nova_or_not_at_all() -> None:
    domain = facts({"nova": True})
    assert of_reboot(domain) == []
    assert of_reboot(domain, server=None) == [Reason.NOVA_NOT_CONFIGURED]
    assert of_reboot(domain, server=replace(SERVER, locked=True)) == [Reason.SERVER_LOCKED]
    assert of_reboot(domain, server=replace(SERVER, status="PAUSED")) == [Reason.SERVER_NOT_ACTIVE]
    only_live = facts({}, live={"nova": True})
    assert of_reboot(only_live, server=None) == [Reason.NOVA_NOT_CONFIGURED]


@pytest.mark.parametrize(
    ("host_status", "refused"),
    [(None, False), ("", False), ("UP", False), ("MAINTENANCE", False), ("UNKNOWN", True), ("DOWN", True)],
)
def test_a_reboot_that_nova_would_keep_for_later_is_refused(host_status: str | None, refused: bool) -> None:
    away = world(facts({"nova": True}), server=replace(SERVER, host_status=host_status))
    found = list(check_reboot(away))
    assert [error.reason for error in found] == [Reason.NOVA_UNAVAILABLE] * refused
    assert [error.metadata for error in found] == [{"hostStatus": host_status}] * refused
    assert list(check_server(away)) == [], "what needs no reboot goes on"
