"""A domain as lines for people: virsh's labels, then config and live side by side."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from hvsvc.hvctl.accounting_text import accounting_lines
from hvsvc.hvctl.columns import find
from hvsvc.hvctl.document import Document
from hvsvc.hvctl.drift_text import status_text
from hvsvc.hvctl.output import aligned
from hvsvc.hvctl.sizes import format_kib
from hvsvc.hvctl.terminal import safe

#: label, path in config, path in live (or in the guest), format
_SIZES: Final[tuple[tuple[str, str, str, Callable[[Any], str]], ...]] = (
    ("Maximum vCPUs", "vcpus.maximum_config", "vcpus.maximum_live", str),
    ("Current vCPUs", "vcpus.current_config", "vcpus.current_live", str),
    ("Guest CPUs present", "", "vcpus.guest_present", str),
    ("Guest CPUs online", "", "vcpus.guest_online", str),
    ("Maximum memory", "memory.maximum_config_kib", "memory.maximum_live_kib", format_kib),
    ("Current memory", "memory.current_config_kib", "memory.current_live_kib", format_kib),
    ("Balloon", "", "memory.balloon_actual_kib", format_kib),
    ("Guest memory", "", "memory.guest_total_kib", format_kib),
    ("Guest available", "", "memory.guest_available_kib", format_kib),
)
_ABSENT: Final = "not reported"
_FACTORS: Final = ("sockets", "dies", "clusters", "cores", "threads")


def label_of(domain: Document) -> str:
    """Nova name and libvirt name, or what there is."""
    libvirt_name = domain.get("libvirt_name") or domain.get("name", "")
    nova_name = find(domain, "nova.name")
    return safe(f"{nova_name} ({libvirt_name})" if nova_name else libvirt_name)


def name_of(domain: Document) -> str:
    """The name to call it by: Nova's, else libvirt's; empty where there is none."""
    return str(find(domain, "nova.name") or domain.get("libvirt_name", ""))


def state_text(domain: Document) -> str:
    """State as virsh prints it, such as `shut off`."""
    return safe(domain.get("state", "not reported").lower().replace("_", " "))


def topology_text(topology: Document) -> str:
    """Factors, such as `8 sockets x 1 die x 1 cluster x 1 core x 1 thread`."""
    return " x ".join(
        f"{count} {factor.removesuffix('s') if count == 1 else factor}"
        for factor in _FACTORS
        if (count := topology.get(factor, 1)) is not None
    )


def sizes_grid(after: Document, before: Document | None = None) -> list[str]:
    """The sizes in rows, config and live in columns; with `before`, what changed as `2 → 8`."""
    rows = [("", "config", "live")]
    for label, config, live, show in _SIZES:
        cells = [_cell(after, before, path, show) if path else "" for path in (config, live)]
        if any(cells):
            rows.append((label, cells[0], cells[1]))
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    return [
        "   ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


def dominfo_lines(domain: Document) -> list[str]:
    """`virsh dominfo`, and what it cannot say."""
    pairs = [(label, safe(value)) for label, value in _pairs(domain) if value not in {None, ""}]
    lines = aligned(pairs, least=15)
    lines += ["", *sizes_grid(domain)]
    if accounting := accounting_lines(domain):
        lines += ["", *accounting]
    if domain.get("pending_reboot"):
        reasons = "; ".join(domain.get("pending_reboot_reasons", [])) or "the stored definition differs"
        lines += ["", f"Pending a reboot: {safe(reasons)}"]
    if (drift := domain.get("drift")) and drift.get("status") != "IN_SYNC":
        lines += ["", f"Drift: {status_text(drift)}"]
        lines += [f"  {safe(difference)}" for difference in drift.get("differences", [])]
    if conditions := domain.get("conditions"):
        lines += ["", "Conditions:"]
        lines += [f"  {safe(item.get('reason', ''))}: {safe(item.get('message', ''))}" for item in conditions]
    return lines


def vcpucount_lines(vcpus: Document) -> list[str]:
    """`virsh vcpucount`, and two lines for the guest; a count that is not known has no line."""
    return [
        f"{first:<12} {second:<8} {vcpus[key]:>5}"
        for first, second, key in (
            ("maximum", "config", "maximum_config"),
            ("maximum", "live", "maximum_live"),
            ("current", "config", "current_config"),
            ("current", "live", "current_live"),
            ("guest", "present", "guest_present"),
            ("guest", "online", "guest_online"),
        )
        if key in vcpus
    ]


def _cell(after: Document, before: Document | None, path: str, show: Callable[[Any], str]) -> str:
    now = find(after, path)
    then = now if before is None else find(before, path)
    now_text, then_text = ("" if value is None else show(value) for value in (now, then))
    return now_text if now == then else f"{then_text or _ABSENT} → {now_text or _ABSENT}"


def _pairs(domain: Document) -> list[tuple[str, Any]]:
    def yes(key: str, when_true: str = "yes", when_false: str = "no") -> str:
        return when_true if domain.get(key) else when_false

    def kib(*paths: str) -> str | None:
        value = next((found for path in paths if (found := find(domain, path)) is not None), None)
        return None if value is None else f"{value} KiB"

    cpus = find(domain, "vcpus.current_live")
    label = domain.get("security_label")
    if label and "security_enforcing" in domain:
        label += " (enforcing)" if domain["security_enforcing"] else " (permissive)"
    config, live = find(domain, "topology.config"), find(domain, "topology.live")
    flavor = [
        find(domain, "nova.flavor"),
        find(domain, "nova.flavor_vcpus"),
        find(domain, "nova.flavor_memory_mib"),
    ]
    return [
        ("Id", domain.get("id", "-")),
        ("Name", domain.get("libvirt_name")),
        ("UUID", domain.get("uuid")),
        ("OS Type", domain.get("os_type")),
        ("State", state_text(domain)),
        ("CPU(s)", find(domain, "vcpus.current_config") if cpus is None else cpus),
        ("CPU time", f"{float(domain['cpu_time'][:-1]):.1f}s" if "cpu_time" in domain else None),
        ("Max memory", kib("memory.maximum_live_kib", "memory.maximum_config_kib")),
        ("Used memory", kib("memory.current_live_kib", "memory.current_config_kib")),
        ("Persistent", yes("persistent")),
        ("Autostart", yes("autostart", "enable", "disable")),
        (
            "Autostart Once",
            yes("autostart_once", "enable", "disable") if "autostart_once" in domain else None,
        ),
        ("Managed save", yes("managed_save")),
        ("Security model", domain.get("security_model")),
        ("Security DOI", domain.get("security_doi")),
        ("Security label", label),
        ("Messages", "; ".join(domain.get("messages", [])) or None),
        ("Hypervisor", " ".join(domain[key] for key in ("virt_type", "arch", "machine") if key in domain)),
        ("Nova server", find(domain, "nova.name")),
        ("Project", find(domain, "nova.project")),
        ("Flavor", _flavor_text(*flavor)),
        ("Topology", topology_text(config) if config else None),
        ("Topology live", topology_text(live) if live and live != config else None),
        ("Etag", domain.get("etag")),
    ]


def _flavor_text(name: str | None, vcpus: int | None, memory_mib: int | None) -> str | None:
    sizes = [f"{vcpus} vCPUs"] if vcpus is not None else []
    sizes += [format_kib(memory_mib << 10)] if memory_mib is not None else []
    return f"{name} ({', '.join(sizes)})" if name and sizes else name
