"""Signs that a guest's system is up, and which of them may be of a boot before."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hvsvc.domain.boot_sign import boot_seen, needs_look, up_now, will_report
from hvsvc.domain.facts import Balloon, DomainFacts
from tests.fakes.targets import ROOMY
from tests.fakes.worlds import GIB, MIB, facts


@pytest.mark.parametrize(
    ("agent", "balloon", "seen"),
    [
        ("connected", Balloon(2 * GIB), True),
        ("disconnected", Balloon(2 * GIB), False),
        ("disconnected", Balloon(GIB), True),
        ("disconnected", Balloon(2 * GIB, last_update_s=5), True),
        (None, Balloon(), False),
    ],
)
def test_a_guest_gives_a_sign_by_its_agent_or_its_balloon(
    agent: str | None, balloon: Balloon, seen: bool
) -> None:
    assert boot_seen(facts({**ROOMY, "agent": agent}, balloon=balloon)) is seen
    assert not boot_seen(facts(ROOMY, running=False))


def guest(
    agent: str | None = "disconnected", *, stats: bool = True, report_s: int | None = 100
) -> DomainFacts:
    """A guest whose balloon is down at what it was started with."""
    domain = facts({**ROOMY, "agent": agent}, balloon=Balloon(512 * MIB, last_update_s=report_s))
    assert domain.live is not None
    return replace(domain, live=replace(domain.live, balloon_stats=stats))


def test_what_is_left_of_the_boot_before_is_no_sign_of_this_one() -> None:
    reset = guest()
    assert boot_seen(reset)
    assert not up_now(reset, reset)
    assert needs_look(reset)
    assert up_now(reset, guest(report_s=110))
    assert up_now(reset, guest("connected")), "libvirt sees the agent's channel close at a reset"
    assert up_now(reset, replace(reset, id=8)), "a new process begins without a report"
    assert up_now(guest(report_s=3000), guest(report_s=100)), "a clock that was put back says nothing else"
    assert not up_now(guest(report_s=None), guest(report_s=None))


def test_a_guest_that_can_give_no_newer_sign_is_taken_at_the_one_it_gave() -> None:
    silent = guest(None, stats=False)
    assert up_now(silent, silent)
    assert not needs_look(silent)
    assert not up_now(guest(None), guest(None)), "its driver is to report again"
    assert needs_look(guest(None))
    assert not needs_look(guest("connected"))
    off = facts(ROOMY, running=False)
    assert not up_now(off, off)
    assert not needs_look(off)


def test_a_driver_that_reported_in_this_process_will_again() -> None:
    assert will_report(guest())
    assert not will_report(guest(report_s=None))
    assert not will_report(guest(stats=False))
    assert not will_report(facts(ROOMY, running=False))
