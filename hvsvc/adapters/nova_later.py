"""Nova's adapter, loaded while the daemon already serves: importing openstacksdk takes longer than all the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hvsvc.adapters.later import Later
from hvsvc.domain.facts import ServerFacts
from hvsvc.domain.flavor import Flavor

if TYPE_CHECKING:
    from hvsvc.adapters.nova import NovaServers


def import_nova(cloud: str, *, call_timeout_s: float) -> NovaServers:
    """Imports and makes the adapter; blocks for as long as the import takes."""
    from hvsvc.adapters.nova import NovaServers  # noqa: PLC0415 - the delay is what this module is for

    return NovaServers(cloud, call_timeout_s=call_timeout_s)


class LaterServers(Later["NovaServers"]):
    """The `Servers` of a running daemon."""

    async def read_server(self, server_id: str) -> ServerFacts:
        """As `NovaServers.read_server`."""
        return await (await self.load()).read_server(server_id)

    async def reboot_soft(self, server_id: str) -> str:
        """As `NovaServers.reboot_soft`."""
        return await (await self.load()).reboot_soft(server_id)

    async def read_reboot_result(self, server_id: str, request_id: str) -> str | None:
        """As `NovaServers.read_reboot_result`."""
        return await (await self.load()).read_reboot_result(server_id, request_id)

    async def list_flavors(self) -> list[Flavor]:
        """As `NovaServers.list_flavors`."""
        return await (await self.load()).list_flavors()

    async def may_use_flavor(self, flavor_id: str, project_id: str) -> bool:
        """As `NovaServers.may_use_flavor`."""
        return await (await self.load()).may_use_flavor(flavor_id, project_id)
