"""A drift as lines and cells for people."""

from __future__ import annotations

from typing import Final

from hvsvc.hvctl.columns import find
from hvsvc.hvctl.document import Document
from hvsvc.hvctl.output import aligned
from hvsvc.hvctl.sizes import format_kib
from hvsvc.hvctl.terminal import safe

HEADINGS: Final = ("Server", "Name", "Status", "Asked for", "Policy", "What differs")


def status_text(drift: Document) -> str:
    """The status in words, such as `ceiling lost`."""
    return safe(drift.get("status", "unknown").lower().replace("_", " "))


def desired_text(desired: Document) -> str:
    """The sizes asked for, such as `2 of 8 vCPUs, 512 MiB of 2 GiB`; `-` where one was not named."""

    def size(key: str) -> str:
        return format_kib(desired[key]) if key in desired else "-"

    parts = []
    if {"vcpus", "max_vcpus"} & desired.keys():
        parts.append(f"{desired.get('vcpus', '-')} of {desired.get('max_vcpus', '-')} vCPUs")
    if {"memory_kib", "max_memory_kib"} & desired.keys():
        parts.append(f"{size('memory_kib')} of {size('max_memory_kib')}")
    return ", ".join(parts) or "nothing"


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
    if drift.get("attempts"):
        pairs.append(("Re-applied", f"{drift['attempts']} times since the drift began"))
    if drift.get("next_attempt_time"):
        pairs.append(("Next attempt", safe(drift["next_attempt_time"])))
    if drift.get("waits_for"):
        pairs.append(("Waits", safe(drift["waits_for"])))
    lines = [f"{label}: {status_text(drift)}"]
    lines += [f"  {safe(difference)}" for difference in drift.get("differences", [])]
    lines += aligned(pairs)
    if drift.get("next_step"):
        lines.append(f"next: {safe(drift['next_step'])}")
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


def _policy_text(drift: Document) -> str:
    policy = safe(drift.get("policy", "unknown").lower())
    return policy if find(drift, "desired.reapply_policy") else f"{policy} (default)"
