"""The steps that grow a running domain: memory before vCPUs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hvsvc.domain.facts import Balloon
from hvsvc.domain.plan_ceiling import Stored
from hvsvc.domain.plan_live import plan_live
from hvsvc.domain.read_definition import parse_definition
from hvsvc.domain.steps import Effect, Part, StepKind
from hvsvc.domain.target import Affect, GuestCpuMode, Method, Target
from hvsvc.errors import GuestAgentError, Reason
from tests.fakes.worlds import GIB, MIB, domain_xml, facts, guest_cpus, world

ROOMY: dict[str, Any] = {"maximum": 8, "current": 2, "memory_kib": 2 * GIB, "current_memory_kib": 512 * MIB}
GROW = Target(Method.SCALE_DOMAIN, vcpus=4, memory_kib=GIB)


def steps(part: Part) -> list[tuple[StepKind, int | None]]:
    assert all(step.effect is Effect.LIVE for step in part.steps)
    return [(step.kind, step.value) for step in part.steps]


def test_api_04_memory_grows_before_vcpus() -> None:
    part = plan_live(world(facts(ROOMY)), GROW, None)
    assert part.blockers == ()
    assert steps(part) == [
        (StepKind.SET_MEMORY_LIVE, GIB),
        (StepKind.SET_VCPUS_LIVE, 4),
        (StepKind.ONLINE_GUEST_CPUS, None),
    ]
    assert [step.why for step in part.steps[:2]] == ["memory 512 MiB to 1 GiB", "vCPUs 2 to 4"]


@pytest.mark.parametrize("method", [Method.RAISE_CEILING, Method.REBOOT_DOMAIN])
def test_raising_and_rebooting_grow_nothing(method: Method) -> None:
    assert plan_live(world(facts(ROOMY)), replace(GROW, method=method), None) == Part()
    assert plan_live(world(facts(ROOMY)), replace(GROW, affect=Affect.CONFIG), None) == Part()


def test_api_05_nothing_to_do_is_no_step_and_no_warning() -> None:
    there = world(facts({**ROOMY, "current": 3, "topology": "2x4x1"}))
    assert plan_live(there, Target(Method.SET_VCPUS, vcpus=3), None) == Part()
    assert plan_live(there, Target(Method.SET_MEMORY, memory_kib=512 * MIB), None) == Part()


def test_rb_07_the_balloon_says_where_the_memory_is_not_the_definition() -> None:
    inflating = facts(ROOMY, balloon=Balloon(2 * GIB, 2 * GIB, GIB + GIB // 2, 1000))
    (step,) = plan_live(world(inflating), Target(Method.SET_MEMORY, memory_kib=GIB), None).steps
    assert step.why == "memory 2 GiB to 1 GiB"


@pytest.mark.parametrize(
    ("agent", "balloon", "stored_kib"),
    [
        ("disconnected", Balloon(2 * GIB), 512 * MIB),
        ("disconnected", Balloon(2 * GIB), 2 * GIB),
        ("connected", Balloon(2 * GIB), 512 * MIB),
        ("connected", Balloon(2 * GIB, 2 * GIB, GIB, last_update_s=5), 512 * MIB),
    ],
)
def test_rb_07_memory_that_the_guests_driver_may_still_take_away_is_ordered_to_stay(
    agent: str, balloon: Balloon, stored_kib: int
) -> None:
    numbers = {**ROOMY, "agent": agent, "current_memory_kib": stored_kib}
    booting = world(facts(numbers, balloon=balloon))
    part = plan_live(booting, Target(Method.SET_MEMORY, memory_kib=2 * GIB), None)
    assert steps(part) == [(StepKind.SET_MEMORY_LIVE, 2 * GIB)]
    assert part.blockers == ()


def test_api_05_memory_that_stays_by_itself_needs_no_order() -> None:
    full = {**ROOMY, "current_memory_kib": 2 * GIB}
    asked = Target(Method.SET_MEMORY, memory_kib=2 * GIB)
    assert plan_live(world(facts(full, balloon=Balloon(2 * GIB))), asked, None) == Part()
    bare = facts({**full, "balloon": "none", "agent": None}, balloon=Balloon())
    assert plan_live(world(bare), asked, None) == Part()


def test_numa_07_a_split_core_is_warned_of_now_and_in_a_forecast() -> None:
    numbers = {**ROOMY, "topology": "4x1x2"}
    odd = Target(Method.SCALE_DOMAIN, vcpus=3)
    now = plan_live(world(facts(numbers)), odd, None)
    text = domain_xml(**numbers)
    later = plan_live(world(facts()), odd, Stored(text, parse_definition(text)))
    for part in (now, later):
        assert [note.reason for note in part.warnings] == [Reason.SPLIT_CORE]
        assert part.blockers == ()


def test_cpu_13_the_count_is_that_of_enabled_vcpus_not_of_the_list() -> None:
    listed = "".join(
        f"<vcpu id='{n}' enabled='{'yes' if n < 3 else 'no'}' hotpluggable='{'no' if n < 3 else 'yes'}'/>"
        for n in range(8)
    )
    there = world(facts({**ROOMY, "current": 3, "extra": f"<vcpus>{listed}</vcpus>"}))
    assert plan_live(there, Target(Method.SET_VCPUS, vcpus=3), None).steps == ()
    part = plan_live(there, Target(Method.SET_VCPUS, vcpus=4), None)
    assert part.steps[0].why == "vCPUs 3 to 4"


def test_ga_01_an_absent_agent_does_not_forbid_the_hosts_part() -> None:
    for agent in (None, "disconnected"):
        silent = GuestAgentError(Reason.AGENT_NOT_CONNECTED, "nobody listens")
        there = world(facts({**ROOMY, "agent": agent}, guest=None, guest_error=silent))
        part = plan_live(there, Target(Method.SET_VCPUS, vcpus=4), None)
        assert part.blockers == ()
        assert (StepKind.SET_VCPUS_LIVE, 4) in steps(part)


def test_online_all_is_a_step_where_something_is_offline_or_unknown() -> None:
    every = Target(Method.SET_VCPUS, vcpus=2, guest_cpus=GuestCpuMode.ALL)
    assert plan_live(world(facts(ROOMY)), every, None).steps == ()
    for guest in (guest_cpus(2, 1), None):
        part = plan_live(world(facts(ROOMY, guest=guest)), every, None)
        assert steps(part) == [(StepKind.ONLINE_GUEST_CPUS, None)]
    offline = world(facts(ROOMY, guest=guest_cpus(2, 1)))
    assert plan_live(offline, replace(every, guest_cpus=GuestCpuMode.NEW), None).steps == ()


def test_a_forecast_starts_from_the_stored_values() -> None:
    text = domain_xml(**ROOMY)
    part = plan_live(world(facts()), GROW, Stored(text, parse_definition(text)))
    assert steps(part) == [
        (StepKind.SET_MEMORY_LIVE, GIB),
        (StepKind.SET_VCPUS_LIVE, 4),
        (StepKind.ONLINE_GUEST_CPUS, None),
    ]
    grown = domain_xml(**{**ROOMY, "current": 4, "current_memory_kib": GIB})
    assert plan_live(world(facts()), GROW, Stored(grown, parse_definition(grown))) == Part()
