"""DriftService through the server's real socket."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import grpc
import pytest

from hvsvc.domain.desired import ReapplyPolicy
from hvsvc.domain.drift import DriftStatus
from hvsvc.v1 import desired_pb2, drift_pb2
from hvsvc.v1.drift_pb2_grpc import DriftServiceStub
from tests.fakes.domains import DB_UUID, WEB_UUID
from tests.fakes.drifts import report
from tests.fakes.face import Face, Refusal

NAME = f"domains/{WEB_UUID}"


@pytest.fixture
def face(face: Face) -> Face:
    face.drifts.reports = [report(), report(DriftStatus.MOVED, uuid=DB_UUID, libvirt_name="db")]
    return face


@pytest.fixture
async def stub(face: Face) -> AsyncIterator[Any]:
    async with grpc.aio.insecure_channel(face.target) as channel:
        yield DriftServiceStub(channel)


async def test_get_drift_says_what_was_asked_and_what_is_there(face: Face, stub: Any) -> None:
    drift = await stub.GetDrift(drift_pb2.GetDriftRequest(name="instance-0000335c"))
    assert (drift.domain, drift.status) == (NAME, desired_pb2.Drift.STATUS_CEILING_LOST)
    assert drift.desired.max_vcpus == 8
    assert face.drifts.table.last == {"name": "instance-0000335c"}


async def test_get_drift_of_nothing_recorded_is_not_found(face: Face, stub: Any) -> None:
    async with Refusal() as refusal:
        await stub.GetDrift(drift_pb2.GetDriftRequest(name="other"))
    assert (refusal.code, refusal.reason) == (grpc.StatusCode.NOT_FOUND, "NOTHING_RECORDED")


async def test_list_drifts_has_those_that_left_too(face: Face, stub: Any) -> None:
    reply = await stub.ListDrifts(drift_pb2.ListDriftsRequest())
    assert [(drift.domain, drift.status) for drift in reply.drifts] == [
        (NAME, desired_pb2.Drift.STATUS_CEILING_LOST),
        (f"domains/{DB_UUID}", desired_pb2.Drift.STATUS_MOVED),
    ]


@pytest.mark.parametrize(
    ("number", "policy"),
    [
        (desired_pb2.REAPPLY_POLICY_UNSPECIFIED, None),
        (desired_pb2.REAPPLY_POLICY_REPORT, ReapplyPolicy.REPORT),
        (desired_pb2.REAPPLY_POLICY_LIVE, ReapplyPolicy.LIVE),
    ],
)
async def test_set_reapply_policy(face: Face, stub: Any, number: Any, policy: ReapplyPolicy | None) -> None:
    drift = await stub.SetReapplyPolicy(drift_pb2.SetReapplyPolicyRequest(name=NAME, policy=number))
    assert drift.domain == NAME
    assert face.drifts.table.last == {"name": NAME, "policy": policy}


async def test_set_reapply_policy_refuses_what_it_does_not_know(face: Face, stub: Any) -> None:
    async with Refusal() as refusal:
        await stub.SetReapplyPolicy(drift_pb2.SetReapplyPolicyRequest(name=NAME, policy=9))  # type: ignore[arg-type]
    assert (refusal.code, refusal.field) == (grpc.StatusCode.INVALID_ARGUMENT, "policy")
    assert face.drifts.table.calls == []


async def test_forget_desired_state_answers_with_what_it_was(face: Face, stub: Any) -> None:
    reply = await stub.ForgetDesiredState(drift_pb2.ForgetDesiredStateRequest(name=NAME))
    assert (reply.desired.max_vcpus, reply.desired.caller) == (8, "uri:spiffe://ops")
    assert reply.forget_time.seconds > 1_700_000_000
    assert face.drifts.table.last == {"name": NAME}
