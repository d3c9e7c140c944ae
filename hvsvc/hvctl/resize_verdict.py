"""Whether a resized server is what its flavor says, judged from what was read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hvsvc.hvctl.columns import find
from hvsvc.hvctl.document import Document
from hvsvc.hvctl.sizes import format_kib


@dataclass(frozen=True, slots=True)
class Size:
    """The size that a flavor gives."""

    vcpus: int
    memory_kib: int


def find_differences(domain: Document, size: Size) -> list[str]:
    """What of the domain is not as the flavor says; empty where all of libvirt's numbers are.

    The maxima may be above: some Novas give room to grow.
    """
    if domain.get("state") != "RUNNING":
        return [f"the domain is {str(domain.get('state', 'in an unknown state')).lower().replace('_', ' ')}"]
    found = []
    for path, wanted in (("vcpus.current_config", size.vcpus), ("vcpus.current_live", size.vcpus)):
        if (value := find(domain, path)) != wanted:
            found.append(f"{path} is {_shown(value, str)}, not {wanted}")
    for path in ("memory.current_config_kib", "memory.current_live_kib", "memory.balloon_actual_kib"):
        value = find(domain, path)
        if value != size.memory_kib and not (value is None and path.endswith("balloon_actual_kib")):
            found.append(f"{path} is {_shown(value, format_kib)}, not {format_kib(size.memory_kib)}")
    return found


def find_guest_differences(domain: Document, size: Size) -> list[str]:
    """What the guest has not, or does not say; empty where it uses every vCPU."""
    online = find(domain, "vcpus.guest_online")
    if online is None:
        return ["the guest does not say which CPUs it uses (its agent does not answer)"]
    return [] if online == size.vcpus else [f"the guest uses {online} of {size.vcpus} CPUs"]


def _shown(value: Any, show: Any) -> str:
    return "not known" if value is None else show(value)
