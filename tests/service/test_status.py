"""One table between errors and status codes, and what the details hold."""

from __future__ import annotations

from urllib.parse import quote

import grpc
import pytest
from google.protobuf.message import Message
from google.rpc.error_details_pb2 import BadRequest, ErrorInfo, PreconditionFailure, RetryInfo
from google.rpc.status_pb2 import Status

from hvsvc.errors import (
    AbortedError,
    ExhaustedError,
    FailedPreconditionError,
    HvsvcError,
    InvalidArgumentError,
    NotFoundError,
    Reason,
    UnavailableError,
    UnimplementedError,
)
from hvsvc.service.status import clean, code_of, internal, to_status, to_trailer


def error_classes(root: type[HvsvcError] = HvsvcError) -> list[type[HvsvcError]]:
    found = [root]
    for child in root.__subclasses__():
        found += error_classes(child)
    return found


def detail(status: Status, empty: Message) -> Message | None:
    return next((empty for packed in status.details if packed.Unpack(empty)), None)


@pytest.mark.parametrize("kind", error_classes())
def test_every_error_class_names_its_own_status_code(kind: type[HvsvcError]) -> None:
    assert "status" in vars(kind), f"{kind.__name__} inherits its status: say what a caller should do"
    assert code_of(kind(Reason.INTERNAL, "x")) is grpc.StatusCode[kind.status]
    assert code_of(kind(Reason.INTERNAL, "x")) is not grpc.StatusCode.OK


def test_api_01_only_bugs_are_internal_or_unknown() -> None:
    bugs = {kind.__name__ for kind in error_classes() if kind.status in ("INTERNAL", "UNKNOWN")}
    assert bugs == {"HvsvcError", "InternalError"}


def test_error_info_has_reason_domain_and_metadata() -> None:
    status = to_status(NotFoundError(Reason.DOMAIN_NOT_FOUND, "no such domain", {"name": "web-9"}))
    assert status.code == 5
    assert status.message == "no such domain"
    info = detail(status, ErrorInfo())
    assert info == ErrorInfo(reason="DOMAIN_NOT_FOUND", domain="hvsvc", metadata={"name": "web-9"})
    assert len(status.details) == 1


def test_invalid_argument_names_the_field() -> None:
    status = to_status(InvalidArgumentError(Reason.INVALID_VALUE, "vcpus is 0", field="vcpus"))
    bad = detail(status, BadRequest())
    assert isinstance(bad, BadRequest)
    assert [(each.field, each.description, each.reason) for each in bad.field_violations] == [
        ("vcpus", "vcpus is 0", "INVALID_VALUE")
    ]


def test_all_blockers_of_one_refusal_are_violations() -> None:
    first = FailedPreconditionError(Reason.PINNED, "vCPUs are pinned", {"domain": "domains/1"})
    first.others = (
        FailedPreconditionError(Reason.HUGEPAGES, "hugepages"),
        UnimplementedError(Reason.NO_VCPU_HOTPLUG, "no hotplug"),
    )
    status = to_status(first)
    assert status.code == grpc.StatusCode.FAILED_PRECONDITION.value[0]
    failure = detail(status, PreconditionFailure())
    assert isinstance(failure, PreconditionFailure)
    assert [(each.type, each.subject, each.description) for each in failure.violations] == [
        ("PINNED", "domains/1", "vCPUs are pinned"),
        ("HUGEPAGES", "", "hugepages"),
        ("NO_VCPU_HOTPLUG", "", "no hotplug"),
    ]


@pytest.mark.parametrize(
    ("error", "retryable"),
    [
        (UnavailableError(Reason.LIBVIRT_UNAVAILABLE, "x"), True),
        (AbortedError(Reason.DOMAIN_BUSY, "x"), True),
        (ExhaustedError(Reason.TOO_MANY_OPERATIONS, "x"), True),
        (AbortedError(Reason.DEFINITION_CHANGED, "x"), False),
        (ExhaustedError(Reason.READER_TOO_SLOW, "x"), False),
        (FailedPreconditionError(Reason.PINNED, "x"), False),
    ],
)
def test_retry_info_only_where_the_same_call_may_succeed(error: HvsvcError, retryable: bool) -> None:
    retry = detail(to_status(error), RetryInfo())
    assert (retry is not None) is retryable
    if isinstance(retry, RetryInfo):
        assert retry.retry_delay.seconds == 2


def test_extra_details_follow() -> None:
    status = to_status(AbortedError(Reason.CANCELLED, "x"), [Status(message="extra")])
    assert detail(status, Status()) == Status(message="extra")


def test_trailer_fits_the_headers_of_a_default_client() -> None:
    first = FailedPreconditionError(Reason.PINNED, "p" * 3000, {"cpus": "9" * 3000})
    first.others = tuple(FailedPreconditionError(Reason.HUGEPAGES, "é" * 3000) for _ in range(40))
    status, packed = to_trailer(first)
    assert len(packed) * 4 / 3 + len(quote(status.message)) <= 7168
    assert Status.FromString(packed) == status
    failure = detail(status, PreconditionFailure())
    assert isinstance(failure, PreconditionFailure)
    assert 3 <= len(failure.violations) < 41
    assert len(failure.violations[1].description) == 256
    assert status.message.startswith("ppp")
    assert status.message.endswith("…")


def test_trailer_fits_even_with_much_metadata() -> None:
    error = NotFoundError(Reason.DOMAIN_NOT_FOUND, "no", {f"key{number}": "v" * 500 for number in range(90)})
    status, packed = to_trailer(error)
    assert len(packed) * 4 / 3 + len(quote(status.message)) <= 7168
    info = detail(status, ErrorInfo())
    assert isinstance(info, ErrorInfo)
    assert info.reason == "DOMAIN_NOT_FOUND"


def test_short_errors_are_whole_in_the_trailer() -> None:
    error = FailedPreconditionError(Reason.REBOOT_REQUIRED, "ask with reboot SOFT", {"live": 2})
    assert to_trailer(error)[0] == to_status(error)


def test_lone_surrogates_do_not_break_the_answer() -> None:
    status = to_status(NotFoundError(Reason.DOMAIN_NOT_FOUND, "no \ud800", {"name": "\udfff"}))
    assert status.message == "no ?"
    assert clean("ok é") == "ok é"


def test_a_bug_tells_its_id_and_nothing_else() -> None:
    error = internal("abc123")
    assert code_of(error) is grpc.StatusCode.INTERNAL
    assert error.metadata == {"errorId": "abc123"}
    assert "abc123" in error.message
