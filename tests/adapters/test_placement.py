"""What PlacementAllocations reads and writes, and why it refuses; openstacksdk and HTTP are real."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from hvsvc.adapters.placement import PlacementAllocations
from hvsvc.domain.allocation import AllocationFacts, Inventory, Size
from hvsvc.errors import (
    AbortedError,
    DeadlineError,
    FailedPreconditionError,
    HvsvcError,
    NotPermittedError,
    Reason,
    UnavailableError,
)
from tests.fakes.books import DISKS, PROVIDER, consumer, inventory
from tests.fakes.cloud import OTHER_SERVER_ID, SERVER_ID, FakeCloud, Fault

SEEN = AllocationFacts(Size(2, 512), PROVIDER)
BIG = Size(8, 2048)


@pytest.fixture
async def placement(cloud: FakeCloud) -> AsyncIterator[PlacementAllocations]:
    cloud.books.consumers[SERVER_ID] = consumer()
    allocations = PlacementAllocations("fake", call_timeout_s=8)
    yield allocations
    allocations.close()


async def test_the_allocation_is_that_of_the_provider_with_vcpus(
    cloud: FakeCloud, placement: PlacementAllocations
) -> None:
    assert await placement.read_allocation(SERVER_ID) == SEEN
    (seen,) = cloud.requests("allocation")
    assert seen.headers["OpenStack-API-Version"] == "placement 1.36"


async def test_a_server_without_vcpus_or_with_two_providers_of_them_is_left_alone(
    cloud: FakeCloud, placement: PlacementAllocations
) -> None:
    with pytest.raises(FailedPreconditionError) as caught:
        await placement.read_allocation(OTHER_SERVER_ID)
    assert caught.value.reason is Reason.ALLOCATION_MISSING
    assert "0 providers" in caught.value.message
    cloud.books.consumers[SERVER_ID]["allocations"][DISKS]["resources"]["VCPU"] = 2
    with pytest.raises(FailedPreconditionError) as caught:
        await placement.read_allocation(SERVER_ID)
    assert set(caught.value.metadata["providers"].split(",")) == {PROVIDER, DISKS}


async def test_room_is_inventory_and_usage(cloud: FakeCloud, placement: PlacementAllocations) -> None:
    cloud.books.inventories["VCPU"] |= {"reserved": 2, "max_unit": 6, "step_size": 2}
    room = await placement.read_room(PROVIDER)
    assert room.vcpu == Inventory(16, 2, 4.0, 1, 6, 2, used=10)
    assert room.memory_mb == Inventory(32768, 0, 1.0, 1, 32768, 1, used=4608)


async def test_a_write_changes_the_two_classes_and_nothing_else(
    cloud: FakeCloud, placement: PlacementAllocations
) -> None:
    assert await placement.set_allocation(SERVER_ID, SEEN, BIG) == AllocationFacts(BIG, PROVIDER)
    (sent,) = cloud.requests("allocate")
    before = consumer()
    assert sent.body == {
        "allocations": {
            PROVIDER: {"resources": {"VCPU": 8, "MEMORY_MB": 2048, "PCI_DEVICE": 1}},
            DISKS: {"resources": {"DISK_GB": 20}},
        },
        "consumer_generation": 1,
        "project_id": before["project_id"],
        "user_id": before["user_id"],
    }
    assert sent.headers["OpenStack-API-Version"] == "placement 1.36"


async def test_api_02_a_conflict_about_something_else_is_tried_again(
    cloud: FakeCloud, placement: PlacementAllocations
) -> None:
    conflicts = 3

    def others() -> None:
        nonlocal conflicts
        if conflicts:
            conflicts -= 1
            cloud.books.touch(SERVER_ID, PCI_DEVICE=5 + conflicts)

    cloud.books.before_write = others
    assert (await placement.set_allocation(SERVER_ID, SEEN, BIG)).size == BIG
    assert len(cloud.requests("allocate")) == 4
    assert cloud.books.resources(SERVER_ID) == {"VCPU": 8, "MEMORY_MB": 2048, "PCI_DEVICE": 5}


async def test_api_02_another_writer_of_the_same_is_not_overwritten(
    cloud: FakeCloud, placement: PlacementAllocations
) -> None:
    cloud.books.before_write = lambda: cloud.books.touch(SERVER_ID, VCPU=4)
    with pytest.raises(AbortedError) as caught:
        await placement.set_allocation(SERVER_ID, SEEN, BIG)
    assert caught.value.reason is Reason.ALLOCATION_CHANGED
    assert cloud.books.resources(SERVER_ID)["VCPU"] == 4
    assert len(cloud.requests("allocate")) == 1


async def test_conflicts_without_end_are_given_up(cloud: FakeCloud, placement: PlacementAllocations) -> None:
    cloud.books.before_write = lambda: cloud.books.touch(SERVER_ID)
    with pytest.raises(AbortedError, match="10 writes"):
        await placement.set_allocation(SERVER_ID, SEEN, BIG)
    assert len(cloud.requests("allocate")) == 10


async def test_a_refusal_is_told_by_the_inventory_not_by_its_words(
    cloud: FakeCloud, placement: PlacementAllocations
) -> None:
    cloud.books.inventories["VCPU"] = inventory(16, max_unit=4)
    with pytest.raises(FailedPreconditionError) as caught:
        await placement.set_allocation(SERVER_ID, SEEN, BIG)
    assert caught.value.reason is Reason.ALLOCATION_ABOVE_MAX_UNIT
    cloud.books.inventories["VCPU"] = inventory(12)
    with pytest.raises(FailedPreconditionError) as caught:
        await placement.set_allocation(SERVER_ID, SEEN, BIG)
    assert caught.value.reason is Reason.ALLOCATION_NO_CAPACITY
    assert len(cloud.requests("allocate")) == 2, "a refusal is not tried again"
    assert cloud.books.resources(SERVER_ID)["VCPU"] == 2


@pytest.mark.parametrize("place", ["inventory", "usage"])
async def test_a_refusal_that_nothing_explains_stays_one(
    cloud: FakeCloud, placement: PlacementAllocations, place: str
) -> None:
    cloud.books.inventories["VCPU"] = inventory(12)
    cloud.errors[place] = Fault(status=403)
    with pytest.raises(FailedPreconditionError) as caught:
        await placement.set_allocation(SERVER_ID, SEEN, BIG)
    assert caught.value.reason is Reason.PLACEMENT_REFUSED


@pytest.mark.parametrize(
    ("status", "kind", "reason"),
    [
        (403, NotPermittedError, Reason.PLACEMENT_NOT_PERMITTED),
        (400, FailedPreconditionError, Reason.PLACEMENT_REFUSED),
        (404, FailedPreconditionError, Reason.PLACEMENT_REFUSED),
        (406, FailedPreconditionError, Reason.PLACEMENT_REFUSED),
        (429, UnavailableError, Reason.PLACEMENT_UNAVAILABLE),
        (503, UnavailableError, Reason.PLACEMENT_UNAVAILABLE),
    ],
)
@pytest.mark.parametrize("place", ["allocation", "allocate"])
async def test_every_status_has_a_meaning(
    cloud: FakeCloud,
    placement: PlacementAllocations,
    place: str,
    status: int,
    kind: type[HvsvcError],
    reason: Reason,
) -> None:
    cloud.errors[place] = Fault(status=status)
    with pytest.raises(kind) as caught:
        await placement.set_allocation(SERVER_ID, SEEN, BIG)
    assert caught.value.reason is reason
    assert "words that must not matter" not in caught.value.message
    assert cloud.errors[place].times is None


async def test_a_write_that_failed_is_not_repeated_by_itself(
    cloud: FakeCloud, placement: PlacementAllocations
) -> None:
    cloud.errors["allocate"] = Fault(status=503)
    with pytest.raises(UnavailableError) as caught:
        await placement.set_allocation(SERVER_ID, SEEN, BIG)
    assert len(cloud.requests("allocate")) == 1
    assert "may have been written" in caught.value.message


@pytest.mark.parametrize(
    "body", [b"", b"[]", b'{"allocations": {"x": 1}}', b"<html>", b'{"allocations": []}']
)
async def test_nonsense_is_unavailable(
    cloud: FakeCloud, placement: PlacementAllocations, body: bytes
) -> None:
    cloud.errors["allocation"] = Fault(body=body)
    with pytest.raises(UnavailableError, match="makes no sense") as caught:
        await placement.read_allocation(SERVER_ID)
    assert caught.value.reason is Reason.PLACEMENT_UNAVAILABLE


@pytest.mark.parametrize("amount", [-1, 2**31, 10**30])
async def test_an_amount_that_placement_cannot_hold_is_nonsense(
    cloud: FakeCloud, placement: PlacementAllocations, amount: int
) -> None:
    for name in ("VCPU", "MEMORY_MB"):
        cloud.books.consumers[SERVER_ID] = consumer()
        cloud.books.resources(SERVER_ID)[name] = amount
        with pytest.raises(UnavailableError, match="makes no sense"):
            await placement.read_allocation(SERVER_ID)


@pytest.mark.parametrize(
    "changes",
    [
        {"allocation_ratio": float("inf")},
        {"allocation_ratio": float("nan")},
        {"allocation_ratio": -1.0},
        {"total": 10**30},
        {"max_unit": -(10**30)},
        {"step_size": 0},
    ],
)
async def test_an_inventory_that_placement_cannot_have_is_nonsense(
    cloud: FakeCloud, placement: PlacementAllocations, changes: dict[str, float]
) -> None:
    cloud.books.inventories["VCPU"] |= changes
    with pytest.raises(UnavailableError, match="makes no sense"):
        await placement.read_room(PROVIDER)
    # and what it refuses by it stays a refusal
    cloud.errors["allocate"] = Fault(status=409, body=b'{"errors": []}')
    with pytest.raises(FailedPreconditionError) as caught:
        await placement.set_allocation(SERVER_ID, SEEN, BIG)
    assert caught.value.reason is Reason.PLACEMENT_REFUSED


async def test_an_inventory_without_a_class_is_nonsense(
    cloud: FakeCloud, placement: PlacementAllocations
) -> None:
    del cloud.books.inventories["MEMORY_MB"]
    with pytest.raises(UnavailableError, match="no inventory"):
        await placement.read_room(PROVIDER)


@pytest.mark.parametrize(
    "body", [b"", b'{"errors": []}', b'{"errors": [{"code": "placement.inventory.inuse"}]}']
)
async def test_a_conflict_without_its_code_is_no_concurrent_update(
    cloud: FakeCloud, placement: PlacementAllocations, body: bytes
) -> None:
    cloud.errors["allocate"] = Fault(status=409, body=body)
    with pytest.raises((FailedPreconditionError, UnavailableError)) as caught:
        await placement.set_allocation(SERVER_ID, SEEN, BIG)
    assert caught.value.reason in {Reason.PLACEMENT_REFUSED, Reason.PLACEMENT_UNAVAILABLE}
    assert len(cloud.requests("allocate")) == 1


async def test_a_write_without_an_answer_is_told_as_one_that_may_be_done(cloud: FakeCloud) -> None:
    cloud.books.consumers[SERVER_ID] = consumer()
    cloud.errors["allocate"] = Fault(hang=True)
    hasty = PlacementAllocations("fake", call_timeout_s=3)  # long enough to sign in and send it
    with pytest.raises(DeadlineError, match=r"\[placement\] call_timeout_s") as caught:
        await hasty.set_allocation(SERVER_ID, SEEN, BIG)
    assert "may have been written" in caught.value.message
    cloud.release()
    hasty.close()


async def test_a_write_that_nobody_waits_for_any_more_is_not_sent(cloud: FakeCloud) -> None:
    cloud.books.consumers[SERVER_ID] = consumer()
    cloud.errors["allocation"] = Fault(hang=True, times=1)
    hasty = PlacementAllocations("fake", call_timeout_s=0.5)
    with pytest.raises(DeadlineError) as caught:
        await hasty.set_allocation(SERVER_ID, SEEN, BIG)
    cloud.release()
    await asyncio.sleep(0.3)
    assert cloud.requests("allocate") == []
    assert "written" not in caught.value.message
    hasty.close()


async def test_a_cloud_without_placement_is_told(cloud: FakeCloud, placement: PlacementAllocations) -> None:
    cloud.services = ("compute",)
    with pytest.raises(UnavailableError) as caught:
        await placement.read_allocation(SERVER_ID)
    assert caught.value.reason is Reason.PLACEMENT_UNAVAILABLE


async def test_a_revoked_token_is_renewed_and_does_not_show(
    cloud: FakeCloud, placement: PlacementAllocations
) -> None:
    await placement.read_allocation(SERVER_ID)
    cloud.token = "token-2"
    assert (await placement.set_allocation(SERVER_ID, SEEN, BIG)).size == BIG
