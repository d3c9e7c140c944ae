"""Metrics over HTTP."""

from __future__ import annotations

import socket
import urllib.error
import urllib.request

import pytest

from hvsvc.errors import FailedPreconditionError, Reason
from hvsvc.service.metrics import Metrics
from tests.fakes.face import ended, record


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_metrics_are_served_until_stopped() -> None:
    metrics, port = Metrics(), free_port()
    metrics.began("/a/B")
    metrics.ended("/a/B", "OK", 0.2)
    metrics.libvirt(up=True)
    stop = metrics.serve("127.0.0.1", port)
    url = f"http://127.0.0.1:{port}/metrics"
    with urllib.request.urlopen(url, timeout=5) as reply:
        text = reply.read().decode()
    assert 'hvsvc_rpcs_total{code="OK",method="/a/B"} 1.0' in text
    assert 'hvsvc_rpc_duration_seconds_bucket{le="0.25",method="/a/B"} 1.0' in text
    assert 'hvsvc_rpc_duration_seconds_bucket{le="0.1",method="/a/B"} 0.0' in text
    assert 'hvsvc_rpcs_open{method="/a/B"} 0.0' in text
    assert "hvsvc_libvirt_up 1.0" in text
    assert "process_resident_memory_bytes" in text
    stop()
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(url, timeout=5)


def test_operations_are_counted_by_how_they_ended() -> None:
    metrics = Metrics()
    lost = FailedPreconditionError(Reason.CEILING_LOST, "it is gone")
    for one in (ended(), ended(), record(error=lost, end_time_s=2.0)):
        metrics.operation_ended(one)

    def counted(outcome: str) -> float | None:
        labels = {"method": "ScaleDomain", "outcome": outcome}
        return metrics.registry.get_sample_value("hvsvc_operations_total", labels)

    assert (counted("PARTIAL"), counted("CEILING_LOST"), counted("COMPLETE")) == (2, 1, None)


def test_lost_ceilings_are_those_of_now() -> None:
    metrics, lost = Metrics(), [1, 0]
    metrics.follow_ceilings(lambda: lost.pop(0))
    assert metrics.registry.get_sample_value("hvsvc_ceilings_lost") == 1
    assert metrics.registry.get_sample_value("hvsvc_ceilings_lost") == 0


def test_each_daemon_has_its_own_registry() -> None:
    first, second = Metrics(), Metrics()
    first.libvirt(up=True)
    assert second.registry.get_sample_value("hvsvc_libvirt_up") == 0
