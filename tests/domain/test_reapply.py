"""What is brought back, and when it is not the time."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hvsvc.domain.desired import ReapplyPolicy
from hvsvc.domain.facts import DomainFacts, ServerFacts
from hvsvc.domain.reapply import Backoff, Tries, find_hindrance, plan_reapply
from hvsvc.domain.target import Affect, Method, RebootMode, Target
from hvsvc.domain.topology import Topology, TopologyMode, TopologyPolicy
from hvsvc.errors import Reason, UnavailableError
from tests.domain.test_drift import ASKED, DESIRED, FLAVOR, balloon
from tests.fakes.worlds import GIB, MIB, SERVER, facts, guest_cpus

RAISE = Target(Method.RAISE_CEILING, max_vcpus=8, max_memory_kib=2 * GIB)


@pytest.mark.parametrize(
    ("policy", "found", "wanted"),
    [
        (ReapplyPolicy.REPORT, facts(FLAVOR), ()),
        (ReapplyPolicy.CONFIG, facts(FLAVOR), (RAISE,)),
        (ReapplyPolicy.CONFIG, facts(ASKED), ()),
        (ReapplyPolicy.CONFIG, facts(ASKED, FLAVOR), ()),
        (ReapplyPolicy.CONFIG, facts(ASKED | {"current": 2}), ()),
        (
            ReapplyPolicy.CONFIG,
            facts(ASKED | {"maximum": 16, "memory_kib": GIB}),
            (Target(Method.RAISE_CEILING, max_memory_kib=2 * GIB),),
        ),
        (ReapplyPolicy.LIVE, facts(ASKED), ()),
        (ReapplyPolicy.LIVE, facts(FLAVOR), (RAISE,)),
        (
            ReapplyPolicy.LIVE,
            facts(ASKED | {"current": 2, "current_memory_kib": 512 * MIB}),
            (
                Target(Method.SET_MEMORY, memory_kib=GIB),
                Target(Method.SET_VCPUS, vcpus=4),
            ),
        ),
        # as far as the live ceiling allows
        (
            ReapplyPolicy.LIVE,
            facts(ASKED, FLAVOR | {"maximum": 3}),
            (Target(Method.SET_VCPUS, vcpus=3, affect=Affect.LIVE),),
        ),
        (
            ReapplyPolicy.LIVE,
            facts(ASKED | {"current": 2}, ASKED | {"current": 6}),
            (Target(Method.SET_VCPUS, vcpus=4, affect=Affect.CONFIG),),
        ),
        (
            ReapplyPolicy.LIVE,
            facts(ASKED, balloon=balloon(512 * MIB)),
            (Target(Method.SET_MEMORY, memory_kib=GIB),),
        ),
        # CPUs taken offline in the guest are the guest's business
        (ReapplyPolicy.LIVE, facts(ASKED, guest=guest_cpus(4, 2)), ()),
        (ReapplyPolicy.LIVE, facts(ASKED | {"current": 2}, running=False), ()),
    ],
)
def test_what_is_brought_back(policy: ReapplyPolicy, found: DomainFacts, wanted: tuple[Target, ...]) -> None:
    planned = plan_reapply(DESIRED, found, policy)
    assert planned == wanted
    assert all(target.reboot is RebootMode.NEVER for target in planned)


def test_a_resize_is_never_worked_against() -> None:
    assert plan_reapply(replace(DESIRED, flavor_vcpus=4), facts(FLAVOR), ReapplyPolicy.LIVE) == ()


def test_the_topology_goes_with_the_vcpus() -> None:
    exact = TopologyPolicy(TopologyMode.EXACT, Topology(2, cores=4))
    desired = replace(DESIRED, topology=exact)
    (whole,) = plan_reapply(desired, facts(FLAVOR), ReapplyPolicy.CONFIG)
    (factors,) = plan_reapply(desired, facts(ASKED), ReapplyPolicy.CONFIG)
    (memory,) = plan_reapply(
        desired, facts(ASKED | {"topology": "2x4x1", "memory_kib": GIB}), ReapplyPolicy.CONFIG
    )
    assert (whole.topology, whole.max_vcpus) == (exact, 8)
    assert (factors.topology, factors.max_vcpus, factors.max_memory_kib) == (exact, None, None)
    assert (memory.topology, memory.max_memory_kib) == (TopologyPolicy(), 2 * GIB)


@pytest.mark.parametrize(
    ("server", "word"),
    [
        (SERVER, ""),
        (replace(SERVER, task_state="rebooting_hard"), "rebooting_hard"),
        *(
            (replace(SERVER, status=status), status)
            for status in ("RESCUE", "VERIFY_RESIZE", "SHUTOFF", "PAUSED")
        ),
    ],
)
def test_only_an_active_server_without_a_task_is_touched(server: ServerFacts, word: str) -> None:
    found = find_hindrance(DESIRED, server, None)
    assert word in found
    assert bool(found) is bool(word)


def test_a_task_that_stayed_on_a_server_in_error_is_no_work() -> None:
    server = replace(SERVER, status="ERROR", task_state="resize_migrating")
    assert "status is ERROR" in find_hindrance(DESIRED, server, None)


def test_a_server_nova_does_not_tell_of_is_not_touched() -> None:
    error = UnavailableError(Reason.NOVA_UNAVAILABLE, "HTTP 503")
    assert "HTTP 503" in find_hindrance(DESIRED, None, error)
    assert find_hindrance(replace(DESIRED, is_server=False), None, None) == ""


BACKOFF = Backoff(first_s=10, longest_s=60, attempts=4)


def test_the_pause_doubles_to_its_longest_and_ends() -> None:
    assert Tries().next_s(BACKOFF) == 0.0
    assert [Tries(count, 100.0).next_s(BACKOFF) for count in range(1, 5)] == [110.0, 120.0, 140.0, None]
    assert Tries(3, 5.0).next_s(Backoff(30, 60, 9)) == 65.0


def test_an_outage_waits_ever_longer_and_never_ends_it() -> None:
    tries, waits = Tries(), []
    for _ in range(6):
        tries = tries.at_outage(100.0)
        waits.append(tries.next_s(BACKOFF))
    assert waits == [110.0, 120.0, 140.0, 160.0, 160.0, 160.0]
    assert tries.count == 0
    assert Tries(2, 50.0).at_outage(100.0).at_loss(BACKOFF, 300.0, started=True).count == 2


def test_what_held_for_the_pause_until_a_start_begins_anew_and_what_did_not_counts_on() -> None:
    held = Tries(2, 100.0, held=True)
    assert held.at_loss(BACKOFF, 119.0, started=True) == Tries(2, 100.0)
    assert held.at_loss(BACKOFF, 120.0, started=True) == Tries()
    assert Tries(2, 100.0).at_loss(BACKOFF, 500.0, started=True) == Tries(2, 100.0)
    # without a start it was not Nova: it has to hold for the longest pause
    assert held.at_loss(BACKOFF, 159.0, started=False) == Tries(2, 100.0)
    assert held.at_loss(BACKOFF, 160.0, started=False) == Tries()
