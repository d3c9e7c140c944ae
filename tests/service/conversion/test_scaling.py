"""Plans and steps to messages."""

from __future__ import annotations

from typing import Any

import pytest

from hvsvc.domain.flavor import Flavor
from hvsvc.domain.outcome import Note, Outcome
from hvsvc.domain.resize_road import ResizeRoad
from hvsvc.domain.steps import Effect, StepKind, StepState
from hvsvc.errors import Reason
from hvsvc.operations.changes import PlanReport
from hvsvc.service.conversion import scaling
from hvsvc.v1 import domain_pb2, scaling_pb2
from tests.fakes.domains import running
from tests.fakes.face import STEPS, plan


@pytest.mark.parametrize(
    ("table", "enum", "prefix", "values"),
    [
        (scaling.KINDS, scaling_pb2.Step.Kind, "KIND", StepKind),
        (scaling.EFFECTS, scaling_pb2.Step.Effect, "EFFECT", Effect),
        (scaling.STEP_STATES, scaling_pb2.Step.State, "STATE", StepState),
        (scaling.OUTCOMES, scaling_pb2.Outcome, "OUTCOME", Outcome),
    ],
)
def test_every_value_has_its_number(table: Any, enum: Any, prefix: str, values: Any) -> None:
    assert {value: enum.Name(number) for value, number in table.items()} == {
        value: f"{prefix}_{value.name}" for value in values
    }


def test_a_plan_in_full() -> None:
    message = scaling.to_plan(PlanReport(plan=plan(), facts=running()), 12.5)
    assert [(step.kind, step.effect, step.why, step.state) for step in message.steps] == [
        (
            scaling_pb2.Step.KIND_REBOOT,
            scaling_pb2.Step.EFFECT_REBOOT,
            "the ceiling is 4",
            scaling_pb2.Step.STATE_PENDING,
        )
    ]
    assert message.needs_reboot
    assert [(each.reason, each.message, dict(each.metadata)) for each in message.blockers] == [
        ("REBOOT_REQUIRED", "needs a reboot: ask with reboot SOFT", {"live": "4"})
    ]
    assert [(each.reason, dict(each.metadata)) for each in message.warnings] == [
        ("ROUNDED", {"used": "1024"})
    ]
    assert message.xml_diff == "-<vcpu>4</vcpu>\n+<vcpu>8</vcpu>\n"
    assert message.topology == domain_pb2.Topology(sockets=8, dies=1, clusters=1, cores=1, threads=1)
    assert message.etag == "0f" * 32
    assert message.domain.vcpus.maximum_config == 8
    assert message.domain.read_time.ToMilliseconds() == 12_500


def test_a_plan_shows_the_other_road() -> None:
    assert not scaling.to_plan(PlanReport(plan=plan(), facts=running()), 12.5).HasField("resize")
    big = Flavor("f-big", "big", 4, 1024, 10)
    road = ResizeRoad(None, big, ("the server restarts \ud800",))
    message = scaling.to_plan(PlanReport(plan=plan(), facts=running(), resize=road), 12.5).resize
    assert not message.HasField("exact")
    assert message.above == scaling_pb2.ResizeRoad.Flavor(
        id="f-big", name="big", vcpus=4, memory_mib=1024, disk_gib=10
    )
    assert list(message.consequences) == ["the server restarts ?"]


def test_a_step_shows_its_times_and_evidence() -> None:
    done, failed, pending = (scaling.to_step(step) for step in STEPS)
    assert (done.state, done.evidence) == (scaling_pb2.Step.STATE_DONE, "1 GiB")
    assert done.end_time.ToMilliseconds() - done.start_time.ToMilliseconds() == 1500
    assert failed.state == scaling_pb2.Step.STATE_FAILED
    assert not pending.HasField("start_time")
    assert not pending.HasField("end_time")


def test_reasons_survive_hostile_text() -> None:
    reason = scaling.to_reason(Note(Reason.AGENT_REFUSED, "said \udc80", {"desc": "\ud800"}))
    assert (reason.message, dict(reason.metadata)) == ("said ?", {"desc": "?"})
