"""Reboots a Nova server: soft only, and waits for Nova's action and the host's own evidence."""

from __future__ import annotations

from hvsvc.domain.facts import DomainFacts, ServerFacts
from hvsvc.domain.obstacles import check_reboot, check_server
from hvsvc.errors import (
    UNANSWERED,
    DeadlineError,
    FailedPreconditionError,
    HvsvcError,
    NotFoundError,
    Reason,
    UnavailableError,
)
from hvsvc.operations.context import Context, Deadline, Tools
from hvsvc.operations.ports import Servers
from hvsvc.operations.wait_domain import PASSING

#: looks in a row at which Nova has no task before that is believed without a result: its database may lag
_QUIET_LOOKS = 3


async def reboot_server(tools: Tools, context: Context, before: DomainFacts) -> None:
    """Asks Nova for a soft reboot and waits until it is over.

    Over means: the new instance action has a result, Nova has no task on the server,
    and libvirt runs it under a new id. Nova's "Success" says nothing about the
    ceiling: a soft reboot that fell back to a hard one succeeds too.

    The action of a nova-compute that died never gets a result. When it is back, Nova
    either reboots hard, where the guest was off by then, or drops the reboot (measured on
    Nova 26.2): the end of the task tells then.

    :raises AbortedError, FailedPreconditionError: SERVER_BUSY, SERVER_LOCKED,
        SERVER_NOT_ACTIVE, NOVA_NOT_CONFIGURED before; NOVA_REFUSED by the reboot;
        REBOOT_NOT_APPLIED where Nova ended it and the domain still runs as before.
    :raises UnavailableError: where Nova cannot be asked, or its nova-compute is known to
        be away, before; where it is gone and the domain not restarted within the bound.
    :raises DeadlineError: where it is not over within the bound.
    """
    servers = tools.servers
    world = await tools.around.read_world(context.uuid, ask_guest=False)
    for refusal in (*check_server(world), *check_reboot(world)):
        raise refusal
    assert servers is not None, "check_reboot refuses without a credential"
    request_id = await _ask(servers, context)
    deadline = Deadline(tools.clock, tools.timeouts.reboot_timeout_s)
    result: str | None = None
    server: ServerFacts | None = None
    now: DomainFacts | None = None
    unreachable: HvsvcError | None = None
    tasks, quiet = 0, 0
    while not deadline.over:
        await tools.clock.sleep(tools.timeouts.nova_poll_interval_s)
        try:
            result, server = await _progress(servers, context.uuid, request_id)
            unreachable = None
        except UNANSWERED as err:
            # Nova may come back; the bound decides
            unreachable = err
            continue
        if server.status == "ERROR":
            break  # its task may stay for good
        if server.task_state is not None:
            tasks, quiet = tasks + 1, 0
            continue
        quiet += 1
        now = await _read_now(tools, context.uuid)
        dropped = quiet >= _QUIET_LOOKS and (tasks > 0 or result is not None)
        if result is not None and _is_up(now, before):
            break
        if dropped and now is not None and now.running:
            break
    _check_end(tools, before, result, server, unreachable, await _read_now(tools, context.uuid))


async def _ask(servers: Servers, context: Context) -> str:
    # from here on Nova may act, whatever becomes of the answer
    context.changed = context.rebooted = True
    try:
        return await servers.reboot_soft(context.uuid)
    except UNANSWERED as err:
        err.message = (
            f"a soft reboot was asked for, and whether Nova took it is not known ({err.message}); read the server "
            "in Nova and the domain before you repeat the request"
        )
        raise


async def _progress(servers: Servers, uuid: str, request_id: str) -> tuple[str | None, ServerFacts]:
    return await servers.read_reboot_result(uuid, request_id), await servers.read_server(uuid)


async def _read_now(tools: Tools, uuid: str) -> DomainFacts | None:
    """The domain; None where it cannot be read just now."""
    try:
        return await tools.hypervisor.read_domain(uuid)
    except (NotFoundError, *PASSING):
        return None  # a hard reboot undefines the domain for a moment; libvirt may restart


def _is_up(now: DomainFacts | None, before: DomainFacts) -> bool:
    return now is not None and now.running and now.id != before.id


def _check_end(
    tools: Tools,
    before: DomainFacts,
    result: str | None,
    server: ServerFacts | None,
    unreachable: HvsvcError | None,
    now: DomainFacts | None,
) -> None:
    if server is not None and server.status == "ERROR":
        raise FailedPreconditionError(
            Reason.NOVA_REFUSED,
            f"Nova's reboot ended with result {result} and left the server in status ERROR; look at its fault "
            "(openstack server show), then recover it there",
            {"result": result or "", "status": server.status},
        )
    if _is_up(now, before):
        return  # libvirt shows a new process; what Nova could not say is judged at the end
    domain = "cannot be read" if now is None else f"is {now.state.value}"
    if unreachable is not None:
        raise UnavailableError(
            unreachable.reason,
            f"the reboot was asked for, then Nova stopped answering ({unreachable.message}) and the domain was not "
            f"restarted within {tools.timeouts.reboot_timeout_s:g} s (it {domain}); read it before you repeat the "
            "request",
            unreachable.metadata,
        ) from unreachable
    if server is not None and server.task_state is None and now is not None and now.running:
        raise FailedPreconditionError(
            Reason.REBOOT_NOT_APPLIED,
            f"Nova has no task on the server any more (result of the reboot: {result or 'none'}), and the domain runs "
            f"in the same QEMU process (id {before.id}): the reboot was dropped, as when nova-compute is restarted "
            "meanwhile, so the stored ceiling is not in effect; see that nova-compute runs, then reboot again "
            "(hvctl reboot)",
            {"result": result or "", "status": server.status},
        )
    state = "nothing"
    if server is not None:
        host = f", host_status {server.host_status}" if server.host_status else ""
        state = f"task_state {server.task_state}, status {server.status}{host}"
    raise DeadlineError(
        Reason.CALL_TIMED_OUT,
        f"the reboot through Nova was not over within {tools.timeouts.reboot_timeout_s:g} s (Nova says {state}; the "
        f"domain {domain}; its id was {before.id}); Nova may still do it, once nova-compute is back: wait for it, "
        "then read the domain before you repeat the request",
        {"timeoutS": tools.timeouts.reboot_timeout_s},
    )
