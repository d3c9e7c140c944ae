"""A drift for its readers: what hvsvc does about it by itself, and why it leaves the rest to them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from hvsvc.domain.desired import DesiredState, ReapplyPolicy
from hvsvc.domain.drift import Drift, DriftStatus, judge_drift
from hvsvc.domain.facts import DomainFacts
from hvsvc.domain.reapply import plan_reapply

_BY_ITSELF = {
    DriftStatus.CEILING_LOST: "hvsvc stores the ceiling again by itself; then reboot softly (hvctl reboot)",
    DriftStatus.SHRUNK: "nothing: hvsvc grows it again by itself",
}


@dataclass(frozen=True, slots=True)
class Progress:
    """How far re-applying one record got."""

    attempts: int = 0
    #: since the epoch
    next_attempt_s: float | None = None
    waits_for: str = ""
    #: nothing more is tried by itself
    given_up: bool = False


@dataclass(frozen=True, slots=True)
class DriftReport:
    """One record, how it compares now, and what hvsvc does about it by itself."""

    desired: DesiredState
    drift: Drift
    policy: ReapplyPolicy
    progress: Progress


def report_drift(
    desired: DesiredState, facts: DomainFacts, policy: ReapplyPolicy, progress: Progress
) -> DriftReport:
    """Compares the record of a domain that is on this host with it; the names are those of now."""
    drift = judge_drift(desired, facts)
    if drift.status is DriftStatus.IN_SYNC:
        progress = replace(progress, waits_for="", next_attempt_s=None)
    elif drift.status in _BY_ITSELF:
        if not plan_reapply(desired, facts, policy):
            progress = replace(progress, waits_for=_why_left(drift.status, facts, policy))
        elif not progress.given_up:
            drift = replace(drift, next_step=_BY_ITSELF[drift.status])
    server_name = facts.nova.name if facts.nova is not None else ""
    named = replace(desired, libvirt_name=facts.libvirt_name, server_name=server_name or desired.server_name)
    return DriftReport(named, drift, policy, progress)


def _why_left(status: DriftStatus, facts: DomainFacts, policy: ReapplyPolicy) -> str:
    """Why nothing is re-applied: the policy, or what there is to re-apply it to."""
    if policy is ReapplyPolicy.REPORT:
        return "the policy is report: hvsvc changes nothing by itself"
    if status is DriftStatus.CEILING_LOST:
        return "the domain is transient: there is no stored definition to write to"
    if policy is ReapplyPolicy.CONFIG:
        return "the policy is config: hvsvc grows nothing by itself"
    if not facts.running:
        return "nothing is grown while the domain does not run"
    return "hvsvc does not bring CPUs online that the guest took offline, nor grow above the ceiling"
