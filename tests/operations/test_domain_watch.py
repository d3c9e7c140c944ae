"""When domains are looked at, and that no look holds up another."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

from hvsvc.domain.facts import LifecycleEvent
from hvsvc.errors import Reason, UnavailableError
from hvsvc.operations.domain_watch import DomainWatch
from tests.fakes.face import until
from tests.fakes.host import FakeHost, host
from tests.fakes.worlds import UUID

OTHER = "11111111-2222-4333-8444-555555555555"


class Looks:
    """A watch and what it looked at; `waits` are the answers of the looks in order, None after them."""

    def __init__(self, fake: FakeHost, *, sweep_interval_s: float = 3600, debounce_s: float = 0.01) -> None:
        self.seen: list[str] = []
        self.sweeps: list[bool] = []
        self.listed: list[str] = []
        self.waits: list[float | Exception | None] = []
        self.hold = asyncio.Event()
        self.hold.set()
        self.watch = DomainWatch(
            fake,
            self._look,
            self._list,
            ignored={LifecycleEvent.BALLOON_CHANGED},
            debounce_s=debounce_s,
            sweep_interval_s=sweep_interval_s,
        )

    async def _look(self, uuid: str) -> float | None:
        self.seen.append(uuid)
        if uuid == UUID:
            await self.hold.wait()
        answer = self.waits.pop(0) if self.waits else None
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def _list(self, sweep: bool) -> Iterable[str]:
        self.sweeps.append(sweep)
        if self.listed == ["away"]:
            raise UnavailableError(Reason.JOURNAL_UNAVAILABLE, "disk")
        return self.listed


@asynccontextmanager
async def running(looks: Looks) -> AsyncIterator[None]:
    task = asyncio.create_task(looks.watch.run())
    await until(lambda: bool(looks.sweeps))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_all_are_looked_at_at_the_start_and_in_the_sweep() -> None:
    looks = Looks(host(), sweep_interval_s=0.05)
    looks.listed = [UUID, OTHER]
    async with running(looks):
        await until(lambda: looks.sweeps[:2] == [False, True] and len(looks.seen) >= 4)
    assert sorted(looks.seen[:2]) == sorted([UUID, OTHER])


async def test_the_events_of_one_action_make_one_look_and_others_none() -> None:
    fake = host()
    looks = Looks(fake, debounce_s=0.05)
    async with running(looks):
        for _ in range(5):
            fake.emit(LifecycleEvent.STOPPED_DESTROYED)
            fake.emit(LifecycleEvent.DEFINED_ADDED)
        await until(lambda: looks.seen == [UUID])
        fake.emit(LifecycleEvent.BALLOON_CHANGED)
        await asyncio.sleep(0.1)
    assert looks.seen == [UUID]


async def test_what_happens_during_a_look_is_looked_at_after_it() -> None:
    fake = host()
    looks = Looks(fake)
    looks.hold.clear()
    async with running(looks):
        looks.watch.poke(UUID)
        await until(lambda: looks.seen == [UUID])
        fake.emit(LifecycleEvent.STARTED)
        looks.watch.poke(OTHER)
        await until(lambda: looks.seen == [UUID, OTHER])  # one that hangs holds up no other
        looks.hold.set()
        await until(lambda: looks.seen == [UUID, OTHER, UUID])


async def test_a_look_says_when_the_next_one_is_due_and_an_event_comes_before_it() -> None:
    looks = Looks(host())
    looks.waits = [0.02, 0, 3600]
    async with running(looks):
        looks.watch.poke(UUID)
        await until(lambda: len(looks.seen) == 3)
        looks.watch.poke(UUID)
        await until(lambda: len(looks.seen) == 4)


async def test_an_error_ends_the_look_alone() -> None:
    fake = host()
    looks = Looks(fake)
    looks.waits = [UnavailableError(Reason.LIBVIRT_UNAVAILABLE, "gone"), ZeroDivisionError("a bug")]
    async with running(looks):
        for number in range(1, 4):
            looks.watch.poke(UUID)
            await until(lambda number=number: len(looks.seen) == number)  # type: ignore[misc]
            await asyncio.sleep(0.03)


async def test_a_list_that_cannot_be_read_does_not_end_the_watch() -> None:
    fake = host()
    looks = Looks(fake, sweep_interval_s=0.03)
    looks.listed = ["away"]
    async with running(looks):
        await until(lambda: len(looks.sweeps) > 2)
        fake.emit(LifecycleEvent.STARTED)
        await until(lambda: looks.seen == [UUID])
