"""The verdict: COMPLETE only while every number that the target names is read back from where it matters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from hvsvc.domain.facts import Balloon, DomainFacts, DomainState, GuestCpu, GuestCpus
from hvsvc.domain.outcome import Outcome
from hvsvc.domain.target import Affect, Method, RebootMode, Target
from hvsvc.domain.topology import Topology, TopologyMode, TopologyPolicy
from hvsvc.domain.verify import Verdict, verify_target
from hvsvc.domain.world import World
from hvsvc.errors import FailedPreconditionError, GuestAgentError, Reason
from tests.fakes.worlds import GIB, MIB, SERVER, facts, guest_cpus, world

GROWN = {"maximum": 8, "current": 8, "memory_kib": 2 * GIB, "current_memory_kib": GIB, "nova": True}
#: every number in its place: a grown Nova server
THERE = world(facts(GROWN))

Change = Callable[[World], World]


def domain(**changes: Any) -> Change:
    return lambda there: replace(there, domain=replace(there.domain, **changes))


def config(**changes: Any) -> Change:
    def change(there: World) -> World:
        assert there.domain.config is not None
        return domain(config=replace(there.domain.config, **changes))(there)

    return change


def live(**changes: Any) -> Change:
    def change(there: World) -> World:
        assert there.domain.live is not None
        return domain(live=replace(there.domain.live, **changes))(there)

    return change


def balloon(actual_kib: int | None) -> Change:
    return lambda there: domain(balloon=replace(there.domain.balloon, actual_kib=actual_kib))(there)


#: one piece of evidence changed at a time
MUTATIONS: dict[str, Change] = {
    "config maximum vcpus low": config(maximum_vcpus=7),
    "config maximum vcpus high": config(maximum_vcpus=9),
    "config current vcpus low": config(current_vcpus=7),
    "config current vcpus high": config(current_vcpus=9),
    "config maximum memory low": config(memory_kib=2 * GIB - MIB),
    "config maximum memory high": config(memory_kib=2 * GIB + 1),
    "config current memory low": config(current_memory_kib=GIB - MIB),
    "config current memory high": config(current_memory_kib=GIB + MIB),
    "config topology": config(topology=Topology(4, threads=2)),
    "config topology none": config(topology=None),
    "config gone": domain(config=None, config_xml=None, persistent=False),
    "live maximum vcpus low": live(maximum_vcpus=7),
    "live maximum vcpus high": live(maximum_vcpus=9),
    "live current vcpus low": live(current_vcpus=7),
    "live current vcpus high": live(current_vcpus=9),
    "live maximum memory low": live(memory_kib=2 * GIB - MIB),
    "live maximum memory high": live(memory_kib=2 * GIB + MIB),
    "live topology": live(topology=Topology(4, threads=2)),
    "live topology none": live(topology=None),
    "live gone": domain(live=None, state=DomainState.SHUT_OFF, guest=None, balloon=Balloon()),
    "paused": domain(state=DomainState.PAUSED),
    "in shutdown": domain(state=DomainState.IN_SHUTDOWN),
    "guest online low": domain(guest=guest_cpus(8, 7)),
    "guest online high": domain(guest=guest_cpus(9)),
    "guest present low": domain(guest=guest_cpus(7)),
    "guest none": domain(guest=None),
    "balloon low": balloon(GIB - MIB),
    "balloon high": balloon(GIB + MIB),
    "balloon none": balloon(None),
    "server shutoff": lambda there: replace(there, server=replace(SERVER, status="SHUTOFF")),
    "server error": lambda there: replace(there, server=replace(SERVER, status="ERROR")),
    "server paused": lambda there: replace(there, server=replace(SERVER, status="PAUSED")),
    "server task": lambda there: replace(there, server=replace(SERVER, task_state="rebooting")),
    "server none": lambda there: replace(there, server=None),
}


def of(*starts: str) -> frozenset[str]:
    found = frozenset(name for name in MUTATIONS if name.startswith(starts))
    assert all(any(name.startswith(start) for name in found) for start in starts)
    return found


ALWAYS = of("server", "paused", "in shutdown", "live gone")
VCPUS_LIVE = of("live current vcpus", "guest")
VCPUS_STORED = of("config current vcpus", "config gone")
MEMORY_STORED = of("config current memory", "config gone")
CEILING_VCPUS = of(
    "config maximum vcpus", "config topology", "config gone", "live maximum vcpus", "live topology"
)
CEILING_MEMORY = of("config maximum memory", "config gone", "live maximum memory")
BOOTED = of("config current", "config gone", "live current vcpus", "guest", "balloon")
RAISE = Target(Method.RAISE_CEILING, max_vcpus=8, max_memory_kib=2 * GIB)
EXACT = TopologyPolicy(TopologyMode.EXACT, Topology(8))
SCALE = Target(Method.SCALE_DOMAIN, vcpus=8, memory_kib=GIB)

#: what a target names: the mutations it must not survive, and it must survive all others
NAMED: dict[str, tuple[Target, bool, frozenset[str]]] = {
    "raise": (RAISE, False, CEILING_VCPUS | CEILING_MEMORY),
    "raise rebooted": (replace(RAISE, reboot=RebootMode.SOFT), True, CEILING_VCPUS | CEILING_MEMORY | BOOTED),
    "raise in effect already": (
        replace(RAISE, reboot=RebootMode.SOFT),
        False,
        CEILING_VCPUS | CEILING_MEMORY,
    ),
    "raise vcpus": (replace(RAISE, max_memory_kib=None), False, CEILING_VCPUS),
    "raise memory": (replace(RAISE, max_vcpus=None), False, CEILING_MEMORY),
    "raise exact topology": (
        Target(Method.RAISE_CEILING, topology=EXACT),
        False,
        of("config topology", "config gone", "live topology"),
    ),
    "raise and boot values": (
        replace(RAISE, boot_vcpus=8, boot_memory_kib=GIB),
        False,
        CEILING_VCPUS
        | CEILING_MEMORY
        | VCPUS_STORED
        | MEMORY_STORED
        | of("live current vcpus", "balloon low", "balloon high"),
    ),
    "raise and boot values rebooted": (
        replace(RAISE, boot_vcpus=8, boot_memory_kib=GIB, reboot=RebootMode.SOFT),
        True,
        CEILING_VCPUS | CEILING_MEMORY | BOOTED,
    ),
    "scale": (SCALE, False, VCPUS_LIVE | VCPUS_STORED | MEMORY_STORED | of("balloon")),
    "scale rebooted": (
        replace(SCALE, reboot=RebootMode.SOFT),
        True,
        VCPUS_LIVE | VCPUS_STORED | MEMORY_STORED | of("balloon"),
    ),
    "scale with least ceilings": (
        replace(SCALE, max_vcpus=8, max_memory_kib=2 * GIB),
        False,
        VCPUS_LIVE
        | VCPUS_STORED
        | MEMORY_STORED
        | of("balloon", "config maximum vcpus low", "config maximum memory low")
        | of("live maximum vcpus low", "live maximum memory low"),
    ),
    "scale with exact topology": (
        replace(SCALE, topology=EXACT),
        False,
        VCPUS_LIVE | VCPUS_STORED | MEMORY_STORED | of("balloon", "config topology", "live topology"),
    ),
    "scale vcpus": (replace(SCALE, memory_kib=None), False, VCPUS_LIVE | VCPUS_STORED),
    "scale memory": (replace(SCALE, vcpus=None), False, MEMORY_STORED | of("balloon")),
    "setvcpus": (Target(Method.SET_VCPUS, vcpus=8), False, VCPUS_LIVE | VCPUS_STORED),
    "setvcpus live": (Target(Method.SET_VCPUS, vcpus=8, affect=Affect.LIVE), False, VCPUS_LIVE),
    "setvcpus config": (
        Target(Method.SET_VCPUS, vcpus=8, affect=Affect.CONFIG),
        False,
        VCPUS_STORED | of("live current vcpus"),
    ),
    "setmem": (Target(Method.SET_MEMORY, memory_kib=GIB), False, MEMORY_STORED | of("balloon")),
    "setmem live": (Target(Method.SET_MEMORY, memory_kib=GIB, affect=Affect.LIVE), False, of("balloon")),
    "setmem config": (
        Target(Method.SET_MEMORY, memory_kib=GIB, affect=Affect.CONFIG),
        False,
        MEMORY_STORED | of("balloon low", "balloon high"),
    ),
    "reboot": (
        Target(Method.REBOOT_DOMAIN, reboot=RebootMode.SOFT),
        True,
        of("config", "live maximum", "live topology") | BOOTED,
    ),
}


@pytest.mark.parametrize("named", NAMED)
def test_every_number_in_its_place_is_complete(named: str) -> None:
    target, rebooted, _ = NAMED[named]
    assert verify_target(THERE, target, rebooted=rebooted) == Verdict(Outcome.COMPLETE, ())


@pytest.mark.parametrize("mutation", MUTATIONS)
@pytest.mark.parametrize("named", NAMED)
def test_never_complete_with_one_number_wrong(named: str, mutation: str) -> None:
    target, rebooted, caught = NAMED[named]
    verdict = verify_target(MUTATIONS[mutation](THERE), target, rebooted=rebooted)
    if mutation in caught | ALWAYS:
        assert verdict.outcome is not Outcome.COMPLETE
        assert verdict.reasons
        assert all(";" in note.message or ":" in note.message for note in verdict.reasons)
    else:
        assert verdict == Verdict(Outcome.COMPLETE, ())


@pytest.mark.parametrize("mutation", ["live gone", "paused", "in shutdown"])
@pytest.mark.parametrize("named", [name for name, (_, rebooted, _) in NAMED.items() if rebooted])
def test_a_reboot_that_did_not_end_running_is_never_complete_without_nova_either(
    named: str, mutation: str
) -> None:
    target, _, _ = NAMED[named]
    plain = world(facts({**GROWN, "nova": False}))
    assert verify_target(plain, target, rebooted=True).outcome is Outcome.COMPLETE
    verdict = verify_target(MUTATIONS[mutation](plain), target, rebooted=True)
    assert verdict.outcome is Outcome.PARTIAL
    assert Reason.DOMAIN_NOT_RUNNING in [note.reason for note in verdict.reasons]


def test_rb_01_a_reboot_that_was_not_done_is_no_reboot() -> None:
    target = Target(Method.REBOOT_DOMAIN, reboot=RebootMode.SOFT)
    assert verify_target(THERE, target, rebooted=False).outcome is Outcome.PARTIAL


def test_the_weakest_finding_decides_and_all_are_told() -> None:
    there = MUTATIONS["guest none"](MUTATIONS["config current vcpus low"](THERE))
    verdict = verify_target(there, SCALE, rebooted=False)
    assert verdict.outcome is Outcome.PARTIAL
    assert [note.reason for note in verdict.reasons] == [Reason.TARGET_NOT_REACHED, Reason.GUEST_CPUS_UNKNOWN]
    assert verdict.reasons[0].metadata == {"value": "stored current vCPUs", "asked": "8", "found": "7"}


def outcome(found: DomainFacts, target: Target, *, rebooted: bool = False) -> tuple[Outcome, list[Reason]]:
    verdict = verify_target(world(found), target, rebooted=rebooted)
    return verdict.outcome, [note.reason for note in verdict.reasons]


PLAIN = {**GROWN, "nova": False}
GROW_VCPUS = Target(Method.SET_VCPUS, vcpus=8)


def test_cpu_02_three_numbers_are_told_where_the_guest_uses_fewer() -> None:
    verdict = verify_target(world(facts(PLAIN, guest=guest_cpus(8, 2))), GROW_VCPUS, rebooted=False)
    assert verdict.outcome is Outcome.PARTIAL
    assert verdict.reasons[0].metadata == {
        "currentLive": "8",
        "guestPresent": "8",
        "guestOnline": "2",
        "offlineIds": "2,3,4,5,6,7",
    }


def test_cpu_03_without_an_agent_the_guest_is_not_observable() -> None:
    absent = GuestAgentError(Reason.AGENT_NOT_CONNECTED, "no guest agent listens")
    verdict = verify_target(world(facts(PLAIN, guest=None, guest_error=absent)), GROW_VCPUS, rebooted=False)
    assert verdict.outcome is Outcome.UNCONFIRMED
    assert verdict.reasons[0].reason is Reason.GUEST_CPUS_UNKNOWN
    assert verdict.reasons[0].metadata == {"agent": "AGENT_NOT_CONNECTED"}
    assert "not observable; check in the guest (nproc): no guest agent listens" in verdict.reasons[0].message


def test_cpu_04_cpus_the_guest_could_not_bring_online_are_partial_with_their_ids() -> None:
    verdict = verify_target(world(facts(PLAIN, guest=guest_cpus(8, 6))), GROW_VCPUS, rebooted=False)
    assert verdict.outcome is Outcome.PARTIAL
    assert verdict.reasons[0].metadata["offlineIds"] == "6,7"
    assert "--online all" in verdict.reasons[0].message


def test_cpu_12_a_guest_that_brings_cpus_up_itself_is_complete() -> None:
    fixed = GuestCpus(tuple(GuestCpu(number, True, False) for number in range(8)))
    assert outcome(facts(PLAIN, guest=fixed), GROW_VCPUS) == (Outcome.COMPLETE, [])


def test_cpu_15_ids_of_the_guest_need_not_be_contiguous() -> None:
    odd = GuestCpus(tuple(GuestCpu(number, True, None) for number in (0, 1, 7, 9, 11, 64, 65, 66)))
    assert outcome(facts(PLAIN, guest=odd), GROW_VCPUS) == (Outcome.COMPLETE, [])


def test_mem_01_a_balloon_that_did_not_move_is_partial() -> None:
    there = facts({**PLAIN, "current_memory_kib": 2 * GIB, "current": 8}, balloon=Balloon(512 * MIB))
    target = Target(Method.SET_MEMORY, memory_kib=2 * GIB)
    assert outcome(there, target) == (Outcome.PARTIAL, [Reason.BALLOON_BELOW_TARGET])


def test_mem_12_each_terminal_state_has_its_evidence() -> None:
    raised = facts(PLAIN, live={**PLAIN, "maximum": 2, "current": 2, "memory_kib": GIB})
    assert outcome(raised, RAISE) == (Outcome.PENDING_REBOOT, [Reason.PENDING_REBOOT])
    assert outcome(facts(PLAIN), RAISE) == (Outcome.COMPLETE, [])
    unmoved = facts(PLAIN, balloon=Balloon(512 * MIB))
    assert outcome(unmoved, SCALE) == (Outcome.PARTIAL, [Reason.BALLOON_BELOW_TARGET])
    silent = facts(PLAIN, balloon=Balloon())
    assert outcome(silent, SCALE) == (Outcome.UNCONFIRMED, [Reason.BALLOON_NOT_SETTLED])


def test_mem_08_a_size_below_a_whole_mib_is_the_same_size() -> None:
    numbers = {**PLAIN, "memory_kib": 976563, "current_memory_kib": 976563}
    started = facts(numbers, live={**numbers, "memory_kib": 976896, "current_memory_kib": 976896})
    assert outcome(started, Target(Method.SET_MEMORY, memory_kib=976896)) == (Outcome.COMPLETE, [])
    assert outcome(started, replace(RAISE, max_memory_kib=976896)) == (Outcome.COMPLETE, [])


def test_mem_02_without_a_balloon_the_guest_has_the_maximum_and_nothing_less_is_claimed() -> None:
    bare = facts({**PLAIN, "balloon": "none"}, balloon=Balloon())
    less = Target(Method.SET_MEMORY, memory_kib=GIB)
    assert outcome(bare, less) == (Outcome.PARTIAL, [Reason.TARGET_NOT_REACHED])
    whole = facts({**PLAIN, "balloon": "none", "current_memory_kib": 2 * GIB}, balloon=Balloon())
    assert outcome(whole, replace(less, memory_kib=2 * GIB)) == (Outcome.COMPLETE, [])
    boot = replace(RAISE, boot_memory_kib=GIB, reboot=RebootMode.SOFT)
    assert outcome(bare, boot, rebooted=True) == (Outcome.PARTIAL, [Reason.TARGET_NOT_REACHED])


def test_rb_07_after_a_start_the_boot_memory_is_not_claimed_until_the_balloon_confirms() -> None:
    full = facts(PLAIN, balloon=Balloon(2 * GIB))
    reboot = Target(Method.REBOOT_DOMAIN, reboot=RebootMode.SOFT)
    verdict = verify_target(world(full), reboot, rebooted=True)
    assert verdict.outcome is Outcome.PARTIAL
    assert verdict.reasons[0].reason is Reason.BALLOON_NOT_SETTLED
    assert verdict.reasons[0].metadata == {"askedKib": str(GIB), "actualKib": str(2 * GIB)}


def test_a_ceiling_that_waits_and_was_not_asked_for_does_not_spoil_a_growth() -> None:
    waiting = facts({**PLAIN, "maximum": 16, "topology": "16x1x1"}, live=PLAIN)
    assert outcome(waiting, SCALE) == (Outcome.COMPLETE, [])
    assert outcome(waiting, Target(Method.REBOOT_DOMAIN), rebooted=True)[0] is Outcome.PARTIAL


def test_a_ceiling_left_behind_by_a_reboot_asked_for_is_not_pending_but_partial() -> None:
    lost = facts(PLAIN, live={**PLAIN, "maximum": 2, "current": 2})
    soft = replace(RAISE, reboot=RebootMode.SOFT)
    assert outcome(lost, RAISE) == (Outcome.PENDING_REBOOT, [Reason.PENDING_REBOOT])
    assert outcome(lost, soft)[0] is Outcome.PARTIAL
    assert outcome(lost, soft, rebooted=True)[0] is Outcome.PARTIAL


def test_a_value_stored_alone_waits_for_the_next_start() -> None:
    there = facts({**PLAIN, "current": 4}, live=PLAIN)
    target = Target(Method.SET_VCPUS, vcpus=4, affect=Affect.CONFIG)
    verdict = verify_target(world(there), target, rebooted=False)
    assert verdict.outcome is Outcome.PENDING_REBOOT
    assert "vCPUs 8, for the next start 4" in verdict.reasons[0].message
    assert outcome(facts({**PLAIN, "current": 4}), target) == (Outcome.COMPLETE, [])
    off = facts({**PLAIN, "current": 4}, running=False)
    assert outcome(off, target) == (Outcome.COMPLETE, [])


def test_a_ceiling_of_a_domain_that_is_off_waits_for_its_start() -> None:
    off = facts(PLAIN, running=False)
    assert outcome(off, RAISE) == (Outcome.PENDING_REBOOT, [Reason.PENDING_REBOOT])
    least = Target(Method.SCALE_DOMAIN, max_vcpus=8)
    assert outcome(off, least) == (Outcome.PENDING_REBOOT, [Reason.PENDING_REBOOT])


def test_a_ceiling_of_a_nova_server_that_is_off_is_not_promised() -> None:
    off = facts(GROWN, running=False)
    shutoff = world(off, server=replace(SERVER, status="SHUTOFF"))
    verdict = verify_target(shutoff, RAISE, rebooted=False)
    assert verdict.outcome is Outcome.PARTIAL
    assert [note.reason for note in verdict.reasons] == [Reason.NOVA_START_DISCARDS]
    suspended = world(replace(off, managed_save=True), server=replace(SERVER, status="SUSPENDED"))
    verdict = verify_target(suspended, RAISE, rebooted=False)
    assert verdict.outcome is Outcome.PENDING_REBOOT
    assert "saved image" in verdict.reasons[0].message


def test_a_paused_server_may_wait_for_its_ceiling_and_one_in_error_may_not() -> None:
    paused = facts(GROWN, state=DomainState.PAUSED)
    for status, expected in (
        ("PAUSED", Outcome.COMPLETE),
        ("ERROR", Outcome.PARTIAL),
        ("ACTIVE", Outcome.PARTIAL),
    ):
        there = world(paused, server=replace(SERVER, status=status))
        assert verify_target(there, RAISE, rebooted=False).outcome is expected


def test_nova_that_could_not_be_asked_leaves_the_outcome_unconfirmed_and_says_why() -> None:
    why = FailedPreconditionError(Reason.NOVA_NOT_CONFIGURED, "no credential; set [nova] cloud")
    verdict = verify_target(world(facts(GROWN), server=None, server_error=why), SCALE, rebooted=False)
    assert verdict.outcome is Outcome.UNCONFIRMED
    assert [note.reason for note in verdict.reasons] == [Reason.NOVA_STATE_UNKNOWN]
    assert "no credential" in verdict.reasons[0].message


def test_a_topology_alone_is_judged_by_the_stored_maximum() -> None:
    cores = Target(Method.RAISE_CEILING, topology=TopologyPolicy(TopologyMode.GROW_CORES))
    flat = facts({**PLAIN, "topology": ""})
    assert outcome(flat, cores) == (Outcome.PARTIAL, [Reason.TARGET_NOT_REACHED])
    assert outcome(facts({**PLAIN, "topology": "1x8x1"}), cores) == (Outcome.COMPLETE, [])
    misfit = facts({**PLAIN, "topology": "3x1x1"})
    assert outcome(misfit, replace(RAISE, max_memory_kib=None))[0] is Outcome.PARTIAL
