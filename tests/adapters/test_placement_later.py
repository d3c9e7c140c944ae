"""Placement's adapter, loaded in a thread and once."""

from __future__ import annotations

import threading
from typing import cast

from hvsvc.adapters.placement import PlacementAllocations
from hvsvc.adapters.placement_later import LaterPlacement, import_placement
from hvsvc.domain.allocation import Size
from tests.fakes.placement import PROVIDER, ROOM, SMALL, FakePlacement


async def test_calls_reach_the_real_one_which_is_made_once_and_off_the_loop() -> None:
    real, made_in = FakePlacement(), []

    def make() -> PlacementAllocations:
        made_in.append(threading.current_thread())
        return cast("PlacementAllocations", real)

    later = LaterPlacement(make)
    assert await later.read_allocation("s") == SMALL
    assert await later.read_room(PROVIDER) == ROOM
    assert (await later.set_allocation("s", SMALL, Size(4, 512))).size == Size(4, 512)
    (thread,) = made_in
    assert thread is not threading.main_thread()


async def test_the_real_one_is_what_is_imported_and_closed() -> None:
    later = LaterPlacement(lambda: import_placement("nowhere", call_timeout_s=1))
    assert isinstance(await later.load(), PlacementAllocations)
    await later.close()
