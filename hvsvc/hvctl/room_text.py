"""Room to grow: of a domain, of those listed together, and of the host."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from hvsvc.hvctl.columns import find
from hvsvc.hvctl.document import Document
from hvsvc.hvctl.output import aligned
from hvsvc.hvctl.sizes import format_kib

_MIB_KIB: Final = 1 << 10


def room_text(domain: Document) -> str:
    """What a running domain can take on without a reboot, such as `+6 vCPUs, +512 MiB`; `-` for one that is off."""
    room = _room(domain)
    if room is None:
        return "-"
    return _grown(*room) or "none"


def room_lines(domains: Sequence[Document], host: Document) -> list[str]:
    """The sum of the rooms, beside what the host could really give; nothing where no domain runs."""
    rooms = [room for domain in domains if (room := _room(domain)) is not None]
    if not rooms:
        return []
    vcpus, memory_kib = sum(room[0] for room in rooms), sum(room[1] for room in rooms)
    left = _left(host)
    lines = ["", f"Room to grow together: {_grown(vcpus, memory_kib) or 'none'}; the host could give {left}"]
    if vcpus > host.get("vcpus_left", 0) or memory_kib > host.get("memory_left_kib", 0):
        lines.append("The host could not give all of it at once.")
    return lines


def host_lines(host: Document) -> list[str]:
    """The host's own figures."""

    def kib(key: str) -> str:
        return _shown(host.get(key, 0))

    return aligned(
        [
            ("CPUs", str(host.get("pcpus", 0))),
            ("Memory", kib("memory_kib")),
            ("Running domains", str(host.get("running_domains", 0))),
            ("vCPUs", f"{host['current_vcpus']} of at most {host['vcpu_capacity']}"),
            ("vCPUs ceiling", f"{host['maximum_vcpus']}: what the domains can grow to without a reboot"),
            ("Memory given", f"{kib('current_memory_kib')} of at most {kib('memory_capacity_kib')}"),
            ("Memory ceiling", f"{kib('maximum_memory_kib')}: what the domains can grow to without a reboot"),
            ("Could give", _left(host)),
        ]
    )


def _room(domain: Document) -> tuple[int, int] | None:
    if "id" not in domain:
        return None
    sizes = [
        find(domain, path)
        for path in (
            "vcpus.maximum_live",
            "vcpus.current_live",
            "memory.maximum_live_kib",
            "memory.current_live_kib",
        )
    ]
    if None in sizes:
        return None
    return max(sizes[0] - sizes[1], 0), max(sizes[2] - sizes[3], 0)


def _grown(vcpus: int, memory_kib: int) -> str:
    parts = [f"+{vcpus} vCPUs"] if vcpus else []
    parts += [f"+{format_kib(memory_kib)}"] if memory_kib else []
    return ", ".join(parts)


def _left(host: Document) -> str:
    return f"{host.get('vcpus_left', 0)} vCPUs and {_shown(host.get('memory_left_kib', 0))} more"


def _shown(size_kib: int) -> str:
    """Rounded down to whole MiB: nobody needs to know a host's memory to the KiB."""
    return format_kib(size_kib // _MIB_KIB * _MIB_KIB)
