"""Reboots a Nova server: soft only, and waits for Nova's action and the host's own evidence."""

from __future__ import annotations

from hvsvc.domain.facts import DomainFacts, ServerFacts
from hvsvc.domain.obstacles import check_reboot, check_server
from hvsvc.errors import (
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

_MOMENTARY = (UnavailableError, DeadlineError)


async def reboot_server(tools: Tools, context: Context, before: DomainFacts) -> None:
    """Asks Nova for a soft reboot and waits until it is over.

    Over means: the new instance action has a result, Nova has no task on the server,
    and libvirt runs it under a new id. Nova's "Success" says nothing about the
    ceiling: a soft reboot that fell back to a hard one succeeds too.

    :raises AbortedError, FailedPreconditionError: SERVER_BUSY, SERVER_LOCKED,
        SERVER_NOT_ACTIVE, NOVA_NOT_CONFIGURED before; NOVA_REFUSED by the reboot.
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
    unreachable: HvsvcError | None = None
    while not deadline.over:
        await tools.clock.sleep(tools.timeouts.nova_poll_interval_s)
        try:
            result, server = await _progress(servers, context.uuid, request_id)
            unreachable = None
        except _MOMENTARY as err:
            # Nova may come back; the bound decides
            unreachable = err
            continue
        if result is None or server.task_state is not None:
            continue
        if server.status == "ERROR" or await _is_up(tools, context.uuid, before):
            break
    _check_end(tools, before, result, server, unreachable, await _is_up(tools, context.uuid, before))


async def _ask(servers: Servers, context: Context) -> str:
    # from here on Nova may act, whatever becomes of the answer
    context.changed = context.rebooted = True
    try:
        return await servers.reboot_soft(context.uuid)
    except _MOMENTARY as err:
        err.message = (
            f"a soft reboot was asked for, and whether Nova took it is not known ({err.message}); read the server "
            "in Nova and the domain before you repeat the request"
        )
        raise


async def _progress(servers: Servers, uuid: str, request_id: str) -> tuple[str | None, ServerFacts]:
    return await servers.read_reboot_result(uuid, request_id), await servers.read_server(uuid)


async def _is_up(tools: Tools, uuid: str, before: DomainFacts) -> bool:
    try:
        domain = await tools.hypervisor.read_domain(uuid)
    except (NotFoundError, *PASSING):
        return False  # a hard reboot undefines the domain for a moment; libvirt may restart
    return domain.running and domain.id != before.id


def _check_end(
    tools: Tools,
    before: DomainFacts,
    result: str | None,
    server: ServerFacts | None,
    unreachable: HvsvcError | None,
    up: bool,
) -> None:
    if server is not None and server.status == "ERROR":
        raise FailedPreconditionError(
            Reason.NOVA_REFUSED,
            f"Nova's reboot ended with result {result} and left the server in status ERROR; look at its fault "
            "(openstack server show), then recover it there",
            {"result": result or "", "status": server.status},
        )
    if up:
        return  # libvirt shows a new process; what Nova could not say is judged at the end
    if unreachable is not None:
        raise UnavailableError(
            unreachable.reason,
            f"the reboot was asked for, then Nova stopped answering ({unreachable.message}) and the domain was not "
            f"restarted within {tools.timeouts.reboot_timeout_s:g} s; read the domain before you repeat the request",
            unreachable.metadata,
        ) from unreachable
    state = f"task_state {server.task_state}, status {server.status}" if server is not None else "nothing"
    raise DeadlineError(
        Reason.CALL_TIMED_OUT,
        f"the reboot through Nova was not over within {tools.timeouts.reboot_timeout_s:g} s (Nova says {state}; the "
        f"domain id was {before.id}); wait for it, then read the domain before you repeat the request",
        {"timeoutS": tools.timeouts.reboot_timeout_s},
    )
