"""A drift as lines and cells for people."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from typing import Final

from hvsvc.hvctl.columns import find
from hvsvc.hvctl.document import Document
from hvsvc.hvctl.output import aligned
from hvsvc.hvctl.sizes import format_kib
from hvsvc.hvctl.terminal import safe

HEADINGS: Final = ("Server", "Name", "Status", "Asked for", "Policy", "What differs")
#: drifts that hvsvc may do something about
_REAPPLIED: Final = ("CEILING_LOST", "PENDING_REBOOT", "SHRUNK")


def status_text(drift: Document) -> str:
    """The status in words, such as `ceiling lost`."""
    return safe(drift.get("status", "unknown").lower().replace("_", " "))


def desired_text(desired: Document) -> str:
    """The sizes asked for, such as `2 of 8 vCPUs, up to 2 GiB`: only a ceiling was asked for of the memory."""
    parts = (
        _size_text(desired.get("vcpus"), desired.get("max_vcpus"), lambda count: f"{count} vCPUs"),
        _size_text(desired.get("memory_kib"), desired.get("max_memory_kib"), format_kib),
    )
    return ", ".join(filter(None, parts)) or "nothing"


def _size_text(current: int | None, maximum: int | None, shown: Callable[[int], str]) -> str:
    if maximum is None:
        return "" if current is None else shown(current)
    if current is None:
        return f"up to {shown(maximum)}"
    return f"{shown(current).removesuffix(' vCPUs')} of {shown(maximum)}"


def drift_lines(drift: Document) -> list[str]:
    """One comparison in full."""
    desired = drift.get("desired", {})
    name = safe(drift.get("libvirt_name", "") or drift.get("domain", ""))
    label = f"{safe(drift['server_name'])} ({name})" if drift.get("server_name") else name
    pairs = [
        ("Asked for", desired_text(desired)),
        ("Asked by", f"{safe(desired.get('caller', 'unknown'))}, {safe(desired.get('record_time', ''))}"),
        ("Policy", _policy_text(drift)),
    ]
    if count := drift.get("attempts"):
        since = "since the drift began" if drift.get("status") in _REAPPLIED else "before"
        pairs.append(("Re-applied", f"{'once' if count == 1 else f'{count} times'} {since}"))
    if drift.get("next_attempt_time"):
        pairs.append(("Next attempt", safe(drift["next_attempt_time"])))
    if drift.get("waits_for"):
        pairs.append(("Waits", safe(drift["waits_for"])))
    lines = [f"{label}: {status_text(drift)}"]
    lines += [f"  {safe(difference)}" for difference in drift.get("differences", [])]
    lines += aligned(pairs)
    if drift.get("next_step"):
        domain = shlex.quote(drift.get("server_name") or name)
        lines.append(f"next: {safe(drift['next_step'].replace('DOMAIN', domain))}")
    return lines


def drift_row(drift: Document) -> tuple[str, ...]:
    """One line of the list."""
    return (
        drift.get("server_name", "-"),
        drift.get("libvirt_name", "-"),
        status_text(drift),
        desired_text(drift.get("desired", {})),
        _policy_text(drift),
        "; ".join(drift.get("differences", [])),
    )


def nothing_text(recorded: int) -> str:
    """What stands in place of an empty list, where so many domains are on record."""
    if not recorded:
        return "Nothing is on record: hvsvc was asked for no change of a domain of this host that lasts."
    return f"Nothing differs; domains on record: {recorded} (--all shows them)."


def _policy_text(drift: Document) -> str:
    policy = safe(drift.get("policy", "unknown").lower())
    return policy if find(drift, "desired.reapply_policy") else f"{policy} (default)"
