"""Prometheus metrics in a registry of their own, served on a loopback address where configured."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import structlog
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, start_http_server
from prometheus_client.platform_collector import PlatformCollector
from prometheus_client.process_collector import ProcessCollector

from hvsvc.domain.operation import OperationRecord

_log = structlog.stdlib.get_logger("hvsvc.metrics")

#: from a read of one domain to a scale with a reboot in a Wait
_BUCKETS_S: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)


class Metrics:
    """What hvsvc counts of itself."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        PlatformCollector(registry=self.registry)
        self._calls = Counter(
            "hvsvc_rpcs", "RPCs ended, by method and status code", ("method", "code"), registry=self.registry
        )
        self._seconds = Histogram(
            "hvsvc_rpc_duration_seconds",
            "Time a unary RPC took",
            ("method",),
            buckets=_BUCKETS_S,
            registry=self.registry,
        )
        self._open = Gauge(
            "hvsvc_rpcs_open", "RPCs under way, watches included", ("method",), registry=self.registry
        )
        self._operations = Counter(
            "hvsvc_operations",
            "Operations ended, by method and outcome, or the reason of the failure",
            ("method", "outcome"),
            registry=self.registry,
        )
        self._lost = Gauge(
            "hvsvc_ceilings_lost",
            "Recorded ceilings that the stored definition did not have at the last look",
            registry=self.registry,
        )
        self._up = Gauge("hvsvc_libvirt_up", "1 while libvirt answers", registry=self.registry)

    def began(self, method: str) -> None:
        """An RPC began."""
        self._open.labels(method).inc()

    def ended(self, method: str, code: str, took_s: float | None) -> None:
        """An RPC ended; `took_s` None for a stream, whose length says nothing."""
        self._open.labels(method).dec()
        self._calls.labels(method, code).inc()
        if took_s is not None:
            self._seconds.labels(method).observe(took_s)

    def operation_ended(self, record: OperationRecord) -> None:
        """An operation ended, by its outcome or its failure."""
        ending = "" if record.result is None else record.result.outcome.name
        if record.error is not None:
            ending = record.error.reason.value
        self._operations.labels(record.target.method.value, ending).inc()

    def follow_ceilings(self, count_lost: Callable[[], int]) -> None:
        """`count_lost` is asked at each scrape, in a thread of its own."""
        self._lost.set_function(count_lost)

    def libvirt(self, *, up: bool) -> None:
        """Whether libvirt answered the last probe."""
        self._up.set(1 if up else 0)

    def serve(self, host: str, port: int) -> Callable[[], None]:
        """Serves the registry over HTTP in a thread of its own; returns what stops it."""
        server, thread = start_http_server(port, host, registry=self.registry)
        _log.info("metrics", address=host, port=server.server_port)

        def stop() -> None:
            server.shutdown()
            server.server_close()
            thread.join()

        return stop
