"""Placement's adapter, loaded as Nova's is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hvsvc.adapters.later import Later
from hvsvc.domain.allocation import AllocationFacts, ProviderRoom, Size

if TYPE_CHECKING:
    from hvsvc.adapters.placement import PlacementAllocations


def import_placement(cloud: str, *, call_timeout_s: float) -> PlacementAllocations:
    """Imports and makes the adapter; blocks for as long as the import takes."""
    from hvsvc.adapters.placement import PlacementAllocations  # noqa: PLC0415 - the delay is what this module is for

    return PlacementAllocations(cloud, call_timeout_s=call_timeout_s)


class LaterPlacement(Later["PlacementAllocations"]):
    """The `Placement` of a running daemon."""

    async def read_allocation(self, server_id: str) -> AllocationFacts:
        """As `PlacementAllocations.read_allocation`."""
        return await (await self.load()).read_allocation(server_id)

    async def read_room(self, resource_provider: str) -> ProviderRoom:
        """As `PlacementAllocations.read_room`."""
        return await (await self.load()).read_room(resource_provider)

    async def set_allocation(self, server_id: str, seen: AllocationFacts, wanted: Size) -> AllocationFacts:
        """As `PlacementAllocations.set_allocation`."""
        return await (await self.load()).set_allocation(server_id, seen, wanted)
