"""Many who ask at once cost one read, and none gets an older one than it asked for."""

from __future__ import annotations

import asyncio

import pytest

from hvsvc.errors import NotFoundError, Reason
from hvsvc.operations.shared_reads import SharedReads


class Source:
    """Counts the reads; each lasts until it is let go."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.go = asyncio.Semaphore(0)
        self.error: Exception | None = None

    async def read(self, key: str) -> str:
        self.begun.append(key)
        value = f"{key}{len(self.begun)}"
        await self.go.acquire()
        if self.error is not None:
            raise self.error
        return value


async def settled() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_all_who_ask_at_once_share_one_read() -> None:
    source = Source()
    shared = SharedReads(source.read)
    asked = [asyncio.create_task(shared.read("a")) for _ in range(100)]
    other = asyncio.create_task(shared.read("b"))
    await settled()
    assert sorted(source.begun) == ["a", "b"]
    source.go.release()
    source.go.release()
    assert set(await asyncio.gather(*asked)) == {"a1"}
    assert await other == "b2"


async def test_who_asks_while_a_read_runs_gets_the_next_one() -> None:
    source = Source()
    shared = SharedReads(source.read)
    first = asyncio.create_task(shared.read("a"))
    await settled()
    later = [asyncio.create_task(shared.read("a")) for _ in range(100)]
    await settled()
    assert source.begun == ["a"]
    source.go.release()
    assert await first == "a1"
    await settled()
    assert source.begun == ["a", "a"]
    source.go.release()
    assert set(await asyncio.gather(*later)) == {"a2"}
    again = asyncio.create_task(shared.read("a"))
    source.go.release()
    assert await again == "a3", "nothing is kept"
    assert not shared._running
    assert not shared._next


async def test_who_goes_away_takes_nothing_from_the_others() -> None:
    source = Source()
    shared = SharedReads(source.read)
    first, second = (asyncio.create_task(shared.read("a")) for _ in range(2))
    await settled()
    first.cancel()
    source.go.release()
    assert await second == "a1"
    assert first.cancelled()


async def test_an_error_is_told_to_all() -> None:
    source = Source()
    source.error = NotFoundError(Reason.DOMAIN_NOT_FOUND, "gone")
    shared = SharedReads(source.read)
    asked = [asyncio.create_task(shared.read("a")) for _ in range(3)]
    source.go.release()
    for each in asked:
        with pytest.raises(NotFoundError, match="gone"):
            await each
    source.error = None
    source.go.release()
    assert await shared.read("a") == "a2"
