"""OperationService and google.longrunning.Operations through the server's real socket."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import grpc
import pytest
from google.longrunning import operations_pb2
from google.longrunning.operations_pb2_grpc import OperationsStub
from google.protobuf.duration_pb2 import Duration

from hvsvc.domain.steps import StepState
from hvsvc.errors import InvalidArgumentError
from hvsvc.service.operation_service import Filter, parse_filter
from hvsvc.v1 import operation_pb2, scaling_pb2
from hvsvc.v1.operation_pb2_grpc import OperationServiceStub
from tests.fakes.domains import WEB_UUID
from tests.fakes.face import Face, Refusal, ended, record


@pytest.fixture
async def channel(face: Face) -> AsyncIterator[grpc.aio.Channel]:
    async with grpc.aio.insecure_channel(face.target) as opened:
        yield opened


@pytest.fixture
def stub(channel: grpc.aio.Channel) -> Any:
    return OperationsStub(channel)  # type: ignore[no-untyped-call]


async def test_watch_operation_until_it_is_done(face: Face, channel: grpc.aio.Channel) -> None:
    first = record()
    steps = (first.steps[0], replace(first.steps[1], state=StepState.DONE), first.steps[2])
    face.operations.history = [first, replace(first, steps=steps), ended("op-1")]
    stub: Any = OperationServiceStub(channel)
    seen = [
        each
        async for each in stub.WatchOperation(operation_pb2.WatchOperationRequest(name="operations/op-1"))
    ]
    assert [each.done for each in seen] == [False, False, True]
    metadata = scaling_pb2.OperationMetadata()
    assert seen[1].metadata.Unpack(metadata)
    assert metadata.steps[1].state == scaling_pb2.Step.STATE_DONE
    assert seen[2].response.Is(scaling_pb2.ScaleResult.DESCRIPTOR)


async def test_watch_operation_that_is_not_there(channel: grpc.aio.Channel) -> None:
    stub: Any = OperationServiceStub(channel)
    async with Refusal() as refusal:
        await stub.WatchOperation(operation_pb2.WatchOperationRequest(name="operations/gone")).read()
    assert (refusal.code, refusal.reason) == (grpc.StatusCode.NOT_FOUND, "OPERATION_NOT_FOUND")


async def test_get_operation(stub: Any) -> None:
    operation = await stub.GetOperation(operations_pb2.GetOperationRequest(name="operations/op-2"))
    assert (operation.name, operation.done) == ("operations/op-2", True)


async def test_get_operation_refuses_other_names(face: Face, stub: Any) -> None:
    async with Refusal() as refusal:
        await stub.GetOperation(operations_pb2.GetOperationRequest(name="domains/op-2"))
    assert (refusal.code, refusal.field) == (grpc.StatusCode.INVALID_ARGUMENT, "name")
    assert face.operations.table.calls == []


async def test_list_operations_pages_newest_first(face: Face, stub: Any) -> None:
    for number in range(3):
        face.operations.records[f"old-{number}"] = ended(f"old-{number}", create_time_s=10.0 + number)
    request = operations_pb2.ListOperationsRequest(name="operations", page_size=2)
    first = await stub.ListOperations(request)
    assert [each.name for each in first.operations] == ["operations/op-1", "operations/op-2"]
    second = await stub.ListOperations(
        operations_pb2.ListOperationsRequest(page_size=3, page_token=first.next_page_token)
    )
    assert [each.name for each in second.operations] == [f"operations/old-{number}" for number in (2, 1, 0)]
    assert second.next_page_token == ""
    assert face.operations.table.last["before"] == (90.0, "op-2")


async def test_list_operations_by_domain_and_state(face: Face, stub: Any) -> None:
    reply = await stub.ListOperations(
        operations_pb2.ListOperationsRequest(filter='done = true AND domain = "instance-0000335c"')
    )
    assert [each.name for each in reply.operations] == ["operations/op-2"]
    last = face.operations.table.last
    assert (last["uuid"], last["done"], last["limit"]) == (WEB_UUID, True, 4)


@pytest.mark.parametrize(
    ("request_message", "field"),
    [
        (operations_pb2.ListOperationsRequest(name="domains"), "name"),
        (operations_pb2.ListOperationsRequest(page_size=6), "page_size"),
        (operations_pb2.ListOperationsRequest(page_token="AAAA"), "page_token"),
        (operations_pb2.ListOperationsRequest(filter="state = 1"), "filter"),
    ],
)
async def test_list_operations_refuses_bad_fields(
    face: Face, stub: Any, request_message: operations_pb2.ListOperationsRequest, field: str
) -> None:
    async with Refusal() as refusal:
        await stub.ListOperations(request_message)
    assert (refusal.code, refusal.field) == (grpc.StatusCode.INVALID_ARGUMENT, field)
    assert face.operations.table.calls == []


async def test_wait_operation_that_is_done(stub: Any) -> None:
    operation = await stub.WaitOperation(operations_pb2.WaitOperationRequest(name="operations/op-2"))
    assert operation.done


async def test_wait_operation_returns_what_is_known_when_its_time_is_over(face: Face, stub: Any) -> None:
    operation = await stub.WaitOperation(
        operations_pb2.WaitOperationRequest(name="operations/op-1", timeout=Duration(nanos=20_000_000))
    )
    assert not operation.done
    assert face.operations.table.last["timeout_s"] == pytest.approx(0.02)


async def test_wait_operation_honours_the_deadline_of_the_call(face: Face, stub: Any) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await stub.WaitOperation(operations_pb2.WaitOperationRequest(name="operations/op-1"), timeout=0.2)
    assert caught.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
    assert face.operations.table.last["timeout_s"] is None


@pytest.mark.parametrize("asked", [Duration(seconds=-1), Duration(nanos=-1), Duration(seconds=2**62)])
async def test_wait_operation_refuses_impossible_times(stub: Any, asked: Duration) -> None:
    async with Refusal() as refusal:
        await stub.WaitOperation(operations_pb2.WaitOperationRequest(name="operations/op-1", timeout=asked))
    assert (refusal.code, refusal.field) == (grpc.StatusCode.INVALID_ARGUMENT, "timeout")


async def test_cancel_operation(face: Face, stub: Any) -> None:
    await stub.CancelOperation(operations_pb2.CancelOperationRequest(name="operations/op-1"))
    assert face.operations.table.calls == [("cancel", {"operation_id": "op-1"})]


async def test_delete_operation(face: Face, stub: Any) -> None:
    await stub.DeleteOperation(operations_pb2.DeleteOperationRequest(name="operations/op-2"))
    assert face.operations.table.calls == [("delete", {"operation_id": "op-2"})]


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("", Filter()),
        ("  ", Filter()),
        ("done=false", Filter(done=False)),
        (' domain = "domains/x y"  AND  done=true ', Filter("domains/x y", done=True)),
        ("domain=web-1", Filter("web-1")),
        ('domain="a AND_b"', Filter("a AND_b")),
    ],
)
def test_filters(text: str, asked: Filter) -> None:
    assert parse_filter(text) == asked


@pytest.mark.parametrize(
    "text",
    [
        "done",
        "done = yes",
        "done = true AND done = false",
        "done = true OR done = false",
        'domain = ""',
        'domain = "a" b',
        'domain = "a\\"b"',
        "NOT done = true",
        "domain = a b",
        "x" * 1025,
        "\x00",
    ],
)
def test_filters_that_are_none(text: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        parse_filter(text)
    assert caught.value.field == "filter"
