"""What Nova's flavor, Placement's allocation and the domain say of the same server, side by side."""

from __future__ import annotations

from hvsvc.hvctl.columns import find
from hvsvc.hvctl.document import Document
from hvsvc.hvctl.sizes import format_kib

_UNKNOWN = "-"


def accounting_lines(domain: Document) -> list[str]:
    """Three columns; none for a domain that is not Nova's."""
    if find(domain, "nova.server_id") is None:
        return []
    cpus = _first(domain, "vcpus.current_live", "vcpus.current_config")
    memory_kib = _first(domain, "memory.current_live_kib", "memory.current_config_kib")
    rows = [
        ("", "flavor", "allocation", "domain"),
        ("vCPUs", *map(_text, (find(domain, "nova.flavor_vcpus"), find(domain, "allocation.vcpus"), cpus))),
        (
            "Memory",
            _memory_text(_kib(find(domain, "nova.flavor_memory_mib"))),
            _memory_text(_kib(find(domain, "allocation.memory_mib"))),
            _memory_text(memory_kib),
        ),
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    return [
        "   ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


def _first(domain: Document, *paths: str) -> int | None:
    return next((found for path in paths if (found := find(domain, path)) is not None), None)


def _kib(memory_mib: int | None) -> int | None:
    return None if memory_mib is None else memory_mib << 10


def _text(value: int | None) -> str:
    return _UNKNOWN if value is None else str(value)


def _memory_text(memory_kib: int | None) -> str:
    return _UNKNOWN if memory_kib is None else format_kib(memory_kib)
