"""Following, waiting for, cancelling and forgetting operations."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from hvsvc.domain.operation import OperationRecord
from hvsvc.domain.steps import Effect, StepKind, StepRecord, StepState
from hvsvc.domain.target import Method, Target
from hvsvc.errors import (
    AbortedError,
    ExhaustedError,
    FailedPreconditionError,
    NotFoundError,
    Reason,
    UnavailableError,
)
from hvsvc.operations.running import Operations, Running
from tests.fakes.host import FakeClock, FakeJournal


def record(name: str = "op-1", **changes: object) -> OperationRecord:
    made = OperationRecord(name, "u", "d", Target(Method.REBOOT_DOMAIN), "me", "", 1.0)
    return replace(made, **changes)  # type: ignore[arg-type]


def registry(journal: FakeJournal | None = None) -> Operations:
    return Operations(journal or FakeJournal(), FakeClock(), max_operations=4)


async def test_watch_yields_each_change_and_ends_when_done() -> None:
    operations = registry()
    go = asyncio.Event()

    async def work(running: Running) -> None:
        await go.wait()
        await running.publish(replace(running.record, libvirt_name="changed"))
        await asyncio.sleep(0)
        await running.publish(replace(running.record, end_time_s=2.0))

    await operations.start(record(), work)
    seen: list[tuple[str, bool]] = []

    async def watch() -> None:
        async for state in operations.watch("op-1"):
            seen.append((state.libvirt_name, state.done))
            go.set()

    await asyncio.wait_for(watch(), 5)
    assert seen[0] == ("d", False)
    assert seen[-1] == ("changed", True)
    assert [state.done async for state in operations.watch("op-1")] == [True]


async def test_the_end_of_each_is_told_once() -> None:
    told: list[tuple[str, float | None]] = []
    operations = Operations(
        FakeJournal(),
        FakeClock(),
        max_operations=4,
        ended=lambda ended: told.append((ended.id, ended.end_time_s)),
    )

    async def work(running: Running) -> None:
        await running.publish(replace(running.record, libvirt_name="changed"))
        assert told == []
        await running.publish(replace(running.record, end_time_s=2.0))

    await operations.start(record(), work)
    await operations.wait("op-1", 5)
    await operations.drain(5)
    assert told == [("op-1", 2.0)]


async def test_wait_ends_at_its_bound_with_the_state_then() -> None:
    operations = registry()
    end = asyncio.Event()

    async def work(running: Running) -> None:
        await end.wait()
        await running.publish(replace(running.record, end_time_s=2.0))

    await operations.start(record(), work)
    assert not (await operations.wait("op-1", 0.01)).done
    end.set()
    assert (await operations.wait("op-1", 5)).done


async def end_unstored(journal: FakeJournal) -> Operations:
    """One operation whose end the disk did not take."""
    operations = registry(journal)

    async def work(running: Running) -> None:
        journal.errors["update"] = UnavailableError(Reason.JOURNAL_UNAVAILABLE, "disk full")
        with pytest.raises(UnavailableError):
            await running.publish(replace(running.record, end_time_s=2.0))

    await operations.start(record(), work)
    assert (await operations.wait("op-1", 5)).done
    assert not journal.records["op-1"].done
    await asyncio.sleep(0)
    return operations


async def test_an_end_that_could_not_be_stored_stays_readable() -> None:
    operations = await end_unstored(FakeJournal())
    assert (await operations.get("op-1")).done
    await operations.drain(0)


async def test_an_end_is_stored_once_the_journal_works_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hvsvc.operations.running._STORE_AGAIN_S", 0.01)
    journal = FakeJournal()
    operations = await end_unstored(journal)
    await asyncio.sleep(0.05)
    assert not journal.records["op-1"].done
    journal.errors.clear()
    async with asyncio.timeout(5):
        await asyncio.gather(*operations._ends)
    assert journal.records["op-1"].end_time_s == 2.0
    assert (await operations.get("op-1")).end_time_s == 2.0


async def test_a_stop_stores_the_ends_that_it_can() -> None:
    journal = FakeJournal()
    operations = await end_unstored(journal)
    journal.errors.clear()
    await operations.drain(0)
    assert journal.records["op-1"].end_time_s == 2.0, "the next start would say that hvsvc stopped meanwhile"


async def test_what_is_deleted_before_its_end_is_stored_does_not_come_back_as_running() -> None:
    journal = FakeJournal()
    operations = await end_unstored(journal)
    with pytest.raises(UnavailableError):
        await operations.delete("op-1")
    assert (await operations.get("op-1")).done
    journal.errors.clear()
    await operations.delete("op-1")
    with pytest.raises(NotFoundError):
        await operations.get("op-1")
    await operations.drain(0)


async def test_a_cancel_request_is_not_overwritten_by_the_next_state() -> None:
    operations = registry()
    go = asyncio.Event()

    async def work(running: Running) -> None:
        old = running.record
        await go.wait()
        await running.publish(replace(old, libvirt_name="later"))
        await running.publish(replace(running.record, end_time_s=2.0))

    await operations.start(record(), work)
    await operations.cancel("op-1")
    go.set()
    assert (await operations.wait("op-1", 5)).cancel_requested


async def test_delete_only_what_has_ended() -> None:
    journal = FakeJournal(records={"old": record("old", end_time_s=2.0)})
    operations = registry(journal)
    await operations.delete("old")
    with pytest.raises(NotFoundError):
        await operations.get("old")
    with pytest.raises(NotFoundError):
        await operations.delete("old")

    async def work(running: Running) -> None:
        await asyncio.sleep(60)

    await operations.start(record(), work)
    with pytest.raises(FailedPreconditionError) as refused:
        await operations.delete("op-1")
    assert refused.value.reason is Reason.OPERATION_RUNNING
    await operations.drain(0)


async def test_what_a_dead_process_left_running_is_ended_at_start() -> None:
    step = StepRecord(StepKind.REBOOT, Effect.REBOOT, "asked for", state=StepState.RUNNING, start_time_s=1.5)
    left = record("left", steps=(replace(step, kind=StepKind.DEFINE_CONFIG, state=StepState.DONE), step))
    journal = FakeJournal(records={"left": left, "old": record("old", end_time_s=2.0)})
    operations = registry(journal)
    assert await operations.end_interrupted() == 1
    ended = await operations.get("left")
    assert isinstance(ended.error, AbortedError)
    assert ended.error.reason is Reason.DAEMON_RESTARTED
    assert "reboot" in ended.error.message
    assert "start it if it was shut down" in ended.error.message
    assert ended.failed_step == 1
    assert [s.state for s in ended.steps] == [StepState.DONE, StepState.FAILED]
    assert await operations.end_interrupted() == 0


async def test_drain_waits_for_its_grace_then_leaves_the_rest_to_the_next_start() -> None:
    journal = FakeJournal()
    operations = registry(journal)
    end = asyncio.Event()

    async def quick(running: Running) -> None:
        await end.wait()
        await running.publish(replace(running.record, end_time_s=2.0))

    async def slow(running: Running) -> None:
        await asyncio.sleep(60)

    await operations.start(record("quick"), quick)
    await operations.start(record("slow"), slow)
    asyncio.get_running_loop().call_later(0.01, end.set)
    await operations.drain(0.1)
    assert journal.records["quick"].done
    assert not journal.records["slow"].done


async def test_the_limit_holds_for_many_that_passed_the_check_at_once() -> None:
    operations = Operations(FakeJournal(), FakeClock(), max_operations=2)
    for _ in range(5):
        operations.check_room()

    async def work(running: Running) -> None:
        await asyncio.sleep(0)

    begun = await asyncio.gather(
        *(operations.start(record(f"op-{n}"), work) for n in range(5)), return_exceptions=True
    )
    assert [isinstance(each, ExhaustedError) for each in begun] == [False, False, True, True, True]


async def test_what_passed_the_check_before_a_stop_begins_nothing_after_it() -> None:
    operations = Operations(FakeJournal(), FakeClock(), max_operations=2)
    operations.check_room()
    await operations.drain(0.1)

    async def work(running: Running) -> None:
        raise AssertionError("it began")

    with pytest.raises(UnavailableError):
        await operations.start(record("late"), work)


async def test_list_shows_the_newest_state_of_what_runs() -> None:
    operations = registry()

    async def work(running: Running) -> None:
        running.record = replace(running.record, libvirt_name="newer than the journal")
        await asyncio.sleep(60)

    await operations.start(record(), work)
    await asyncio.sleep(0)
    found = await operations.list(uuid=None, done=False, before=None, limit=10)
    assert [r.libvirt_name for r in found] == ["newer than the journal"]
    await operations.drain(0)


async def test_a_stop_lets_steps_begin_but_for_a_reboot() -> None:
    operations = registry()
    go, asked = asyncio.Event(), asyncio.Event()

    async def work(running: Running) -> None:
        running.require_going_on(reboots=True)
        asked.set()
        await go.wait()
        running.require_going_on(reboots=False)
        with pytest.raises(UnavailableError, match="nothing was rebooted") as refused:
            running.require_going_on(reboots=True)
        assert refused.value.reason is Reason.SHUTTING_DOWN
        await running.publish(replace(running.record, end_time_s=2.0))

    await operations.start(record(), work)
    await asked.wait()
    stopping = asyncio.create_task(operations.drain(5))
    await asyncio.sleep(0)
    go.set()
    await stopping
    assert (await operations.get("op-1")).done
