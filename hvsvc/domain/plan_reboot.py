"""The plan of a reboot asked for as such: it also brings back the recorded size."""

from __future__ import annotations

from dataclasses import replace

from hvsvc.domain.desired import DesiredState
from hvsvc.domain.drift import DriftStatus, judge_drift
from hvsvc.domain.facts import DomainFacts
from hvsvc.domain.limits import MIB_KIB
from hvsvc.domain.outcome import Note
from hvsvc.domain.plan import Plan, plan_change
from hvsvc.domain.read_definition import parse_definition
from hvsvc.domain.steps import last_xml
from hvsvc.domain.target import Method, Target
from hvsvc.domain.world import World
from hvsvc.errors import FailedPreconditionError, HvsvcError, Reason


def plan_reboot(world: World, target: Target, desired: DesiredState | None) -> Plan:
    """Plans RebootDomain: the reboot, then growth to what is recorded, within the ceiling it brings.

    A stored definition that lost the recorded ceiling refuses it: the reboot would bring
    nothing back, and take away what of the ceiling still runs. What stands in the way of
    the growth alone is a warning.
    """
    alone = plan_change(world, target)
    if desired is None or alone.blockers:
        return alone
    if differences := find_unstored(desired, world.domain, alone):
        return replace(alone, blockers=(_not_stored(differences),))
    growth = find_growth(desired, world.domain)
    if growth is None:
        return alone
    grown = plan_change(world, target, growth)
    if not grown.blockers:
        return grown
    refused = (Note.of(blocker) for blocker in grown.blockers)
    return replace(alone, warnings=(*alone.warnings, *refused))


def find_unstored(desired: DesiredState, facts: DomainFacts, plan: Plan) -> tuple[str, ...]:
    """What of the recorded ceiling the stored definition lacks when a plan's steps are done."""
    xml = last_xml(plan.steps)
    after = facts if xml is None else replace(facts, config=parse_definition(xml))
    drift = judge_drift(desired, after)
    return drift.differences if drift.status is DriftStatus.CEILING_LOST else ()


def warn_unstored(desired: DesiredState, facts: DomainFacts, plan: Plan) -> Plan:
    """A plan that leaves the recorded ceiling lost says so."""
    differences = find_unstored(desired, facts, plan)
    if not differences:
        return plan
    note = Note(
        Reason.CEILING_NOT_STORED,
        f"the stored definition still lacks the ceiling on record afterwards ({'; '.join(differences)}): the next "
        "reboot does not bring it; write it again (hvctl raise), or drop the record (hvctl forget)",
        {"differences": "; ".join(differences)},
    )
    return replace(plan, warnings=(*plan.warnings, note))


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


def _not_stored(differences: tuple[str, ...]) -> HvsvcError:
    told = "; ".join(differences)
    return FailedPreconditionError(
        Reason.CEILING_NOT_STORED,
        f"the stored definition lacks the ceiling on record ({told}), so a reboot would not bring it back, and would "
        "take away what of it still runs; nothing was changed; write it again and reboot in one go (hvctl raise with "
        "--reboot soft), or drop the record first (hvctl forget)",
        {"differences": told},
    )
