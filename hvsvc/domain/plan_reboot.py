"""The plan of a reboot asked for as such: it also brings back the recorded size."""

from __future__ import annotations

from dataclasses import replace

from hvsvc.domain.desired import DesiredState
from hvsvc.domain.drift import DriftStatus, judge_drift
from hvsvc.domain.facts import DomainFacts
from hvsvc.domain.limits import MIB_KIB
from hvsvc.domain.outcome import Note
from hvsvc.domain.plan import Plan, plan_change
from hvsvc.domain.target import Method, Target
from hvsvc.domain.world import World
from hvsvc.errors import Reason


def plan_reboot(world: World, target: Target, desired: DesiredState | None) -> Plan:
    """Plans RebootDomain: the reboot, then growth to what is recorded, within the ceiling it brings.

    What stands in the way of the growth alone does not refuse the reboot: it is a warning.
    """
    alone = plan_change(world, target)
    if desired is None or alone.blockers:
        return alone
    notes = _warn_lost(desired, world.domain)
    growth = find_growth(desired, world.domain)
    if growth is None:
        return replace(alone, warnings=(*alone.warnings, *notes))
    grown = plan_change(world, target, growth)
    if not grown.blockers:
        return replace(grown, warnings=(*grown.warnings, *notes))
    refused = (Note.of(blocker) for blocker in grown.blockers)
    return replace(alone, warnings=(*alone.warnings, *notes, *refused))


def find_growth(desired: DesiredState, facts: DomainFacts) -> Target | None:
    """The recorded sizes above what the stored definition starts with, as far as its ceiling allows."""
    config = facts.config
    if config is None or desired.superseded_by(facts):
        return None
    vcpus, memory_kib = desired.vcpus, desired.memory_kib
    if vcpus is not None:
        vcpus = min(vcpus, config.maximum_vcpus)
        vcpus = vcpus if vcpus > config.current_vcpus else None
    if memory_kib is not None:
        memory_kib = min(memory_kib, config.memory_kib // MIB_KIB * MIB_KIB)
        memory_kib = memory_kib if memory_kib >= config.current_memory_kib + MIB_KIB else None
    if vcpus is None and memory_kib is None:
        return None
    return Target(Method.SCALE_DOMAIN, vcpus=vcpus, memory_kib=memory_kib)


def _warn_lost(desired: DesiredState, facts: DomainFacts) -> tuple[Note, ...]:
    drift = judge_drift(desired, facts)
    if drift.status is not DriftStatus.CEILING_LOST:
        return ()
    return (
        Note(
            Reason.CEILING_LOST,
            f"the stored definition lacks the ceiling on record ({'; '.join(drift.differences)}), so the reboot does "
            "not bring it back; write it again first (hvctl raise)",
        ),
    )
