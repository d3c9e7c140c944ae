"""Plans, steps and reasons to their messages."""

from __future__ import annotations

from typing import Final

from hvsvc.domain.flavor import Flavor
from hvsvc.domain.outcome import Note, Outcome
from hvsvc.domain.resize_road import ResizeRoad
from hvsvc.domain.steps import Effect, Step, StepKind, StepRecord, StepState
from hvsvc.operations.changes import PlanReport
from hvsvc.service.conversion.domains import timestamp, to_domain, to_topology
from hvsvc.service.status import clean
from hvsvc.v1 import scaling_pb2

KINDS: Final = {
    StepKind.DEFINE_CONFIG: scaling_pb2.Step.KIND_DEFINE_CONFIG,
    StepKind.REBOOT: scaling_pb2.Step.KIND_REBOOT,
    StepKind.WAIT_GUEST: scaling_pb2.Step.KIND_WAIT_GUEST,
    StepKind.SET_MEMORY_LIVE: scaling_pb2.Step.KIND_SET_MEMORY_LIVE,
    StepKind.SET_VCPUS_LIVE: scaling_pb2.Step.KIND_SET_VCPUS_LIVE,
    StepKind.ONLINE_GUEST_CPUS: scaling_pb2.Step.KIND_ONLINE_GUEST_CPUS,
    StepKind.SET_ALLOCATION: scaling_pb2.Step.KIND_SET_ALLOCATION,
}
EFFECTS: Final = {
    Effect.LIVE: scaling_pb2.Step.EFFECT_LIVE,
    Effect.REBOOT: scaling_pb2.Step.EFFECT_REBOOT,
}
STEP_STATES: Final = {
    StepState.PENDING: scaling_pb2.Step.STATE_PENDING,
    StepState.RUNNING: scaling_pb2.Step.STATE_RUNNING,
    StepState.DONE: scaling_pb2.Step.STATE_DONE,
    StepState.FAILED: scaling_pb2.Step.STATE_FAILED,
    StepState.UNCONFIRMED: scaling_pb2.Step.STATE_UNCONFIRMED,
}
OUTCOMES: Final = {
    Outcome.COMPLETE: scaling_pb2.OUTCOME_COMPLETE,
    Outcome.PENDING_REBOOT: scaling_pb2.OUTCOME_PENDING_REBOOT,
    Outcome.PARTIAL: scaling_pb2.OUTCOME_PARTIAL,
    Outcome.UNCONFIRMED: scaling_pb2.OUTCOME_UNCONFIRMED,
    Outcome.VALIDATED: scaling_pb2.OUTCOME_VALIDATED,
}


def to_plan(report: PlanReport, read_time_s: float) -> scaling_pb2.PlanScaleResponse:
    """A plan with the domain it was made from."""
    plan = report.plan
    return scaling_pb2.PlanScaleResponse(
        steps=[_planned(step) for step in plan.steps],
        needs_reboot=plan.needs_reboot,
        blockers=[to_reason(Note.of(blocker)) for blocker in plan.blockers],
        warnings=[to_reason(note) for note in plan.warnings],
        xml_diff=clean(plan.xml_diff),
        topology=None if plan.topology is None else to_topology(plan.topology),
        etag=plan.etag,
        domain=to_domain(report.facts, read_time_s),
        resize=None if report.resize is None else _to_resize(report.resize),
    )


def _to_resize(road: ResizeRoad) -> scaling_pb2.ResizeRoad:
    return scaling_pb2.ResizeRoad(
        exact=None if road.exact is None else _to_flavor(road.exact),
        above=None if road.above is None else _to_flavor(road.above),
        consequences=[clean(text) for text in road.consequences],
    )


def _to_flavor(flavor: Flavor) -> scaling_pb2.ResizeRoad.Flavor:
    return scaling_pb2.ResizeRoad.Flavor(
        id=clean(flavor.id),
        name=clean(flavor.name),
        vcpus=flavor.vcpus,
        memory_mib=flavor.memory_mib,
        disk_gib=flavor.disk_gib,
    )


def to_reason(note: Note) -> scaling_pb2.Reason:
    """A reason, for machines and in words."""
    metadata = {key: clean(value) for key, value in note.metadata.items()}
    return scaling_pb2.Reason(reason=note.reason.value, message=clean(note.message), metadata=metadata)


def to_step(step: StepRecord) -> scaling_pb2.Step:
    """A step of an operation, as far as it got."""
    return scaling_pb2.Step(
        kind=KINDS[step.kind],
        effect=EFFECTS[step.effect],
        why=clean(step.why),
        state=STEP_STATES[step.state],
        start_time=None if step.start_time_s is None else timestamp(step.start_time_s),
        end_time=None if step.end_time_s is None else timestamp(step.end_time_s),
        evidence=clean(step.evidence),
    )


def _planned(step: Step) -> scaling_pb2.Step:
    return to_step(StepRecord(step.kind, step.effect, step.why))
