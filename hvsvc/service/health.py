"""grpc.health.v1: per service and as a whole, NOT_SERVING while libvirt is away or the daemon stops.

grpcio-health-checking's servicer keeps one condition per service name and drops it
when the first of several watchers leaves, after which the others hear nothing more;
it also holds the lock while it writes to a slow watcher. Hence this one, on the same
messages.
"""

# ruff: noqa: N802 - gRPC names the methods

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Final, TypeAlias

import grpc
import structlog
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse

from hvsvc.errors import HvsvcError

SERVICE: Final[str] = health_pb2.DESCRIPTOR.services_by_name["Health"].full_name

_log = structlog.stdlib.get_logger("hvsvc.health")

_Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"


class HealthServicer(health_pb2_grpc.HealthServicer):  # type: ignore[misc]
    """Answers from two facts: whether libvirt is reachable, and whether the daemon stops.

    :param on_libvirt: services that need libvirt; "" (the whole) is one of them.
    :param always: services that answer without it, from the journal.
    """

    def __init__(self, *, on_libvirt: frozenset[str], always: frozenset[str]) -> None:
        self._on_libvirt = on_libvirt | {""}
        self._known = self._on_libvirt | always
        self._libvirt_up = False
        self._stopping = False
        self._changed = asyncio.Event()

    def libvirt(self, *, up: bool) -> None:
        """libvirt came or went."""
        self._libvirt_up = up
        self._wake()

    def stop(self) -> None:
        """The daemon stops: nothing serves any more."""
        self._stopping = True
        self._wake()

    async def Check(self, request: HealthCheckRequest, context: _Context) -> HealthCheckResponse:
        """The status now; NOT_FOUND for an unknown service, as the protocol says."""
        if request.service not in self._known:
            await context.abort(grpc.StatusCode.NOT_FOUND, "unknown service")
        return HealthCheckResponse(status=self._status(request.service))

    async def Watch(
        self, request: HealthCheckRequest, context: _Context
    ) -> AsyncIterator[HealthCheckResponse]:
        """The status now and at each change."""
        last = None
        while True:
            changed = self._changed
            status = self._status(request.service)
            if status != last:
                last = status
                yield HealthCheckResponse(status=status)
            await changed.wait()

    def _status(self, service: str) -> int:
        if service not in self._known:
            unknown: int = HealthCheckResponse.SERVICE_UNKNOWN
            return unknown
        serving = not self._stopping and (self._libvirt_up or service not in self._on_libvirt)
        status: int = HealthCheckResponse.SERVING if serving else HealthCheckResponse.NOT_SERVING
        return status

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


async def follow(
    probe: Callable[[], Awaitable[object]], tell: Callable[[bool], None], *, interval_s: float
) -> None:
    """Probes for ever and tells each result; an answer later than two intervals counts as none.

    While libvirt is away it is asked more often, so that its return is seen soon.
    """
    up: bool | None = None
    while True:
        before, error = up, ""
        try:
            async with asyncio.timeout(2 * interval_s):
                await probe()
        except (HvsvcError, TimeoutError) as err:
            up, error = False, str(err) or f"no answer within {2 * interval_s:g} s"
        else:
            up = True
        tell(up)
        if up and not before:
            _log.info("libvirt_reachable")
        elif before is not False and not up:
            _log.error("libvirt_unreachable", error=error)
        await asyncio.sleep(interval_s if up else interval_s / 5)
