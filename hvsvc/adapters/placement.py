"""Placement's API: reads and sets what one server has allocated on its compute provider.

Microversion 1.36: the last one whose allocations can be written back as they were read
(from 1.38 on a GET may tell a consumer_type "unknown", which a PUT refuses; measured).
"""

from __future__ import annotations

import asyncio
import random
from urllib.parse import quote

from hvsvc.adapters.cloud_calls import CloudCalls, TimedCalls
from hvsvc.adapters.cloud_session import CloudService
from hvsvc.adapters.placement_answers import (
    Consumer,
    check_status,
    find_compute,
    is_concurrent_update,
    parse_consumer,
    parse_room,
    refused,
)
from hvsvc.domain.allocation import AllocationFacts, ProviderRoom, Size, check_room
from hvsvc.errors import UNANSWERED, AbortedError, HvsvcError, Reason

#: other consumers of the same host raise the provider's generation too, so a conflict is ordinary
_WRITE_ATTEMPTS = 10
#: longest wait before the second attempt; as much longer before each one after it
_STEP_ASIDE_S = 0.05

PLACEMENT = CloudService(
    "placement",
    "placement",
    "1.36",
    Reason.PLACEMENT_UNAVAILABLE,
    Reason.PLACEMENT_NOT_PERMITTED,
    check_status,
)


class PlacementAllocations:
    """The `Placement` of a running daemon.

    :param cloud: a name in clouds.yaml, or "envvars".
    :param call_timeout_s: bound of every method, repetitions included.
    """

    def __init__(self, cloud: str, *, call_timeout_s: float) -> None:
        self._calls = CloudCalls(cloud, PLACEMENT, call_timeout_s)

    def close(self) -> None:
        """Ends the threads as their calls end; it does not wait."""
        self._calls.close()

    async def read_allocation(self, server_id: str) -> AllocationFacts:
        """Reads what the server has allocated on its compute provider.

        :raises FailedPreconditionError: ALLOCATION_MISSING.
        :raises NotPermittedError: PLACEMENT_NOT_PERMITTED; Placement tells admins only.
        :raises UnavailableError: PLACEMENT_UNAVAILABLE, also for an answer that makes no sense.
        :raises DeadlineError: CALL_TIMED_OUT.
        """
        async with self._calls.within_timeout(f"allocation of server {server_id}") as calls:
            return find_compute(await _read_consumer(calls, server_id), server_id)

    async def read_room(self, resource_provider: str) -> ProviderRoom:
        """Reads inventory and usage of the provider.

        :raises NotPermittedError, UnavailableError, DeadlineError: as `read_allocation`.
        """
        async with self._calls.within_timeout(f"inventory of provider {resource_provider}") as calls:
            return await _read_room(calls, resource_provider)

    async def set_allocation(self, server_id: str, seen: AllocationFacts, wanted: Size) -> AllocationFacts:
        """Sets the two classes where they still are as `seen`; returns them as read back.

        The consumer's generation guards the write. A conflict is tried again as long as
        both classes and the provider are as seen: something else of the server or of the
        host has changed. A refusal is explained by the inventory, not by its words.

        :raises AbortedError: ALLOCATION_CHANGED; nothing is written then.
        :raises FailedPreconditionError: ALLOCATION_ABOVE_MAX_UNIT, ALLOCATION_NO_CAPACITY or
            PLACEMENT_REFUSED; nothing is written then.
        :raises NotPermittedError: as `read_allocation`.
        :raises UnavailableError, DeadlineError: as `read_allocation`; the message says where it
            may have been written.
        """
        what = f"allocation of {wanted} to server {server_id}"
        sent = asyncio.Event()
        try:
            async with self._calls.within_timeout(what) as calls:
                return await _set(calls, server_id, seen, wanted, what, sent)
        except UNANSWERED as err:
            if sent.is_set():
                err.message = (
                    f"the {what} may have been written, though that was not read back ({err.message})"
                )
            raise


async def _set(
    calls: TimedCalls,
    server_id: str,
    seen: AllocationFacts,
    wanted: Size,
    what: str,
    sent: asyncio.Event,
) -> AllocationFacts:
    for attempt in range(_WRITE_ATTEMPTS):
        await asyncio.sleep(random.uniform(0, attempt * _STEP_ASIDE_S))  # noqa: S311 no secret
        consumer = await _read_consumer(calls, server_id)
        now = find_compute(consumer, server_id)
        if now != seen:
            raise _changed(server_id, f"it was {seen.size}, and is {now.size} now")
        body = consumer.replaced(seen.resource_provider, wanted)
        sent.set()
        answer = await calls.put(_of(server_id), body, what)
        if answer.status != 409:
            return find_compute(await _read_consumer(calls, server_id), server_id)
        sent.clear()
        if not is_concurrent_update(answer):
            raise await _explain(calls, seen, wanted, what)
    raise _changed(server_id, f"{_WRITE_ATTEMPTS} writes met another one")


async def _explain(calls: TimedCalls, seen: AllocationFacts, wanted: Size, what: str) -> HvsvcError:
    """Why Placement refused, from its inventory: its message is for people and changes."""
    unexplained = refused(what, {"httpStatus": 409})
    try:
        room = await _read_room(calls, seen.resource_provider)
    except HvsvcError:
        return unexplained
    return next(check_room(room, seen.size, wanted), unexplained)


async def _read_consumer(calls: TimedCalls, server_id: str) -> Consumer:
    return parse_consumer(await calls.read(_of(server_id), f"allocation of server {server_id}"))


async def _read_room(calls: TimedCalls, resource_provider: str) -> ProviderRoom:
    path = f"/resource_providers/{quote(resource_provider, safe='')}"
    what = f"provider {resource_provider}"
    inventories, usages = await asyncio.gather(
        calls.read(f"{path}/inventories", f"inventory of {what}"),
        calls.read(f"{path}/usages", f"usage of {what}"),
    )
    return parse_room(inventories, usages)


def _of(server_id: str) -> str:
    return f"/allocations/{quote(server_id, safe='')}"


def _changed(server_id: str, how: str) -> AbortedError:
    return AbortedError(
        Reason.ALLOCATION_CHANGED,
        f"the allocation of server {server_id} in Placement is being changed by somebody else ({how}); hvsvc did not "
        "write it; read the domain again, then redo the request",
        {"serverId": server_id},
    )
