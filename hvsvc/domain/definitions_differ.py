"""What a reboot would bring beside the size: the stored definition may be an old one (case RB-02)."""

from __future__ import annotations

from collections.abc import Iterator

from hvsvc.domain.definition import Definition, Device
from hvsvc.domain.facts import DomainFacts
from hvsvc.domain.outcome import Note
from hvsvc.errors import FailedPreconditionError, HvsvcError, Reason


def check_same_disks(domain: DomainFacts) -> Iterator[HvsvcError]:
    """Yields a refusal where a disk would have another source after the reboot.

    After a live migration the stored definition could be that of the host it came from,
    whose block devices are other ones here (CVE-2020-17376).
    """
    config, live = domain.config, domain.live
    if config is None or live is None:
        return
    stored = {device.at: device for device in config.devices if device.kind == "disk"}
    others = [
        f"{device.at} is {device.source or 'empty'}, stored is {kept.source or 'empty'}"
        for device in live.devices
        if device.kind == "disk"
        and (kept := stored.get(device.at)) is not None
        and kept.source != device.source
    ]
    if others:
        yield FailedPreconditionError(
            Reason.DEFINITIONS_DIFFER,
            f"the reboot would start the guest on other disks than it runs on now: {'; '.join(others)}; nothing was "
            "changed; correct the stored definition first (for a Nova server: openstack server reboot --hard makes it "
            "anew)",
            {"disks": "; ".join(others)},
        )


def warn_other_devices(domain: DomainFacts) -> tuple[Note, ...]:
    """Says which devices the reboot would take from the guest or give to it, and of what else it would start."""
    config, live = domain.config, domain.live
    if config is None or live is None:
        return ()
    differences = [*_devices(config, live), *_platform(config, live)]
    if not differences:
        return ()
    return (
        Note(
            Reason.DEFINITIONS_DIFFER,
            f"the stored definition differs from what runs in more than its size: {'; '.join(differences)}; the "
            "reboot brings that in too",
            {"differences": "; ".join(differences)},
        ),
    )


def _devices(config: Definition, live: Definition) -> Iterator[str]:
    stored, running = _by_place(config), _by_place(live)
    for place, device in running.items():
        if place not in stored:
            yield f"{device} would be gone"
    for place, device in stored.items():
        if place not in running:
            yield f"{device} would be added"


def _by_place(definition: Definition) -> dict[tuple[str, str], Device]:
    return {(device.kind, device.at): device for device in definition.devices}


def _platform(config: Definition, live: Definition) -> Iterator[str]:
    for what in ("virt_type", "arch", "machine", "emulator"):
        now, then = getattr(live, what), getattr(config, what)
        if now != then:
            yield f"{what} is {now}, stored is {then}"
