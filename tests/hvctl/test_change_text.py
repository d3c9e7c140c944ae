"""Plans and operations for people."""

from __future__ import annotations

import pytest

from hvsvc.hvctl.change_text import OUTCOME_WORDS, operation_lines, plan_lines
from hvsvc.hvctl.document import document_of
from hvsvc.hvctl.operation import operation_document
from hvsvc.v1 import domain_pb2, scaling_pb2
from tests.fakes.service_messages import domain, ended, error_info, failed, growth_steps, running, step

Step = scaling_pb2.Step


@pytest.mark.parametrize("name", scaling_pb2.Outcome.keys())
def test_every_outcome_has_words(name: str) -> None:
    word = name.removeprefix("OUTCOME_")
    assert word == "UNSPECIFIED" or word in OUTCOME_WORDS


def test_complete_shows_steps_and_before_after() -> None:
    lines = operation_lines(operation_document(ended()), with_steps=True)
    assert lines[0] == "web-1 (instance-0000335c): complete, each number read back"
    assert lines[1] == "operation: operations/0b7c"
    assert "  done  add vCPUs                       1.4 s  live vCPUs 8" in lines
    assert any("2 → 8" in line for line in lines)


def test_steps_shown_before_are_not_shown_again() -> None:
    lines = operation_lines(operation_document(ended()), with_steps=False)
    assert not any("live vCPUs 8" in line for line in lines)


def test_nothing_changed_is_said() -> None:
    lines = operation_lines(operation_document(ended(changed=False)), with_steps=True)
    assert lines[0].endswith("nothing to change: it is so already, each number read back")
    lines = operation_lines(
        {"name": "", "done": True, "outcome": "PENDING_REBOOT", "changed": False}, with_steps=True
    )
    assert lines[0].endswith("nothing to change: it is stored already, and takes effect at the next reboot")


def test_unconfirmed_never_reads_as_done() -> None:
    reason = scaling_pb2.Reason(reason="AGENT_NOT_CONNECTED", message="the guest agent is not connected\x1b")
    lines = operation_lines(
        operation_document(ended(scaling_pb2.OUTCOME_UNCONFIRMED, reasons=[reason])), with_steps=True
    )
    assert "not confirmed" in lines[0]
    assert "  AGENT_NOT_CONNECTED: the guest agent is not connected\\x1b" in lines
    assert "    next: start qemu-guest-agent in the guest" in lines


def test_an_unknown_outcome_or_none_is_not_success() -> None:
    assert "no result" in operation_lines({"name": "operations/x", "done": True}, with_steps=True)[0]
    document = {"name": "operations/x", "done": True, "outcome": "99"}
    assert "ended with 99" in operation_lines(document, with_steps=True)[0]


def test_failed_shows_what_is_true_now() -> None:
    detail = scaling_pb2.StepFailure(now=domain(max_vcpus=2))
    lines = operation_lines(
        operation_document(failed(9, "the ceiling is 2 again", [error_info("CEILING_LOST"), detail])),
        with_steps=True,
    )
    assert lines[0] == "web-1 (instance-0000335c): failed: CEILING_LOST"
    assert "Maximum vCPUs        2         2" in lines[lines.index("What is true now:") :]
    assert lines[-3:-1] == ["Error:", "  CEILING_LOST: the ceiling is 2 again"]
    assert lines[-1].startswith("    next: look at hvctl dominfo web-1, ")


def test_an_error_told_on_stderr_is_not_told_twice() -> None:
    document = operation_document(failed(9, "the ceiling is 2 again", [error_info("CEILING_LOST")]))
    lines = operation_lines(document, with_steps=True, with_error=False)
    assert lines[0] == "instance-0000335c: failed: CEILING_LOST"
    assert not any("the ceiling is 2 again" in line for line in lines)


def test_an_error_without_a_reason_is_named_by_its_status() -> None:
    lines = operation_lines(operation_document(failed(13, "broken")), with_steps=True)
    assert lines[0] == "instance-0000335c: failed: INTERNAL"
    assert lines[-1] == "  INTERNAL: broken"


