"""The benchmarks run, on a real guest, and their report has its form; how fast anything is stays out of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.bench.run import Counts, find_missed, measure
from tests.bench.site import open_site

_TINY = Counts(
    calls=2,
    lists={1: 2, 3: 1},
    running=1,
    running_lists=1,
    growth_pairs=1,
    growth_guests=1,
    starts=1,
    clients=1,
)


def comparisons(found: Any) -> Iterator[dict[str, Any]]:
    """Every comparison in a report, at whatever depth."""
    if isinstance(found, dict):
        if "ratio" in found:
            yield found
        for value in found.values():
            yield from comparisons(value)


@pytest.mark.guest
def test_a_tiny_run_reports_every_figure_with_its_target() -> None:
    with open_site() as site:
        found = measure(site, _TINY)
    json.dumps(found)
    assert set(found) == {"live_growth", "get_domain", "cold_start", "daemon", "list_domains"}
    assert set(found["get_domain"]) == {"unix", "mtls"}
    assert [found["list_domains"]["off"][count]["domains"] for count in ("1", "3")] == [1, 3]
    assert found["list_domains"]["running"]["domains"] == 1
    assert found["daemon"]["with_nova"]["rss_mb"] > found["daemon"]["without_nova"]["rss_mb"]
    every = list(comparisons(found))
    assert len(every) == 1 + 2 * 2 + 3 * 2
    for one in every:
        assert one["met"] is (one["ratio"] <= one["target"])
        if one["subject"]["count"] == 1:
            baseline_ms = sum(side["p50_ms"] for side in one["baseline"])
            assert one["ratio"] == pytest.approx(one["subject"]["p50_ms"] / baseline_ms, rel=0.05)


def test_what_is_missed_is_named_by_its_path() -> None:
    found = {"a": {"b": {"met": False}, "c": {"met": True}}, "d": {"met": False, "e": {"met": False}}}
    assert find_missed(found) == ["a.b", "d", "d.e"]
