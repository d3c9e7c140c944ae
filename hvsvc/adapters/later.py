"""Adapters loaded while the daemon already serves: importing openstacksdk takes longer than all the rest."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar


class Closable(Protocol):
    """What has threads that end."""

    def close(self) -> None:
        """Ends the threads as their calls end."""
        ...


T = TypeVar("T", bound=Closable)


class Later(Generic[T]):
    """An adapter that the first call, or `load`, loads in a thread, once.

    :param make: makes the real one; blocks.
    """

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._loading: asyncio.Task[T] | None = None

    async def load(self) -> T:
        """The real one."""
        if self._loading is None:
            self._loading = asyncio.create_task(asyncio.to_thread(self._make), name="load openstacksdk")
        # A caller that goes away must not take the loading from the others.
        return await asyncio.shield(self._loading)

    async def close(self) -> None:
        """Ends its threads, where there are any."""
        if self._loading is not None:
            (await self._loading).close()
