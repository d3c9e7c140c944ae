"""Placement for one server that behaves as told; `errors` as in FakeHost, `calls` lists the writes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from hvsvc.domain.allocation import AllocationFacts, Inventory, ProviderRoom, Size, check_room
from hvsvc.errors import AbortedError, HvsvcError, Reason

PROVIDER = "3f1b5f8e-6d1c-4b2a-8a55-0c2f9f0f7a11"
SMALL = AllocationFacts(Size(2, 512), PROVIDER)

ROOM = ProviderRoom(
    vcpu=Inventory(16, 0, 4.0, 1, 16, 1, used=10),
    memory_mb=Inventory(65536, 512, 1.5, 1, 65536, 1, used=8192),
)


@dataclass
class FakePlacement:
    """Refuses by `room` as the real one does."""

    allocation: AllocationFacts = SMALL
    room: ProviderRoom = ROOM
    errors: dict[str, HvsvcError] = field(default_factory=dict)
    calls: list[Size] = field(default_factory=list)
    #: called with the name of a call before it happens
    before_call: Callable[[str], None] = lambda name: None

    def _call(self, name: str) -> None:
        self.before_call(name)
        if name in self.errors:
            raise self.errors[name]

    async def read_allocation(self, server_id: str) -> AllocationFacts:
        self._call("read_allocation")
        return self.allocation

    async def read_room(self, resource_provider: str) -> ProviderRoom:
        assert resource_provider == PROVIDER
        self._call("read_room")
        return self.room

    async def set_allocation(self, server_id: str, seen: AllocationFacts, wanted: Size) -> AllocationFacts:
        self._call("set_allocation")
        if seen != self.allocation:
            raise AbortedError(Reason.ALLOCATION_CHANGED, "somebody else wrote it")
        for refused in check_room(self.room, seen.size, wanted):
            raise refused
        self.calls.append(wanted)
        self.allocation = replace(seen, size=wanted)
        return self.allocation
