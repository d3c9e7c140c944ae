"""Step SET_ALLOCATION: raises the server's allocation in Placement, or brings it back to the truth (case API-04)."""

from __future__ import annotations

from hvsvc.domain.allocation import AllocationFacts, PlacementPolicy, Size
from hvsvc.domain.check_live import memory_reached
from hvsvc.domain.plan_allocation import check_settled, settling, true_size
from hvsvc.domain.steps import Step
from hvsvc.domain.world import World
from hvsvc.errors import AbortedError, HvsvcError, Reason
from hvsvc.operations.context import Context, Deadline, Evidence, Tools
from hvsvc.operations.step_wait import balloon_settled

#: a balloon that is on its way moves within this time
_STILL_S = 1.0


async def set_allocation(tools: Tools, context: Context, step: Step) -> Evidence:
    """Raises the allocation to what the step says; without a size, brings it to the truth.

    A balloon that is on its way, as after a reset of the guest by itself, is waited for
    then: it would leave behind whatever size was written meanwhile.

    :raises HvsvcError: only where it raises: what Placement answered; nothing of the
        domain was changed then. Bringing it to the truth is UNCONFIRMED instead, since
        that must not hide how the change itself ended.
    """
    try:
        if step.settles:
            await wait_settled(tools, context.uuid, started=False)
        world = await tools.around.read_world(context.uuid, ask_guest=False)
        wanted = step.allocation or true_size(world.domain)
        changed = world.domain.allocation is None or world.domain.allocation.size != wanted
        found = await _write(tools, world, wanted)
    except HvsvcError as err:
        if not step.settles:
            raise
        return Evidence(f"the allocation could not be brought to the truth: {err.message}", confirmed=False)
    context.allocated = context.allocated or changed
    return Evidence(f"Placement has {found.size} allocated")


async def plan_settling(tools: Tools, uuid: str, *, even_if_there: bool = False) -> Step | None:
    """The step that brings the allocation to the truth; None where it is there, or unknown, or not ours to set.

    :param even_if_there: the step is planned already and has to end in one way or another.
    :raises HvsvcError: where libvirt cannot tell.
    """
    if tools.around.policy is not PlacementPolicy.ENFORCE:
        return None
    if even_if_there:
        return settling("what the domain then has")
    domain = await tools.around.with_allocation(await tools.hypervisor.read_domain(uuid))
    if domain.allocation is None or domain.allocation.size == true_size(domain):
        return None
    return settling(f"allocation {domain.allocation.size} to {true_size(domain)}, what the domain has")


async def wait_settled(tools: Tools, uuid: str, *, started: bool) -> None:
    """Waits while the balloon is on its way: it takes some seconds, and no event tells its end.

    One that was put elsewhere and stands still there is not waited for.

    :param started: the domain may have started just now: then all of the maximum memory
        counts as used until the guest takes its balloon into use (case RB-07), and that is waited for too.
    :raises HvsvcError: where libvirt cannot tell.
    """
    deadline = Deadline(tools.clock, tools.timeouts.balloon_timeout_s)
    before_kib: int | None = None
    while not deadline.over:
        domain = await tools.hypervisor.read_domain(uuid)
        live, actual_kib = domain.live, domain.balloon.actual_kib
        if not domain.running or live is None or balloon_settled(domain):
            return
        as_started = started and memory_reached(actual_kib, live.memory_kib)
        if not as_started and actual_kib == before_kib:
            return
        before_kib = actual_kib
        await tools.clock.sleep(_STILL_S)


async def reconcile_allocation(tools: Tools, uuid: str) -> tuple[Size, Size] | None:
    """Brings the allocation to the truth, whoever changed the domain: (before, after); None where it was there.

    Only under ENFORCE and for a domain of Nova. The caller holds the domain's lock.

    :raises HvsvcError: what libvirt, Nova or Placement answered; AbortedError
        SERVER_BUSY where Nova is at work on the server, which is not to be disturbed.
    """
    if tools.around.policy is not PlacementPolicy.ENFORCE:
        return None
    world = await tools.around.read_world(uuid, ask_guest=False)
    if world.domain.nova is None:
        return None
    allocation, wanted = world.domain.allocation, true_size(world.domain)
    found = await _write(tools, world, wanted)
    return None if allocation is None or allocation.size == wanted else (allocation.size, found.size)


async def _write(tools: Tools, world: World, wanted: Size) -> AllocationFacts:
    domain, placement = world.domain, tools.around.placement
    if domain.allocation_error is not None:
        raise domain.allocation_error
    assert placement is not None, "ENFORCE comes with an adapter"
    assert domain.allocation is not None, "it was read, or there is an error"
    if domain.allocation.size == wanted:
        return domain.allocation
    for refused in check_settled(world):
        raise refused
    found = await placement.set_allocation(domain.uuid, domain.allocation, wanted)
    if found.size != wanted:
        raise AbortedError(
            Reason.ALLOCATION_CHANGED,
            f"Placement took {wanted}, but {found.size} are there: somebody else changed the allocation; read the "
            "domain, then repeat the request",
            {"asked": wanted, "found": found.size},
        )
    return found
