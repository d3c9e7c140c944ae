"""Signs that a guest's system is up: its agent, or its balloon driver."""

from __future__ import annotations

from hvsvc.domain.facts import DomainFacts
from hvsvc.domain.limits import MIB_KIB


def boot_seen(domain: DomainFacts) -> bool:
    """Whether the guest gave a sign since its domain was started; it may have reset itself after that."""
    live = domain.live
    if live is None:
        return False
    balloon = domain.balloon
    deflated = balloon.actual_kib is not None and balloon.actual_kib <= live.memory_kib - MIB_KIB
    return bool(live.agent_connected) or balloon.last_update_s is not None or deflated


def up_now(first: DomainFacts, now: DomainFacts) -> bool:
    """Whether the guest is up at this moment, and not only was since its domain was started.

    While a guest that reset itself boots again, QEMU goes on with the balloon's size and
    the report of the boot before (measured: for the 10 s until the driver was up). So a
    connected agent counts, and a report that came since `first`, an earlier read. Of a
    guest that can give neither, an earlier sign is all there is.
    """
    live = now.live
    if live is None:
        return False
    report_s = now.balloon.last_update_s
    reported = report_s is not None and (first.id, first.balloon.last_update_s) != (now.id, report_s)
    return bool(live.agent_connected) or reported or (not _can_tell(now) and boot_seen(now))


def needs_look(domain: DomainFacts) -> bool:
    """Whether one read does not show that the guest is up, while a later one may."""
    live = domain.live
    return live is not None and not live.agent_connected and _can_tell(domain)


def will_report(domain: DomainFacts) -> bool:
    """Whether the balloon driver reported in this process: it will again once the guest is up."""
    live = domain.live
    return live is not None and live.balloon_stats and domain.balloon.last_update_s is not None


def _can_tell(domain: DomainFacts) -> bool:
    live = domain.live
    return live is not None and (live.agent_configured or live.balloon_stats)
