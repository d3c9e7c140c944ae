"""What Placement would refuse, from inventory and usage."""

from __future__ import annotations

from dataclasses import replace

from hvsvc.domain.allocation import Inventory, ProviderRoom, Size, check_room
from hvsvc.errors import Reason
from tests.fakes.placement import ROOM

NOW = Size(2, 512)


def reasons(room: ProviderRoom, wanted: Size, now: Size = NOW) -> list[Reason]:
    return [error.reason for error in check_room(room, now, wanted)]


def test_what_fits_is_not_refused() -> None:
    assert reasons(ROOM, Size(8, 2048)) == []


def test_above_max_unit_names_it() -> None:
    room = replace(ROOM, vcpu=replace(ROOM.vcpu, max_unit=4))
    (error,) = check_room(room, NOW, Size(8, 512))
    assert error.reason is Reason.ALLOCATION_ABOVE_MAX_UNIT
    assert error.metadata == {"resourceClass": "VCPU", "asked": "8", "allocated": "2", "maxUnit": "4"}


def test_capacity_counts_what_the_server_has_once() -> None:
    # (12 - 2) * 1.5 = 15; 9 used, 2 of them by this server: 8 are possible, 9 are not
    room = replace(ROOM, vcpu=Inventory(12, 2, 1.5, 1, 12, 1, used=9))
    assert reasons(room, Size(8, 512)) == []
    (error,) = check_room(room, NOW, Size(9, 512))
    assert error.reason is Reason.ALLOCATION_NO_CAPACITY
    assert (error.metadata["free"], error.metadata["capacity"]) == ("6", "15")
    assert "ask for at most 8" in error.message


def test_memory_is_judged_by_itself_and_both_are_told() -> None:
    room = ProviderRoom(replace(ROOM.vcpu, max_unit=4), Inventory(4096, 512, 1.0, 1, 4096, 1, used=3000))
    assert reasons(room, Size(8, 2048)) == [Reason.ALLOCATION_ABOVE_MAX_UNIT, Reason.ALLOCATION_NO_CAPACITY]


def test_a_class_that_does_not_grow_is_not_judged() -> None:
    full = replace(ROOM, vcpu=replace(ROOM.vcpu, max_unit=1, used=1000))
    assert reasons(full, Size(2, 1024)) == []
    assert reasons(full, Size(1, 1024)) == []


def test_steps_and_least_unit() -> None:
    room = replace(ROOM, memory_mb=replace(ROOM.memory_mb, step_size=256))
    assert reasons(room, Size(2, 768)) == []
    assert reasons(room, Size(2, 700)) == [Reason.PLACEMENT_REFUSED]


def test_sizes_compare_each_by_itself() -> None:
    assert Size(8, 512).larger(Size(2, 1024)) == Size(8, 1024)
    assert Size(8, 1024).covers(Size(8, 512))
    assert not Size(8, 512).covers(Size(2, 1024))
    assert str(Size(8, 1024)) == "8 vCPUs and 1024 MiB"
