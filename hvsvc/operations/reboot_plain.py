"""Reboots a domain that is not Nova's: orderly shutdown, then start."""

from __future__ import annotations

import asyncio

from hvsvc.domain.facts import DomainFacts, DomainState
from hvsvc.domain.obstacles import check_reboot, has_power_button
from hvsvc.errors import (
    DeadlineError,
    FailedPreconditionError,
    GuestAgentError,
    HvsvcError,
    Reason,
    UnavailableError,
)
from hvsvc.operations.context import Context, Tools
from hvsvc.operations.start_again import start_again
from hvsvc.operations.wait_domain import wait_for_domain

#: how soon a guest is off that obeyed although the asking failed
_LATE_STOP_S = 5.0


async def reboot_plain(tools: Tools, context: Context, before: DomainFacts) -> None:
    """Shuts the domain down and starts it, so that its stored definition takes effect.

    A reboot inside the guest keeps the QEMU process and with it the old ceiling (case
    RB-01).

    :raises FailedPreconditionError: SHUTDOWN_IGNORED (it still runs, unchanged);
        START_FAILED, as `start_again`.
    :raises HvsvcError: where libvirt was away for the whole of a wait.
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
    await start_again(tools, context, before)


async def _shut_down(tools: Tools, before: DomainFacts) -> DomainFacts:
    """Asks the guest to shut down, by its agent, then by the power button, and waits half the bound for each.

    The button is also for an agent that fails.

    :raises HvsvcError: what libvirt answered to the last way there is.
    """
    live = before.live
    assert live is not None, "check_reboot demands a running domain"
    ways = [
        agent
        for agent, there in ((True, bool(live.agent_connected)), (False, has_power_button(live)))
        if there
    ]
    domain, failure = before, None
    for agent in ways:
        domain, failure = await _ask(
            tools, before, agent=agent, timeout_s=tools.timeouts.shutdown_timeout_s / len(ways)
        )
        if _stopped(domain, before):
            return domain
    if failure is not None and not isinstance(failure, GuestAgentError):
        raise failure
    return domain


async def _ask(
    tools: Tools, before: DomainFacts, *, agent: bool, timeout_s: float
) -> tuple[DomainFacts, HvsvcError | None]:
    """Waits also while the asking itself does not return: libvirt waits 60 s for an agent that does nothing.

    Returns the domain as last read, and what the asking failed with.
    """
    asking = asyncio.create_task(tools.hypervisor.shut_down(before.uuid, agent=agent))
    try:
        domain = await wait_for_domain(
            tools,
            before.uuid,
            timeout_s,
            lambda domain: _stopped(domain, before) or _is_hopeless(asking),
        )
        error = _error_of(asking)
        if not _stopped(domain, before) and isinstance(error, FailedPreconditionError):
            # The guest may have obeyed all the same: an agent whose guest goes off at once answers with the end of its
            # socket, which libvirt calls an internal error (seen on libvirt 9.0).
            domain = await wait_for_domain(
                tools, before.uuid, min(_LATE_STOP_S, timeout_s), lambda domain: _stopped(domain, before)
            )
        if not _stopped(domain, before) and isinstance(error, UnavailableError):
            raise error
        return domain, error
    finally:
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)


def _error_of(asking: asyncio.Task[None]) -> HvsvcError | None:
    error = asking.exception() if asking.done() else None
    if error is not None and not isinstance(error, HvsvcError):
        raise error
    return error


def _is_hopeless(asking: asyncio.Task[None]) -> bool:
    """Whether this way of asking failed.

    An answer that was late or lost says nothing, since the guest may have been asked all
    the same: the domain itself shows whether it stops.
    """
    error = _error_of(asking)
    if error is None or isinstance(error, DeadlineError | UnavailableError):
        return False
    return error.reason is not Reason.DOMAIN_NOT_RUNNING  # which says that it has just stopped


def _stopped(domain: DomainFacts, before: DomainFacts) -> bool:
    return domain.state is DomainState.SHUT_OFF or (domain.id is not None and domain.id != before.id)
