"""What a reader of a domain should know beyond its numbers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hvsvc.domain.check_live import has_balloon, memory_reached
from hvsvc.domain.facts import DomainFacts
from hvsvc.domain.memory import format_kib
from hvsvc.domain.obstacles import find_tied_resources
from hvsvc.domain.outcome import Note
from hvsvc.domain.plan_allocation import describe_allocation
from hvsvc.domain.verify_stored import describe_pending
from hvsvc.errors import Reason


@dataclass(frozen=True, slots=True)
class Report:
    """Derived from facts alone."""

    pending_reboot: bool
    pending_reboot_reasons: tuple[str, ...]
    conditions: tuple[Note, ...]


def describe(facts: DomainFacts) -> Report:
    """Says what waits for a reboot (case RB-09), what differs, and what stands in the way of a change."""
    pending: tuple[str, ...] = ()
    if facts.config is not None and facts.live is not None:
        pending = tuple(describe_pending(facts.config, facts.live))
    return Report(bool(pending), pending, tuple(_conditions(facts)))


def _conditions(facts: DomainFacts) -> Iterator[Note]:
    if not facts.persistent:
        yield Note(
            Reason.TRANSIENT_DOMAIN,
            "no stored definition: the ceiling cannot be changed, live values are lost at a stop",
        )
    if facts.managed_save:
        yield Note(
            Reason.MANAGED_SAVE_IMAGE, "the next start restores a saved image with the definition of its time"
        )
    yield from _differences(facts)
    yield from describe_allocation(facts)
    yield from _guest(facts)
    if facts.live is not None and not has_balloon(facts.live):
        yield Note(Reason.NO_BALLOON, "no memory balloon: memory cannot change while the domain runs")
    tied: dict[str, Note] = {}
    for definition in (facts.live, facts.config):
        if definition is not None:
            tied |= {error.message: Note.of(error) for error in find_tied_resources(definition)}
    yield from tied.values()


def _differences(facts: DomainFacts) -> Iterator[Note]:
    config, live = facts.config, facts.live
    if config is None or live is None:
        return
    apart = []
    if config.current_vcpus != live.current_vcpus:
        apart.append(f"vCPUs config {config.current_vcpus}, live {live.current_vcpus}")
    actual = facts.balloon.actual_kib
    if actual is not None and not memory_reached(actual, config.current_memory_kib):
        apart.append(f"memory config {format_kib(config.current_memory_kib)}, live {format_kib(actual)}")
    if apart:
        yield Note(
            Reason.CONFIG_LIVE_DIFFER,
            f"the next start will not give what runs now: {'; '.join(apart)}; set both to keep it",
        )


def _guest(facts: DomainFacts) -> Iterator[Note]:
    live = facts.live
    if live is None:
        return
    if facts.guest_error is not None:
        yield Note.of(facts.guest_error)
    elif not live.agent_configured:
        yield Note(
            Reason.AGENT_NOT_CONFIGURED,
            "the domain has no guest agent channel: what the guest uses is not observable",
        )
    elif live.agent_connected is False:
        yield Note(
            Reason.AGENT_NOT_CONNECTED, "no guest agent is listening: what the guest uses is not observable"
        )
    if facts.guest is not None and facts.guest.online != live.current_vcpus:
        yield Note(
            Reason.GUEST_CPUS_OFFLINE,
            f"the domain has {live.current_vcpus} vCPUs, the guest uses {facts.guest.online} of the "
            f"{facts.guest.present} it sees",
        )
