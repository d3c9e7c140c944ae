"""sd_notify against a socket of our own."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from hvsvc.service import systemd


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(os.fspath(tmp_path / "notify"))
        listening.settimeout(5)
        yield listening


def test_states_arrive(manager: socket.socket) -> None:
    assert systemd.notify("READY=1", {"NOTIFY_SOCKET": manager.getsockname()})
    assert manager.recv(100) == b"READY=1"


def test_abstract_sockets() -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(f"\0hvsvc-test-{os.getpid()}")
        assert systemd.notify("STOPPING=1", {"NOTIFY_SOCKET": f"@hvsvc-test-{os.getpid()}"})
        assert listening.recv(100) == b"STOPPING=1"


@pytest.mark.parametrize("address", ["", "relative", "vsock:2:1", "/nowhere/notify"])
def test_nobody_to_tell(address: str) -> None:
    assert not systemd.notify("READY=1", {"NOTIFY_SOCKET": address} if address else {})


def test_watchdog_interval_is_half_of_what_is_allowed() -> None:
    assert systemd.watchdog_interval_s({"WATCHDOG_USEC": "30000000"}) == 15
    assert systemd.watchdog_interval_s({"WATCHDOG_USEC": "3000000", "WATCHDOG_PID": str(os.getpid())}) == 1.5


@pytest.mark.parametrize(
    "environ",
    [{}, {"WATCHDOG_USEC": "0"}, {"WATCHDOG_USEC": "x"}, {"WATCHDOG_USEC": "1000000", "WATCHDOG_PID": "1"}],
)
def test_no_watchdog(environ: dict[str, str]) -> None:
    assert systemd.watchdog_interval_s(environ) is None


async def test_the_watchdog_is_fed(manager: socket.socket, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(os.environ, "NOTIFY_SOCKET", manager.getsockname())
    feeding = asyncio.create_task(systemd.feed_watchdog(0.01))
    loop = asyncio.get_running_loop()
    for _ in range(3):
        assert await loop.run_in_executor(None, manager.recv, 100) == b"WATCHDOG=1"
    feeding.cancel()
