"""The books are put right after whatever Nova does, without being asked."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from hvsvc.domain.allocation import AllocationFacts, PlacementPolicy, Size
from hvsvc.domain.edit_definition import Edit, edit_definition
from hvsvc.domain.facts import LifecycleEvent
from hvsvc.errors import AbortedError, Reason, UnavailableError
from hvsvc.operations.allocation_keeper import AllocationKeeper
from tests.fakes.host import FakeHost, host
from tests.fakes.placement import PROVIDER, FakePlacement
from tests.fakes.targets import ROOMY
from tests.fakes.worlds import GIB, UUID
from tests.operations.conftest import Floor

FloorOf = Callable[..., Floor]


def grown(vcpus: int = 8, memory_mib: int = 1024) -> FakePlacement:
    return FakePlacement(AllocationFacts(Size(vcpus, memory_mib), PROVIDER))


def keeper_of(floor_of: FloorOf, fake: FakeHost, placement: FakePlacement) -> tuple[Floor, AllocationKeeper]:
    floor = floor_of(fake, placement=placement, policy=PlacementPolicy.ENFORCE)
    return floor, AllocationKeeper(floor.tools, floor.locks, sweep_interval_s=3600)


@asynccontextmanager
async def running(keeper: AllocationKeeper) -> AsyncIterator[None]:
    task = asyncio.create_task(keeper.run())
    try:
        yield
    finally:
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110 what it looks at tells nobody
            await asyncio.sleep(0.01)


async def test_it_looks_at_the_start_and_after_each_event(floor_of: FloorOf) -> None:
    fake, placement = host(**ROOMY, nova=True), grown()
    _, keeper = keeper_of(floor_of, fake, placement)
    async with running(keeper):
        await until(lambda: placement.allocation.size == Size(2, 512))
        fake.config_xml = edit_definition(fake.config_xml, Edit(current_vcpus=4))
        fake.emit(LifecycleEvent.BALLOON_CHANGED)
        fake.emit(LifecycleEvent.DEFINED_UPDATED)
        await until(lambda: placement.allocation.size == Size(4, 512))


@pytest.mark.parametrize("sign", [LifecycleEvent.REBOOTED, LifecycleEvent.AGENT_CONNECTED])
async def test_rb_07_a_size_written_while_a_guest_reset_itself_is_put_right(
    floor_of: FloorOf, sign: LifecycleEvent
) -> None:
    """All of the maximum counts as used then, and stands still until the guest takes its balloon into use."""
    fake, placement = host(**ROOMY, nova=True), grown(2, 512)
    asked: list[str] = []
    placement.before_call = asked.append
    _, keeper = keeper_of(floor_of, fake, placement)
    async with running(keeper):
        await until(lambda: "read_allocation" in asked)  # by the look at the start
        fake._move_balloon(2 * GIB)
        fake.clock.at(3, fake._inflate)
        placement.allocation = grown(2, 2048).allocation
        fake.emit(sign)
        await until(lambda: placement.allocation.size == Size(2, 512))


async def test_a_size_that_moves_while_it_is_written_is_written_again(floor_of: FloorOf) -> None:
    fake, placement = host(**ROOMY, nova=True), grown()
    _, keeper = keeper_of(floor_of, fake, placement)

    def edit(name: str) -> None:
        if name == "set_allocation" and not placement.calls:
            fake.edit_outside(Edit(current_vcpus=4))

    placement.before_call = edit
    await keeper.keep(UUID)
    assert placement.calls == [Size(2, 512), Size(4, 512)]


async def test_it_waits_until_nova_has_finished(floor_of: FloorOf) -> None:
    fake, placement = host(**ROOMY, nova=True), grown()
    fake.server = replace(fake.server, task_state="rebooting_hard")
    _, keeper = keeper_of(floor_of, fake, placement)
    looks: list[float] = []

    def finish() -> None:
        looks.append(fake.clock.time_s)
        assert placement.calls == []
        fake.server = replace(fake.server, task_state=None)

    fake.clock.at(3, finish)
    await keeper.keep(UUID)
    assert looks
    assert placement.calls == [Size(2, 512)]


async def test_an_operation_under_way_is_left_to_itself(floor_of: FloorOf) -> None:
    fake, placement = host(**ROOMY, nova=True), grown()
    floor, keeper = keeper_of(floor_of, fake, placement)
    floor.locks.acquire(UUID, "op-1")
    fake.clock.at(3, lambda: floor.locks.release(UUID, "op-1"))
    begin_s = fake.clock.time_s
    await keeper.keep(UUID)
    assert fake.clock.time_s >= begin_s + 3
    assert placement.calls == [Size(2, 512)]
    floor.locks.acquire(UUID, "op-2")


@pytest.mark.parametrize(("status", "task"), [("VERIFY_RESIZE", None), ("ERROR", "resize_migrating")])
async def test_a_state_that_is_to_be_left_alone_is_not_waited_for(
    floor_of: FloorOf, status: str, task: str | None
) -> None:
    """Nova leaves the task of a resize that its nova-compute never began on the server for good (seen on the lab)."""
    fake, placement = host(**ROOMY, nova=True), grown()
    fake.server = replace(fake.server, status=status, task_state=task)
    floor, keeper = keeper_of(floor_of, fake, placement)
    begin_s = fake.clock.time_s
    with pytest.raises(AbortedError) as caught:
        await keeper.keep(UUID)
    assert fake.clock.time_s < begin_s + floor.tools.timeouts.reboot_timeout_s
    assert caught.value.reason is Reason.SERVER_BUSY
    assert placement.calls == []
    floor.locks.acquire(UUID, "op-1")


async def test_the_next_look_does_what_a_placement_that_was_down_prevented(floor_of: FloorOf) -> None:
    fake, placement = host(**ROOMY, nova=True), grown()
    placement.errors["read_allocation"] = UnavailableError(Reason.PLACEMENT_UNAVAILABLE, "down")
    asked: list[str] = []
    placement.before_call = asked.append
    floor, _ = keeper_of(floor_of, fake, placement)
    keeper = AllocationKeeper(floor.tools, floor.locks, sweep_interval_s=0.05)
    async with running(keeper):
        await until(lambda: len(asked) > 1)
        assert placement.calls == []
        del placement.errors["read_allocation"]
        await until(lambda: placement.allocation.size == Size(2, 512))


async def test_events_that_are_lost_make_it_look_at_all_again(floor_of: FloorOf) -> None:
    fake, placement = host(**ROOMY, nova=True), grown(2, 512)
    _, keeper = keeper_of(floor_of, fake, placement)
    async with running(keeper):
        await until(lambda: bool(fake._queues))
        placement.allocation = grown().allocation
        fake.lose_connection(UnavailableError(Reason.LIBVIRT_UNAVAILABLE, "gone"))
        await until(lambda: placement.allocation.size == Size(2, 512))


async def test_a_user_is_told_what_the_lock_is_for(floor_of: FloorOf) -> None:
    fake, placement = host(**ROOMY, nova=True), grown()
    floor, keeper = keeper_of(floor_of, fake, placement)
    told: list[str] = []

    def second(name: str) -> None:
        if name == "set_allocation":
            with pytest.raises(AbortedError) as caught:
                floor.locks.acquire(UUID, "op-1")
            told.append(caught.value.message)

    placement.before_call = second
    await keeper.keep(UUID)
    assert "allocation in Placement is being written" in told[0]


async def test_nobody_is_held_up_where_there_is_nothing_to_write(floor_of: FloorOf) -> None:
    fake, placement = host(**ROOMY, nova=True), grown(2, 512)
    floor, keeper = keeper_of(floor_of, fake, placement)
    placement.before_call = lambda name: floor.locks.acquire(UUID, "op-1")
    await keeper.keep(UUID)
    assert placement.calls == []


async def test_a_sweep_of_many_leaves_placement_to_others(floor_of: FloorOf) -> None:
    # all at once they would queue for Placement's few threads, past the deadline of each, and a caller behind them
    fake, placement = host(**ROOMY, nova=True), grown(2, 512)
    _, keeper = keeper_of(floor_of, fake, placement)
    read, at_once, most = placement.read_allocation, 0, 0

    async def read_slowly(server_id: str) -> AllocationFacts:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        await asyncio.sleep(0.01)
        at_once -= 1
        return await read(server_id)

    placement.read_allocation = read_slowly  # type: ignore[method-assign]
    await asyncio.gather(*(keeper.keep(UUID) for _ in range(20)))
    assert most == 2
