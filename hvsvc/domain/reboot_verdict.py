"""What a reboot really did, judged by what libvirt shows: Nova's API cannot tell (nova.md)."""

from __future__ import annotations

from collections.abc import Collection

from hvsvc.domain.ceiling import format_ceiling, same_ceiling
from hvsvc.domain.definition import Definition
from hvsvc.domain.facts import DomainFacts, LifecycleEvent
from hvsvc.errors import FailedPreconditionError, HvsvcError, Reason

#: seen when Nova makes the definition anew: a hard reboot, or a soft one that fell back to it
REGENERATED = frozenset({LifecycleEvent.UNDEFINED, LifecycleEvent.DEFINED_ADDED})


def judge_reboot(
    before: DomainFacts, after: DomainFacts, events: Collection[LifecycleEvent]
) -> HvsvcError | None:
    """Says why a reboot did not bring the stored ceiling into effect; None where it did.

    `before` was read right before the reboot; its stored definition is what should
    run now. A new domain id alone proves nothing: it changes in a hard reboot too.
    """
    wanted = before.config
    live = after.live
    if wanted is None:
        return FailedPreconditionError(
            Reason.TRANSIENT_DOMAIN,
            "the domain had no stored definition when it was rebooted, so nothing says what should run now; define it "
            "(virsh define)",
        )
    if live is None:
        return FailedPreconditionError(
            Reason.START_FAILED,
            f"after the reboot the domain is {after.state.value}; look at the server in Nova or at libvirt's log, "
            "then start it",
            {"state": after.state.value},
        )
    if after.id == before.id:
        return FailedPreconditionError(
            Reason.REBOOT_NOT_APPLIED,
            "the guest's system restarted, but in the same QEMU process, so the stored ceiling is not in effect; "
            "reboot again (hvctl reboot)",
            _numbers(after),
        )
    if same_ceiling(wanted, live) and after.config is not None and same_ceiling(wanted, after.config):
        return None
    how = _how(before, after, events)
    return FailedPreconditionError(
        Reason.CEILING_LOST,
        f"the ceiling of {format_ceiling(wanted)} is lost: {how}; now the running domain's ceiling is "
        f"{format_ceiling(live)}, the stored one {format_ceiling(after.config) if after.config else 'none'}; let the "
        "guest obey a shutdown (guest agent, ACPI power button), then repeat the request",
        {"lostMaximumVcpus": wanted.maximum_vcpus, "lostMaximumKib": wanted.memory_kib, **_numbers(after)},
    )


def judge_since(brought: Definition, now: DomainFacts) -> HvsvcError | None:
    """Says that the ceiling which a reboot brought is lost again; None where it runs, or nothing does.

    While a guest is waited for, somebody may reboot it hard, or define and start it anew:
    stored and running definition then agree, without the ceiling.
    """
    live = now.live
    if live is None or same_ceiling(brought, live):
        return None
    return FailedPreconditionError(
        Reason.CEILING_LOST,
        f"the reboot brought the ceiling of {format_ceiling(brought)} into effect, then the domain was started anew, "
        f"as by a hard reboot, and runs with {format_ceiling(live)} now; repeat the request when nobody else reboots "
        "the server",
        {"lostMaximumVcpus": brought.maximum_vcpus, "lostMaximumKib": brought.memory_kib, **_numbers(now)},
    )


def was_regenerated(events: Collection[LifecycleEvent]) -> bool:
    """Whether the definition was made anew during the events."""
    return any(event in REGENERATED for event in events)


def _how(before: DomainFacts, after: DomainFacts, events: Collection[LifecycleEvent]) -> str:
    if was_regenerated(events) and before.nova is not None:
        return "Nova made the definition anew (a hard reboot, or a soft one that fell back to it)"
    if was_regenerated(events) or after.etag != before.etag:
        return "the stored definition was replaced during the reboot"
    return "the domain was started from another definition"


def _numbers(after: DomainFacts) -> dict[str, object]:
    found: dict[str, object] = {}
    for name, definition in (("config", after.config), ("live", after.live)):
        if definition is not None:
            found[f"{name}MaximumVcpus"] = definition.maximum_vcpus
            found[f"{name}MaximumKib"] = definition.memory_kib
    return found
