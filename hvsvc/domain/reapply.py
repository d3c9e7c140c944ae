"""Re-applying what was lost: what there is to do, and whether now is the time. Never a reboot."""

from __future__ import annotations

from dataclasses import dataclass, replace

from hvsvc.domain.desired import DesiredState, ReapplyPolicy
from hvsvc.domain.drift import find_lost_ceiling
from hvsvc.domain.facts import DomainFacts, ServerFacts
from hvsvc.domain.limits import MIB_KIB, round_to_mib
from hvsvc.domain.target import Affect, Method, RebootMode, Target
from hvsvc.domain.topology import TopologyPolicy
from hvsvc.errors import HvsvcError, Reason

#: why a re-apply is refused for somebody's work that ends soon, in words
BUSY = {
    Reason.DOMAIN_BUSY: "something else works on the domain",
    Reason.SERVER_BUSY: "Nova is at work on the server",
    Reason.TOO_MANY_OPERATIONS: "as many operations run as [limits] max_operations allows",
}


@dataclass(frozen=True, slots=True)
class Backoff:
    """How often a lost state is re-applied: not twice within a time that doubles, and not for ever."""

    first_s: float = 10.0
    longest_s: float = 600.0
    attempts: int = 5


@dataclass(frozen=True, slots=True)
class Tries:
    """Attempts on one record since its drift began; `last_s` is when the last one began, by a clock without jumps."""

    count: int = 0
    last_s: float = 0.0
    #: what was written was there at a look since
    held: bool = False
    #: attempts since the last one that came through, for which a part was away: they lengthen the pause alone
    outages: int = 0

    def next_s(self, backoff: Backoff) -> float | None:
        """When the next attempt may be made at the earliest; None once there were too many."""
        if self.count >= backoff.attempts:
            return None
        return self.last_s + self._pause_s(backoff) if self.last_s else 0.0

    def at_outage(self, now_s: float) -> Tries:
        """The count after an attempt for which a part was away, which says nothing of a second writer."""
        return replace(self, last_s=now_s, held=False, outages=self.outages + 1)

    def at_loss(self, backoff: Backoff, now_s: float, *, started: bool) -> Tries:
        """The count at a look that finds something lost.

        What held for longer than the pause until the domain was started anew begins anew:
        Nova acted again, later, and it makes no definition anew without a start (nova.md's
        table). Without one somebody else wrote, for whom the longest pause counts. What
        was lost sooner counts on: somebody writes against hvsvc.

        :param started: the domain was started since the last attempt.
        """
        if self.held and now_s >= self.last_s + (self._pause_s(backoff) if started else backoff.longest_s):
            return Tries()
        return replace(self, held=False)

    def _pause_s(self, backoff: Backoff) -> float:
        before = min(self.count + self.outages, backoff.attempts, 30)
        return min(backoff.first_s * 2.0 ** max(before - 1, 0), backoff.longest_s)


def plan_reapply(desired: DesiredState, facts: DomainFacts, policy: ReapplyPolicy) -> tuple[Target, ...]:
    """The changes that bring back what was lost, in order; none where the policy or the facts give none.

    Only what is lost is named, so that a value somebody raised further stays. A flavor
    that changed supersedes the record: nothing is re-applied against a resize.
    """
    if policy is ReapplyPolicy.REPORT or desired.superseded_by(facts):
        return ()
    ceiling = _ceiling_target(desired, facts)
    targets = (ceiling,) if ceiling is not None else ()
    if policy is ReapplyPolicy.CONFIG:
        return targets
    return (*targets, *_live_targets(desired, facts))


def find_hindrance(desired: DesiredState, server: ServerFacts | None, error: HvsvcError | None) -> str:
    """Why a server must not be touched now, in words; "" where it may.

    A rescued, resized or shelved server has a definition that is not the one it goes on
    with (nova.md's table), and one that is off gets a new one when it starts.
    """
    if not desired.is_server:
        return ""
    if server is None:
        return (
            f"what Nova does with the server is not known: {error.message if error else 'it was not asked'}"
        )
    if server.task_state is not None and server.status != "ERROR":
        return f"Nova is at work on the server (task_state {server.task_state})"
    if server.status != "ACTIVE":
        return f"the server's status is {server.status}; nothing is re-applied before it is ACTIVE"
    return ""


def ends_unheard(server: ServerFacts | None) -> bool:
    """Whether what the server waits for ends in Nova alone: confirming a resize touches no domain (nova.md)."""
    return server is not None and server.status == "VERIFY_RESIZE"


def _ceiling_target(desired: DesiredState, facts: DomainFacts) -> Target | None:
    lost = find_lost_ceiling(desired, facts.config)
    if not lost:
        return None
    vcpus = lost.topology or lost.max_vcpus is not None
    return Target(
        Method.RAISE_CEILING,
        max_vcpus=lost.max_vcpus,
        max_memory_kib=lost.max_memory_kib,
        topology=desired.topology if vcpus else TopologyPolicy(),
        reboot=RebootMode.NEVER,
    )


def _live_targets(desired: DesiredState, facts: DomainFacts) -> tuple[Target, ...]:
    """Memory before vCPUs, each as far as the running domain's ceiling allows (case API-04).

    CPUs that the guest took offline itself are the guest's business.
    """
    config, live = facts.config, facts.live
    if config is None or live is None or not facts.running:
        return ()
    targets = []
    if desired.memory_kib is not None:
        ceiling_kib = min(live.memory_kib, config.memory_kib) // MIB_KIB * MIB_KIB
        wanted_kib = min(desired.memory_kib, ceiling_kib)
        actual_kib = facts.balloon.actual_kib
        live_kib = actual_kib if actual_kib is not None else live.current_memory_kib
        affect = _affect(wanted_kib, round_to_mib(live_kib), round_to_mib(config.current_memory_kib))
        if affect is not None:
            targets.append(Target(Method.SET_MEMORY, memory_kib=wanted_kib, affect=affect))
    if desired.vcpus is not None:
        wanted = min(desired.vcpus, live.maximum_vcpus, config.maximum_vcpus)
        affect = _affect(wanted, live.current_vcpus, config.current_vcpus)
        if affect is not None:
            targets.append(Target(Method.SET_VCPUS, vcpus=wanted, affect=affect))
    return tuple(targets)


def _affect(wanted: int, live: int, config: int) -> Affect | None:
    """Where a value is too low; a higher one is left as it is."""
    if live >= wanted and config >= wanted:
        return None
    if live > wanted:
        return Affect.CONFIG
    return Affect.LIVE if config > wanted else Affect.LIVE_AND_CONFIG


def describe_giving_up(attempts: int, failure: str) -> str:
    """Why nothing more is tried by itself; `failure` is how the last attempt failed, "" where it did not."""
    if failure:
        return (
            f"hvsvc gave up after {attempts} attempts; {failure}; then ask again (hvctl raise, or hvctl drift "
            "--policy)"
        )
    return (
        f"it was lost again after {attempts} attempts: somebody else writes the definition; find out who, then ask "
        "again (hvctl raise, or hvctl drift --policy)"
    )
