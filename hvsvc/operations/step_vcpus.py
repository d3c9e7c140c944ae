"""Steps SET_VCPUS_LIVE and ONLINE_GUEST_CPUS: plugs vCPUs in, and brings them online in the guest."""

from __future__ import annotations

from hvsvc.domain.facts import GuestCpus
from hvsvc.domain.steps import Step
from hvsvc.domain.target import GuestCpuMode
from hvsvc.errors import (
    UNANSWERED,
    FailedPreconditionError,
    GuestAgentError,
    HvsvcError,
    Reason,
    UnavailableError,
)
from hvsvc.operations.context import Context, Deadline, Evidence, Tools
from hvsvc.operations.wait_domain import read_changed

#: a guest that refuses to online a CPU is asked once more, never in a storm (case CPU-04)
_ATTEMPTS = 2


async def set_vcpus_live(tools: Tools, context: Context, step: Step) -> Evidence:
    """Adds vCPUs and counts them in the live definition.

    Before, it notes which CPUs the guest has, so that only those that appear are
    brought online. After an error the count is read again: libvirt plugs one by one
    and may have stopped midway (case CPU-07).

    :raises HvsvcError: what libvirt answered, with the number reached.
    """
    wanted = step.value
    assert wanted is not None, "the step holds its target"
    before = context.domain.live.current_vcpus if context.domain.live else 0
    await _note_guest_ids(tools, context)
    try:
        await tools.hypervisor.set_vcpus_live(context.uuid, wanted)
    except HvsvcError as err:
        context.domain = await read_changed(tools, context.uuid)
        reached = context.domain.live.current_vcpus if context.domain.live else 0
        context.changed = context.changed or reached != before
        if reached == wanted and isinstance(err, UNANSWERED):
            return Evidence(f"live vCPUs {reached}")  # only the answer was lost
        err.message = (
            f"{err.message}; {wanted} live vCPUs were asked, {before} were there before, {reached} are now"
        )
        err.metadata |= {"asked": str(wanted), "before": str(before), "reached": str(reached)}
        raise
    context.changed = True
    context.domain = await read_changed(tools, context.uuid)
    reached = context.domain.live.current_vcpus if context.domain.live else 0
    if reached != wanted:
        raise FailedPreconditionError(
            Reason.TARGET_NOT_REACHED,
            f"libvirt accepted {wanted} live vCPUs, but {reached} are there; read the domain and repeat the request",
            {"asked": wanted, "reached": reached},
        )
    return Evidence(f"live vCPUs {reached}")


async def _note_guest_ids(tools: Tools, context: Context) -> None:
    facts = await tools.around.with_guest(context.domain)
    context.guest_ids_before = facts.guest.ids if facts.guest is not None else None
    context.guest_error = facts.guest_error


async def online_guest_cpus(tools: Tools, context: Context, step: Step) -> Evidence:
    """Brings CPUs online through the agent until the guest counts as many as the domain has.

    Only ids that appeared since `set_vcpus_live` are touched, or all that are offline
    where the caller asked for that. Guests that online CPUs by themselves, or number
    them their own way (cases CPU-12, CPU-15), are counted, not corrected.
    """
    live = context.domain.live
    if live is None:  # seen by the step before; the verdict tells it
        return Evidence(f"not observable: the domain is {context.domain.state.value}", confirmed=False)
    deadline = Deadline(tools.clock, tools.timeouts.cpu_online_timeout_s)
    refused: GuestAgentError | None = None
    tries: dict[int, int] = {}
    while True:
        try:
            facts = await tools.around.with_guest(context.domain)
        except UnavailableError:  # a restart of libvirt leaves no CPU offline that was added
            if deadline.over:
                raise
            await deadline.pause(tools.timeouts.poll_interval_s)
            continue
        cpus = facts.guest
        if cpus is None and context.guest_ids_before is not None and not deadline.over:
            # it answered a moment ago: it is restarted, or libvirt is and has not found it again
            await deadline.pause(tools.timeouts.poll_interval_s)
            continue
        if cpus is None:
            why = facts.guest_error.message if facts.guest_error is not None else "the guest is not running"
            return Evidence(f"not observable: {why}", confirmed=False)
        if cpus.online == live.current_vcpus:
            return Evidence(f"the guest uses {cpus.online} of {cpus.present} CPUs")
        due = frozenset(cpu for cpu in _to_online(context, cpus) if tries.get(cpu, 0) < _ATTEMPTS)
        if due:
            tries |= {cpu: tries.get(cpu, 0) + 1 for cpu in due}
            context.changed = True
            try:
                await tools.guest.set_online(context.uuid, due)
            except GuestAgentError as err:
                refused = err
            except UnavailableError:
                pass  # what came of it is read
            continue
        if deadline.over or (tries and cpus.present >= live.current_vcpus):
            return Evidence(_shortfall(context, cpus, refused), confirmed=False)
        await deadline.pause(tools.timeouts.poll_interval_s)


def _to_online(context: Context, cpus: GuestCpus) -> frozenset[int]:
    if context.target.guest_cpus is GuestCpuMode.ALL:
        return cpus.offline_ids
    if context.guest_ids_before is None:
        return frozenset()
    return cpus.offline_ids - context.guest_ids_before


def _shortfall(context: Context, cpus: GuestCpus, refused: GuestAgentError | None) -> str:
    offline = ",".join(map(str, sorted(cpus.offline_ids))) or "none"
    text = f"the guest uses {cpus.online} of {cpus.present} CPUs (offline: {offline})"
    if refused is not None:
        return f"{text}; its agent refused: {refused.message}"
    if context.guest_ids_before is None and context.target.guest_cpus is GuestCpuMode.NEW:
        return f"{text}; which of them are new is not known, since its agent did not answer before the growth"
    return text
