"""What surrounds every RPC: malformed requests, bugs, bounds, log lines."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc
import pytest
import structlog
from google.longrunning import operations_pb2
from google.longrunning.operations_pb2_grpc import OperationsStub
from grpc_health.v1 import health_pb2
from grpc_health.v1.health_pb2_grpc import HealthStub
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs

from hvsvc.errors import NotFoundError, Reason
from hvsvc.service.access import Role
from hvsvc.service.server import ServerLimits
from hvsvc.v1 import domain_pb2, scaling_pb2
from hvsvc.v1.domain_pb2_grpc import DomainServiceStub
from hvsvc.v1.scaling_pb2_grpc import ScalingServiceStub
from tests.fakes.face import LIMITS, Face, Refusal, access, unix_face, until

GET = "/hvsvc.v1.DomainService/GetDomain"
WATCH = "/hvsvc.v1.DomainService/WatchDomains"
SET = "/hvsvc.v1.ScalingService/SetVcpus"


@pytest.fixture
async def channel(face: Face) -> AsyncIterator[grpc.aio.Channel]:
    async with grpc.aio.insecure_channel(face.target) as opened:
        yield opened


def raw(channel: grpc.aio.Channel, method: str) -> Any:
    return channel.unary_unary(method, request_serializer=bytes, response_deserializer=bytes)


async def test_a_malformed_request_is_the_callers_fault(face: Face, channel: grpc.aio.Channel) -> None:
    for body in (b"\xff\xff\xff", b"\x0a\x05ab", b"\x0a\x02\xff\xfe"):
        async with Refusal() as refusal:
            await raw(channel, SET)(body)
        assert (refusal.code, refusal.reason) == (grpc.StatusCode.INVALID_ARGUMENT, "INVALID_VALUE")
    assert face.changes.table.calls == []


async def test_an_unknown_method_is_unimplemented(channel: grpc.aio.Channel) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await raw(channel, "/hvsvc.v1.DomainService/Nothing")(b"")
    assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED


async def test_api_01_a_bug_leaks_nothing_and_is_found_by_its_id(
    face: Face, channel: grpc.aio.Channel
) -> None:
    face.reads.table.errors["get"] = RuntimeError("secret /etc/shadow")
    stub: Any = DomainServiceStub(channel)
    with capture_logs() as logs:
        async with Refusal() as refusal:
            await stub.GetDomain(domain_pb2.GetDomainRequest(name="db"))
    assert (refusal.code, refusal.reason) == (grpc.StatusCode.INTERNAL, "INTERNAL")
    assert "secret" not in str(refusal.status)
    bug = next(each for each in logs if each["event"] == "bug")
    assert bug["error_id"] == refusal.info.metadata["errorId"]
    assert isinstance(bug["exc_info"], RuntimeError)
    await until(lambda: face.counted(GET, "INTERNAL") == 1)


async def test_a_bug_in_a_stream_too(face: Face, channel: grpc.aio.Channel) -> None:
    face.reads.table.errors["watch"] = ZeroDivisionError("x")
    stub: Any = DomainServiceStub(channel)
    async with Refusal() as refusal:
        await stub.WatchDomains(domain_pb2.WatchDomainsRequest()).read()
    assert refusal.code is grpc.StatusCode.INTERNAL


async def test_a_long_refusal_still_reaches_a_default_client(face: Face, channel: grpc.aio.Channel) -> None:
    face.reads.table.errors["get"] = NotFoundError(
        Reason.DOMAIN_NOT_FOUND, "é" * 20_000, {"candidates": "x" * 20_000}
    )
    stub: Any = DomainServiceStub(channel)
    async with Refusal() as refusal:
        await stub.GetDomain(domain_pb2.GetDomainRequest(name="db"))
    assert (refusal.code, refusal.reason) == (grpc.StatusCode.NOT_FOUND, "DOMAIN_NOT_FOUND")


async def test_a_request_above_the_bound_is_refused(channel: grpc.aio.Channel) -> None:
    stub: Any = DomainServiceStub(channel)
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await stub.GetDomain(domain_pb2.GetDomainRequest(name="x" * 300_000))
    assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED


async def test_watches_and_waits_leave_room_for_short_calls(tmp_path: Path) -> None:
    limits = ServerLimits(calls=20, pages=LIMITS.pages)
    assert limits.long_calls == 18
    async with unix_face(tmp_path, limits=limits) as face, grpc.aio.insecure_channel(face.target) as channel:
        domains: Any = DomainServiceStub(channel)
        operations: Any = OperationsStub(channel)  # type: ignore[no-untyped-call]
        watches = [domains.WatchDomains(domain_pb2.WatchDomainsRequest()) for _ in range(17)]
        waiting = operations.WaitOperation(operations_pb2.WaitOperationRequest(name="operations/op-1"))
        await until(lambda: len(face.reads.table.calls) + len(face.operations.table.calls) == 18)
        async with Refusal() as refusal:
            await domains.WatchDomains(domain_pb2.WatchDomainsRequest()).read()
        assert (refusal.code, refusal.reason) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "TOO_MANY_CALLS")
        assert (await domains.GetDomain(domain_pb2.GetDomainRequest(name="db"))).libvirt_name == "db"
        watches.pop().cancel()
        await until(lambda: face.counted(WATCH, "CANCELLED") == 1)
        watches.append(domains.WatchDomains(domain_pb2.WatchDomainsRequest()))
        await until(lambda: len(face.reads.table.calls) == 19)
        for call in (*watches, waiting):
            call.cancel()


async def test_calls_above_the_limit_are_refused_by_the_server(tmp_path: Path) -> None:
    limits = ServerLimits(calls=1, pages=LIMITS.pages)
    async with unix_face(tmp_path, limits=limits) as face, grpc.aio.insecure_channel(face.target) as channel:
        stub: Any = DomainServiceStub(channel)
        watch = stub.WatchDomains(domain_pb2.WatchDomainsRequest())
        await until(lambda: len(face.reads.table.calls) == 1)
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await stub.GetDomain(domain_pb2.GetDomainRequest(name="db"))
        assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        watch.cancel()


async def test_the_log_names_caller_method_code_domain_and_operation(
    face: Face, channel: grpc.aio.Channel
) -> None:
    scaling: Any = ScalingServiceStub(channel)
    operations: Any = OperationsStub(channel)  # type: ignore[no-untyped-call]
    with capture_logs() as logs:
        await scaling.SetVcpus(scaling_pb2.SetVcpusRequest(name="web-1", vcpus=2))
        async with Refusal():
            await operations.GetOperation(operations_pb2.GetOperationRequest(name="operations/gone"))
        await until(lambda: sum(each["event"] == "rpc" for each in logs) == 2)
    lines = [
        {key: value for key, value in each.items() if key not in ("took_ms", "log_level", "event")}
        for each in logs
        if each["event"] == "rpc"
    ]
    assert lines == [
        {"method": SET, "code": "OK", "caller": "unix", "domain": "web-1", "operation": "operations/op-1"},
        {
            "method": "/google.longrunning.Operations/GetOperation",
            "code": "NOT_FOUND",
            "caller": "unix",
            "operation": "operations/gone",
            "reason": "OPERATION_NOT_FOUND",
        },
    ]


async def test_changes_and_refusals_are_logged_and_reads_only_for_debugging(
    face: Face, channel: grpc.aio.Channel
) -> None:
    domains: Any = DomainServiceStub(channel)
    scaling: Any = ScalingServiceStub(channel)
    with capture_logs() as logs:
        await HealthStub(channel).Check(health_pb2.HealthCheckRequest())
        await domains.GetDomain(domain_pb2.GetDomainRequest(name="db"))
        async with Refusal():
            await domains.GetDomain(domain_pb2.GetDomainRequest(name="gone"))
        await scaling.RebootDomain(scaling_pb2.RebootDomainRequest(name="db"))
    assert [
        (each["method"].split("/")[-1], each["log_level"]) for each in logs if each["event"] == "rpc"
    ] == [
        ("Check", "debug"),
        ("GetDomain", "debug"),
        ("GetDomain", "info"),
        ("RebootDomain", "info"),
    ]


async def test_what_runs_inside_a_call_logs_with_its_caller_and_domain(
    face: Face, channel: grpc.aio.Channel, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[dict[str, Any]] = []
    real = face.reads.get

    async def spy(name: str, *, full: bool) -> Any:
        seen.append(dict(structlog.contextvars.get_contextvars()))
        return await real(name, full=full)

    monkeypatch.setattr(face.reads, "get", spy)
    stub: Any = DomainServiceStub(channel)
    await stub.GetDomain(domain_pb2.GetDomainRequest(name="db"))
    assert seen == [{"caller": "unix", "domain": "db"}]
    assert structlog.contextvars.get_contextvars() == {}


async def test_metrics_count_calls_by_method_and_code(face: Face, channel: grpc.aio.Channel) -> None:
    stub: Any = DomainServiceStub(channel)
    await stub.GetDomain(domain_pb2.GetDomainRequest(name="db"))
    async with Refusal():
        await stub.GetDomain(domain_pb2.GetDomainRequest(name="gone"))
    await until(lambda: (face.counted(GET, "OK"), face.counted(GET, "NOT_FOUND")) == (1, 1))
    watch = stub.WatchDomains(domain_pb2.WatchDomainsRequest())
    await until(lambda: len(face.reads.table.calls) == 3)
    sample = face.metrics.registry.get_sample_value
    assert sample("hvsvc_rpcs_open", {"method": WATCH}) == 1
    watch.cancel()
    await asyncio.wait_for(face.reads.watch_left.wait(), 5)
    await until(lambda: face.counted(WATCH, "CANCELLED") == 1)
    assert sample("hvsvc_rpcs_open", {"method": WATCH}) == 0
    assert sample("hvsvc_rpc_duration_seconds_count", {"method": GET}) == 2
    assert sample("hvsvc_rpc_duration_seconds_count", {"method": WATCH}) is None


async def test_the_unix_role_is_what_the_policy_says(tmp_path: Path) -> None:
    policy = access(unix=Role.READER)
    async with unix_face(tmp_path, policy) as face, grpc.aio.insecure_channel(face.target) as channel:
        stub: Any = ScalingServiceStub(channel)
        async with Refusal() as refusal:
            await stub.SetVcpus(scaling_pb2.SetVcpusRequest(name="db", vcpus=1))
        assert refusal.code is grpc.StatusCode.PERMISSION_DENIED
        await stub.PlanScale(scaling_pb2.PlanScaleRequest(name="db", vcpus=1))


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(bodies=st.lists(st.binary(max_size=120), min_size=1, max_size=20))
def test_any_bytes_get_an_answer_and_never_a_bug(tmp_path: Path, bodies: list[bytes]) -> None:
    """Whatever is sent, no RPC ends with INTERNAL or UNKNOWN."""

    async def run() -> set[str]:
        codes: set[str] = set()
        async with unix_face(tmp_path) as face, grpc.aio.insecure_channel(face.target) as channel:
            for method in (
                GET,
                SET,
                "/hvsvc.v1.ScalingService/ScaleDomain",
                "/hvsvc.v1.DomainService/ListDomains",
            ):
                for body in bodies:
                    try:
                        await raw(channel, method)(body, timeout=5)
                    except grpc.aio.AioRpcError as err:
                        codes.add(err.code().name)
        return codes

    assert asyncio.run(run()) <= {"INVALID_ARGUMENT", "NOT_FOUND"}
