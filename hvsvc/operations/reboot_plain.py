"""Reboots a domain that is not Nova's: orderly shutdown, then start, with a way back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from hvsvc.domain.facts import DomainFacts, DomainState
from hvsvc.domain.obstacles import check_reboot, has_power_button
from hvsvc.errors import DeadlineError, FailedPreconditionError, GuestAgentError, HvsvcError, Reason
from hvsvc.operations.context import Context, Deadline, Tools


async def reboot_plain(tools: Tools, context: Context, before: DomainFacts) -> None:
    """Shuts the domain down and starts it, so that its stored definition takes effect.

    A reboot inside the guest keeps the QEMU process and with it the old ceiling (case
    RB-01). Where the new definition cannot start, the one before is restored and
    started: no domain is left down (case TOPO-12).

    :raises FailedPreconditionError: SHUTDOWN_IGNORED (it still runs, unchanged);
        START_FAILED, saying what runs now.
    """
    world = await tools.around.read_world(context.uuid, ask_guest=False)
    for refusal in check_reboot(world):
        raise refusal
    context.changed = True  # from here on the guest may go down, whatever becomes of the answer
    stopped = await _shut_down(tools, before)
    if not _stopped(stopped, before):
        raise FailedPreconditionError(
            Reason.SHUTDOWN_IGNORED,
            f"the guest did not shut down within {tools.timeouts.shutdown_timeout_s:g} s; it still runs as before, and "
            "what was stored waits for a reboot; make the guest obey a shutdown (guest agent, ACPI power button), then "
            "repeat the request; it may also still shut down late",
            {"timeoutS": tools.timeouts.shutdown_timeout_s},
        )
    context.rebooted = True
    if stopped.running:
        return  # on_poweroff or somebody else started it already; the verdict is the caller's
    try:
        await tools.hypervisor.start(context.uuid)
    except HvsvcError as err:
        await _restore(tools, context, before, err)
    await _wait(
        tools,
        context.uuid,
        tools.timeouts.start_timeout_s,
        lambda domain: domain.running and domain.id != before.id,
    )


async def _shut_down(tools: Tools, before: DomainFacts) -> DomainFacts:
    """Asks the guest to shut down, by its agent, then by the power button, and waits half the bound for each.

    :raises HvsvcError: what libvirt answered to the last way there is.
    """
    live = before.live
    assert live is not None, "check_reboot demands a running domain"
    ways = [
        agent
        for agent, there in ((True, bool(live.agent_connected)), (False, has_power_button(live)))
        if there
    ]
    domain = before
    for agent in ways:
        domain = await _ask(
            tools, before, agent=agent, timeout_s=tools.timeouts.shutdown_timeout_s / len(ways)
        )
        if _stopped(domain, before):
            break
    return domain


async def _ask(tools: Tools, before: DomainFacts, *, agent: bool, timeout_s: float) -> DomainFacts:
    """Waits also while the asking itself does not return: libvirt waits 60 s for an agent that does nothing."""
    asking = asyncio.create_task(tools.hypervisor.shut_down(before.uuid, agent=agent))
    try:
        return await _wait(
            tools,
            before.uuid,
            timeout_s,
            lambda domain: _is_hopeless(asking) or _stopped(domain, before),
        )
    finally:
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)


def _is_hopeless(asking: asyncio.Task[None]) -> bool:
    """Whether the agent cannot do it; no answer in time says nothing: the domain itself shows whether it stops."""
    error = asking.exception() if asking.done() else None
    if error is None or isinstance(error, DeadlineError):
        return False
    if isinstance(error, GuestAgentError):
        return True
    raise error


def _stopped(domain: DomainFacts, before: DomainFacts) -> bool:
    return domain.state is DomainState.SHUT_OFF or (domain.id is not None and domain.id != before.id)


async def _wait(
    tools: Tools, uuid: str, timeout_s: float, reached: Callable[[DomainFacts], bool]
) -> DomainFacts:
    deadline = Deadline(tools.clock, timeout_s)
    while True:
        domain = await tools.hypervisor.read_domain(uuid)
        if reached(domain) or deadline.over:
            return domain
        await tools.clock.sleep(tools.timeouts.poll_interval_s)


async def _restore(tools: Tools, context: Context, before: DomainFacts, cause: HvsvcError) -> None:
    """Puts the previous definition back, starts it, and says so by raising."""
    previous = context.previous_xml or await tools.journal.read_kept_definition(context.uuid)
    if previous is None:
        raise FailedPreconditionError(
            Reason.START_FAILED,
            f"the domain is off: its stored definition does not start ({cause.message}), and no earlier one is "
            "known; correct the definition, then start the domain",
        ) from cause
    try:
        now = await tools.hypervisor.read_domain(context.uuid)
        await tools.hypervisor.define(context.uuid, now.etag, previous)
        await tools.hypervisor.start(context.uuid)
    except HvsvcError as err:
        raise FailedPreconditionError(
            Reason.START_FAILED,
            f"the domain is off: its stored definition does not start ({cause.message}), nor could the one before be "
            f"restored ({err.message}); correct the definition, then start the domain",
        ) from err
    raise FailedPreconditionError(
        Reason.START_FAILED,
        f"the new definition does not start ({cause.message}); the one before was restored and started, so the ceiling "
        "is as it was; ask for a lower one",
        {"restored": "true"},
    ) from cause
