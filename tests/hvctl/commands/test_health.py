"""health as a process."""

from __future__ import annotations

import json

import pytest
from grpc_health.v1.health_pb2 import HealthCheckResponse

from tests.fakes.hvsvc_server import FakeHvsvc
from tests.fakes.service_messages import status
from tests.hvctl.conftest import Hvctl


@pytest.mark.parametrize(
    ("number", "word", "code"),
    [
        (HealthCheckResponse.SERVING, "SERVING", 0),
        (HealthCheckResponse.NOT_SERVING, "NOT_SERVING", 6),
        (HealthCheckResponse.UNKNOWN, "UNKNOWN", 6),
    ],
)
def test_status(hvctl: Hvctl, fake: FakeHvsvc, target: str, number: int, word: str, code: int) -> None:
    fake.health = number
    done = hvctl("health", "-f", "json")
    assert (json.loads(done.stdout), done.returncode) == ({"status": word, "target": target}, code)


def test_one_service(hvctl: Hvctl, fake: FakeHvsvc, target: str) -> None:
    done = hvctl("health", "hvsvc.v1.ScalingService")
    assert done.stdout == f"hvsvc.v1.ScalingService at {target}: SERVING\n"
    assert fake.requests("Check")[0].service == "hvsvc.v1.ScalingService"
    fake.errors["Check"] = [status(5, "unknown service")]
    assert hvctl("health", "nothing").returncode == 3


def test_no_daemon_says_how_to_check(hvctl: Hvctl) -> None:
    done = hvctl("health", "--target", "unix:///nonexistent/hvsvc.sock", "-f", "json")
    assert done.returncode == 6
    assert json.loads(done.stdout)["error"]["message"] == "there is no socket /nonexistent/hvsvc.sock"
    assert "systemctl status hvsvc" in done.stderr
