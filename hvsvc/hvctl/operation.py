"""A google.longrunning.Operation of hvsvc as one flat document.

`name`, `done`, what its metadata says, and then `outcome`, `changed`, `reasons`,
`before`, `after` and `steps`, or `error`.
"""

from __future__ import annotations

from typing import Any, Final

from google.longrunning.operations_pb2 import Operation
from google.protobuf.message import DecodeError, Message

from hvsvc.hvctl import exit_codes
from hvsvc.hvctl.document import Document, Shape, document_of, shape_of
from hvsvc.hvctl.failure import ERROR_SHAPE, Failure, failure_of_status
from hvsvc.v1 import scaling_pb2

OPERATION_SHAPE: Final[Shape] = {
    "name": None,
    "done": None,
    **shape_of(scaling_pb2.OperationMetadata.DESCRIPTOR),
    **shape_of(scaling_pb2.ScaleResult.DESCRIPTOR),
    "error": ERROR_SHAPE,
}


def operation_document(operation: Operation) -> Document:
    """The operation as a document; a result or metadata of another type is left out."""
    document: Document = {"name": operation.name, "done": operation.done}
    metadata = scaling_pb2.OperationMetadata()
    if _unpack(operation.metadata, metadata):
        document |= document_of(metadata)
    result = scaling_pb2.ScaleResult()
    if operation.WhichOneof("result") == "response" and _unpack(operation.response, result):
        document |= document_of(result)
    if failure := operation_failure(operation):
        document["error"] = failure.document
    return document


def operation_failure(operation: Operation) -> Failure | None:
    """Why the operation failed; None where it did not."""
    return failure_of_status(operation.error) if operation.WhichOneof("result") == "error" else None


def steps_of(operation: Operation) -> list[scaling_pb2.Step]:
    """Steps so far and those planned."""
    metadata = scaling_pb2.OperationMetadata()
    return list(metadata.steps) if _unpack(operation.metadata, metadata) else []


def exit_code_of(document: Document, *, reboot_asked: bool) -> int:
    """Exit code of a finished operation."""
    if error := document.get("error"):
        return exit_codes.for_status(error["code"])
    return exit_codes.for_outcome(document.get("outcome"), reboot_asked=reboot_asked)


def full_name(name: str) -> str:
    """`operations/ID` of the ID alone or of the whole name."""
    return name if name.startswith("operations/") else f"operations/{name}"


def _unpack(packed: Any, into: Message) -> bool:
    try:
        return bool(packed.Unpack(into))
    except DecodeError:
        return False
