"""What forbids live values now, each refusal with the value that would work."""

from __future__ import annotations

from collections.abc import Iterator

from hvsvc.domain.definition import Definition
from hvsvc.domain.facts import DomainFacts
from hvsvc.domain.limits import (
    HOTPLUG_ARCHITECTURES,
    MIB_KIB,
    check_growth_memory,
    check_growth_vcpus,
    memory_floor_kib,
    round_to_mib,
)
from hvsvc.domain.memory import format_kib
from hvsvc.domain.obstacles import check_cpuset
from hvsvc.domain.outcome import Note
from hvsvc.domain.target import Target
from hvsvc.domain.world import World
from hvsvc.errors import FailedPreconditionError, HvsvcError, Reason, UnimplementedError


def current_memory_kib(domain: DomainFacts) -> int | None:
    """What the running domain's balloon is at; None while it is off."""
    if domain.live is None:
        return None
    if domain.balloon.actual_kib is not None:
        return domain.balloon.actual_kib
    return domain.used_memory_kib if domain.used_memory_kib is not None else domain.live.current_memory_kib


def memory_reached(actual_kib: int | None, wanted_kib: int) -> bool:
    """Whether the balloon is at its target; libvirt and QEMU round to MiB (case MEM-08)."""
    return actual_kib is not None and abs(actual_kib - wanted_kib) < MIB_KIB


def has_balloon(definition: Definition) -> bool:
    """Whether the domain has a memory balloon: libvirt writes one into every definition that has it."""
    return definition.balloon_model not in ("", "none")


def memory_after_start_kib(started: Definition) -> int:
    """What the guest of a definition has once it is up.

    Without a balloon that is all of the maximum (case MEM-02), which the start rounds up (case MEM-08).
    """
    return started.current_memory_kib if has_balloon(started) else round_to_mib(started.memory_kib)


def check_running(domain: DomainFacts) -> Iterator[HvsvcError]:
    """Yields a refusal where there is nothing live to change (case RB-06)."""
    if not domain.running:
        yield FailedPreconditionError(
            Reason.DOMAIN_NOT_RUNNING,
            f"the domain is {domain.state.value}, so its live values cannot be set; set the stored ones only "
            "(affect config; together with a ceiling: the boot values of RaiseCeiling), or start or resume the domain "
            "first: hvsvc never does so unasked",
            {"state": domain.state.value},
        )


def check_live_vcpus(world: World, vcpus: int) -> Iterator[HvsvcError]:
    """Yields a refusal for each reason why `vcpus` cannot be set live now."""
    domain = world.domain
    yield from check_running(domain)
    live = domain.live
    if live is None or vcpus == live.current_vcpus:
        return
    if vcpus > live.maximum_vcpus:
        yield _above_live_ceiling(
            domain, "vCPUs", str(vcpus), str(live.maximum_vcpus), _pending_vcpus(domain, vcpus)
        )
    elif vcpus < live.current_vcpus:
        yield _live_shrink(live, vcpus)
    else:
        yield from _check_hotplug_now(live)
        yield from check_cpuset(live, world.host)
        yield from check_growth_vcpus(world.host, world.limits, vcpus)


def _check_hotplug_now(live: Definition) -> Iterator[HvsvcError]:
    if live.arch not in HOTPLUG_ARCHITECTURES:
        yield UnimplementedError(
            Reason.NO_VCPU_HOTPLUG,
            f"QEMU cannot add vCPUs to a running {live.arch} domain; resize the server through Nova instead",
            {"arch": live.arch},
        )
    elif live.arch in ("x86_64", "i686") and not live.acpi:
        yield FailedPreconditionError(
            Reason.NO_ACPI,
            "the domain runs without ACPI, so its guest cannot be told of new vCPUs; enable the acpi feature and "
            "restart the domain first",
        )


def _pending_vcpus(domain: DomainFacts, vcpus: int) -> bool:
    return domain.config is not None and domain.config.maximum_vcpus >= vcpus


def _above_live_ceiling(
    domain: DomainFacts, what: str, asked: str, ceiling: str, pending: bool
) -> HvsvcError:
    if pending:
        step = (
            "a ceiling that high is stored and waits for a reboot: reboot first (hvctl reboot), or scale with "
            "consent to it (hvctl scale --reboot soft)"
        )
    else:
        step = (
            "raise the ceiling first (hvctl raise), or scale with consent to a reboot "
            "(hvctl scale --reboot soft)"
        )
    return FailedPreconditionError(
        Reason.ABOVE_LIVE_CEILING,
        f"{asked} {what} were asked; the running domain's ceiling is {ceiling}; {step}",
        {"asked": asked, "ceiling": ceiling, "pending": str(pending).lower()},
    )


def _live_shrink(live: Definition, vcpus: int) -> HvsvcError:
    if live.virt_type == "qemu":
        why = "under emulation (TCG) QEMU never finishes taking a vCPU away and dies later"
    else:
        why = "taking vCPUs from a running guest is not offered yet"
    return FailedPreconditionError(
        Reason.LIVE_VCPU_SHRINK,
        f"{vcpus} vCPUs were asked and {live.current_vcpus} are running: {why}; set the stored value only "
        f"(affect config), which the next start brings in; live, at least {live.current_vcpus} work",
        {"asked": vcpus, "current": live.current_vcpus, "lowest": live.current_vcpus},
    )


