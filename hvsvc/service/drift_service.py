"""DriftService: what was asked for, compared with what is there."""

# ruff: noqa: N802 - gRPC names the methods

from __future__ import annotations

import time
from typing import Any, Final, TypeAlias

import grpc

from hvsvc.domain.desired import ReapplyPolicy
from hvsvc.operations.drifts import Drifts
from hvsvc.service.conversion import fields
from hvsvc.service.conversion.domains import timestamp
from hvsvc.service.conversion.drifts import POLICIES, to_desired, to_drift
from hvsvc.v1 import desired_pb2, drift_pb2, drift_pb2_grpc

_Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"

_POLICIES: Final[dict[int, ReapplyPolicy | None]] = {
    desired_pb2.REAPPLY_POLICY_UNSPECIFIED: None,
    **{number: policy for policy, number in POLICIES.items()},
}


class DriftServicer(drift_pb2_grpc.DriftServiceServicer):
    """Thin: checks the request, asks `Drifts`, converts."""

    def __init__(self, drifts: Drifts) -> None:
        self._drifts = drifts

    async def GetDrift(self, request: drift_pb2.GetDriftRequest, context: _Context) -> desired_pb2.Drift:
        """One comparison."""
        return to_drift(await self._drifts.get(fields.domain_name(request.name)))

    async def ListDrifts(
        self, request: drift_pb2.ListDriftsRequest, context: _Context
    ) -> drift_pb2.ListDriftsResponse:
        """Every comparison."""
        return drift_pb2.ListDriftsResponse(drifts=[to_drift(each) for each in await self._drifts.list()])

    async def SetReapplyPolicy(
        self, request: drift_pb2.SetReapplyPolicyRequest, context: _Context
    ) -> desired_pb2.Drift:
        """Another policy, or with UNSPECIFIED the configured one."""
        name = fields.domain_name(request.name)
        policy = fields.choice(_POLICIES, desired_pb2.ReapplyPolicy, request.policy, "policy")
        return to_drift(await self._drifts.set_policy(name, policy))

    async def ForgetDesiredState(
        self, request: drift_pb2.ForgetDesiredStateRequest, context: _Context
    ) -> drift_pb2.ForgetDesiredStateResponse:
        """Drops a record."""
        desired = await self._drifts.forget(fields.domain_name(request.name))
        return drift_pb2.ForgetDesiredStateResponse(
            desired=to_desired(desired), forget_time=timestamp(time.time())
        )
