"""Reads that many ask for at once, made once for all of them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class SharedReads(Generic[T]):
    """Whoever asks gets a read that began after he asked, together with all who asked before it began.

    So hundreds of watchers of one event cost one read, and hold up no other call.
    """

    def __init__(self, read: Callable[[str], Awaitable[T]]) -> None:
        self._read = read
        self._running: dict[str, asyncio.Task[T]] = {}
        self._next: dict[str, asyncio.Task[T]] = {}

    async def read(self, key: str) -> T:
        """Reads what `key` names; one that goes away takes nothing from the others.

        :raises HvsvcError: what the read raised.
        """
        task = self._next.get(key)
        if task is None:
            task = asyncio.create_task(self._read_after(key, self._running.get(key)), name=f"read of {key}")
            task.add_done_callback(_retrieve)
            self._next[key] = task
        return await asyncio.shield(task)

    async def _read_after(self, key: str, before: asyncio.Task[T] | None) -> T:
        if before is not None:
            await asyncio.wait({before})
        self._running[key] = task = self._next.pop(key)
        try:
            return await self._read(key)
        finally:
            if self._running[key] is task:
                del self._running[key]


def _retrieve(task: asyncio.Task[T]) -> None:
    """Of a read that nobody waits for any more, nothing needs to be said."""
    if not task.cancelled():
        task.exception()
