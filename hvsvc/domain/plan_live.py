"""The part of a plan that grows the running domain: memory before vCPUs (case API-04)."""

from __future__ import annotations

from collections.abc import Iterator

from hvsvc.domain.check_live import (
    check_live_after_start,
    check_live_memory,
    check_live_vcpus,
    current_memory_kib,
    memory_reached,
    warn_split_core,
)
from hvsvc.domain.facts import DomainFacts
from hvsvc.domain.limits import MIB_KIB
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
        steps += _memory_steps(current_memory_kib(domain), target.memory_kib)
    if target.vcpus is not None:
        blockers += check_live_vcpus(world, target.vcpus)
        if domain.live is not None:
            steps += _vcpu_steps(domain, domain.live.current_vcpus, target)
            if target.vcpus != domain.live.current_vcpus:
                warnings += warn_split_core(domain.live, target.vcpus)
    return Part(tuple(steps), tuple(blockers), tuple(warnings))


def _memory_steps(now_kib: int | None, wanted_kib: int) -> Iterator[Step]:
    if not memory_reached(now_kib, wanted_kib):
        shown = format_kib(now_kib) if now_kib is not None else "unknown"
        yield Step(
            StepKind.SET_MEMORY_LIVE,
            Effect.LIVE,
            f"memory {shown} to {format_kib(wanted_kib)}",
            value=wanted_kib,
        )


def _vcpu_steps(domain: DomainFacts, now: int, target: Target) -> Iterator[Step]:
    vcpus = target.vcpus
    assert vcpus is not None
    if vcpus != now:
        if not boot_seen(domain) and domain.live is not None and domain.live.agent_configured:
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


def boot_seen(domain: DomainFacts) -> bool:
    """Whether there is a sign that the guest's system is up: its agent, or its balloon driver."""
    live = domain.live
    if live is None:
        return False
    balloon = domain.balloon
    deflated = balloon.actual_kib is not None and balloon.actual_kib <= live.memory_kib - MIB_KIB
    return bool(live.agent_connected) or balloon.last_update_s is not None or deflated


def _plan_after_reboot(world: World, target: Target, stored: Stored) -> Part:
    """A forecast: the reboot starts the stored definition with its current values."""
    booted = stored.definition
    steps: list[Step] = []
    warnings: list[Note] = []
    if target.memory_kib is not None:
        steps += _memory_steps(booted.current_memory_kib, target.memory_kib)
    if target.vcpus is not None:
        steps += (
            step
            for step in _vcpu_steps(world.domain, booted.current_vcpus, target)
            if step.kind is not StepKind.WAIT_GUEST
        )
        if target.vcpus != booted.current_vcpus:
            warnings += warn_split_core(booted, target.vcpus)
    return Part(tuple(steps), tuple(check_live_after_start(world, booted, target)), tuple(warnings))
