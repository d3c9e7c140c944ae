"""The part of a plan that grows the running domain: memory before vCPUs (case API-04)."""

from __future__ import annotations

from collections.abc import Iterator

from hvsvc.domain.boot_sign import boot_seen, needs_look
from hvsvc.domain.check_live import (
    check_live_after_start,
    check_live_memory,
    check_live_vcpus,
    current_memory_kib,
    has_balloon,
    memory_after_start_kib,
    memory_reached,
    warn_split_core,
)
from hvsvc.domain.facts import DomainFacts
from hvsvc.domain.memory import format_kib
from hvsvc.domain.outcome import Note
from hvsvc.domain.plan_ceiling import Stored
from hvsvc.domain.steps import Effect, Part, Step, StepKind
from hvsvc.domain.target import GuestCpuMode, Method, Target
from hvsvc.domain.world import World
from hvsvc.errors import HvsvcError

_METHODS = (Method.SET_VCPUS, Method.SET_MEMORY, Method.SCALE_DOMAIN)


def plan_live(world: World, target: Target, forecast: Stored | None) -> Part:
    """Plans the live steps; with `forecast`, from what a reboot will have started."""
    if target.method not in _METHODS or not target.affect.live:
        return Part()
    if forecast is not None:
        return _plan_after_reboot(world, target, forecast)
    steps: list[Step] = []
    blockers: list[HvsvcError] = []
    warnings: list[Note] = []
    domain = world.domain
    if target.memory_kib is not None:
        blockers += check_live_memory(world, target.memory_kib)
        if domain.live is not None and not _memory_stays(domain, target.memory_kib):
            steps.append(_memory_step(current_memory_kib(domain), target.memory_kib))
    if target.vcpus is not None:
        blockers += check_live_vcpus(world, target.vcpus)
        if domain.live is not None:
            steps += _vcpu_steps(domain, domain.live.current_vcpus, target)
            if target.vcpus != domain.live.current_vcpus:
                warnings += warn_split_core(domain.live, target.vcpus)
    return Part(tuple(steps), tuple(blockers), tuple(warnings))


def _memory_stays(domain: DomainFacts, wanted_kib: int) -> bool:
    """Whether the memory is where it is wanted, and nothing moves it away.

    Where the balloon is at does not say where it is told to go, which libvirt cannot
    say: until the guest's driver is up, all of the maximum is in use, and then it goes
    to what the domain was started with (case RB-07). Only a balloon that is seen to work
    and a stored value that is the wanted one need no order; one too many does no harm.
    """
    if not memory_reached(current_memory_kib(domain), wanted_kib):
        return False
    if domain.live is None or not has_balloon(domain.live):
        return True
    stored_kib = domain.config.current_memory_kib if domain.config is not None else None
    return boot_seen(domain) and memory_reached(stored_kib, wanted_kib)


def _memory_step(now_kib: int | None, wanted_kib: int) -> Step:
    shown = format_kib(now_kib) if now_kib is not None else "unknown"
    if memory_reached(now_kib, wanted_kib):
        why = f"memory kept at {format_kib(wanted_kib)}, whatever it was started with"
    else:
        why = f"memory {shown} to {format_kib(wanted_kib)}"
    return Step(StepKind.SET_MEMORY_LIVE, Effect.LIVE, why, value=wanted_kib)


def _vcpu_steps(domain: DomainFacts, now: int, target: Target) -> Iterator[Step]:
    vcpus = target.vcpus
    assert vcpus is not None
    if vcpus != now:
        if needs_look(domain):
            yield Step(
                StepKind.WAIT_GUEST, Effect.LIVE, "the guest must have booted before it is given vCPUs"
            )
        yield Step(StepKind.SET_VCPUS_LIVE, Effect.LIVE, f"vCPUs {now} to {vcpus}", value=vcpus)
        yield Step(
            StepKind.ONLINE_GUEST_CPUS,
            Effect.LIVE,
            "new CPUs may stay offline in the guest until told otherwise",
        )
    elif target.guest_cpus is GuestCpuMode.ALL and (domain.guest is None or domain.guest.offline_ids):
        yield Step(StepKind.ONLINE_GUEST_CPUS, Effect.LIVE, "every CPU of the guest was asked to be online")


def _plan_after_reboot(world: World, target: Target, stored: Stored) -> Part:
    """A forecast: the reboot starts the stored definition with its current values."""
    booted = stored.definition
    steps: list[Step] = []
    warnings: list[Note] = []
    memory_kib = memory_after_start_kib(booted)
    if target.memory_kib is not None and not memory_reached(memory_kib, target.memory_kib):
        steps.append(_memory_step(memory_kib, target.memory_kib))
    if target.vcpus is not None:
        steps += (
            step
            for step in _vcpu_steps(world.domain, booted.current_vcpus, target)
            if step.kind is not StepKind.WAIT_GUEST
        )
        if target.vcpus != booted.current_vcpus:
            warnings += warn_split_core(booted, target.vcpus)
    return Part(tuple(steps), tuple(check_live_after_start(world, booted, target)), tuple(warnings))
