"""Step WAIT_GUEST: waits until the guest's system is up and its balloon has settled."""

from __future__ import annotations

from hvsvc.domain.boot_sign import boot_seen
from hvsvc.domain.check_live import has_balloon, memory_reached
from hvsvc.domain.facts import DomainFacts
from hvsvc.domain.steps import Step
from hvsvc.errors import FailedPreconditionError, GuestAgentError, Reason, UnavailableError
from hvsvc.operations.context import Context, Deadline, Evidence, Tools
from hvsvc.operations.wait_domain import read_patiently
from hvsvc.operations.wait_up import UpWatch


async def wait_for_guest(tools: Tools, context: Context, step: Step) -> Evidence:
    """Waits for the agent where one is configured, and for the balloon.

    After a start libvirt reports all of the maximum memory as used until the guest's
    balloon inflates, 5 to 6 s later (nova.md, case RB-07): nothing is judged before.

    :raises FailedPreconditionError: GUEST_NOT_BOOTED, where a reboot is to be followed
        by a growth and neither the agent nor the balloon driver gave a sign: vCPUs are
        not added to a guest that may still be in its firmware. CEILING_LOST, where it was
        rebooted hard meanwhile.
    """
    if not context.rebooted:
        return await _wait_up(tools, context)
    timeouts = tools.timeouts
    deadline = Deadline(tools.clock, timeouts.guest_boot_timeout_s)
    agent = False
    while True:
        context.domain = await _read(tools, context, deadline)
        agent = agent or await _answers(tools, context.domain)
        settled = balloon_settled(context.domain)
        if (settled and (agent or _up_without_agent(context.domain))) or deadline.over:
            break
        await deadline.pause(timeouts.poll_interval_s)
    context.require_brought(context.domain)
    context.balloon_moved_s = tools.clock.now_s()
    if not agent and not boot_seen(context.domain) and context.target.vcpus is not None:
        raise FailedPreconditionError(
            Reason.GUEST_NOT_BOOTED,
            "the reboot is done and the ceiling in effect, but neither the guest's agent nor its balloon driver gave a "
            f"sign within {timeouts.guest_boot_timeout_s:g} s, so nothing was grown; look at the guest's console, then "
            "repeat the request",
        )
    return Evidence(f"{_found(agent)}, balloon {'settled' if settled else 'not settled'}", agent and settled)


async def _wait_up(tools: Tools, context: Context) -> Evidence:
    """Waits for a guest that nobody rebooted, and which may still boot all the same."""
    deadline = Deadline(tools.clock, tools.timeouts.guest_ready_timeout_s)
    watch = UpWatch(tools, await _read(tools, context, deadline))
    while True:
        context.domain = await _read(tools, context, deadline)
        agent = await _answers(tools, context.domain)
        live = context.domain.live
        silent = live is not None and live.agent_connected
        if agent or watch.over or not context.domain.running:
            break
        if not silent and watch.is_up(context.domain):
            break
        await watch.pause()
    return Evidence(_found(agent), agent)


async def _read(tools: Tools, context: Context, deadline: Deadline) -> DomainFacts:
    return await read_patiently(tools, lambda: tools.hypervisor.read_domain(context.uuid), deadline)


async def _answers(tools: Tools, domain: DomainFacts) -> bool:
    if domain.live is None or not domain.live.agent_connected:
        return False
    try:
        await tools.guest.ping(domain.uuid)
    except (GuestAgentError, UnavailableError):
        return False
    return True


def _up_without_agent(domain: DomainFacts) -> bool:
    """Whether a guest that cannot have an agent shows all it can show."""
    no_agent = domain.live is not None and not domain.live.agent_configured
    return no_agent and (boot_seen(domain) or _no_balloon(domain))


def _no_balloon(domain: DomainFacts) -> bool:
    return domain.live is not None and not has_balloon(domain.live)


def balloon_settled(domain: DomainFacts) -> bool:
    """Whether the balloon is at the stored current memory, as it is some seconds after a start."""
    if domain.config is None or _no_balloon(domain):
        return True
    # libvirt's own figure, which dominfo shows, follows the balloon by up to a second
    wanted = domain.config.current_memory_kib
    return memory_reached(domain.balloon.actual_kib, wanted) and memory_reached(
        domain.used_memory_kib, wanted
    )


def _found(agent: bool) -> str:
    return f"guest agent {'answers' if agent else 'does not answer'}"
