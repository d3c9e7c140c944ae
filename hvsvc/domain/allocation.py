"""A server's allocation in Placement on its compute provider, and what Placement would let it have."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from hvsvc.errors import FailedPreconditionError, HvsvcError, Reason


class PlacementPolicy(Enum):
    """What is done about a server's allocation in Placement."""

    #: Placement is not asked
    OFF = "off"
    #: it is shown, and a growth beyond it is warned of; nothing is written
    REPORT = "report"
    #: a growth needs it raised first; it is brought back to the truth afterwards
    ENFORCE = "enforce"


@dataclass(frozen=True, slots=True)
class Size:
    """vCPUs and memory together; the memory in MiB, as Placement counts it."""

    vcpus: int
    memory_mib: int

    def larger(self, other: Size) -> Size:
        """The larger of each."""
        return Size(max(self.vcpus, other.vcpus), max(self.memory_mib, other.memory_mib))

    def covers(self, other: Size) -> bool:
        """Whether neither of the other's exceeds this."""
        return self.larger(other) == self

    def __str__(self) -> str:
        return f"{self.vcpus} vCPUs and {self.memory_mib} MiB"


@dataclass(frozen=True, slots=True)
class AllocationFacts:
    """Resource classes VCPU and MEMORY_MB that the server has allocated on its compute provider."""

    size: Size
    #: uuid of the compute resource provider
    resource_provider: str


@dataclass(frozen=True, slots=True)
class Inventory:
    """One resource class of a provider, as Placement's inventory and usage tell it."""

    total: int
    reserved: int
    allocation_ratio: float
    min_unit: int
    max_unit: int
    step_size: int
    used: int

    @property
    def capacity(self) -> int:
        """What all consumers together may have."""
        return int((self.total - self.reserved) * self.allocation_ratio)


@dataclass(frozen=True, slots=True)
class ProviderRoom:
    """Both resource classes of the compute provider."""

    vcpu: Inventory
    memory_mb: Inventory


def check_room(room: ProviderRoom, now: Size, wanted: Size) -> Iterator[HvsvcError]:
    """Yields what Placement would refuse an allocation of `wanted` for, where the server has `now`.

    By the rules of its API reference ("Update allocations", "Resource provider
    inventories"); a class that does not grow is not judged.
    """
    for name, inventory, has, asked in (
        ("VCPU", room.vcpu, now.vcpus, wanted.vcpus),
        ("MEMORY_MB", room.memory_mb, now.memory_mib, wanted.memory_mib),
    ):
        if asked <= has:
            continue
        metadata = {"resourceClass": name, "asked": asked, "allocated": has}
        if asked > inventory.max_unit:
            yield FailedPreconditionError(
                Reason.ALLOCATION_ABOVE_MAX_UNIT,
                f"{asked} {name} were asked for one server; Placement's inventory of this host gives one at most "
                f"{inventory.max_unit} (max_unit); ask for no more than that, or resize the server to another host",
                {**metadata, "maxUnit": inventory.max_unit},
            )
        elif inventory.used - has + asked > inventory.capacity:
            free = max(inventory.capacity - inventory.used, 0)
            yield FailedPreconditionError(
                Reason.ALLOCATION_NO_CAPACITY,
                f"{asked} {name} were asked, {asked - has} more than allocated; Placement has {free} of "
                f"{inventory.capacity} left on this host; ask for at most {has + free}, or move servers away first",
                {**metadata, "free": free, "capacity": inventory.capacity},
            )
        elif asked < inventory.min_unit or asked % inventory.step_size:
            yield FailedPreconditionError(
                Reason.PLACEMENT_REFUSED,
                f"{asked} {name} were asked; Placement's inventory of this host allows multiples of "
                f"{inventory.step_size}, at least {inventory.min_unit} (step_size, min_unit); ask for one of them",
                {**metadata, "stepSize": inventory.step_size, "minUnit": inventory.min_unit},
            )
