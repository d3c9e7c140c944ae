"""Plans and operations as lines for people."""

from __future__ import annotations

from typing import Final

from hvsvc.hvctl.document import Document
from hvsvc.hvctl.domain_text import label_of, name_of, sizes_grid, topology_text
from hvsvc.hvctl.hints import hint_for
from hvsvc.hvctl.sizes import format_kib
from hvsvc.hvctl.step_text import kind_text, step_lines
from hvsvc.hvctl.terminal import folded, safe

OUTCOME_WORDS: Final[dict[str, str]] = {
    "COMPLETE": "complete, each number read back",
    "PENDING_REBOOT": "the stored definition is changed; it takes effect at the next reboot",
    "PARTIAL": "done in part",
    "UNCONFIRMED": "done as far as libvirt knows, but not confirmed",
    "VALIDATED": "checked and planned, nothing done",
}


#: outcomes that are as asked: what is said beside them is no fault
_AS_ASKED: Final = ("COMPLETE", "VALIDATED")


def operation_lines(operation: Document, *, with_steps: bool, with_error: bool = True) -> list[str]:
    """A change, running or ended.

    `with_steps` is off where they were shown as they happened, `with_error` where the error is told on stderr.
    """
    error = operation.get("error", {})
    now = (error.get("step_failure") or {}).get("now")
    domain = operation.get("after") or operation.get("before") or now or _named(operation)
    lines = [folded(f"{label_of(domain)}: {_status(operation)}")]
    if operation.get("name"):  # a --dry-run begins none, and a resize is Nova's
        lines.append(f"operation: {safe(operation['name'])}")
    if with_steps and operation.get("steps"):
        lines += ["", "Steps:", *step_lines(operation["steps"])]
    if "after" in operation:
        lines += ["", *sizes_grid(operation["after"], operation.get("before"))]
    elif now:
        lines += ["", "What is true now:", *sizes_grid(now)]
    title = "Warnings" if operation.get("outcome") in _AS_ASKED else "Reasons"
    lines += _reasons(title, operation.get("reasons", []), domain)
    lines += _reasons("Error", [error] if error and with_error else [], domain)
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
            lines.append(folded(f"  {number}. {effect}  {kind_text(step)}: {safe(step.get('why', ''))}"))
    if topology := plan.get("topology"):
        lines += ["", f"Topology: {topology_text(topology)}"]
    domain = plan.get("domain", {})
    lines += _reasons("Blockers", plan.get("blockers", []), domain)
    lines += _reasons("Warnings", plan.get("warnings", []), domain)
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
        error = operation["error"]
        return f"failed: {safe(error.get('reason') or error['code'])}" if operation["done"] else "under way"
    if not operation["done"]:
        return "under way"
    outcome = operation.get("outcome", "")
    if outcome == "COMPLETE" and not operation.get("changed"):
        return "nothing to change: it is so already, each number read back"
    if outcome == "PENDING_REBOOT" and not operation.get("changed"):
        return "nothing to change: it is stored already, and takes effect at the next reboot"
    return OUTCOME_WORDS.get(outcome, f"ended with {safe(outcome) or 'no result that this hvctl can read'}")


def _named(operation: Document) -> Document:
    name = operation.get("libvirt_name") or operation.get("domain") or operation["name"]
    return {"libvirt_name": name}


def _reasons(title: str, reasons: list[Document], domain: Document) -> list[str]:
    if not reasons:
        return []
    lines = ["", f"{title}:"]
    for item in reasons:
        reason = item.get("reason", "")
        lines.append(folded(f"  {safe(reason or item.get('code', ''))}: {safe(item.get('message', ''))}"))
        if hint := hint_for("", reason, "", domain=name_of(domain)):
            lines.append(folded(f"    next: {safe(hint)}"))
    return lines
