"""Looks at domains when something happens to them, at the start, and in a slow sweep."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable

import structlog

from hvsvc.domain.facts import LifecycleEvent
from hvsvc.errors import HvsvcError
from hvsvc.operations.ports import Hypervisor

#: looks at one domain; the seconds after which to look again, None for not before the next event or sweep
Look = Callable[[str], Awaitable[float | None]]
#: the domains to look at all together; True in a sweep
ListAll = Callable[[bool], Awaitable[Iterable[str]]]

_RETRY_S = 1.0

_log = structlog.stdlib.get_logger("hvsvc.watch")


class DomainWatch:
    """Calls `look` for one domain at a time per domain; one that hangs holds up no other.

    :param ignored: events that are no reason to look.
    :param debounce_s: lets the several events of one action come in before the look.
    """

    def __init__(
        self,
        hypervisor: Hypervisor,
        look: Look,
        list_all: ListAll,
        *,
        ignored: Collection[LifecycleEvent],
        debounce_s: float,
        sweep_interval_s: float,
    ) -> None:
        self._hypervisor = hypervisor
        self._look = look
        self._list_all = list_all
        self._ignored = ignored
        self._debounce_s = debounce_s
        self._sweep_interval_s = sweep_interval_s
        self._due: dict[str, asyncio.Event] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Watches until cancelled."""
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._follow_events())
                group.create_task(self._sweep())
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    def poke(self, uuid: str) -> None:
        """Has a domain looked at soon."""
        due = self._due.get(uuid)
        if due is not None:
            due.set()
            return
        self._due[uuid] = asyncio.Event()
        task = asyncio.create_task(self._keep_looking(uuid), name=f"watch of {uuid}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _follow_events(self) -> None:
        while True:
            try:
                async with self._hypervisor.events() as events:
                    await self._poke_all(sweep=False)  # what happened while nobody watched
                    async for event in events:
                        if event.kind not in self._ignored:
                            self.poke(event.uuid)
            except HvsvcError as err:
                _log.debug("events_lost", error=err.message)
            await asyncio.sleep(_RETRY_S)

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(self._sweep_interval_s)
            await self._poke_all(sweep=True)

    async def _poke_all(self, *, sweep: bool) -> None:
        try:
            for uuid in await self._list_all(sweep):
                self.poke(uuid)
        except HvsvcError as err:
            _log.error("not_looked_at", reason=err.reason.value, error=err.message)

    async def _keep_looking(self, uuid: str) -> None:
        due = self._due[uuid]
        try:
            await asyncio.sleep(self._debounce_s)
            while True:
                due.clear()
                wait_s = await self._look_safely(uuid)
                if wait_s is None and not due.is_set():
                    return
                try:
                    async with asyncio.timeout(wait_s):
                        await due.wait()
                    await asyncio.sleep(self._debounce_s)
                except TimeoutError:
                    continue
        finally:
            del self._due[uuid]

    async def _look_safely(self, uuid: str) -> float | None:
        try:
            return await self._look(uuid)
        except HvsvcError as err:
            _log.warning("not_looked_at", domain=uuid, reason=err.reason.value, error=err.message)
        except Exception:  # noqa: BLE001 a bug here must not end the watch of the other domains
            _log.exception("look_failed", domain=uuid)
        return None
