"""Step SET_MEMORY_LIVE: moves the balloon's target and waits until the guest has followed."""

from __future__ import annotations

from hvsvc.domain.check_live import current_memory_kib, memory_reached
from hvsvc.domain.facts import Balloon
from hvsvc.domain.limits import round_to_mib
from hvsvc.domain.memory import format_kib
from hvsvc.domain.steps import Step
from hvsvc.operations.context import Context, Deadline, Evidence, Tools
from hvsvc.operations.wait_domain import read_changed, read_patiently


async def set_memory_live(tools: Tools, context: Context, step: Step) -> Evidence:
    """Sets the balloon and reads it back until at the target or the deadline (case MEM-01).

    A shrink that gets stuck is given up: the target goes back up to what was reached,
    so that the guest is not pressed any further.
    """
    wanted = step.value
    assert wanted is not None, "the step holds its target"
    before_kib = current_memory_kib(context.domain)
    shrinking = (before_kib or 0) > wanted
    await tools.hypervisor.set_memory_live(context.uuid, wanted)
    # an order to stay is none (case API-05)
    context.changed = context.changed or not memory_reached(before_kib, wanted)
    balloon = await wait_for_balloon(tools, context, wanted, tools.timeouts.balloon_timeout_s)
    if balloon.actual_kib is None:
        return Evidence("the balloon's size could not be read", confirmed=False)
    if not memory_reached(balloon.actual_kib, wanted):
        given_up = ""
        if shrinking:
            await tools.hypervisor.set_memory_live(context.uuid, round_to_mib(balloon.actual_kib))
            given_up = "; its target was put back to that"
        return Evidence(
            f"balloon at {format_kib(balloon.actual_kib)}, not {format_kib(wanted)}, after "
            f"{tools.timeouts.balloon_timeout_s:g} s{given_up}",
            confirmed=False,
        )
    balloon = await _wait_for_reports(tools, context, wanted)
    total = (
        f", guest total {format_kib(balloon.guest_total_kib)}" if balloon.guest_total_kib is not None else ""
    )
    return Evidence(f"balloon at {format_kib(balloon.actual_kib or wanted)}{total}")


async def wait_for_balloon(tools: Tools, context: Context, wanted_kib: int, timeout_s: float) -> Balloon:
    """Polls the balloon until at `wanted_kib` or the bound; returns it as last read."""
    deadline = Deadline(tools.clock, timeout_s)
    while True:
        balloon = await read_patiently(tools, lambda: tools.hypervisor.read_balloon(context.uuid), deadline)
        if memory_reached(balloon.actual_kib, wanted_kib) or deadline.over:
            context.balloon_moved_s = tools.clock.now_s()
            return balloon
        await deadline.pause(tools.timeouts.poll_interval_s)


async def _wait_for_reports(tools: Tools, context: Context, wanted_kib: int) -> Balloon:
    """Waits until the figures that lag behind the balloon have followed, so that the result agrees with itself.

    libvirt's own figure follows by up to a second; the guest's statistics by their
    period, and one that never sent any is not waited for.
    """
    deadline = Deadline(tools.clock, tools.timeouts.guest_report_timeout_s)
    while True:
        context.domain = await read_changed(tools, context.uuid)
        balloon = context.domain.balloon
        fresh = balloon.last_update_s is None or balloon.last_update_s > (context.balloon_moved_s or 0)
        if (fresh and memory_reached(context.domain.used_memory_kib, wanted_kib)) or deadline.over:
            return balloon
        await deadline.pause(tools.timeouts.poll_interval_s)
