"""ScalingService: plans and changes."""

# ruff: noqa: N802 - gRPC names the methods

from __future__ import annotations

import time
from typing import Any, Protocol, TypeAlias

import grpc
from google.longrunning.operations_pb2 import Operation

from hvsvc.domain.target import Target
from hvsvc.operations.changes import Changes
from hvsvc.service.access import current_caller
from hvsvc.service.conversion import fields, requests
from hvsvc.service.conversion.operations import to_operation
from hvsvc.service.conversion.scaling import to_plan
from hvsvc.v1 import scaling_pb2, scaling_pb2_grpc

_Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"


class _Change(Protocol):
    """What every changing request has."""

    name: str
    etag: str
    request_id: str
    validate_only: bool


class ScalingServicer(scaling_pb2_grpc.ScalingServiceServicer):
    """Thin: checks the request, hands its target to `Changes`, converts."""

    def __init__(self, changes: Changes) -> None:
        self._changes = changes

    async def PlanScale(
        self, request: scaling_pb2.PlanScaleRequest, context: _Context
    ) -> scaling_pb2.PlanScaleResponse:
        """What a target needs."""
        name = fields.domain_name(request.name)
        report = await self._changes.plan(name, requests.plan_target(request))
        return to_plan(report, time.time())

    async def RaiseCeiling(self, request: scaling_pb2.RaiseCeilingRequest, context: _Context) -> Operation:
        """Raises the ceiling."""
        return await self._begin(request, requests.raise_target(request))

    async def SetVcpus(self, request: scaling_pb2.SetVcpusRequest, context: _Context) -> Operation:
        """Sets the current vCPUs."""
        return await self._begin(request, requests.vcpus_target(request))

    async def SetMemory(self, request: scaling_pb2.SetMemoryRequest, context: _Context) -> Operation:
        """Sets the current memory."""
        return await self._begin(request, requests.memory_target(request))

    async def ScaleDomain(self, request: scaling_pb2.ScaleDomainRequest, context: _Context) -> Operation:
        """Does the whole job."""
        return await self._begin(request, requests.scale_target(request))

    async def RebootDomain(self, request: scaling_pb2.RebootDomainRequest, context: _Context) -> Operation:
        """Reboots."""
        return await self._begin(request, requests.reboot_target())

    async def _begin(self, request: _Change, target: Target) -> Operation:
        record = await self._changes.begin(
            fields.domain_name(request.name),
            target,
            etag=fields.etag(request.etag),
            request_id=fields.request_id(request.request_id),
            caller=current_caller.get().identity,
            validate_only=request.validate_only,
        )
        return to_operation(record)
