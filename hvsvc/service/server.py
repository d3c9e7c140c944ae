"""The gRPC server: its services and its bounds against abusive callers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import grpc
from google.longrunning import operations_pb2, operations_pb2_grpc
from grpc_health.v1 import health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from hvsvc.operations.changes import Changes
from hvsvc.operations.drifts import Drifts
from hvsvc.operations.reads import DomainReads
from hvsvc.operations.running import Operations
from hvsvc.service import health
from hvsvc.service.domain_service import DomainServicer
from hvsvc.service.drift_service import DriftServicer
from hvsvc.service.health import HealthServicer
from hvsvc.service.interceptor import CallInterceptor
from hvsvc.service.operation_service import LongRunningServicer, OperationServicer
from hvsvc.service.pages import PageLimits
from hvsvc.service.scaling_service import ScalingServicer
from hvsvc.v1 import (
    domain_pb2,
    domain_pb2_grpc,
    drift_pb2,
    drift_pb2_grpc,
    operation_pb2,
    operation_pb2_grpc,
    scaling_pb2,
    scaling_pb2_grpc,
)

DOMAIN_SERVICE: Final = domain_pb2.DESCRIPTOR.services_by_name["DomainService"].full_name
DRIFT_SERVICE: Final = drift_pb2.DESCRIPTOR.services_by_name["DriftService"].full_name
SCALING_SERVICE: Final = scaling_pb2.DESCRIPTOR.services_by_name["ScalingService"].full_name
OPERATION_SERVICE: Final = operation_pb2.DESCRIPTOR.services_by_name["OperationService"].full_name
LONG_RUNNING_SERVICE: Final[str] = operations_pb2.DESCRIPTOR.services_by_name["Operations"].full_name

#: every request is a handful of numbers and names; the largest is a watch of 500 names
_MAX_REQUEST_BYTES: Final = 256 * 1024
#: what a client takes by default
_MAX_REPLY_BYTES: Final = 4 * 1024 * 1024
_OPTIONS: Final = (
    ("grpc.max_receive_message_length", _MAX_REQUEST_BYTES),
    ("grpc.max_send_message_length", _MAX_REPLY_BYTES),
    ("grpc.max_metadata_size", 16 * 1024),
    ("grpc.max_concurrent_streams", 128),
    # gRPC 1.74 counts streams of refused calls that are long over, and then refuses every call of a connection
    # that had enough of them. `calls` bounds what one caller can have open.
    ("grpc.http.overload_protection", 0),
    # A second daemon must fail to bind, not share the port.
    ("grpc.so_reuseport", 0),
    # Watchers that are gone without a word are noticed within 80 s.
    ("grpc.keepalive_time_ms", 60_000),
    ("grpc.keepalive_timeout_ms", 20_000),
    # A client may ping every 10 s while it has a call open, and not at all otherwise; the third ping too
    # many ends its connection.
    ("grpc.keepalive_permit_without_calls", 0),
    ("grpc.http2.min_ping_interval_without_data_ms", 10_000),
    ("grpc.http2.min_recv_ping_interval_without_data_ms", 10_000),
    ("grpc.http2.max_ping_strikes", 2),
    ("grpc.max_connection_idle_ms", 15 * 60_000),
    # A connection is set up afresh every hour, so that a certificate whose CA was withdrawn loses its access;
    # calls under way on it go on.
    ("grpc.max_connection_age_ms", 60 * 60_000),
)


@dataclass(frozen=True, slots=True)
class UseCases:
    """What the services are the face of."""

    reads: DomainReads
    changes: Changes
    operations: Operations
    drifts: Drifts


def build_health() -> HealthServicer:
    """Health of every service: operations answer from the journal, without libvirt."""
    return HealthServicer(
        on_libvirt=frozenset({DOMAIN_SERVICE, DRIFT_SERVICE, SCALING_SERVICE}),
        always=frozenset({OPERATION_SERVICE, LONG_RUNNING_SERVICE}),
    )


@dataclass(frozen=True, slots=True)
class ServerLimits:
    """What callers may ask: RPCs at once, watches and waits included, and the size of pages."""

    calls: int
    pages: PageLimits

    @property
    def long_calls(self) -> int:
        """Places for watches and waits; a tenth of all is kept for short calls."""
        return max(1, self.calls * 9 // 10)


def build_server(
    use_cases: UseCases, interceptor: CallInterceptor, health_servicer: HealthServicer, limits: ServerLimits
) -> grpc.aio.Server:
    """A server with every service, not listening yet; calls above the limit get RESOURCE_EXHAUSTED."""
    server = grpc.aio.server(
        interceptors=[interceptor], options=_OPTIONS, maximum_concurrent_rpcs=limits.calls
    )
    domain_pb2_grpc.add_DomainServiceServicer_to_server(
        DomainServicer(use_cases.reads, use_cases.drifts, limits.pages), server
    )
    drift_pb2_grpc.add_DriftServiceServicer_to_server(DriftServicer(use_cases.drifts), server)
    scaling_pb2_grpc.add_ScalingServiceServicer_to_server(ScalingServicer(use_cases.changes), server)
    operation_pb2_grpc.add_OperationServiceServicer_to_server(OperationServicer(use_cases.operations), server)
    operations_pb2_grpc.add_OperationsServicer_to_server(  # type: ignore[no-untyped-call]
        LongRunningServicer(use_cases.operations, use_cases.reads, limits.pages), server
    )
    health_pb2_grpc.add_HealthServicer_to_server(health_servicer, server)
    names = (
        DOMAIN_SERVICE,
        DRIFT_SERVICE,
        SCALING_SERVICE,
        OPERATION_SERVICE,
        LONG_RUNNING_SERVICE,
        health.SERVICE,
    )
    reflection.enable_server_reflection((*names, reflection.SERVICE_NAME), server)
    return server