def check_live_memory(world: World, memory_kib: int) -> Iterator[HvsvcError]:
    """Yields a refusal for each reason why `memory_kib` cannot be set live now."""
    domain = world.domain
    yield from check_running(domain)
    live = domain.live
    now_kib = current_memory_kib(domain)
    if live is None or memory_reached(now_kib, memory_kib):
        return
    if not has_balloon(live):
        yield _no_balloon(memory_kib)
    if memory_kib > live.memory_kib:
        pending = domain.config is not None and domain.config.memory_kib >= memory_kib
        asked, ceiling = format_kib(memory_kib), format_kib(live.memory_kib)
        yield _above_live_ceiling(domain, "of memory", asked, ceiling, pending)
    elif now_kib is not None and memory_kib < now_kib:
        yield from _check_floor(world, memory_kib)
    else:
        yield from check_memory_limit(live, memory_kib)
        yield from check_growth_memory(world.host, world.limits, memory_kib)


def check_live_after_start(world: World, started: Definition, target: Target) -> Iterator[HvsvcError]:
    """Yields a refusal for each reason why a domain just started as `started` cannot be grown to `target`."""
    if target.memory_kib is not None and not memory_reached(
        memory_after_start_kib(started), target.memory_kib
    ):
        if not has_balloon(started):
            yield _no_balloon(target.memory_kib)
        yield from check_memory_limit(started, target.memory_kib)
        yield from check_growth_memory(world.host, world.limits, target.memory_kib)
    if target.vcpus is not None and target.vcpus != started.current_vcpus:
        yield from _check_hotplug_now(started)
        yield from check_cpuset(started, world.host)
        yield from check_growth_vcpus(world.host, world.limits, target.vcpus)


def _no_balloon(memory_kib: int) -> HvsvcError:
    return FailedPreconditionError(
        Reason.NO_BALLOON,
        f"{format_kib(memory_kib)} were asked; the domain has no memory balloon, so its memory cannot change while it "
        "runs; set the stored values only (for a new maximum: hvctl raise with the same boot memory), or give the "
        "domain a balloon (for a Nova server: mem_stats_period_seconds above 0)",
        {"askedKib": memory_kib},
    )


def check_memory_limit(definition: Definition, memory_kib: int) -> Iterator[HvsvcError]:
    """Yields a refusal where the host would kill the domain for the memory it is given (`<memtune>`)."""
    limit = definition.memory_limit_kib
    if limit is not None and memory_kib > limit:
        yield FailedPreconditionError(
            Reason.UNSUPPORTED_DEFINITION,
            f"{format_kib(memory_kib)} were asked; <memtune> limits the domain to {format_kib(limit)}, and the host "
            f"kills it above that; ask for at most {format_kib(limit)}, or raise the limit first",
            {"askedKib": memory_kib, "highestKib": limit},
        )


def _check_floor(world: World, memory_kib: int) -> Iterator[HvsvcError]:
    floor = memory_floor_kib(world.domain.balloon, world.limits)
    now_kib = current_memory_kib(world.domain)
    if floor is not None and now_kib is not None:
        # a guest with no room at all keeps what it has
        floor = min(floor, round_to_mib(now_kib))
    if floor is None:
        yield FailedPreconditionError(
            Reason.MEMORY_USE_UNKNOWN,
            f"{format_kib(memory_kib)} were asked, which is less than now; how much the guest uses is not known (its "
            "balloon driver sends no statistics), so it could be starved; set the stored value only (affect config), "
            "or switch the statistics on first (virsh dommemstat --period)",
            {"askedKib": memory_kib},
        )
    elif memory_kib < floor:
        yield FailedPreconditionError(
            Reason.BELOW_MEMORY_FLOOR,
            f"{format_kib(memory_kib)} were asked; with less than {format_kib(floor)} the guest would starve (what it "
            f"uses and a reserve); ask for at least {format_kib(floor)}, or free memory in the guest first",
            {"askedKib": memory_kib, "lowestKib": floor},
        )


def warn_split_core(live: Definition, vcpus: int) -> Iterator[Note]:
    """Yields a warning where the count ends inside a core or a socket (case NUMA-07)."""
    topology = live.topology
    if topology is None or vcpus == live.maximum_vcpus:
        return
    for size, what in (
        (topology.dies * topology.clusters * topology.cores * topology.threads, "socket"),
        (topology.threads, "core"),
    ):
        if size > 1 and vcpus % size:
            below = vcpus - vcpus % size
            whole = [count for count in (below, below + size) if 0 < count <= live.maximum_vcpus]
            yield Note(
                Reason.SPLIT_CORE,
                f"{vcpus} vCPUs end inside a {what} of {size} ({topology}); the guest sees an incomplete {what}; "
                f"{' or '.join(map(str, whole))} would not",
                {"asked": str(vcpus), "multiple": str(size)},
            )
            return
