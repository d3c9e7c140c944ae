"""An error of the service, of an operation or of the connection, as one value.

Whatever the other side sent is taken with care: details that are missing, of another
service, or not decodable still leave a code and a message.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

import grpc
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.message import DecodeError
from google.rpc.error_details_pb2 import BadRequest, ErrorInfo, PreconditionFailure, RetryInfo
from grpc_status import rpc_status

from hvsvc.hvctl.channel import socket_trouble
from hvsvc.hvctl.document import Document, Shape, document_of, shape_of
from hvsvc.v1 import scaling_pb2

STATUS_NAMES: Final[dict[int, str]] = {code.value[0]: code.name for code in grpc.StatusCode}

#: what `error` of a document can hold
ERROR_SHAPE: Final[Shape] = {
    "code": None,
    "reason": None,
    "message": None,
    "metadata": {"*": None},
    "violations": None,
    "field_violations": None,
    "retry_delay": None,
    "step_failure": shape_of(scaling_pb2.StepFailure.DESCRIPTOR),
}


@dataclass(frozen=True, slots=True)
class Failure:
    """What went wrong.

    :param code: name of the gRPC status.
    :param reason: the service's reason; empty where the error is not its own.
    """

    code: str
    message: str
    reason: str = ""
    metadata: dict[str, str] = field(default_factory=dict)
    #: every blocker of a failed precondition
    violations: list[dict[str, Any]] = field(default_factory=list)
    field_violations: list[dict[str, Any]] = field(default_factory=list)
    retry_delay: str = ""
    #: a StepFailure, as a document
    step_failure: Document | None = None

    @property
    def document(self) -> Document:
        """`code`, `message` and `metadata`, and what else there is."""
        always: Document = {"code": self.code}
        if self.reason:
            always["reason"] = self.reason
        always |= {"message": self.message, "metadata": self.metadata}
        rest = {
            "violations": self.violations,
            "field_violations": self.field_violations,
            "retry_delay": self.retry_delay,
            "step_failure": self.step_failure,
        }
        return always | {key: value for key, value in rest.items() if value}


def failure_of_call(error: grpc.RpcError, target: str) -> Failure:
    """The error of a call to `target`."""
    code: grpc.StatusCode = error.code()
    message: str = error.details() or ""
    details: Iterable[AnyMessage] = ()
    try:
        status = rpc_status.from_call(error)
    except (ValueError, DecodeError):
        status = None  # Details that contradict the status, or are no Status at all.
    if status is not None:
        details = status.details
    found = _failure(code.name, message, details)
    if not found.reason and code is grpc.StatusCode.UNAVAILABLE and (trouble := socket_trouble(target)):
        return Failure(*trouble)
    return found


def failure_of_status(status: Any) -> Failure:
    """The google.rpc.Status of a failed operation."""
    return _failure(STATUS_NAMES.get(status.code, "UNKNOWN"), status.message, status.details)


def _failure(code: str, message: str, details: Iterable[AnyMessage]) -> Failure:
    values: dict[str, Any] = {}
    for packed in details:
        for kind, read in _READERS.items():
            detail = kind()
            if not packed.Is(detail.DESCRIPTOR):
                continue
            try:
                packed.Unpack(detail)
            except DecodeError:
                continue
            values |= read(detail)
    return Failure(code, message or f"the service gave no message with {code}", **values)


def _read_retry_info(detail: Any) -> dict[str, Any]:
    return {"retry_delay": detail.retry_delay.ToJsonString()}


_READERS: Final[dict[Any, Any]] = {
    ErrorInfo: lambda detail: {"reason": detail.reason, "metadata": dict(detail.metadata)},
    PreconditionFailure: lambda detail: {"violations": document_of(detail)["violations"]},
    BadRequest: lambda detail: {"field_violations": document_of(detail)["field_violations"]},
    RetryInfo: _read_retry_info,
    scaling_pb2.StepFailure: lambda detail: {"step_failure": document_of(detail)},
}
