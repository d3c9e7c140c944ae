"""ScalingService through the server's real socket."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import grpc
import pytest
from google.rpc.error_details_pb2 import PreconditionFailure, RetryInfo

from hvsvc.domain.target import Affect, GuestCpuMode, Method, RebootMode, Target
from hvsvc.errors import AbortedError, FailedPreconditionError, Reason
from hvsvc.v1 import scaling_pb2
from hvsvc.v1.scaling_pb2_grpc import ScalingServiceStub
from tests.fakes.face import Face, Refusal

REQUEST_ID = "aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee"
ETAG = "0f" * 32
COMMON: dict[str, Any] = {
    "name": "web-1",
    "etag": ETAG,
    "request_id": REQUEST_ID.upper(),
    "validate_only": True,
}


@pytest.fixture
async def stub(face: Face) -> AsyncIterator[Any]:
    async with grpc.aio.insecure_channel(face.target) as channel:
        yield ScalingServiceStub(channel)


def begun(face: Face) -> Target:
    """The target of the one change that began, with all the common fields."""
    ((method, arguments),) = face.changes.table.calls
    target: Target = arguments.pop("target")
    assert (method, arguments) == (
        "begin",
        {"name": "web-1", "etag": ETAG, "request_id": REQUEST_ID, "caller": "unix", "validate_only": True},
    )
    return target


async def test_plan_scale(face: Face, stub: Any) -> None:
    reply = await stub.PlanScale(
        scaling_pb2.PlanScaleRequest(name="web-1", vcpus=4, reboot=scaling_pb2.REBOOT_MODE_SOFT)
    )
    assert reply.needs_reboot
    assert [each.reason for each in reply.blockers] == ["REBOOT_REQUIRED"]
    assert reply.domain.vcpus.maximum_live == 4
    assert face.changes.table.last == {
        "name": "web-1",
        "target": Target(Method.SCALE_DOMAIN, vcpus=4, reboot=RebootMode.SOFT),
    }


async def test_raise_ceiling(face: Face, stub: Any) -> None:
    operation = await stub.RaiseCeiling(scaling_pb2.RaiseCeilingRequest(max_vcpus=8, boot_vcpus=2, **COMMON))
    assert operation.name == "operations/op-1"
    assert begun(face) == Target(Method.RAISE_CEILING, max_vcpus=8, boot_vcpus=2)


async def test_set_vcpus(face: Face, stub: Any) -> None:
    operation = await stub.SetVcpus(
        scaling_pb2.SetVcpusRequest(
            vcpus=4, affect=scaling_pb2.AFFECT_LIVE, guest_cpus=scaling_pb2.GUEST_CPUS_ALL, **COMMON
        )
    )
    assert not operation.done
    assert begun(face) == Target(Method.SET_VCPUS, vcpus=4, affect=Affect.LIVE, guest_cpus=GuestCpuMode.ALL)


async def test_set_memory(face: Face, stub: Any) -> None:
    await stub.SetMemory(scaling_pb2.SetMemoryRequest(memory_kib=1024, **COMMON))
    assert begun(face) == Target(Method.SET_MEMORY, memory_kib=1024)


async def test_scale_domain(face: Face, stub: Any) -> None:
    await stub.ScaleDomain(
        scaling_pb2.ScaleDomainRequest(
            vcpus=8, memory_kib=2048, reboot=scaling_pb2.REBOOT_MODE_SOFT, **COMMON
        )
    )
    assert begun(face) == Target(Method.SCALE_DOMAIN, vcpus=8, memory_kib=2048, reboot=RebootMode.SOFT)


async def test_reboot_domain(face: Face, stub: Any) -> None:
    await stub.RebootDomain(scaling_pb2.RebootDomainRequest(**COMMON))
    assert begun(face) == Target(Method.REBOOT_DOMAIN, reboot=RebootMode.SOFT)


@pytest.mark.parametrize(
    ("method", "request_message", "field"),
    [
        ("SetVcpus", scaling_pb2.SetVcpusRequest(name="web-1"), "vcpus"),
        ("SetVcpus", scaling_pb2.SetVcpusRequest(name="web-1", vcpus=0), "vcpus"),
        ("SetVcpus", scaling_pb2.SetVcpusRequest(name="web-1", vcpus=2**32 - 1), "vcpus"),
        ("SetVcpus", scaling_pb2.SetVcpusRequest(vcpus=2), "name"),
        ("SetVcpus", scaling_pb2.SetVcpusRequest(name="w", vcpus=2, affect=9), "affect"),  # type: ignore[arg-type]
        ("SetVcpus", scaling_pb2.SetVcpusRequest(name="w", vcpus=2, guest_cpus=9), "guest_cpus"),  # type: ignore[arg-type]
        ("SetMemory", scaling_pb2.SetMemoryRequest(name="web-1", memory_kib=0), "memory_kib"),
        ("SetMemory", scaling_pb2.SetMemoryRequest(name="web-1", memory_kib=2**64 - 1), "memory_kib"),
        ("RaiseCeiling", scaling_pb2.RaiseCeilingRequest(name="w", max_vcpus=0), "max_vcpus"),
        ("RaiseCeiling", scaling_pb2.RaiseCeilingRequest(name="w", max_vcpus=2, boot_vcpus=0), "boot_vcpus"),
        ("RaiseCeiling", scaling_pb2.RaiseCeilingRequest(name="w", max_vcpus=2, reboot=3), "reboot"),  # type: ignore[arg-type]
        ("ScaleDomain", scaling_pb2.ScaleDomainRequest(name="web-1"), "vcpus"),
        ("ScaleDomain", scaling_pb2.ScaleDomainRequest(name="w", vcpus=2, request_id="1"), "request_id"),
        ("RebootDomain", scaling_pb2.RebootDomainRequest(name="w", etag="<xml>"), "etag"),
        ("PlanScale", scaling_pb2.PlanScaleRequest(name="w", memory_kib=0), "memory_kib"),
    ],
)
async def test_cpu_08_bad_values_are_refused_before_anything_is_touched(
    face: Face, stub: Any, method: str, request_message: Any, field: str
) -> None:
    async with Refusal() as refusal:
        await getattr(stub, method)(request_message)
    assert (refusal.code, refusal.field) == (grpc.StatusCode.INVALID_ARGUMENT, field)
    assert face.changes.table.calls == []
    assert face.reads.table.calls == []


async def test_every_blocker_of_a_refusal_reaches_the_caller(face: Face, stub: Any) -> None:
    first = FailedPreconditionError(Reason.REBOOT_REQUIRED, "needs a reboot", {"liveMaximum": 2})
    first.others = (FailedPreconditionError(Reason.NO_BALLOON, "no balloon"),)
    face.changes.table.errors["begin"] = first
    async with Refusal() as refusal:
        await stub.ScaleDomain(scaling_pb2.ScaleDomainRequest(name="web-1", vcpus=8))
    assert (refusal.code, refusal.reason) == (grpc.StatusCode.FAILED_PRECONDITION, "REBOOT_REQUIRED")
    assert refusal.info.metadata["liveMaximum"] == "2"
    failure = refusal.detail(PreconditionFailure())
    assert failure is not None
    assert [each.type for each in failure.violations] == ["REBOOT_REQUIRED", "NO_BALLOON"]


async def test_api_02_a_busy_domain_says_when_to_come_back(face: Face, stub: Any) -> None:
    face.changes.table.errors["begin"] = AbortedError(Reason.DOMAIN_BUSY, "operations/op-1 works on it")
    async with Refusal() as refusal:
        await stub.SetVcpus(scaling_pb2.SetVcpusRequest(name="web-1", vcpus=2))
    assert (refusal.code, refusal.reason) == (grpc.StatusCode.ABORTED, "DOMAIN_BUSY")
    assert refusal.detail(RetryInfo()) is not None
