"""Calls of Nova and of Placement that meet trouble, silence, and the end of their time; one mechanism serves both."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass

import pytest

from hvsvc.adapters.cloud_calls import CloudCalls, TimedCalls
from hvsvc.adapters.cloud_session import CloudService
from hvsvc.adapters.nova import NOVA
from hvsvc.adapters.openstack_answer import Answer
from hvsvc.adapters.placement import PLACEMENT
from hvsvc.errors import DeadlineError, Reason, UnavailableError
from tests.fakes.books import PROVIDER, consumer
from tests.fakes.cloud import SERVER_ID, FakeCloud, Fault

ROOM = f"/resource_providers/{PROVIDER}"


@dataclass(frozen=True)
class Case:
    """A service, what is read of it, and how it is asked to change; with their places in the cloud's table."""

    service: CloudService
    path: str
    place: str
    write: Callable[[TimedCalls], Awaitable[Answer]]
    written: str


def reboot(calls: TimedCalls) -> Awaitable[Answer]:
    return calls.post(f"/servers/{SERVER_ID}/action", {"reboot": {"type": "SOFT"}}, "reboot")


def allocate(calls: TimedCalls) -> Awaitable[Answer]:
    return calls.put(f"/allocations/{SERVER_ID}", consumer(vcpus=4), "allocation of 4 vCPUs")


OF_NOVA = Case(NOVA, f"/servers/{SERVER_ID}", "server", reboot, "reboot")
OF_PLACEMENT = Case(PLACEMENT, f"/allocations/{SERVER_ID}", "allocation", allocate, "allocate")


@pytest.fixture(params=[OF_NOVA, OF_PLACEMENT], ids=["nova", "placement"])
def case(request: pytest.FixtureRequest, cloud: FakeCloud) -> Case:
    cloud.books.consumers[SERVER_ID] = consumer()
    found: Case = request.param
    return found


@pytest.fixture
async def patient(cloud: FakeCloud, case: Case) -> AsyncIterator[CloudCalls]:
    """Waits longer than anything takes that comes to an end."""
    calls = CloudCalls("fake", case.service, 3)
    yield calls
    cloud.release()
    calls.close()


@pytest.fixture
async def hasty(cloud: FakeCloud, case: Case) -> AsyncIterator[CloudCalls]:
    calls = CloudCalls("fake", case.service, 0.5)
    yield calls
    cloud.release()
    calls.close()


async def read(calls: CloudCalls, case: Case) -> Answer:
    async with calls.within_timeout("whole") as timed:
        return await timed.read(case.path, "part")


async def write(calls: CloudCalls, case: Case) -> Answer:
    async with calls.within_timeout("whole") as timed:
        return await case.write(timed)


async def until_spent(cloud: FakeCloud, place: str) -> None:
    """Waits until the fault has come as often as it was to."""
    while place in cloud.errors:  # noqa: ASYNC110  the cloud answers in threads
        await asyncio.sleep(0.01)


@pytest.mark.parametrize("fault", [Fault(status=503), Fault(cut=True)], ids=["503", "cut"])
async def test_a_read_outlives_a_moment_of_trouble(
    cloud: FakeCloud, patient: CloudCalls, case: Case, fault: Fault
) -> None:
    cloud.errors[case.place] = Fault(status=fault.status, cut=fault.cut, times=2)
    assert (await read(patient, case)).status == 200
    assert len(cloud.requests(case.place)) == 3


async def test_a_read_is_given_up_with_its_last_error(
    cloud: FakeCloud, patient: CloudCalls, case: Case
) -> None:
    cloud.errors[case.place] = Fault(status=502)
    with pytest.raises(UnavailableError, match=r"part.*HTTP 502") as caught:
        await read(patient, case)
    assert caught.value.reason is case.service.unavailable
    assert len(cloud.requests(case.place)) == 3


async def test_a_change_is_asked_for_once(cloud: FakeCloud, patient: CloudCalls, case: Case) -> None:
    cloud.errors[case.written] = Fault(status=503, times=1)
    with pytest.raises(UnavailableError):
        await write(patient, case)
    assert len(cloud.requests(case.written)) == 1


