"""Statuses as failures, broken ones included."""

from __future__ import annotations

from typing import Any

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration
from google.rpc.error_details_pb2 import BadRequest, PreconditionFailure, RetryInfo
from google.rpc.status_pb2 import Status

from hvsvc.hvctl.failure import ERROR_SHAPE, failure_of_call, failure_of_status
from hvsvc.v1 import scaling_pb2
from tests.fakes.service_messages import domain, error_info, status


class CallError(grpc.RpcError):
    """An RpcError as a stub raises it."""

    def __init__(self, code: grpc.StatusCode, message: str | None, raw: bytes | None = None) -> None:
        super().__init__()
        self._code, self._message, self._raw = code, message, raw

    def code(self) -> grpc.StatusCode:
        return self._code

    def details(self) -> Any:
        return self._message

    def trailing_metadata(self) -> Any:
        return (("grpc-status-details-bin", self._raw),) if self._raw is not None else ()


DETAILS = [
    error_info("REBOOT_REQUIRED", ceiling="2"),
    PreconditionFailure(
        violations=[PreconditionFailure.Violation(type="NO_ACPI", subject="d", description="no ACPI")]
    ),
    BadRequest(field_violations=[BadRequest.FieldViolation(field="max_vcpus", description="too many")]),
    RetryInfo(retry_delay=Duration(seconds=5)),
    scaling_pb2.StepFailure(now=domain()),
]


def test_all_details_are_read() -> None:
    document = failure_of_status(status(9, "needs a reboot", DETAILS)).document
    assert document["code"] == "FAILED_PRECONDITION"
    assert document["reason"] == "REBOOT_REQUIRED"
    assert document["metadata"] == {"ceiling": "2"}
    assert document["violations"] == [{"type": "NO_ACPI", "subject": "d", "description": "no ACPI"}]
    assert document["field_violations"] == [{"field": "max_vcpus", "description": "too many"}]
    assert document["retry_delay"] == "5s"
    assert document["step_failure"]["now"]["libvirt_name"] == "instance-0000335c"
    assert set(document) == set(ERROR_SHAPE)


def test_of_a_call() -> None:
    sent = status(9, "needs a reboot", DETAILS[:1])
    error = CallError(grpc.StatusCode.FAILED_PRECONDITION, "needs a reboot", sent.SerializeToString())
    assert failure_of_call(error, "h:1").document == failure_of_status(sent).document


@pytest.mark.parametrize(
    "raw",
    [
        None,
        b"",
        b"\xff\xff",
        status(5, "another code than the call's").SerializeToString(),
        status(9, "another message").SerializeToString(),
    ],
)
def test_missing_or_contradicting_details_leave_code_and_message(raw: bytes | None) -> None:
    found = failure_of_call(CallError(grpc.StatusCode.FAILED_PRECONDITION, "refused", raw), "h:1")
    assert found.document == {"code": "FAILED_PRECONDITION", "message": "refused", "metadata": {}}


def test_a_broken_detail_does_not_hide_the_others() -> None:
    sent = status(9, "x", DETAILS[:1])
    sent.details[0].value = b"\xff\xff"
    sent.details.add().Pack(DETAILS[1])
    sent.details.add(type_url="type.googleapis.com/of.another.Service", value=b"\x01")
    found = failure_of_status(sent)
    assert found.reason == ""
    assert found.violations[0]["description"] == "no ACPI"


def test_no_message_and_unknown_code() -> None:
    assert failure_of_call(CallError(grpc.StatusCode.INTERNAL, None), "h:1").message == (
        "the service gave no message with INTERNAL"
    )
    assert failure_of_status(Status(code=4711, message="x")).code == "UNKNOWN"


def test_a_socket_that_is_not_there_is_named() -> None:
    found = failure_of_call(
        CallError(grpc.StatusCode.UNAVAILABLE, "ipv4:..."), "unix:///nonexistent/hvsvc.sock"
    )
    assert (found.code, found.message) == ("UNAVAILABLE", "there is no socket /nonexistent/hvsvc.sock")


def test_an_unavailable_of_the_service_itself_keeps_its_words() -> None:
    sent = status(14, "Nova does not answer", [error_info("NOVA_UNAVAILABLE")])
    error = CallError(grpc.StatusCode.UNAVAILABLE, "Nova does not answer", sent.SerializeToString())
    assert failure_of_call(error, "unix:///nonexistent/hvsvc.sock").message == "Nova does not answer"
