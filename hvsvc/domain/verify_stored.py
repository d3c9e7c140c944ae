"""What a verdict finds in the stored definition, and what of it the running domain lacks."""

from __future__ import annotations

from collections.abc import Iterator

from hvsvc.domain.check_live import current_memory_kib, memory_reached
from hvsvc.domain.definition import Definition
from hvsvc.domain.facts import DomainFacts
from hvsvc.domain.limits import round_to_mib, same_at_start
from hvsvc.domain.memory import format_kib
from hvsvc.domain.outcome import Note, Outcome
from hvsvc.domain.target import Method, RebootMode, Target
from hvsvc.domain.topology import Topology, factor
from hvsvc.errors import HvsvcError, Reason

Finding = tuple[Outcome, Note]


def differs(what: str, wanted: object, found: object) -> Finding:
    """A number that was read back is not the one asked for."""
    return Outcome.PARTIAL, Note(
        Reason.TARGET_NOT_REACHED,
        f"{what}: {wanted} was asked, {found} was read back; read the domain again and repeat the request",
        {"value": what, "asked": str(wanted), "found": str(found)},
    )


def verify_config(domain: DomainFacts, target: Target) -> Iterator[Finding]:
    """Yields a finding for each number of the target that the stored definition does not hold."""
    config = domain.config
    vcpus, memory_kib = (target.vcpus, target.memory_kib) if target.affect.config else (None, None)
    # a ceiling asked with ScaleDomain is a least value: it never lowers one
    least = target.method is Method.SCALE_DOMAIN
    for what, asked, found, enough in (
        ("stored maximum vCPUs", target.max_vcpus, config.maximum_vcpus if config else None, least),
        ("stored boot vCPUs", target.boot_vcpus, config.current_vcpus if config else None, False),
        ("stored current vCPUs", vcpus, config.current_vcpus if config else None, False),
    ):
        if asked is not None and not _reached(found, asked, enough=enough):
            yield differs(what, asked, "none" if found is None else found)
    for what, asked, found, enough in (
        ("stored maximum memory", target.max_memory_kib, config.memory_kib if config else None, least),
        ("stored boot memory", target.boot_memory_kib, config.current_memory_kib if config else None, False),
        ("stored current memory", memory_kib, config.current_memory_kib if config else None, False),
    ):
        rounded = None if found is None else round_to_mib(found)
        if asked is not None and not _reached(rounded, round_to_mib(asked), enough=enough):
            yield differs(what, format_kib(asked), "none" if found is None else format_kib(found))
    if target.names_topology:
        wanted = _fitting_topology(config, target)
        if config is None or config.topology != wanted:
            found_topology = config.topology if config else None
            yield differs("stored topology", wanted or "none", found_topology or "none")


def _reached(found: int | None, asked: int, *, enough: bool) -> bool:
    """Whether a number is as asked, or above it where that is `enough`."""
    return found is not None and (found >= asked if enough else found == asked)


def _fitting_topology(config: Definition | None, target: Target) -> Topology | None:
    """The topology the stored one should be, by its own maximum."""
    if target.topology.exact is not None:
        return target.topology.exact
    if config is None:
        return None
    try:
        return factor(config.topology, config.maximum_vcpus, target.topology)
    except HvsvcError:
        return None


def verify_ceiling(domain: DomainFacts, target: Target, *, rebooted: bool) -> Iterator[Finding]:
    """Yields a finding where the running domain lacks what the target stored, or may lose it."""
    config, live = domain.config, domain.live
    if config is None:
        return
    if live is None:
        if not rebooted and (target.method is Method.RAISE_CEILING or _names_maximum(target)):
            yield _off(domain)
        return
    if target.method is Method.REBOOT_DOMAIN:
        lacking = tuple(describe_pending(config, live))
    else:
        lacking = tuple(_lacking(config, live, target))
    if lacking:
        left = target.method is Method.RAISE_CEILING and target.reboot is RebootMode.NEVER and not rebooted
        yield (Outcome.PENDING_REBOOT if left else Outcome.PARTIAL, _waits(lacking))
    if not rebooted:
        only_stored = tuple(_only_stored(domain, live, target))
        if only_stored:
            yield Outcome.PENDING_REBOOT, _waits(only_stored)


def _waits(what: tuple[str, ...]) -> Note:
    return Note(
        Reason.PENDING_REBOOT,
        f"waits for a reboot: {'; '.join(what)}; reboot at a quiet time (hvctl reboot)",
    )


def _names_maximum(target: Target) -> bool:
    return target.max_vcpus is not None or target.max_memory_kib is not None


def _off(domain: DomainFacts) -> Finding:
    if domain.managed_save:
        text = "a saved image is restored at the next start; only a reboot after it brings the ceiling into effect"
    elif domain.nova is not None:
        return Outcome.PARTIAL, Note(
            Reason.NOVA_START_DISCARDS,
            "the server is off, and Nova's start makes the definition anew, without this ceiling; start the server, "
            "then repeat the request",
        )
    else:
        text = "the domain is off; its next start brings the ceiling into effect"
    return Outcome.PENDING_REBOOT, Note(Reason.PENDING_REBOOT, text)


def _lacking(config: Definition, live: Definition, target: Target) -> Iterator[str]:
    """Says in words which ceilings of the target the running domain has not."""
    enough = target.method is Method.SCALE_DOMAIN
    vcpus, memory_kib = target.max_vcpus, target.max_memory_kib
    if vcpus is not None and not _reached(live.maximum_vcpus, vcpus, enough=enough):
        yield f"maximum vCPUs {live.maximum_vcpus}, asked {vcpus}"
    if memory_kib is not None:
        rounded_kib = round_to_mib(memory_kib)
        if not _reached(round_to_mib(live.memory_kib), rounded_kib, enough=enough):
            yield f"maximum memory {format_kib(live.memory_kib)}, asked {format_kib(memory_kib)}"
    if target.names_topology and live.topology != config.topology:
        yield f"topology {live.topology or 'none'}, stored {config.topology or 'none'}"


def _only_stored(domain: DomainFacts, live: Definition, target: Target) -> Iterator[str]:
    """Says in words which current values were asked for the stored definition alone."""
    only = not target.affect.live
    vcpus = target.vcpus if only else target.boot_vcpus
    memory_kib = target.memory_kib if only else target.boot_memory_kib
    if vcpus is not None and vcpus != live.current_vcpus:
        yield f"vCPUs {live.current_vcpus}, for the next start {vcpus}"
    now_kib = current_memory_kib(domain)
    if memory_kib is not None and not memory_reached(now_kib, memory_kib):
        yield f"memory {format_kib(now_kib or 0)}, for the next start {format_kib(memory_kib)}"


def describe_pending(config: Definition, live: Definition) -> Iterator[str]:
    """Says in words which stored values only a new start of the domain brings in."""
    if config.maximum_vcpus != live.maximum_vcpus:
        yield f"maximum vCPUs {live.maximum_vcpus}, stored {config.maximum_vcpus}"
    if not same_at_start(live.memory_kib, config.memory_kib):
        yield f"maximum memory {format_kib(live.memory_kib)}, stored {format_kib(config.memory_kib)}"
    if config.topology != live.topology:
        yield f"topology {live.topology or 'none'}, stored {config.topology or 'none'}"
