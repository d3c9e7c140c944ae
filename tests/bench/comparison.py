"""Times things side by side: in turns, so that what slows the machine down hits every side alike."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_WARM_UP_ROUNDS = 3


@dataclass(frozen=True)
class Times:
    """How long one thing took, each time; seconds."""

    each_s: tuple[float, ...]

    @property
    def p50_s(self) -> float:
        """The median."""
        return statistics.median(self.each_s)

    def to_json(self) -> dict[str, float | int]:
        """Median and quartiles, ms, and how many there are."""
        quartiles_s = statistics.quantiles(self.each_s, n=4) if len(self.each_s) > 1 else [self.p50_s] * 3
        return {
            "p50_ms": _ms(self.p50_s),
            "p25_ms": _ms(quartiles_s[0]),
            "p75_ms": _ms(quartiles_s[2]),
            "count": len(self.each_s),
        }


def take_turns(
    sides: Mapping[str, Callable[[], object]], rounds: int, *, warm_up: int = _WARM_UP_ROUNDS
) -> dict[str, Times]:
    """Runs every side once a round; each round begins with another side."""
    names = list(sides)
    taken: dict[str, list[float]] = {name: [] for name in names}
    collected = gc.isenabled()
    gc.disable()
    try:
        for number in range(-warm_up, rounds):
            first = number % len(names)
            for name in names[first:] + names[:first]:
                seconds = time_once(sides[name])
                if number >= 0:
                    taken[name].append(seconds)
    finally:
        if collected:
            gc.enable()
    return {name: Times(tuple(each_s)) for name, each_s in taken.items()}


def time_once(work: Callable[[], object]) -> float:
    """How long it takes, seconds."""
    started_s = time.perf_counter()
    work()
    return time.perf_counter() - started_s


def compare(
    times: Mapping[str, Times], subject: str, baseline: Sequence[str], *, target: float | None = None
) -> dict[str, Any]:
    """How many times what the baseline took, in sum, the subject took: the median over the rounds.

    A round is one moment of the machine, so its noise cancels out. Without a `target` it is for information.
    """
    rounds = zip(times[subject].each_s, *(times[name].each_s for name in baseline), strict=True)
    ratio = statistics.median(one_s / sum(others_s) for one_s, *others_s in rounds)
    return {
        "subject": {"what": subject, **times[subject].to_json()},
        "baseline": [{"what": name, **times[name].to_json()} for name in baseline],
        "ratio": round(ratio, 3),
        **judge(ratio, target),
    }


def where_time_goes(**parts: Times | float) -> dict[str, dict[str, float]]:
    """The medians of parts of a time, ms, for whoever asks what a ratio is made of."""
    return {
        "time_goes_to_ms": {
            name.replace("_", " "): _ms(part.p50_s if isinstance(part, Times) else part)
            for name, part in parts.items()
        }
    }


def judge(value: float, target: float | None) -> dict[str, Any]:
    """Whether a figure is at most its target."""
    return {} if target is None else {"target": target, "met": value <= target}


def is_flat(per_domain: Sequence[float], allowed: float) -> bool:
    """Whether one of many costs at most `allowed` times one of few; the shortest list comes first."""
    return max(per_domain) <= allowed * per_domain[0]


def _ms(seconds: float) -> float:
    return round(seconds * 1000, 3)
