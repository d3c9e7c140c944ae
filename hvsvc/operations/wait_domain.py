"""Waits for a domain to reach a state, through short absences of libvirt."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from hvsvc.domain.facts import DomainFacts
from hvsvc.errors import UNANSWERED, AbortedError, UnavailableError
from hvsvc.operations.context import Deadline, Tools

T = TypeVar("T")

#: of a read: libvirt restarts, or the domain changes faster than it can be read; the next one may work
PASSING = (*UNANSWERED, AbortedError)


async def read_patiently(tools: Tools, read: Callable[[], Awaitable[T]], deadline: Deadline) -> T:
    """Reads, again and again through short absences of libvirt, as when it is restarted, until the bound is over.

    :raises HvsvcError: what `read` raises; LIBVIRT_UNAVAILABLE at the bound.
    """
    while True:
        try:
            return await read()
        except UnavailableError:
            if deadline.over:
                raise
        await tools.clock.sleep(tools.timeouts.poll_interval_s)


async def read_changed(tools: Tools, uuid: str) -> DomainFacts:
    """Reads a domain that was changed just now: a restart of libvirt must not hide what came of it.

    :raises HvsvcError: as `read_patiently`.
    """
    deadline = Deadline(tools.clock, tools.timeouts.guest_ready_timeout_s)
    return await read_patiently(tools, lambda: tools.hypervisor.read_domain(uuid), deadline)


async def wait_for_domain(
    tools: Tools, uuid: str, timeout_s: float, reached: Callable[[DomainFacts], bool]
) -> DomainFacts:
    """Reads the domain until `reached` holds or the bound is over; returns it as last read.

    An absence of libvirt ends no wait before its bound: whoever has shut a domain down
    must be there to start it.

    :raises HvsvcError: what the last read said, where the bound is over and none works.
    """
    deadline = Deadline(tools.clock, timeout_s)
    while True:
        try:
            domain = await tools.hypervisor.read_domain(uuid)
        except PASSING:
            if deadline.over:
                raise
        else:
            if reached(domain) or deadline.over:
                return domain
        await tools.clock.sleep(tools.timeouts.poll_interval_s)
