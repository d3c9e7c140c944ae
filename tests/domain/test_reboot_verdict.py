"""What a reboot really did, by what libvirt shows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hvsvc.domain.facts import DomainFacts, DomainState, LifecycleEvent
from hvsvc.domain.reboot_verdict import judge_reboot, judge_since, was_regenerated
from hvsvc.domain.topology import Topology
from hvsvc.errors import HvsvcError, Reason
from tests.fakes.worlds import GIB, MIB, facts

RAISED: dict[str, Any] = {"maximum": 8, "current": 2, "memory_kib": 2 * GIB, "nova": True}
FLAVOR: dict[str, Any] = {"maximum": 2, "current": 2, "memory_kib": 512 * MIB, "nova": True}
#: as measured on a real Nova
SOFT = (
    LifecycleEvent.SHUTDOWN,
    LifecycleEvent.STOPPED_SHUTDOWN,
    LifecycleEvent.RESUMED,
    LifecycleEvent.STARTED,
)
HARD = (
    LifecycleEvent.SHUTDOWN,
    LifecycleEvent.STOPPED_DESTROYED,
    LifecycleEvent.UNDEFINED,
    LifecycleEvent.DEFINED_ADDED,
    LifecycleEvent.RESUMED,
    LifecycleEvent.STARTED,
)
BEFORE = facts(RAISED, live=FLAVOR)


def rebooted(config: dict[str, Any], live: dict[str, Any] | None = None, **changes: Any) -> DomainFacts:
    return facts(config, live=live, id=8, **changes)


def test_rb_01_a_new_process_with_the_stored_ceiling_is_a_success() -> None:
    assert judge_reboot(BEFORE, rebooted(RAISED), SOFT) is None


def test_rb_01_rb_05_the_same_process_is_not_applied() -> None:
    error = judge_reboot(BEFORE, BEFORE, (LifecycleEvent.REBOOTED,))
    assert error is not None
    assert error.reason is Reason.REBOOT_NOT_APPLIED
    assert (error.metadata["configMaximumVcpus"], error.metadata["liveMaximumVcpus"]) == ("8", "2")
    same_id_though_it_holds = replace(rebooted(RAISED), id=7)
    assert judge_reboot(BEFORE, same_id_though_it_holds, SOFT) is not None


@pytest.mark.parametrize(
    ("events", "words"),
    [
        (HARD, "Nova made the definition anew"),
        ((), "replaced during the reboot"),
    ],
)
def test_rb_04_a_fallback_to_a_hard_reboot_is_a_lost_ceiling(
    events: tuple[LifecycleEvent, ...], words: str
) -> None:
    error = judge_reboot(BEFORE, rebooted(FLAVOR), events)
    assert error is not None
    assert error.reason is Reason.CEILING_LOST
    assert error.status == "FAILED_PRECONDITION"
    assert words in error.message
    assert "8 vCPUs and 2 GiB is lost" in error.message
    assert "the running domain's ceiling is 2 vCPUs and 512 MiB" in error.message
    assert error.metadata == {
        "lostMaximumVcpus": "8",
        "lostMaximumKib": str(2 * GIB),
        "configMaximumVcpus": "2",
        "configMaximumKib": str(512 * MIB),
        "liveMaximumVcpus": "2",
        "liveMaximumKib": str(512 * MIB),
    }


def test_rb_04_a_hard_reboot_that_kept_the_ceiling_is_no_error_but_seen() -> None:
    assert judge_reboot(BEFORE, rebooted(RAISED), HARD) is None
    assert was_regenerated(HARD)
    assert not was_regenerated(SOFT)


def test_nova_is_not_blamed_for_a_domain_that_is_not_its() -> None:
    plain, small = {**RAISED, "nova": False}, {**FLAVOR, "nova": False}
    error = judge_reboot(facts(plain, live=small), rebooted(small), HARD)
    assert error is not None
    assert "Nova" not in error.message
    assert "replaced during the reboot" in error.message


@pytest.mark.parametrize("which", ["config", "live"])
@pytest.mark.parametrize(
    "change", [{"maximum_vcpus": 7}, {"memory_kib": 2 * GIB - MIB}, {"topology": Topology(4, threads=2)}]
)
def test_one_number_that_does_not_hold_in_either_definition_is_a_loss(
    which: str, change: dict[str, Any]
) -> None:
    after = rebooted(RAISED)
    spoilt = replace(after, **{which: replace(getattr(after, which), **change)})
    error = judge_reboot(BEFORE, spoilt, SOFT)
    assert error is not None
    assert error.reason is Reason.CEILING_LOST


def reason(error: HvsvcError | None) -> Reason:
    assert error is not None
    return error.reason


def test_rb_06_a_domain_that_is_off_after_it_was_not_started() -> None:
    off = facts(RAISED, running=False)
    assert reason(judge_reboot(BEFORE, off, SOFT)) is Reason.START_FAILED
    crashed = replace(off, state=DomainState.CRASHED)
    error = judge_reboot(BEFORE, crashed, ())
    assert error is not None
    assert error.metadata == {"state": "crashed"}


def test_a_definition_that_is_gone_holds_nothing() -> None:
    gone = replace(rebooted(RAISED), config=None, config_xml=None, persistent=False, etag="")
    error = judge_reboot(BEFORE, gone, SOFT)
    assert error is not None
    assert error.reason is Reason.CEILING_LOST
    assert "the stored one none" in error.message


def test_xml_13_without_a_stored_definition_nothing_can_be_judged_a_success() -> None:
    transient = replace(BEFORE, config=None, config_xml=None, persistent=False)
    assert reason(judge_reboot(transient, rebooted(RAISED), SOFT)) is Reason.TRANSIENT_DOMAIN


def test_mem_08_a_maximum_rounded_at_the_start_holds() -> None:
    odd = {**RAISED, "memory_kib": 976563}
    after = rebooted(odd, live={**odd, "memory_kib": 976896})
    assert judge_reboot(facts(odd, live=FLAVOR), after, SOFT) is None


def test_what_a_reboot_brought_may_be_lost_again_while_the_guest_is_waited_for() -> None:
    brought = BEFORE.config
    assert brought is not None
    assert judge_since(brought, rebooted(RAISED)) is None
    assert judge_since(brought, rebooted({**RAISED, "current": 8})) is None
    error = judge_since(brought, rebooted(FLAVOR))
    assert error is not None
    assert error.reason is Reason.CEILING_LOST
    assert (error.metadata["lostMaximumVcpus"], error.metadata["liveMaximumVcpus"]) == ("8", "2")
    only_stored = judge_since(brought, rebooted(RAISED, live=FLAVOR))
    assert only_stored is not None, "what runs decides"
    off = replace(rebooted(RAISED), live=None, id=None, state=DomainState.SHUT_OFF)
    assert judge_since(brought, off) is None, "that is told as such"
