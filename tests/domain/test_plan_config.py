"""Storing current values: what the next start gives."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hvsvc.domain.plan_ceiling import Stored
from hvsvc.domain.plan_config import plan_stored_current
from hvsvc.domain.read_definition import parse_definition
from hvsvc.domain.steps import Effect, Part, StepKind
from hvsvc.domain.target import Affect, Method, Target
from hvsvc.errors import Reason
from tests.fakes.worlds import GIB, MIB, domain_xml, facts, world

ROOMY: dict[str, Any] = {"maximum": 8, "current": 2, "memory_kib": 2 * GIB, "current_memory_kib": 512 * MIB}
GROW = Target(Method.SCALE_DOMAIN, vcpus=4, memory_kib=GIB)


def stored(target: Target, *, running: bool = True, live_too: bool = True, **xml: Any) -> Part:
    numbers = {**ROOMY, **xml}
    text = domain_xml(**numbers)
    there = world(facts(numbers, running=running))
    return plan_stored_current(there, target, Stored(text, parse_definition(text)), live_too=live_too)


def test_cpu_10_what_grew_live_is_stored_too() -> None:
    (step,) = stored(GROW).steps
    assert (step.kind, step.effect) == (StepKind.DEFINE_CONFIG, Effect.LIVE)
    assert step.why == "stored vCPUs 2 to 4 and memory 512 MiB to 1 GiB, so that the next start keeps it"
    assert step.xml is not None
    after = parse_definition(step.xml)
    assert (after.maximum_vcpus, after.current_vcpus) == (8, 4)
    assert (after.memory_kib, after.current_memory_kib) == (2 * GIB, GIB)


def test_cpu_10_a_value_stored_alone_takes_effect_at_the_next_start() -> None:
    config_only = Target(Method.SET_VCPUS, vcpus=4, affect=Affect.CONFIG)
    (step,) = stored(config_only, live_too=False).steps
    assert step.effect is Effect.REBOOT
    assert step.why == "stored vCPUs 2 to 4"
    (off,) = stored(config_only, running=False, live_too=False).steps
    assert off.effect is Effect.LIVE
    assert stored(replace(config_only, affect=Affect.LIVE)) == Part()


def test_the_stored_ceiling_bounds_it() -> None:
    found = stored(Target(Method.SCALE_DOMAIN, vcpus=9, memory_kib=3 * GIB))
    assert [error.reason for error in found.blockers] == [Reason.ABOVE_CONFIG_CEILING] * 2
    assert found.blockers[0].metadata == {"asked": "9 vCPUs", "ceiling": "8"}
    assert found.blockers[1].metadata == {"asked": "3 GiB", "ceiling": "2 GiB"}
    assert [step.xml for step in found.steps] == [None]


@pytest.mark.parametrize("affect", [Affect.CONFIG, Affect.LIVE_AND_CONFIG])
def test_mem_08_all_of_a_maximum_that_is_no_whole_mib_can_be_asked(affect: Affect) -> None:
    target = Target(Method.SET_MEMORY, memory_kib=976896, affect=affect)
    found = stored(target, memory_kib=976563, current_memory_kib=512 * MIB)
    assert found.blockers == ()
    xml = found.steps[0].xml
    assert xml is not None
    assert parse_definition(xml).current_memory_kib == 976563
    assert stored(target, memory_kib=976563, current_memory_kib=976563) == Part()
    above = stored(replace(target, memory_kib=976896 + MIB), memory_kib=976563)
    assert [error.reason for error in above.blockers] == [Reason.ABOVE_CONFIG_CEILING]


def test_xml_14_what_is_stored_already_is_no_step() -> None:
    assert stored(Target(Method.SCALE_DOMAIN, vcpus=2, memory_kib=512 * MIB)) == Part()


def test_xml_13_a_transient_domain_has_nothing_stored() -> None:
    transient = replace(facts(ROOMY), config=None, config_xml=None, persistent=False)
    found = plan_stored_current(world(transient), GROW, None, live_too=True)
    assert [error.reason for error in found.blockers] == [Reason.TRANSIENT_DOMAIN]
    assert found.steps == ()


def test_tied_domains_and_bad_counts_are_refused() -> None:
    pinned = stored(GROW, extra="<cputune><vcpupin vcpu='0' cpuset='1'/></cputune>")
    assert [error.reason for error in pinned.blockers] == [Reason.PINNED]
    zero = stored(Target(Method.SET_VCPUS, vcpus=0, affect=Affect.CONFIG))
    assert [error.reason for error in zero.blockers] == [Reason.INVALID_VALUE]


def test_cpu_09_no_stored_current_below_the_maximum_without_hotplug() -> None:
    lower = Target(Method.SET_VCPUS, vcpus=1, affect=Affect.CONFIG)
    found = stored(lower, arch="aarch64", current=8)
    assert [error.reason for error in found.blockers] == [Reason.NO_VCPU_HOTPLUG]
