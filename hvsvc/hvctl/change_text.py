"""Plans and operations as lines for people."""

from __future__ import annotations

from typing import Final

from hvsvc.hvctl.document import Document
from hvsvc.hvctl.domain_text import label_of, sizes_grid, topology_text
from hvsvc.hvctl.hints import hint_for
from hvsvc.hvctl.sizes import format_kib
from hvsvc.hvctl.step_text import kind_text, step_lines
from hvsvc.hvctl.terminal import safe

OUTCOME_WORDS: Final[dict[str, str]] = {
    "COMPLETE": "complete, each number read back",
    "PENDING_REBOOT": "the stored definition is changed; it takes effect at the next reboot",
    "PARTIAL": "done in part",
    "UNCONFIRMED": "done as far as libvirt knows, but not confirmed",
    "VALIDATED": "checked and planned, nothing done",
}


def operation_lines(operation: Document, *, with_steps: bool) -> list[str]:
    """A change, running or ended; `with_steps` is off where they were shown as they happened."""
    domain = operation.get("after") or operation.get("before") or _named(operation)
    lines = [f"{label_of(domain)}: {_status(operation)}"]
    if "name" in operation:  # a resize is Nova's: hvsvc has no operation for it
        lines.append(f"operation: {safe(operation['name'])}")
    if with_steps and operation.get("steps"):
        lines += ["", "Steps:", *step_lines(operation["steps"])]
    if "after" in operation:
        lines += ["", *sizes_grid(operation["after"], operation.get("before"))]
    elif now := (operation.get("error", {}).get("step_failure") or {}).get("now"):
        lines += ["", f"What is true now of {label_of(now)}:", *sizes_grid(now)]
    lines += _reasons("Reasons", operation.get("reasons", []))
    return lines


def plan_lines(plan: Document) -> list[str]:
    """A plan: verdict, steps, blockers, warnings and the diff."""
    steps = plan.get("steps", [])
    lines = [f"{label_of(plan.get('domain', {}))}: {_verdict(plan)}"]
    if steps:
        lines += ["", "Steps:"]
        width = max(len(step.get("effect", "")) for step in steps)
        for number, step in enumerate(steps, 1):
            effect = f"{safe(step.get('effect', '')):<{width}}"
            lines.append(f"  {number}. {effect}  {kind_text(step)}: {safe(step.get('why', ''))}")
    if topology := plan.get("topology"):
        lines += ["", f"Topology: {topology_text(topology)}"]
    lines += _reasons("Blockers", plan.get("blockers", []))
    lines += _reasons("Warnings", plan.get("warnings", []))
    if diff := plan.get("xml_diff"):
        lines += [
            "",
            "Change of the stored definition:",
            *(safe(line, keep="\t") for line in diff.splitlines()),
        ]
    if resize := plan.get("resize"):
        lines += ["", *_resize_lines(resize)]
    if etag := plan.get("etag"):
        lines += ["", f"Etag: {safe(etag)}"]
    return lines


def _resize_lines(resize: Document) -> list[str]:
    """The other road, through Nova."""
    lines = ["Or by resizing the server through Nova:"]
    for key, word in (("exact", "just the size"), ("above", "smallest above")):
        if flavor := resize.get(key):
            size = f"{flavor.get('vcpus', 0)} vCPUs, {format_kib(flavor.get('memory_mib', 0) * 1024)}"
            lines.append(
                f"  flavor {safe(flavor.get('name', ''))} ({word}): {size}, disk {flavor.get('disk_gib', 0)} GiB"
            )
    return lines + [f"  - {safe(text)}" for text in resize.get("consequences", [])]


def _verdict(plan: Document) -> str:
    if plan.get("blockers"):
        return "would be refused"
    if not plan.get("steps"):
        return "nothing to do"
    return "needs a reboot" if plan.get("needs_reboot") else "can be done live"


def _status(operation: Document) -> str:
    if "error" in operation:
        return f"failed: {safe(operation['error']['message'])}" if operation["done"] else "under way"
    if not operation["done"]:
        return "under way"
    outcome = operation.get("outcome", "")
    if outcome == "COMPLETE" and not operation.get("changed"):
        return "nothing to change: it is so already, each number read back"
    return OUTCOME_WORDS.get(outcome, f"ended with {safe(outcome) or 'no result that this hvctl can read'}")


def _named(operation: Document) -> Document:
    name = operation.get("libvirt_name") or operation.get("domain") or operation["name"]
    return {"libvirt_name": name}


def _reasons(title: str, reasons: list[Document]) -> list[str]:
    if not reasons:
        return []
    lines = ["", f"{title}:"]
    for item in reasons:
        reason = item.get("reason", "")
        lines.append(f"  {safe(reason)}: {safe(item.get('message', ''))}")
        if hint := hint_for("", reason, ""):
            lines.append(f"    next: {hint}")
    return lines
