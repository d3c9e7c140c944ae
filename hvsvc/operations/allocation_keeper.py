"""Keeps Placement's allocations at the truth after whatever Nova does to a domain."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import structlog

from hvsvc.domain.facts import LifecycleEvent
from hvsvc.domain.plan_allocation import true_size
from hvsvc.errors import AbortedError, HvsvcError, NotFoundError
from hvsvc.operations.context import Deadline, Tools
from hvsvc.operations.domain_locks import ALLOCATION, DomainLocks
from hvsvc.operations.domain_watch import DomainWatch
from hvsvc.operations.step_allocation import reconcile_allocation, wait_settled

#: events after which a domain may have another size
_RELATED = frozenset(
    {
        LifecycleEvent.DEFINED_ADDED,
        LifecycleEvent.DEFINED_UPDATED,
        LifecycleEvent.STARTED,
        LifecycleEvent.STOPPED_SHUTDOWN,
        LifecycleEvent.STOPPED_DESTROYED,
        LifecycleEvent.STOPPED_CRASHED,
        LifecycleEvent.STOPPED_FAILED,
        LifecycleEvent.STOPPED_OTHER,
        # a guest that resets itself has all of the maximum once its driver is up again, until its balloon has settled:
        # whoever wrote what it only passed through is corrected
        LifecycleEvent.REBOOTED,
        LifecycleEvent.AGENT_CONNECTED,
    }
)
_DEBOUNCE_S = 0.3
#: allocations that are read at once: a sweep asks for all of them, and callers must not wait behind it
_READS = 2

_log = structlog.stdlib.get_logger("hvsvc.allocations")


class AllocationKeeper:
    """For policy ENFORCE: looks at the start, after each event that may change a size, and in a sweep.

    Operations bring the allocation to the truth themselves; this is for a hard reboot,
    a stop and start, a resize by Nova, an edit by somebody else, and for a Placement
    that could not be asked when an operation ended.
    """

    def __init__(self, tools: Tools, locks: DomainLocks, *, sweep_interval_s: float) -> None:
        self._tools = tools
        self._locks = locks
        self._reads = asyncio.Semaphore(_READS)
        self._watch = DomainWatch(
            tools.hypervisor,
            self._look,
            self._list_servers,
            ignored=frozenset(LifecycleEvent) - _RELATED,
            debounce_s=_DEBOUNCE_S,
            sweep_interval_s=sweep_interval_s,
        )

    async def run(self) -> None:
        """Keeps until cancelled."""
        await self._watch.run()

    async def _list_servers(self, _sweep: bool) -> Iterable[str]:
        domains = await self._tools.hypervisor.read_domains()
        return [facts.uuid for facts in domains.read if facts.nova is not None]

    async def _look(self, uuid: str) -> None:
        try:
            await self.keep(uuid)
        except NotFoundError:
            pass  # the domain is gone: its allocation is Nova's alone
        except HvsvcError as err:
            _log.warning("allocation_not_kept", domain=uuid, reason=err.reason.value, error=err.message)

    async def keep(self, uuid: str) -> None:
        """Brings one allocation to the truth, once neither Nova nor an operation is at work on the server.

        :raises HvsvcError: what libvirt, Nova or Placement answered; AbortedError where the
            server is busy for longer than a reboot may take, or in a state to be left alone.
        """
        deadline = Deadline(self._tools.clock, self._tools.timeouts.reboot_timeout_s)
        while await self._differs(uuid):  # also after a write: the size may have moved on since it was read
            try:
                await self._reconcile(uuid)
            except AbortedError as err:
                if deadline.over or not _passes(err):
                    raise
                await self._tools.clock.sleep(self._tools.timeouts.nova_poll_interval_s)
            if deadline.over:
                return

    async def _differs(self, uuid: str) -> bool:
        """Looked at without the domain's lock, so that nobody is held up where there is nothing to write."""
        await wait_settled(self._tools, uuid, started=True)
        domain = await self._tools.hypervisor.read_domain(uuid)
        async with self._reads:
            domain = await self._tools.around.with_allocation(domain)
        if domain.allocation_error is not None:
            raise domain.allocation_error
        return domain.allocation is not None and domain.allocation.size != true_size(domain)

    async def _reconcile(self, uuid: str) -> None:
        self._locks.acquire(uuid, ALLOCATION, own_work=True)
        try:
            written = await reconcile_allocation(self._tools, uuid)
        finally:
            self._locks.release(uuid, ALLOCATION)
        if written is not None:
            before, after = written
            _log.info("allocation_kept", domain=uuid, before=str(before), after=str(after))


def _passes(err: AbortedError) -> bool:
    """Whether what is in the way goes by itself. A task that Nova left on a server in ERROR does not."""
    return err.metadata.get("taskState") != "None" and err.metadata.get("status") != "ERROR"
