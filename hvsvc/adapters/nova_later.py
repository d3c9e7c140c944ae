"""Nova's adapter, loaded while the daemon already serves: importing openstacksdk takes longer than all the rest."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from hvsvc.domain.facts import ServerFacts

if TYPE_CHECKING:
    from hvsvc.adapters.nova import NovaServers


def import_nova(cloud: str, *, call_timeout_s: float) -> NovaServers:
    """Imports and makes the adapter; blocks for as long as the import takes."""
    from hvsvc.adapters.nova import NovaServers  # noqa: PLC0415 - the delay is what this module is for

    return NovaServers(cloud, call_timeout_s=call_timeout_s)


class LaterServers:
    """The `Servers` of a running daemon; the first call, or `load`, loads it in a thread, once.

    :param make: makes the real one; blocks.
    """

    def __init__(self, make: Callable[[], NovaServers]) -> None:
        self._make = make
        self._loading: asyncio.Task[NovaServers] | None = None

    async def load(self) -> NovaServers:
        """The real one."""
        if self._loading is None:
            self._loading = asyncio.create_task(asyncio.to_thread(self._make), name="load nova")
        # A caller that goes away must not take the loading from the others.
        return await asyncio.shield(self._loading)

    async def close(self) -> None:
        """Ends its threads, where there are any."""
        if self._loading is not None:
            (await self._loading).close()

    async def read_server(self, server_id: str) -> ServerFacts:
        """As `NovaServers.read_server`."""
        return await (await self.load()).read_server(server_id)

    async def reboot_soft(self, server_id: str) -> str:
        """As `NovaServers.reboot_soft`."""
        return await (await self.load()).reboot_soft(server_id)

    async def read_reboot_result(self, server_id: str, request_id: str) -> str | None:
        """As `NovaServers.read_reboot_result`."""
        return await (await self.load()).read_reboot_result(server_id, request_id)
