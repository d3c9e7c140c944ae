"""OperationService and google.longrunning.Operations: what became of the changes."""

# ruff: noqa: N802 - gRPC names the methods

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import grpc
from google.longrunning import operations_pb2, operations_pb2_grpc
from google.longrunning.operations_pb2 import Operation
from google.protobuf.empty_pb2 import Empty

from hvsvc.errors import InvalidArgumentError, Reason
from hvsvc.operations.reads import DomainReads
from hvsvc.operations.running import Operations
from hvsvc.service import pages
from hvsvc.service.conversion import fields
from hvsvc.service.conversion.operations import to_operation
from hvsvc.service.pages import PageLimits
from hvsvc.v1 import operation_pb2, operation_pb2_grpc

_Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"

_COLLECTION: Final = "operations"
_TERM: Final = re.compile(r'(domain|done)\s*=\s*(?:"([^"\\]*)"|([^\s"]+))')
_AND: Final = re.compile(r"\s+AND\s+")
_MAX_FILTER_CHARS: Final = 1024
_DONE: Final = {"true": True, "false": False}


class OperationServicer(operation_pb2_grpc.OperationServiceServicer):
    """Progress, as it happens."""

    def __init__(self, operations: Operations) -> None:
        self._operations = operations

    async def WatchOperation(
        self, request: operation_pb2.WatchOperationRequest, context: _Context
    ) -> AsyncIterator[Operation]:
        """The operation now and after each change, until it is done."""
        async for record in self._operations.watch(fields.operation_id(request.name)):
            yield to_operation(record)


class LongRunningServicer(operations_pb2_grpc.OperationsServicer):
    """The standard service for long-running operations (AIP-151)."""

    def __init__(self, operations: Operations, reads: DomainReads, page_limits: PageLimits) -> None:
        self._operations = operations
        self._reads = reads
        self._page_limits = page_limits

    async def GetOperation(self, request: operations_pb2.GetOperationRequest, context: _Context) -> Operation:
        """The operation now."""
        return to_operation(await self._operations.get(fields.operation_id(request.name)))

    async def ListOperations(
        self, request: operations_pb2.ListOperationsRequest, context: _Context
    ) -> operations_pb2.ListOperationsResponse:
        """One page, newest first; `filter` joins `domain = …` and `done = true|false` with AND."""
        if request.name not in ("", _COLLECTION):
            raise InvalidArgumentError(
                Reason.INVALID_VALUE,
                f'name is {ascii(request.name)[:80]}; it must be "{_COLLECTION}"',
                field="name",
            )
        asked = parse_filter(request.filter)
        size = self._page_limits.size(request.page_size)
        uuid = await self._reads.resolve(asked.domain) if asked.domain else None
        filters = (uuid, asked.done)
        before = pages.operation_cursor(filters, request.page_token)
        found = await self._operations.list(uuid=uuid, done=asked.done, before=before, limit=size + 1)
        page = found[:size]
        last = (page[-1].create_time_s, page[-1].id) if len(found) > size else None
        return operations_pb2.ListOperationsResponse(
            operations=[to_operation(record) for record in page],
            next_page_token="" if last is None else pages.operation_token(filters, last),
        )

    async def WaitOperation(
        self, request: operations_pb2.WaitOperationRequest, context: _Context
    ) -> Operation:
        """The operation once it is done, or as it is when `timeout` is over."""
        operation_id = fields.operation_id(request.name)
        timeout_s = _timeout_s(request)
        return to_operation(await self._operations.wait(operation_id, timeout_s))

    async def CancelOperation(
        self, request: operations_pb2.CancelOperationRequest, context: _Context
    ) -> Empty:
        """Asks the operation to end before its next step."""
        await self._operations.cancel(fields.operation_id(request.name))
        return Empty()

    async def DeleteOperation(
        self, request: operations_pb2.DeleteOperationRequest, context: _Context
    ) -> Empty:
        """Forgets an operation that has ended."""
        await self._operations.delete(fields.operation_id(request.name))
        return Empty()


@dataclass(frozen=True, slots=True)
class Filter:
    """What a list of operations is narrowed to; "" and None for no limit."""

    domain: str = ""
    done: bool | None = None


def parse_filter(text: str) -> Filter:
    """Parses `domain = "domains/…" AND done = true`, each term at most once, in any order.

    :raises InvalidArgumentError: INVALID_VALUE for anything else.
    """
    if not text.strip():
        return Filter()
    if len(text) > _MAX_FILTER_CHARS:
        raise _bad_filter(text)
    terms: dict[str, str] = {}
    for part in _AND.split(text.strip()):
        term = _TERM.fullmatch(part)
        if term is None or term[1] in terms:
            raise _bad_filter(text)
        terms[term[1]] = term[3] if term[2] is None else term[2]
    done = terms.get("done")
    if done is not None and done not in _DONE:
        raise _bad_filter(text)
    domain = fields.domain_name(terms["domain"], "filter") if "domain" in terms else ""
    return Filter(domain, None if done is None else _DONE[done])


def _bad_filter(text: str) -> InvalidArgumentError:
    return InvalidArgumentError(
        Reason.INVALID_VALUE,
        f"filter {ascii(text)[:80]} is not understood; it may hold"
        ' domain = "domains/{uuid}" and done = true or false, joined by AND',
        field="filter",
    )


def _timeout_s(request: operations_pb2.WaitOperationRequest) -> float | None:
    if not request.HasField("timeout"):
        return None
    timeout = request.timeout
    timeout_s: float = timeout.seconds + timeout.nanos / 1e9
    if timeout_s < 0 or not -1e9 < timeout.nanos < 1e9 or timeout.seconds > 315_576_000_000:
        raise InvalidArgumentError(
            Reason.INVALID_VALUE,
            f"timeout is {timeout_s:g} s; give 0 or more, or leave it out to wait for the end",
            field="timeout",
        )
    return timeout_s
