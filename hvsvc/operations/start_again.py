"""Starts a domain that was shut down, with a way back where its stored definition does not start."""

from __future__ import annotations

from typing import NoReturn

from hvsvc.domain.facts import DomainFacts
from hvsvc.domain.take_back import take_back
from hvsvc.errors import AbortedError, DeadlineError, FailedPreconditionError, HvsvcError, Reason
from hvsvc.operations.context import Context, Deadline, Tools
from hvsvc.operations.wait_domain import PASSING, wait_for_domain


async def start_again(tools: Tools, context: Context, before: DomainFacts) -> None:
    """Starts the domain and waits until it runs; no domain is left down (case TOPO-12).

    What libvirt answers to the start may be lost or late, and somebody else may start the
    domain meanwhile: whether it runs is read, and only a domain that is off and whose
    definition libvirt refused to start is taken back to the ceiling it had.

    :raises FailedPreconditionError: START_FAILED, saying what runs now.
    :raises HvsvcError: where libvirt does not come back in time; the domain may be off.
    """
    timeout_s = tools.timeouts.start_timeout_s
    deadline = Deadline(tools.clock, timeout_s)
    while (error := await _try_start(tools, context.uuid)) is not None:
        try:
            now = await _read(tools, context.uuid, timeout_s)
            if now.live is None and isinstance(error, DeadlineError):  # the start may still be under way
                now = await wait_for_domain(
                    tools, context.uuid, timeout_s, lambda domain: domain.live is not None
                )
        except HvsvcError as err:
            raise _left_down(err) from error
        if now.live is not None:
            break
        if error.reason is Reason.START_FAILED:
            await _take_back(tools, context, before, now, error)
        if not isinstance(error, PASSING) or deadline.over:
            raise _left_down(error)
        await tools.clock.sleep(tools.timeouts.poll_interval_s)
    await wait_for_domain(
        tools, context.uuid, timeout_s, lambda domain: domain.running and domain.id != before.id
    )


async def _read(tools: Tools, uuid: str, timeout_s: float) -> DomainFacts:
    return await wait_for_domain(tools, uuid, timeout_s, lambda _: True)


async def _try_start(tools: Tools, uuid: str) -> HvsvcError | None:
    try:
        await tools.hypervisor.start(uuid)
    except HvsvcError as err:
        return err
    return None


async def _start_restored(tools: Tools, uuid: str) -> None:
    """Starts the domain whose last start failed; once more where it is off after that.

    libvirt may take the end of the process that failed for the end of the new one, and
    kills that (measured with libvirt 9.0 on a busy host; 11.3 compares the domain's id).
    """
    error = await _try_start(tools, uuid)
    if error is None or error.reason is Reason.START_FAILED:
        now = await _read(tools, uuid, tools.timeouts.start_timeout_s)
        error = await _try_start(tools, uuid) if now.live is None else None
    if error is not None:
        raise error


def _left_down(error: HvsvcError) -> HvsvcError:
    error.message = (
        f"the domain was shut down for the reboot and could not be seen to start again ({error.message}); look at it "
        "and start it (virsh start)"
    )
    return error


async def _take_back(
    tools: Tools, context: Context, before: DomainFacts, now: DomainFacts, cause: HvsvcError
) -> NoReturn:
    """Puts the ceiling that ran back, starts the domain, and says so by raising."""
    assert before.live is not None, "check_reboot demands a running domain"
    fails = f"its stored definition does not start ({cause.message})"
    try:
        if now.config_xml is None:
            raise AbortedError(Reason.DEFINITION_CHANGED, "somebody undefined it meanwhile")
        kept = context.previous_xml or await tools.journal.read_kept_definition(context.uuid)
        xml = take_back(now.config_xml, kept, before.live)
        if xml == now.config_xml:
            raise FailedPreconditionError(
                Reason.START_FAILED, "its ceiling is the one that ran, so something else is at fault"
            )
        await tools.journal.keep_definition(
            context.operation_id, context.uuid, now.config_xml, tools.clock.now_s()
        )
        await tools.hypervisor.define(context.uuid, now.etag, xml)
        await _start_restored(tools, context.uuid)
    except HvsvcError as err:
        raise FailedPreconditionError(
            Reason.START_FAILED,
            f"the domain is off: {fails}, nor could the ceiling before be restored ({err.message}); correct the "
            "definition, then start the domain",
        ) from err
    raise FailedPreconditionError(
        Reason.START_FAILED,
        f"the new definition does not start ({cause.message}); the one before was restored and started, so the ceiling "
        "is as it was; ask for a lower one",
        {"restored": "true"},
    ) from cause
