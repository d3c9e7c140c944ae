"""`make bench`: prints one JSON object on standard output, and how far it is on standard error.

What each figure means is in docs/benchmarks.md.
"""

from __future__ import annotations

import json
import os
import platform
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import libvirt

from tests.bench import get_domain, growth, list_domains, starts
from tests.bench.comparison import judge
from tests.bench.site import Site, open_site


@dataclass(frozen=True)
class Counts:
    """How often each thing is measured."""

    calls: int = 300
    #: lists of so many domains that are off, how often
    lists: Mapping[int, int] = field(default_factory=lambda: {10: 60, 100: 30, 500: 15})
    running: int = 10
    running_lists: int = 40
    growth_pairs: int = 6
    growth_guests: int = 3
    starts: int = 5
    clients: int = 8


def measure(site: Site, counts: Counts) -> dict[str, Any]:
    """Every figure, in an order in which none disturbs another."""
    found: dict[str, Any] = {}
    _say("live growth")
    found["live_growth"] = growth.measure(site, counts.growth_pairs, counts.growth_guests)

    _say("one domain")
    guest = site.domains.boot()
    uuid = guest.UUIDString()
    found["get_domain"] = get_domain.measure(site, uuid, counts.calls)
    _say("clients")
    found["cold_start"] = starts.measure_clients(site, uuid, counts.clients)
    site.domains.remove_all()

    _say("the daemon's start")
    with tempfile.TemporaryDirectory() as directory:
        found["daemon"] = starts.measure_daemon(site, counts.starts, Path(directory))

    _say("lists")
    for _ in range(counts.running):
        # Paused: QEMU is there and answers, and no guest takes the CPU from what is measured.
        site.domains.define().createWithFlags(libvirt.VIR_DOMAIN_START_PAUSED)
    running = list_domains.measure(site, counts.running_lists)
    site.domains.remove_all()
    found["list_domains"] = {
        "running": running,
        "off": list_domains.measure_growing(site, counts.lists),
    }
    assert site.daemon.process is not None
    rss_mb = starts.rss_mb(site.daemon.process.pid)
    found["daemon"]["after_all_of_this"] = {
        "rss_mb": rss_mb,
        "rss": judge(rss_mb, starts.RSS_TARGET_MB),
    }
    return found


def find_missed(found: Any, path: str = "") -> list[str]:
    """Where a target is not met, by path."""
    if not isinstance(found, dict):
        return []
    here = [path] if found.get("met") is False else []
    return here + [
        miss for key, value in found.items() for miss in find_missed(value, f"{path}.{key}".lstrip("."))
    ]


def _describe_machine(site: Site) -> dict[str, Any]:
    return {
        "cpus": os.cpu_count(),
        "python": platform.python_version(),
        "libvirt": site.connection.getLibVersion(),
        "qemu": site.connection.getVersion(),
        "guests": "TCG",
    }


def _load() -> list[float]:
    return [round(one, 2) for one in os.getloadavg()]


def _say(text: str) -> None:
    print(f"bench: {text}", file=sys.stderr, flush=True)


def main() -> None:
    """Measures everything and prints it."""
    started_s, load_before = time.monotonic(), _load()
    _say("libvirtd, guest image and daemon")
    with open_site() as site:
        machine = _describe_machine(site)
        found = measure(site, Counts())
    missed = find_missed(found)
    report = {
        "machine": machine | {"load_before": load_before, "load_after": _load()},
        "took_s": round(time.monotonic() - started_s, 1),
        **found,
        "missed": missed,
    }
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
