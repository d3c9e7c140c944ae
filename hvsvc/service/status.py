"""One table between hvsvc's errors and gRPC: the status code is the error class's own `status`.

An error becomes a `google.rpc.Status` with an ErrorInfo (AIP-193) and, where it
fits, BadRequest, PreconditionFailure and RetryInfo. The same message serves the
trailing metadata of a refused RPC and the error of a failed operation.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import grpc
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.rpc.error_details_pb2 import BadRequest, ErrorInfo, PreconditionFailure, RetryInfo
from google.rpc.status_pb2 import Status

from hvsvc.errors import HvsvcError, InternalError, InvalidArgumentError, Reason

ERROR_DOMAIN: Final = "hvsvc"
DETAILS_KEY: Final = "grpc-status-details-bin"

#: A client's default limit for all trailers is 8 KiB, other entries and 32 bytes for each included; a status above
#: it would reach the caller as RESOURCE_EXHAUSTED, without any of its text.
_TRAILER_LIMIT_BYTES: Final = 7168
_TRAILER_TEXT_CHARS: Final = 1024
_READABLE_CHARS: Final = 256

#: Busy, so that the same call may succeed soon; every other ABORTED needs a fresh look first.
_BUSY: Final = frozenset({Reason.DOMAIN_BUSY, Reason.SERVER_BUSY})
_FULL: Final = frozenset({Reason.TOO_MANY_OPERATIONS, Reason.TOO_MANY_CALLS})
_RETRY_S: Final = 2


def code_of(error: HvsvcError) -> grpc.StatusCode:
    """The gRPC status code of an error."""
    return grpc.StatusCode[error.status]


def clean(text: str) -> str:
    """The text as protobuf can carry it: a guest's reply may hold lone surrogates."""
    return text.encode("utf-8", "replace").decode("utf-8")


def to_status(error: HvsvcError, extra: Iterable[Message] = ()) -> Status:
    """The error in full, with `extra` messages among its details."""
    return _status(error, (error, *error.others), None, extra)


def to_trailer(error: HvsvcError) -> tuple[Status, bytes]:
    """The error for the trailers of an RPC: long texts are cut first, then the last of many blockers dropped."""
    shown = (error, *error.others)
    chars = _TRAILER_TEXT_CHARS
    while True:
        status = _status(error, shown, chars, ())
        packed: bytes = status.SerializeToString()
        if _wire_bytes(status.message, packed) <= _TRAILER_LIMIT_BYTES or chars <= 1:
            return status, packed
        if chars > _READABLE_CHARS or len(shown) == 1:
            chars //= 2
        else:
            shown = shown[:-1]


def _wire_bytes(message: str, packed: bytes) -> int:
    # gRPC percent-encodes the message and may send the details in base64.
    escaped = sum(1 if 0x20 <= byte <= 0x7E and byte != 0x25 else 3 for byte in message.encode())
    return escaped + len(packed) * 4 // 3


def internal(error_id: str) -> InternalError:
    """What a caller learns of a bug: nothing but where to look it up."""
    return InternalError(
        Reason.INTERNAL,
        f"internal error {error_id}: a bug of hvsvc; its log on the host holds the details under this id",
        {"errorId": error_id},
    )


def _status(
    error: HvsvcError, shown: tuple[HvsvcError, ...], text_chars: int | None, extra: Iterable[Message]
) -> Status:
    status = Status(code=code_of(error).value[0], message=_cut(error.message, text_chars))
    for detail in (*_details(error, shown, text_chars), *extra):
        status.details.add().Pack(detail)
    return status


def _details(error: HvsvcError, shown: tuple[HvsvcError, ...], text_chars: int | None) -> Iterable[Message]:
    metadata = {key: _cut(value, text_chars) for key, value in error.metadata.items()}
    yield ErrorInfo(reason=error.reason.value, domain=ERROR_DOMAIN, metadata=metadata)
    if isinstance(error, InvalidArgumentError) and error.field:
        violation = BadRequest.FieldViolation(
            field=error.field, description=_cut(error.message, text_chars), reason=error.reason.value
        )
        yield BadRequest(field_violations=[violation])
    if code_of(error) is grpc.StatusCode.FAILED_PRECONDITION or len(shown) > 1:
        yield PreconditionFailure(violations=[_violation(each, text_chars) for each in shown])
    if _retryable(error):
        yield RetryInfo(retry_delay=Duration(seconds=_RETRY_S))


def _violation(error: HvsvcError, text_chars: int | None) -> PreconditionFailure.Violation:
    return PreconditionFailure.Violation(
        type=error.reason.value,
        subject=clean(error.metadata.get("domain", "")),
        description=_cut(error.message, text_chars),
    )


def _retryable(error: HvsvcError) -> bool:
    return code_of(error) is grpc.StatusCode.UNAVAILABLE or error.reason in _BUSY | _FULL


def _cut(text: str, chars: int | None) -> str:
    text = clean(text)
    return text if chars is None or len(text) <= chars else text[: chars - 1] + "…"
