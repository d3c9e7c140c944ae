"""What starts cost: the daemon's time to ready and its memory, and hvctl's cold start beside virsh's."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.bench.comparison import Times, judge, take_turns, time_once
from tests.bench.site import Site
from tests.hvsvc_process import HVCTL, HvsvcProcess

READY_TARGET_S = 1.0
RSS_TARGET_MB = 120.0
HVCTL_TARGET_S = 0.25
_SETTLE_S = 20.0
_CLOUDS = """
clouds:
  bench:
    auth: {auth_url: "http://127.0.0.1:9/v3", username: u, password: p, project_name: p}
    region_name: R
"""


def measure_daemon(site: Site, rounds: int, directory: Path) -> dict[str, Any]:
    """Starts daemons beside the one that serves, without [nova] and with it, in turns."""
    clouds = directory / "clouds.yaml"
    clouds.write_text(_CLOUDS)
    kinds = {
        "without_nova": HvsvcProcess(site.libvirtd.uri),
        "with_nova": HvsvcProcess(
            site.libvirtd.uri,
            '[nova]\ncloud = "bench"',
            environ={"OS_CLIENT_CONFIG_FILE": os.fspath(clouds)},
        ),
    }
    ready: dict[str, list[float]] = {kind: [] for kind in kinds}
    rss_mb: dict[str, float] = {}
    try:
        for number in range(rounds):
            for kind, daemon in kinds.items():
                ready[kind].append(time_once(daemon.start))
                if number == rounds - 1:
                    daemon.wait_serving()
                    daemon.hvctl_json("list")
                    rss_mb[kind] = settled_rss_mb(daemon)
                daemon.stop()
                assert daemon.next_state() == "STOPPING=1"
    finally:
        for daemon in kinds.values():
            daemon.close()
    found: dict[str, Any] = {}
    for kind, each_s in ready.items():
        times = Times(tuple(each_s))
        found[kind] = {
            "ready": times.to_json() | judge(times.p50_s * 1000, READY_TARGET_S * 1000),
            "rss_mb": rss_mb[kind],
            "rss": judge(rss_mb[kind], RSS_TARGET_MB),
        }
    return found


def settled_rss_mb(daemon: HvsvcProcess) -> float:
    """Resident memory when it no longer grows: openstacksdk loads after READY."""
    assert daemon.process is not None
    deadline = time.monotonic() + _SETTLE_S
    last_mb = rss_mb(daemon.process.pid)
    while time.monotonic() < deadline:
        time.sleep(1)
        now_mb = rss_mb(daemon.process.pid)
        if now_mb <= last_mb + 0.5:
            return now_mb
        last_mb = now_mb
    return last_mb


def rss_mb(pid: int) -> float:
    """Resident memory of a process, MB of 1,000,000 bytes."""
    line = next(x for x in Path(f"/proc/{pid}/status").read_text().splitlines() if x.startswith("VmRSS:"))
    return round(int(line.split()[1]) * 1024 / 1e6, 1)


def measure_clients(site: Site, uuid: str, rounds: int) -> dict[str, Any]:
    """Whole processes, from their start to their end."""
    environ = {**os.environ, "HVCTL_TARGET": f"unix://{site.daemon.socket}"}

    def run(*command: str | Path) -> None:
        subprocess.run(command, env=environ, check=True, stdout=subprocess.DEVNULL)

    commands: dict[str, Sequence[str | Path]] = {
        "hvctl --version": (HVCTL, "--version"),
        "hvctl health": (HVCTL, "health"),
        "dominfo by hvctl": (HVCTL, "dominfo", uuid),
        "dominfo by virsh": ("virsh", "-c", site.libvirtd.uri, "dominfo", uuid),
    }
    times = take_turns(
        {name: lambda command=command: run(*command) for name, command in commands.items()},  # type: ignore[misc]
        rounds,
        warm_up=1,
    )
    return {
        name: taken.to_json()
        | (judge(taken.p50_s * 1000, HVCTL_TARGET_S * 1000) if name.startswith("hvctl") else {})
        for name, taken in times.items()
    }