@pytest.mark.parametrize(
    ("act", "fault"),
    [(read, Fault(hang=True)), (read, Fault(drip=True)), (write, Fault(hang=True))],
    ids=["read-hang", "read-drip", "write-hang"],
)
@pytest.mark.parametrize("signs_in", [False, True], ids=["service", "keystone"])
async def test_silence_ends_at_the_deadline_and_the_loop_goes_on(
    cloud: FakeCloud,
    hasty: CloudCalls,
    case: Case,
    signs_in: bool,
    act: Callable[[CloudCalls, Case], Awaitable[Answer]],
    fault: Fault,
) -> None:
    cloud.errors["auth" if signs_in else case.place if act is read else case.written] = fault
    begin = time.monotonic()
    waiting = asyncio.ensure_future(act(hasty, case))
    ticks = 0
    while not waiting.done():
        await asyncio.sleep(0.01)
        ticks += 1
        assert time.monotonic() - begin < 15, "the deadline of 0.5 s did not hold"
    with pytest.raises(DeadlineError, match=rf"whole.*\[{case.service.section}\] call_timeout_s") as caught:
        await waiting
    assert caught.value.reason is Reason.CALL_TIMED_OUT
    assert ticks > 5


async def test_what_refused_before_it_fell_silent_is_told_as_refused(
    cloud: FakeCloud, patient: CloudCalls, case: Case
) -> None:
    """Seen on the lab: a nova-api that was stopped was told as slow, since the repetitions met the deadline."""
    cloud.errors[case.place] = Fault(status=503, times=1)
    waiting = asyncio.create_task(read(patient, case))
    await until_spent(cloud, case.place)
    cloud.errors[case.place] = Fault(hang=True)
    with pytest.raises(UnavailableError, match="HTTP 503") as caught:
        await waiting
    assert caught.value.reason is case.service.unavailable


@pytest.mark.parametrize("case", [OF_PLACEMENT], ids=["placement"], indirect=True)
@pytest.mark.parametrize(("refuses", "answers"), [("inventory", "usage"), ("usage", "inventory")])
async def test_a_refusal_counts_though_another_read_is_answered_or_silent(
    cloud: FakeCloud, patient: CloudCalls, refuses: str, answers: str
) -> None:
    paths = {"inventory": f"{ROOM}/inventories", "usage": f"{ROOM}/usages", "allocation": OF_PLACEMENT.path}
    cloud.errors |= {refuses: Fault(status=503, times=1), "allocation": Fault(hang=True)}

    async def read_all() -> None:
        async with patient.within_timeout("whole") as timed:
            await asyncio.gather(
                *(timed.read(paths[place], place) for place in (refuses, answers, "allocation"))
            )

    waiting = asyncio.create_task(read_all())
    await until_spent(cloud, refuses)
    cloud.errors[refuses] = Fault(hang=True)
    with pytest.raises(UnavailableError, match=rf"{refuses} \(HTTP 503\)"):
        await waiting
    assert cloud.requests(answers)


async def test_what_answered_after_a_refusal_and_then_fell_silent_is_told_as_silent(
    cloud: FakeCloud, patient: CloudCalls, case: Case
) -> None:
    cloud.errors |= {case.place: Fault(status=503, times=1), case.written: Fault(hang=True)}

    async def read_and_write() -> None:
        async with patient.within_timeout("whole") as timed:
            assert (await timed.read(case.path, "part")).status == 200
            await case.write(timed)

    with pytest.raises(DeadlineError) as caught:
        await read_and_write()
    assert caught.value.reason is Reason.CALL_TIMED_OUT


async def test_calls_that_hang_end_and_later_calls_work(
    cloud: FakeCloud, hasty: CloudCalls, case: Case
) -> None:
    cloud.errors[case.place] = Fault(hang=True)
    results = await asyncio.gather(*(read(hasty, case) for _ in range(10)), return_exceptions=True)
    assert {type(result) for result in results} == {DeadlineError}
    assert len(cloud.requests(case.place)) <= 4, "calls at once are bounded"
    cloud.errors.clear()
    cloud.release()
    for _ in range(20):
        try:
            answer = await read(hasty, case)
            break
        except DeadlineError:
            continue
    assert answer.status == 200


async def test_a_change_that_nobody_waits_for_is_not_asked_later(
    cloud: FakeCloud, hasty: CloudCalls, case: Case
) -> None:
    cloud.errors["auth"] = Fault(drip=True)
    with pytest.raises(DeadlineError):
        await write(hasty, case)
    cloud.errors.clear()
    cloud.release()
    while not cloud.requests(case.place):
        try:  # goes through the same thread, or one beside it
            await read(hasty, case)
        except DeadlineError:
            continue
    await asyncio.sleep(0.3)
    assert cloud.requests(case.written) == []


async def test_a_cancelled_change_is_not_asked_later(
    cloud: FakeCloud, patient: CloudCalls, case: Case
) -> None:
    cloud.errors["auth"] = Fault(hang=True, times=1)
    asking = asyncio.create_task(write(patient, case))
    await asyncio.to_thread(cloud.wait_for, "auth")
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    cloud.release()
    await read(patient, case)
    await asyncio.sleep(0.3)
    assert cloud.requests(case.written) == []
