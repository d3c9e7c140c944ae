"""Ratios come from the two sides, whatever the machine does meanwhile."""

from __future__ import annotations

import pytest

from tests.bench.comparison import Times, compare, is_flat, judge, take_turns


def test_every_side_runs_once_a_round_and_each_begins_in_its_turn() -> None:
    ran: list[str] = []
    times = take_turns(
        {name: lambda name=name: ran.append(name) for name in "abc"},  # type: ignore[misc]
        3,
        warm_up=1,
    )
    assert {name: len(taken.each_s) for name, taken in times.items()} == {"a": 3, "b": 3, "c": 3}
    assert [ran[i : i + 3] for i in range(0, 12, 3)] == [
        ["c", "a", "b"],
        ["a", "b", "c"],
        ["b", "c", "a"],
        ["c", "a", "b"],
    ]


def test_a_ratio_is_the_median_over_rounds_against_the_sum_of_the_baseline() -> None:
    times = {
        "all": Times((3.0, 60.0, 4.0)),
        "one": Times((1.0, 10.0, 1.0)),
        "two": Times((1.0, 10.0, 1.0)),
    }
    found = compare(times, "all", ("one", "two"), target=2.5)
    assert found["ratio"] == 2.0
    assert found["met"] is True
    assert found["subject"] == {"what": "all", "p50_ms": 4000, "p25_ms": 3000, "p75_ms": 60000, "count": 3}
    assert [side["what"] for side in found["baseline"]] == ["one", "two"]
    assert compare(times, "all", ("one", "two"), target=1.9)["met"] is False
    assert "met" not in compare(times, "all", ("one", "two"))


def test_sides_of_different_length_are_no_comparison() -> None:
    with pytest.raises(ValueError, match="zip"):
        compare({"a": Times((1.0, 2.0)), "b": Times((1.0,))}, "a", ("b",))


def test_a_target_is_met_at_its_value() -> None:
    assert judge(1.25, 1.25) == {"target": 1.25, "met": True}
    assert judge(1.26, 1.25)["met"] is False


def test_a_list_is_flat_where_many_cost_no_more_each_than_few() -> None:
    assert is_flat([1.0, 0.5, 1.3], 1.3)
    assert not is_flat([1.0, 1.4, 1.0], 1.3)
