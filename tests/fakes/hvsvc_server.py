"""A gRPC server in place of hvsvc, for tests of the client.

It answers with what its attributes hold. `errors` is a table: each call of an RPC takes
the next entry of its list, an error to raise or None to answer. `seen` keeps every
request.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent import futures
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, NoReturn, Self

import grpc
from google.longrunning import operations_pb2, operations_pb2_grpc
from google.protobuf.empty_pb2 import Empty
from google.protobuf.message import Message
from google.rpc.status_pb2 import Status
from grpc_health.v1 import health_pb2, health_pb2_grpc

from hvsvc.v1 import (
    desired_pb2,
    domain_pb2,
    domain_pb2_grpc,
    drift_pb2,
    drift_pb2_grpc,
    operation_pb2_grpc,
    scaling_pb2,
    scaling_pb2_grpc,
)

_CODES = {code.value[0]: code for code in grpc.StatusCode}


@dataclass
class FakeHvsvc:
    """What the service has and how its calls go."""

    domains: list[domain_pb2.Domain] = field(default_factory=list)
    drifts: list[desired_pb2.Drift] = field(default_factory=list)
    host: domain_pb2.Host = field(default_factory=domain_pb2.Host)
    plan: scaling_pb2.PlanScaleResponse = field(default_factory=scaling_pb2.PlanScaleResponse)
    #: reports of an operation in order: the first answers the change, the rest are streamed, the last is what Get reads
    reports: list[operations_pb2.Operation] = field(default_factory=list)
    changes: list[domain_pb2.WatchDomainsResponse] = field(default_factory=list)
    health: int = health_pb2.HealthCheckResponse.SERVING
    page_size: int = 2
    #: RPC -> for each call a Status to fail with, raw bytes as its details, or None
    errors: dict[str, list[Status | bytes | None]] = field(default_factory=dict)
    seen: list[tuple[str, Any]] = field(default_factory=list)
    #: cleared, it holds a stream before its last report
    released: threading.Event = field(default_factory=threading.Event)
    #: whether a change is held too, before its answer
    held_changes: bool = False
    #: set when a call is held
    holding: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self.released.set()

    def enter(self, rpc: str, request: Message, context: grpc.ServicerContext) -> None:
        """Keep the request, and fail as the table says."""
        self.seen.append((rpc, request))
        queue = self.errors.get(rpc, [])
        error = queue.pop(0) if queue else None
        if error is not None:
            fail(context, error)

    def requests(self, rpc: str) -> list[Any]:
        """Requests of this RPC."""
        return [request for name, request in self.seen if name == rpc]

    def hold(self) -> None:
        """Wait until the test goes on."""
        self.holding.set()
        self.released.wait(timeout=60)


def fail(context: grpc.ServicerContext, error: Status | bytes) -> NoReturn:
    """End the call with this status; bytes are sent as details that are none."""
    raw = error if isinstance(error, bytes) else error.SerializeToString()
    code = 9 if isinstance(error, bytes) else error.code
    message = "refused" if isinstance(error, bytes) else error.message
    context.set_trailing_metadata((("grpc-status-details-bin", raw),))
    context.abort(_CODES[code], message)
    raise AssertionError("abort raises")


class _Domains(domain_pb2_grpc.DomainServiceServicer):
    def __init__(self, fake: FakeHvsvc) -> None:
        self._fake = fake

    def ListDomains(self, request: Any, context: Any) -> Any:  # noqa: N802  gRPC's names
        fake = self._fake
        fake.enter("ListDomains", request, context)
        wanted = [domain for domain in fake.domains if not request.states or domain.state in request.states]
        start = int(request.page_token or 0)
        end = start + fake.page_size
        token = str(end) if end < len(wanted) else ""
        return domain_pb2.ListDomainsResponse(domains=wanted[start:end], next_page_token=token)

    def GetDomain(self, request: Any, context: Any) -> Any:  # noqa: N802
        self._fake.enter("GetDomain", request, context)
        return self._fake.domains[0]

    def GetHost(self, request: Any, context: Any) -> Any:  # noqa: N802
        self._fake.enter("GetHost", request, context)
        return self._fake.host

    def WatchDomains(self, request: Any, context: Any) -> Iterator[Any]:  # noqa: N802
        fake = self._fake
        fake.enter("WatchDomains", request, context)
        yield from fake.changes
        if fake.errors.get("WatchDomains"):
            fail(context, Status(code=14, message="libvirt went away"))
        fake.hold()


class _Drifts(drift_pb2_grpc.DriftServiceServicer):
    def __init__(self, fake: FakeHvsvc) -> None:
        self._fake = fake

    def GetDrift(self, request: Any, context: Any) -> Any:  # noqa: N802
        self._fake.enter("GetDrift", request, context)
        return self._fake.drifts[0]

    def ListDrifts(self, request: Any, context: Any) -> Any:  # noqa: N802
        self._fake.enter("ListDrifts", request, context)
        return drift_pb2.ListDriftsResponse(drifts=self._fake.drifts)

    def SetReapplyPolicy(self, request: Any, context: Any) -> Any:  # noqa: N802
        self._fake.enter("SetReapplyPolicy", request, context)
        return self._fake.drifts[0]

    def ForgetDesiredState(self, request: Any, context: Any) -> Any:  # noqa: N802
        self._fake.enter("ForgetDesiredState", request, context)
        return drift_pb2.ForgetDesiredStateResponse(desired=self._fake.drifts[0].desired)


class _Scaling(scaling_pb2_grpc.ScalingServiceServicer):
    def __init__(self, fake: FakeHvsvc) -> None:
        self._fake = fake

    def PlanScale(self, request: Any, context: Any) -> Any:  # noqa: N802
        self._fake.enter("PlanScale", request, context)
        return self._fake.plan

    def _change(self, rpc: str, request: Any, context: Any) -> Any:
        self._fake.enter(rpc, request, context)
        if self._fake.held_changes:
            self._fake.hold()
        return self._fake.reports[0]

    def RaiseCeiling(self, request: Any, context: Any) -> Any:  # noqa: N802
        return self._change("RaiseCeiling", request, context)

    def SetVcpus(self, request: Any, context: Any) -> Any:  # noqa: N802
        return self._change("SetVcpus", request, context)

    def SetMemory(self, request: Any, context: Any) -> Any:  # noqa: N802
        return self._change("SetMemory", request, context)

    def ScaleDomain(self, request: Any, context: Any) -> Any:  # noqa: N802
        return self._change("ScaleDomain", request, context)

    def RebootDomain(self, request: Any, context: Any) -> Any:  # noqa: N802
        return self._change("RebootDomain", request, context)


class _Progress(operation_pb2_grpc.OperationServiceServicer):
    def __init__(self, fake: FakeHvsvc) -> None:
        self._fake = fake

    def WatchOperation(self, request: Any, context: Any) -> Iterator[Any]:  # noqa: N802
        fake = self._fake
        fake.enter("WatchOperation", request, context)
        *before, last = fake.reports[1:] or fake.reports
        yield from before
        if not fake.released.is_set():
            fake.hold()
        if fake.errors.get("WatchOperation"):
            fail(context, Status(code=14, message="going down"))
        yield last


class _Operations(operations_pb2_grpc.OperationsServicer):
    def __init__(self, fake: FakeHvsvc) -> None:
        self._fake = fake

    def ListOperations(self, request: Any, context: Any) -> Any:  # noqa: N802
        fake = self._fake
        fake.enter("ListOperations", request, context)
        start = int(request.page_token or 0)
        end = start + fake.page_size
        token = str(end) if end < len(fake.reports) else ""
        return operations_pb2.ListOperationsResponse(
            operations=fake.reports[start:end], next_page_token=token
        )

    def GetOperation(self, request: Any, context: Any) -> Any:  # noqa: N802
        self._fake.enter("GetOperation", request, context)
        return self._fake.reports[0]

    def CancelOperation(self, request: Any, context: Any) -> Any:  # noqa: N802
        self._fake.enter("CancelOperation", request, context)
        return Empty()

    def DeleteOperation(self, request: Any, context: Any) -> Any:  # noqa: N802
        self._fake.enter("DeleteOperation", request, context)
        return Empty()


class _Health(health_pb2_grpc.HealthServicer):  # type: ignore[misc]  # generated without types
    def __init__(self, fake: FakeHvsvc) -> None:
        self._fake = fake

    def Check(self, request: Any, context: Any) -> Any:  # noqa: N802
        self._fake.enter("Check", request, context)
        return health_pb2.HealthCheckResponse(status=self._fake.health)


class FakeServer:
    """The fake behind a listening server; a context."""

    def __init__(
        self, fake: FakeHvsvc, address: str, credentials: grpc.ServerCredentials | None = None
    ) -> None:
        self._fake = fake
        self._server = grpc.server(futures.ThreadPoolExecutor(max_workers=8))
        domain_pb2_grpc.add_DomainServiceServicer_to_server(_Domains(fake), self._server)
        drift_pb2_grpc.add_DriftServiceServicer_to_server(_Drifts(fake), self._server)
        scaling_pb2_grpc.add_ScalingServiceServicer_to_server(_Scaling(fake), self._server)
        operation_pb2_grpc.add_OperationServiceServicer_to_server(_Progress(fake), self._server)
        operations_pb2_grpc.add_OperationsServicer_to_server(_Operations(fake), self._server)  # type: ignore[no-untyped-call]
        health_pb2_grpc.add_HealthServicer_to_server(_Health(fake), self._server)
        self.port = (
            self._server.add_secure_port(address, credentials)
            if credentials
            else self._server.add_insecure_port(address)
        )

    def __enter__(self) -> Self:
        self._server.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, err: BaseException | None, tb: TracebackType | None
    ) -> None:
        self._fake.released.set()
        self._server.stop(grace=0.2).wait()
