"""Steps of a plan or an operation as cells for people."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from hvsvc.hvctl.document import Document
from hvsvc.hvctl.terminal import safe

KIND_WORDS: Final[dict[str, str]] = {
    "DEFINE_CONFIG": "write the stored definition",
    "REBOOT": "reboot",
    "WAIT_GUEST": "wait for the guest",
    "SET_MEMORY_LIVE": "set the memory",
    "SET_VCPUS_LIVE": "add vCPUs",
    "SET_ALLOCATION": "set the allocation in Placement",
    "ONLINE_GUEST_CPUS": "bring CPUs online in the guest",
}


def kind_text(step: Document) -> str:
    """What the step does."""
    kind = step.get("kind", "unknown step")
    return safe(KIND_WORDS.get(kind, kind.lower().replace("_", " ")))


def state_word(step: Document) -> str:
    """Its progress, such as `done`."""
    return safe(step.get("state", "pending").lower())


def seconds_text(seconds: float) -> str:
    """A time span, such as `0.4 s` or `2 min 05 s`."""
    minutes, rest = divmod(round(max(seconds, 0.0), 1), 60)
    return f"{minutes:.0f} min {int(rest):02d} s" if minutes else f"{rest:.1f} s"


def duration_text(step: Document) -> str:
    """How long the step took; empty while that is not known."""
    if "start_time" not in step or "end_time" not in step:
        return ""
    start, end = (datetime.fromisoformat(step[key]) for key in ("start_time", "end_time"))
    return seconds_text((end - start).total_seconds())


def remark(step: Document) -> str:
    """What was read back, or why the step is needed."""
    return safe(step.get("evidence") or step.get("why", ""))


def step_lines(steps: list[Document]) -> list[str]:
    """One line a step: state, what, how long, what was read back."""
    rows = [(state_word(step), kind_text(step), duration_text(step), remark(step)) for step in steps]
    widths = [max((len(row[column]) for row in rows), default=0) for column in range(3)]
    return [
        f"  {state:<{widths[0]}}  {what:<{widths[1]}}  {took:>{widths[2]}}  {why}".rstrip()
        for state, what, took, why in rows
    ]
