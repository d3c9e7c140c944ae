"""Step REBOOT: the right way for the domain, then the verdict on what it really did."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from hvsvc.domain.ceiling import format_ceiling, same_ceiling
from hvsvc.domain.facts import DomainEvent, DomainFacts, LifecycleEvent
from hvsvc.domain.memory import format_kib
from hvsvc.domain.outcome import Note
from hvsvc.domain.reboot_verdict import judge_reboot, was_regenerated
from hvsvc.domain.steps import Step
from hvsvc.errors import AbortedError, HvsvcError, Reason
from hvsvc.operations.context import Context, Evidence, Tools
from hvsvc.operations.reboot_plain import reboot_plain
from hvsvc.operations.reboot_server import reboot_server
from hvsvc.operations.wait_domain import wait_for_domain
from hvsvc.operations.wait_up import UpWatch


async def reboot(tools: Tools, context: Context, step: Step) -> Evidence:
    """Reboots, then compares the running domain with the definition stored before.

    A domain with Nova metadata goes through Nova and no other way; any other is shut
    down and started.

    :raises AbortedError: DEFINITION_CHANGED, where what the reboot is for is not stored
        any more; nothing is rebooted then.
    :raises FailedPreconditionError: CEILING_LOST, REBOOT_NOT_APPLIED, SHUTDOWN_IGNORED,
        START_FAILED.
    :raises HvsvcError: what Nova or libvirt answered.
    """
    before = await _read_booted(tools, context.uuid)
    _require_purpose(context, before)
    context.domain = before
    async with _collected(tools, context.uuid) as seen:
        if before.nova is not None:
            await reboot_server(tools, context, before)
        else:
            await reboot_plain(tools, context, before)
        after = await wait_for_domain(tools, context.uuid, tools.timeouts.start_timeout_s, lambda _: True)
    context.domain = after
    kinds = [event.kind for event in seen]
    lost = judge_reboot(before, after, kinds)
    if lost is not None:
        raise lost
    context.brought = before.config
    if was_regenerated(kinds):
        context.notes.append(
            Note(
                Reason.LOST_BY_HARD_REBOOT,
                "Nova made the definition anew: the reboot was, or fell back to, a hard one; its ceiling is the same",
            )
        )
    live = after.live
    assert live is not None, "judge_reboot demands it"
    return Evidence(
        f"new QEMU process (domain id {before.id} to {after.id}), live maximum vCPUs {live.maximum_vcpus}, "
        f"maximum memory {format_kib(live.memory_kib)}, topology {live.topology or 'none'}"
    )


async def _read_booted(tools: Tools, uuid: str) -> DomainFacts:
    """Reads the domain once its guest shows that it is up, or the bound for that is over.

    Firmware and a kernel that still loads ignore a shutdown, also after the guest reset
    itself; Nova would turn to a hard reboot then, which loses the ceiling. A guest that can
    give no sign is rebooted after the bound.
    """
    domain = await tools.hypervisor.read_domain(uuid)
    watch = UpWatch(tools, domain)
    while domain.running and not (watch.is_up(domain) or watch.over):
        await watch.pause()
        domain = await tools.hypervisor.read_domain(uuid)
    return domain


def _require_purpose(context: Context, before: DomainFacts) -> None:
    """Refuses a reboot that would bring in another ceiling than was planned: a server's downtime for nothing."""
    planned, found = context.planned_from.config, before.config
    if planned is None or found is None or same_ceiling(planned, found):
        return  # without a definition check_reboot refuses
    raise AbortedError(
        Reason.DEFINITION_CHANGED,
        f"the stored definition's ceiling is {format_ceiling(found)} now, not {format_ceiling(planned)}: somebody, or "
        "Nova, replaced it since; nothing was rebooted; read the domain, then repeat the request",
        {"asked": format_ceiling(planned), "found": format_ceiling(found)},
    )


@asynccontextmanager
async def _collected(tools: Tools, uuid: str) -> AsyncIterator[list[DomainEvent]]:
    """Collects the domain's events; a lost connection loses some, the XML then tells alone."""
    seen: list[DomainEvent] = []
    async with tools.hypervisor.events(uuid) as events:
        task = asyncio.create_task(_collect(events, seen), name=f"events of {uuid}")
        try:
            yield seen
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def _collect(events: AsyncIterator[DomainEvent], seen: list[DomainEvent]) -> None:
    try:
        async for event in events:
            if event.kind is not LifecycleEvent.BALLOON_CHANGED:
                seen.append(event)  # noqa: PERF401 readers want each as it comes
    except HvsvcError:
        return
