"""The `<vcpus>` list, one entry for each vCPU that can be: which are enabled, which can be removed later.

What libvirt 9.0 demands of it (measured): vCPU 0 is enabled and not hotpluggable, those
not hotpluggable come before all others and have rising orders, a disabled vCPU is
hotpluggable, and either all enabled vCPUs have an order or none. What QEMU's start
demands besides: orders are unique and not above the maximum.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hvsvc.domain.definition import VcpuEntry


def resize_vcpus(
    entries: Sequence[VcpuEntry], *, boot: int, maximum: int, current: int, hotplug: bool = True
) -> tuple[VcpuEntry, ...]:
    """The list for a new maximum and current.

    Entries that exist keep hotpluggable and order; without any, the first `boot` vCPUs
    are made the ones that are always there, and all others hotpluggable, so that they
    stay removable however often the domain boots with them. As libvirt's setvcpus does,
    the lowest disabled ids are enabled and the highest enabled ones disabled.

    :param boot: current vCPUs before the change, 1 or more.
    :param hotplug: whether the architecture can hotplug vCPUs; where it cannot, an enabled
        hotpluggable vCPU would keep the domain from starting (case CPU-09).
    """
    known = {entry.id: entry for entry in entries if entry.id < maximum}
    found = [
        known.get(number) or _new_entry(number, enabled=not entries and number < boot)
        for number in range(maximum)
    ]
    for number in range(1, maximum if hotplug else 0):
        # libvirt stores one behind a gap whose entry says nothing of hotpluggable, and then refuses its own output
        if found[number - 1].hotpluggable and not found[number].hotpluggable:
            found[number] = replace(found[number], hotpluggable=True)
    missing = current - sum(entry.enabled for entry in found)
    for number in range(maximum):
        if missing > 0 and not found[number].enabled:
            found[number] = replace(
                found[number], enabled=True, hotpluggable=found[number].hotpluggable and hotplug, order=None
            )
            missing -= 1
    for number in reversed(range(1, maximum)):
        if missing < 0 and found[number].enabled:
            found[number] = replace(found[number], enabled=False, hotpluggable=True)
            missing += 1
    return _with_orders(found, maximum)


def _new_entry(number: int, *, enabled: bool) -> VcpuEntry:
    return VcpuEntry(id=number, enabled=enabled, hotpluggable=not enabled)


def _with_orders(entries: list[VcpuEntry], maximum: int) -> tuple[VcpuEntry, ...]:
    """The entries with orders that a start accepts: as they are where that works, else counted anew.

    Shared orders mean that several vCPUs are plugged at once (ppc64); they are dropped, as
    libvirt's setvcpus does with all.
    """
    enabled = [entry for entry in entries if entry.enabled]
    orders = [entry.order for entry in enabled if entry.order is not None]
    if not orders or len(set(orders)) < len(orders):
        return tuple(replace(entry, order=None) for entry in entries)
    valid = len(orders) == len(enabled) and max(orders) <= maximum
    ranked = sorted(enabled, key=lambda entry: (entry.order is None, entry.order or 0, entry.id))
    new = {entry.id: entry.order if valid else rank for rank, entry in enumerate(ranked, start=1)}
    return tuple(replace(entry, order=new.get(entry.id)) for entry in entries)