@pytest.mark.parametrize(
    ("outcome", "title"),
    [
        ("COMPLETE", "Warnings:"),
        ("VALIDATED", "Warnings:"),
        ("PENDING_REBOOT", "Reasons:"),
        ("PARTIAL", "Reasons:"),
    ],
)
def test_what_stands_beside_an_outcome_that_is_as_asked_is_a_warning(outcome: str, title: str) -> None:
    reason = scaling_pb2.Reason(reason="LOST_BY_HARD_REBOOT", message="know it")
    ending = ended(scaling_pb2.Outcome.Value(f"OUTCOME_{outcome}"), reasons=[reason])
    lines = operation_lines(operation_document(ending), with_steps=True)
    assert lines[-2:] == [title, "  LOST_BY_HARD_REBOOT: know it"]


def test_a_dry_run_names_no_operation() -> None:
    lines = operation_lines({"name": "", "done": True, "outcome": "VALIDATED"}, with_steps=True)
    assert not any(line.startswith("operation:") for line in lines)


def test_running() -> None:
    assert operation_lines(operation_document(running(growth_steps(1))), with_steps=True)[0] == (
        "instance-0000335c: under way"
    )


def plan(**fields: object) -> list[str]:
    return plan_lines(document_of(scaling_pb2.PlanScaleResponse(domain=domain(), **fields)))  # type: ignore[arg-type]


def test_plan() -> None:
    lines = plan(
        steps=[
            step(
                Step.KIND_DEFINE_CONFIG, Step.STATE_PENDING, effect=Step.EFFECT_REBOOT, why="maximum 2 to 8"
            ),
            step(Step.KIND_SET_VCPUS_LIVE, Step.STATE_PENDING, why="2 to 8"),
        ],
        needs_reboot=True,
        warnings=[scaling_pb2.Reason(reason="ROUNDED", message="rounded up")],
        xml_diff="-  <vcpu>2</vcpu>\n+\t<vcpu>8</vcpu>\n+<x>\x1b</x>",
        topology=domain_pb2.Topology(sockets=8, dies=1, clusters=1, cores=1, threads=1),
        etag="e1",
    )
    assert lines[0] == "web-1 (instance-0000335c): needs a reboot"
    assert "  1. REBOOT  write the stored definition: maximum 2 to 8" in lines
    assert "  2. LIVE    add vCPUs: 2 to 8" in lines
    assert "Topology: 8 sockets x 1 die x 1 cluster x 1 core x 1 thread" in lines
    assert "  ROUNDED: rounded up" in lines
    assert lines[-5:] == ["-  <vcpu>2</vcpu>", "+\t<vcpu>8</vcpu>", "+<x>\\x1b</x>", "", "Etag: e1"]


def test_plan_verdicts() -> None:
    live = step(Step.KIND_SET_VCPUS_LIVE, Step.STATE_PENDING)
    blocker = scaling_pb2.Reason(reason="NO_ACPI", message="no ACPI")
    assert plan()[0].endswith("nothing to do")
    assert plan(steps=[live])[0].endswith("can be done live")
    assert plan(steps=[live], blockers=[blocker])[0].endswith("would be refused")


def test_a_plan_shows_the_other_road() -> None:
    big = scaling_pb2.ResizeRoad.Flavor(id="f", name="big\x1b", vcpus=4, memory_mib=1024, disk_gib=10)
    road = scaling_pb2.ResizeRoad(above=big, consequences=["the server restarts"])
    lines = plan_lines(document_of(scaling_pb2.PlanScaleResponse(domain=domain(), resize=road)))
    at = lines.index("Or by resizing the server through Nova:")
    assert lines[at + 1 : at + 3] == [
        "  flavor big\\x1b (smallest above): 4 vCPUs, 1 GiB, disk 10 GiB",
        "  - the server restarts",
    ]
