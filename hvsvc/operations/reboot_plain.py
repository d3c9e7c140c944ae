"""Reboots a domain that is not Nova's: orderly shutdown, then start, with a way back."""

from __future__ import annotations

from hvsvc.domain.facts import DomainFacts, DomainState
from hvsvc.domain.obstacles import check_reboot
from hvsvc.errors import FailedPreconditionError, HvsvcError, Reason
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
    live = before.live
    assert live is not None, "check_reboot demands a running domain"
    await tools.hypervisor.shut_down(context.uuid, agent=bool(live.agent_connected))
    context.changed = True
    stopped = await _wait(tools, context.uuid, before, tools.timeouts.shutdown_timeout_s)
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
    await _wait(tools, context.uuid, before, tools.timeouts.start_timeout_s, until_running=True)


def _stopped(domain: DomainFacts, before: DomainFacts) -> bool:
    return domain.state is DomainState.SHUT_OFF or (domain.id is not None and domain.id != before.id)


async def _wait(
    tools: Tools, uuid: str, before: DomainFacts, timeout_s: float, *, until_running: bool = False
) -> DomainFacts:
    deadline = Deadline(tools.clock, timeout_s)
    while True:
        domain = await tools.hypervisor.read_domain(uuid)
        reached = (domain.running and domain.id != before.id) if until_running else _stopped(domain, before)
        if reached or deadline.over:
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
