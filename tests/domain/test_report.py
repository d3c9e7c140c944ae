"""What a reader of a domain should know beyond its numbers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hvsvc.domain.facts import Balloon, DomainFacts
from hvsvc.domain.outcome import Note
from hvsvc.domain.report import Report, describe
from hvsvc.errors import GuestAgentError, Reason
from tests.fakes.worlds import GIB, MIB, facts, guest_cpus

ROOMY: dict[str, Any] = {"maximum": 8, "current": 2, "memory_kib": 2 * GIB, "current_memory_kib": GIB}


def conditions(domain: DomainFacts) -> list[Reason]:
    return [note.reason for note in describe(domain).conditions]


def test_a_domain_in_order_has_nothing_to_tell() -> None:
    assert describe(facts(ROOMY)) == Report(False, (), ())
    assert describe(facts(ROOMY, running=False)) == Report(False, (), ())


def test_rb_09_a_pending_reboot_names_both_ceilings() -> None:
    report = describe(facts({**ROOMY, "maximum": 16}, live=ROOMY))
    assert report.pending_reboot
    assert report.pending_reboot_reasons == (
        "maximum vCPUs 8, stored 16",
        "topology 8x1x1x1x1, stored 16x1x1x1x1",
    )
    off = describe(facts({**ROOMY, "maximum": 16}, running=False))
    assert not off.pending_reboot


def test_cpu_10_what_the_next_start_will_not_give_is_told() -> None:
    grown = facts(ROOMY, live={**ROOMY, "current": 8, "current_memory_kib": 2 * GIB})
    (note,) = describe(grown).conditions
    assert note.reason is Reason.CONFIG_LIVE_DIFFER
    assert "vCPUs config 2, live 8" in note.message
    assert "memory config 1 GiB, live 2 GiB" in note.message


def test_rb_07_a_balloon_that_has_not_settled_is_told_by_what_the_guest_has() -> None:
    (note,) = describe(facts(ROOMY, balloon=Balloon(2 * GIB))).conditions
    assert note.reason is Reason.CONFIG_LIVE_DIFFER
    assert "memory config 1 GiB, live 2 GiB" in note.message


def test_xml_13_a_transient_domain_is_told_as_one() -> None:
    domain = replace(facts(ROOMY), config=None, config_xml=None, persistent=False)
    report = describe(domain)
    assert not report.pending_reboot
    assert [note.reason for note in report.conditions] == [Reason.TRANSIENT_DOMAIN]


def test_ga_01_a_missing_channel_and_a_missing_agent_are_two_things() -> None:
    assert conditions(facts({**ROOMY, "agent": None})) == [Reason.AGENT_NOT_CONFIGURED]
    assert conditions(facts({**ROOMY, "agent": "disconnected"})) == [Reason.AGENT_NOT_CONNECTED]


@pytest.mark.parametrize(
    "reason",
    [
        Reason.AGENT_COMMAND_MISSING,  # GA-02
        Reason.AGENT_REPLY_INVALID,  # GA-03
        Reason.AGENT_FROZEN,  # GA-06
        Reason.AGENT_SILENT,  # GA-07
    ],
)
def test_ga_02_ga_03_ga_06_ga_07_what_the_agent_answered_is_told_as_it_is(reason: Reason) -> None:
    error = GuestAgentError(reason, "guest-get-vcpus; look at the agent", {"command": "guest-get-vcpus"})
    found = facts(ROOMY, guest=None, guest_error=error)
    assert describe(found).conditions == (
        Note(reason, "guest-get-vcpus; look at the agent", {"command": "guest-get-vcpus"}),
    )


def test_cpu_02_offline_cpus_are_told_with_the_three_numbers() -> None:
    (note,) = describe(facts({**ROOMY, "current": 4}, guest=guest_cpus(4, 2))).conditions
    assert note.reason is Reason.GUEST_CPUS_OFFLINE
    assert "has 4 vCPUs, the guest uses 2 of the 4" in note.message


@pytest.mark.parametrize("model", ["none", ""])
def test_mem_02_a_missing_balloon_is_told(model: str) -> None:
    numbers = {**ROOMY, "balloon": model, "current_memory_kib": 2 * GIB}
    assert conditions(facts(numbers, balloon=Balloon())) == [Reason.NO_BALLOON]


def test_numa_05_what_ties_the_domain_is_told_of_both_definitions_once() -> None:
    pins = {**ROOMY, "extra": "<cputune><vcpupin vcpu='0' cpuset='1'/></cputune>"}
    assert conditions(facts(pins)) == [Reason.PINNED]
    assert conditions(facts(pins, live=ROOMY)) == [Reason.PINNED]
    assert conditions(facts(ROOMY, live=pins)) == [Reason.PINNED]


def test_a_saved_image_is_told() -> None:
    assert conditions(facts(ROOMY, running=False, managed_save=True)) == [Reason.MANAGED_SAVE_IMAGE]


def test_mem_08_rounding_is_no_difference() -> None:
    odd = {"memory_kib": 976563, "current_memory_kib": 976563}
    assert describe(facts(odd, live={"memory_kib": 954 * MIB})) == Report(False, (), ())
