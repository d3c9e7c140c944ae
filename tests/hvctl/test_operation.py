"""An Operation as one flat document."""

from __future__ import annotations

from google.longrunning.operations_pb2 import Operation

from hvsvc.hvctl.operation import OPERATION_SHAPE, exit_code_of, full_name, operation_document
from hvsvc.v1 import domain_pb2, scaling_pb2
from tests.fakes.service_messages import UUID, domain, ended, error_info, failed, growth_steps, running, step


def test_running_has_no_result() -> None:
    document = operation_document(running(growth_steps(1)))
    assert document["name"] == "operations/0b7c"
    assert document["done"] is False
    assert document["domain"] == f"domains/{UUID}"
    assert [item["state"] for item in document["steps"]] == ["DONE", "RUNNING", "PENDING"]
    assert not {"outcome", "changed", "error", "before", "after"} & set(document)


def test_ended_has_the_keys_of_the_contract() -> None:
    reason = scaling_pb2.Reason(reason="GUEST_CPUS_OFFLINE", message="2 offline")
    document = operation_document(ended(scaling_pb2.OUTCOME_PARTIAL, reasons=[reason]))
    assert {"name", "done", "outcome", "changed", "reasons", "before", "after", "steps"} <= set(document)
    assert document["outcome"] == "PARTIAL"
    assert document["changed"] is True
    assert document["reasons"][0]["reason"] == "GUEST_CPUS_OFFLINE"
    assert (document["before"]["vcpus"]["current_live"], document["after"]["vcpus"]["current_live"]) == (2, 8)
    assert exit_code_of(document, reboot_asked=False) == 7


def test_nothing_changed_says_so() -> None:
    assert operation_document(ended(changed=False))["changed"] is False


def test_failed_has_the_error_with_what_is_true_now() -> None:
    detail = scaling_pb2.StepFailure(
        failed=step(scaling_pb2.Step.KIND_REBOOT, scaling_pb2.Step.STATE_FAILED), now=domain(max_vcpus=2)
    )
    document = operation_document(
        failed(9, "the ceiling is 2 again", [error_info("CEILING_LOST", asked="8"), detail])
    )
    error = document["error"]
    assert (error["code"], error["reason"], error["message"], error["metadata"]) == (
        "FAILED_PRECONDITION",
        "CEILING_LOST",
        "the ceiling is 2 again",
        {"asked": "8"},
    )
    assert error["step_failure"]["failed"]["kind"] == "REBOOT"
    assert error["step_failure"]["now"]["vcpus"]["maximum_live"] == 2
    assert "outcome" not in document
    assert exit_code_of(document, reboot_asked=True) == 4


def test_cancelled_is_done_in_part() -> None:
    document = operation_document(failed(1, "cancelled after 1 step", [error_info("CANCELLED")]))
    assert exit_code_of(document, reboot_asked=False) == 7


def test_a_result_that_cannot_be_read_proves_nothing() -> None:
    other = Operation(name="operations/x", done=True)
    other.response.Pack(domain_pb2.Domain(uuid="x"))
    broken = Operation(name="operations/x", done=True)
    broken.response.type_url = "type.googleapis.com/hvsvc.v1.ScaleResult"
    broken.response.value = b"\xff\xff\xff"
    broken.metadata.type_url = "type.googleapis.com/hvsvc.v1.OperationMetadata"
    broken.metadata.value = b"\xff"
    for operation in (other, broken, Operation(name="operations/x", done=True)):
        document = operation_document(operation)
        assert document == {"name": "operations/x", "done": True}
        assert exit_code_of(document, reboot_asked=False) == 7


def test_every_key_is_in_the_shape() -> None:
    failure = scaling_pb2.StepFailure(now=domain())
    for operation in (running([]), ended(), failed(9, "x", [error_info("CEILING_LOST"), failure])):
        assert set(operation_document(operation)) <= set(OPERATION_SHAPE)


def test_full_name() -> None:
    assert full_name("0b7c") == full_name("operations/0b7c") == "operations/0b7c"
