"""The watcher: what it brings back, when, how often, and what it leaves alone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
from structlog.testing import capture_logs

from hvsvc.domain.desired import ReapplyPolicy
from hvsvc.domain.drift import DriftStatus
from hvsvc.domain.edit_definition import Edit
from hvsvc.domain.facts import Balloon, LifecycleEvent
from hvsvc.domain.reapply import Backoff
from hvsvc.domain.target import Method, RebootMode, Target
from hvsvc.errors import (
    DeadlineError,
    FailedPreconditionError,
    GuestAgentError,
    HvsvcError,
    NotFoundError,
    Reason,
    UnavailableError,
)
from hvsvc.operations.reapply import CALLER, ReapplySettings
from tests.fakes.face import until
from tests.fakes.host import host
from tests.fakes.worlds import GIB, MIB, UUID
from tests.operations.conftest import Floor

FloorOf = Callable[..., Floor]
BACKOFF = Backoff(first_s=10, longest_s=100, attempts=3)
CONFIG = ReapplySettings(ReapplyPolicy.CONFIG, backoff=BACKOFF)
SCALE = Target(Method.SCALE_DOMAIN, vcpus=4, memory_kib=GIB, reboot=RebootMode.SOFT)


async def lost(floor_of: FloorOf, settings: ReapplySettings = CONFIG, *, nova: bool = True) -> Floor:
    """A floor whose domain was scaled and then lost it all to a hard reboot of Nova's."""
    floor = floor_of(host(nova=nova), reapply=settings)
    await floor.result(SCALE)
    assert await floor.reapplier.look(UUID) is None
    floor.host.hard_reboot()
    floor.host.settle()
    floor.host.calls.clear()
    return floor


async def maximum(floor: Floor) -> tuple[int, int]:
    config = (await floor.host.read_domain(UUID)).config
    assert config is not None
    return config.maximum_vcpus, config.memory_kib


def acts(floor: Floor) -> list[str]:
    return [name for name, _ in floor.host.calls]


async def test_config_is_written_again_and_nothing_else_is_done(floor_of: FloorOf) -> None:
    floor = await lost(floor_of)
    assert await floor.reapplier.look(UUID) == 0
    assert (await maximum(floor), acts(floor)) == ((4, GIB), ["define"])
    report = await floor.drifts.get(UUID)
    assert (report.drift.status, report.progress.attempts) == (DriftStatus.PENDING_REBOOT, 1)
    record = next(record for record in floor.journal.records.values() if record.caller == CALLER)
    assert (record.target.method, record.target.reboot) == (Method.RAISE_CEILING, RebootMode.NEVER)
    assert floor.journal.desired[UUID].caller == "tester", "the record stays its caller's"


async def test_a_loss_is_in_the_log_also_where_nothing_is_done_about_it(floor_of: FloorOf) -> None:
    floor = await lost(floor_of, ReapplySettings(ReapplyPolicy.REPORT))
    with capture_logs() as lines:
        assert await floor.reapplier.look(UUID) is None
        await floor.reapplier.look(UUID)
    assert [line["event"] for line in lines] == ["ceiling_lost"]
    assert acts(floor) == []
    assert floor.reapplier.count_lost() == 1


@pytest.mark.parametrize("how", ["forgotten", "left"])
async def test_what_is_off_record_or_elsewhere_is_not_counted_as_lost(floor_of: FloorOf, how: str) -> None:
    floor = await lost(floor_of, ReapplySettings(ReapplyPolicy.REPORT))
    await floor.reapplier.look(UUID)
    if how == "forgotten":
        await floor.drifts.forget(UUID)
    else:
        floor.host.defined = False
    await floor.reapplier.look(UUID)
    assert floor.reapplier.count_lost() == 0


async def test_then_a_reboot_brings_maximum_and_current_back(floor_of: FloorOf) -> None:
    floor = await lost(floor_of)
    await floor.reapplier.look(UUID)
    result = await floor.result(Target(Method.REBOOT_DOMAIN))
    assert result.after.live is not None
    assert (result.after.live.maximum_vcpus, result.after.live.current_vcpus) == (4, 4)
    assert result.after.balloon.actual_kib == GIB
    assert (await floor.drifts.get(UUID)).drift.status is DriftStatus.IN_SYNC


async def test_a_guest_that_does_not_come_up_after_the_reboot_is_not_grown(floor_of: FloorOf) -> None:
    floor = await lost(floor_of)
    await floor.reapplier.look(UUID)
    desired = floor.journal.desired[UUID]
    floor.journal.desired[UUID] = replace(desired, memory_kib=None)
    rebooted: list[bool] = []

    def hang(name: str) -> None:
        if name == "reboot_soft":  # from then on neither agent nor balloon driver give a sign
            rebooted.append(True)
            floor.host.agent_error = GuestAgentError(Reason.AGENT_NOT_CONNECTED, "nobody listens")
            floor.host._balloon = lambda: Balloon(floor.host.balloon_kib)  # type: ignore[method-assign]
            floor.host.balloon_driver = "stuck"
            floor.host.config_xml = floor.host.config_xml.replace("connected", "disconnected")

    floor.host.before_call = hang
    error = await floor.error(Target(Method.REBOOT_DOMAIN))
    assert error.reason is Reason.GUEST_NOT_BOOTED
    assert rebooted
    assert "set_vcpus_live" not in acts(floor)


async def test_report_changes_nothing(floor_of: FloorOf) -> None:
    floor = await lost(floor_of, ReapplySettings(ReapplyPolicy.REPORT))
    assert await floor.reapplier.look(UUID) is None
    assert acts(floor) == []
    assert (await floor.drifts.get(UUID)).drift.status is DriftStatus.CEILING_LOST


async def test_the_domains_own_policy_counts(floor_of: FloorOf) -> None:
    floor = await lost(floor_of, ReapplySettings(ReapplyPolicy.REPORT))
    floor.journal.desired[UUID] = replace(floor.journal.desired[UUID], policy=ReapplyPolicy.CONFIG)
    await floor.reapplier.look(UUID)
    assert acts(floor) == ["define"]


async def test_live_grows_as_far_as_the_live_ceiling_allows(floor_of: FloorOf) -> None:
    floor = await lost(floor_of, ReapplySettings(ReapplyPolicy.LIVE, backoff=BACKOFF))
    await floor.reapplier.look(UUID)
    await floor.result(Target(Method.REBOOT_DOMAIN))
    floor.host.calls.clear()
    floor.host._move_balloon(512 * MIB)  # somebody's virsh setmem
    floor.host.edit_outside(Edit(current_memory_kib=512 * MIB))
    floor.host.clock.time_s += 100
    while await floor.reapplier.look(UUID) is not None:
        pass
    assert acts(floor) == ["set_memory_live", "define"]
    assert (await floor.drifts.get(UUID)).drift.status is DriftStatus.IN_SYNC


@pytest.mark.parametrize(
    ("changes", "again"),
    [
        ({"task_state": "reboot_started_hard"}, True),
        ({"status": "RESCUE"}, False),
        # seen on the lab: a resize back to the first flavor was confirmed, and libvirt had no event to tell of it
        ({"status": "VERIFY_RESIZE"}, True),
        ({"status": "SHUTOFF"}, False),
    ],
)
async def test_not_while_nova_is_at_work_or_the_server_not_active(
    floor_of: FloorOf, changes: dict[str, Any], again: bool
) -> None:
    floor = await lost(floor_of)
    quiet = floor.host.server
    floor.host.server = replace(quiet, **changes)
    assert (await floor.reapplier.look(UUID) is not None) is again
    assert acts(floor) == []
    report = await floor.drifts.get(UUID)
    assert next(iter(changes.values())) in report.progress.waits_for
    floor.host.server = quiet
    await floor.reapplier.look(UUID)
    assert acts(floor) == ["define"]
    assert (await floor.drifts.get(UUID)).progress.waits_for == ""


async def test_a_task_that_never_ends_is_not_looked_at_for_ever(floor_of: FloorOf) -> None:
    floor = await lost(floor_of)
    floor.host.server = replace(floor.host.server, task_state="deleting")
    looks = 0
    while (wait_s := await floor.reapplier.look(UUID)) is not None:
        await floor.host.clock.sleep(wait_s)
        looks += 1
    assert looks == 600
    assert acts(floor) == []


async def test_nova_away_is_waited_for_too(floor_of: FloorOf) -> None:
    floor = await lost(floor_of)
    floor.host.errors["read_server"] = UnavailableError(Reason.NOVA_UNAVAILABLE, "HTTP 503")
    assert await floor.reapplier.look(UUID) is not None
    assert "HTTP 503" in (await floor.drifts.get(UUID)).progress.waits_for
    del floor.host.errors["read_server"]
    await floor.reapplier.look(UUID)
    assert acts(floor) == ["define"]


@pytest.mark.parametrize("why", ["away", "to be confirmed"])
async def test_what_may_take_long_is_not_asked_for_twice_a_second_for_each_domain(
    floor_of: FloorOf, why: str
) -> None:
    floor = await lost(floor_of)
    if why == "away":
        floor.host.errors["read_server"] = UnavailableError(Reason.NOVA_UNAVAILABLE, "HTTP 503")
    else:
        floor.host.server = replace(floor.host.server, status="VERIFY_RESIZE")
    waits: list[float] = []
    while (wait_s := await floor.reapplier.look(UUID)) is not None:
        waits.append(wait_s)
        await floor.host.clock.sleep(wait_s)
    assert waits[0] == 0.5
    assert sum(waits) >= 300
    assert len(waits) < 120
    assert all(wait_s <= max(0.5, sum(waits[:number]) / 20 + 0.001) for number, wait_s in enumerate(waits))


async def test_a_second_writer_ends_it_after_a_few_attempts(floor_of: FloorOf) -> None:
    floor = await lost(floor_of)
    waits: list[float | None] = []
    while True:
        waits.append(await floor.reapplier.look(UUID))
        if waits[-1] is None:
            break
        if waits[-1] == 0:
            assert await floor.reapplier.look(UUID) is None, "written and held"
            floor.host.config_xml = floor.host.flavor_xml
        else:
            await floor.host.clock.sleep(waits[-1])
    assert waits == [0, 10, 0, 20, 0, None]
    assert acts(floor) == ["define"] * 3
    report = await floor.drifts.get(UUID)
    assert (report.progress.attempts, report.progress.next_attempt_s) == (3, None)
    assert "hvctl raise" in report.drift.next_step, "nothing more comes by itself"
    assert "somebody else writes" in report.progress.waits_for
    floor.host.clock.time_s += 10_000
    assert await floor.reapplier.look(UUID) is None
    assert acts(floor) == ["define"] * 3, "not until somebody acts"
    await floor.drifts.set_policy(UUID, ReapplyPolicy.CONFIG)
    await floor.reapplier.look(UUID)
    assert acts(floor) == ["define"] * 4


async def test_what_held_and_is_lost_later_is_brought_back_at_once(floor_of: FloorOf) -> None:
    floor = await lost(floor_of)
    for _ in range(6):
        await floor.reapplier.look(UUID)
        assert await floor.reapplier.look(UUID) is None
        assert await maximum(floor) == (4, GIB)
        floor.host.clock.time_s += 10
        floor.host.hard_reboot()
    assert acts(floor) == ["define"] * 6


async def test_a_second_writer_that_takes_its_time_is_one_too(floor_of: FloorOf) -> None:
    # such as a configuration tool that comes by each minute; Nova makes a definition anew only with a new start
    floor = await lost(floor_of)
    for _ in range(10):
        await floor.reapplier.look(UUID)
        await floor.reapplier.look(UUID)
        floor.host.clock.time_s += 60
        floor.host.config_xml = floor.host.flavor_xml
    assert acts(floor) == ["define"] * 3
    assert "somebody else writes" in (await floor.drifts.get(UUID)).progress.waits_for


async def test_a_clock_that_is_put_back_holds_nothing_up(floor_of: FloorOf) -> None:
    floor = await lost(floor_of)
    clock = floor.host.clock
    await floor.reapplier.look(UUID)
    floor.host.config_xml = floor.host.flavor_xml
    clock.now_s = lambda: clock.time_s - 86_400  # type: ignore[method-assign]
    assert await floor.reapplier.look(UUID) == 10
    assert (await floor.drifts.get(UUID)).progress.next_attempt_s == clock.now_s() + 10
    await clock.sleep(10)
    assert await floor.reapplier.look(UUID) == 0
    assert await maximum(floor) == (4, GIB)


async def test_an_attempt_that_fails_is_made_again_later(floor_of: FloorOf) -> None:
    floor = await lost(floor_of)
    floor.host.errors["define"] = FailedPreconditionError(Reason.DEFINITION_REFUSED, "libvirt refuses it")
    assert await floor.reapplier.look(UUID) == 10
    report = await floor.drifts.get(UUID)
    assert "libvirt refuses it" in report.progress.waits_for
    assert await floor.reapplier.look(UUID) == 10, "an event in between is no attempt"
    assert "libvirt refuses it" in (await floor.drifts.get(UUID)).progress.waits_for
    assert report.progress.next_attempt_s == floor.host.clock.now_s() + 10
    del floor.host.errors["define"]
    assert await floor.reapplier.look(UUID) == 10
    floor.host.clock.time_s += 10
    assert await floor.reapplier.look(UUID) == 0
    assert await maximum(floor) == (4, GIB)


async def test_what_always_fails_is_given_up_with_its_reason(floor_of: FloorOf) -> None:
    floor = await lost(floor_of)
    floor.host.errors["define"] = FailedPreconditionError(Reason.DEFINITION_REFUSED, "libvirt refuses it")
    while (wait_s := await floor.reapplier.look(UUID)) is not None:
        await floor.host.clock.sleep(wait_s)
    await floor.reapplier.look(UUID)
    waits_for = (await floor.drifts.get(UUID)).progress.waits_for
    assert "gave up after 3 attempts" in waits_for
    assert "libvirt refuses it" in waits_for
    assert "somebody else" not in waits_for


async def test_a_part_that_is_away_for_long_is_no_second_writer(floor_of: FloorOf) -> None:
    floor = await lost(floor_of)
    floor.host.errors["define"] = UnavailableError(Reason.PLACEMENT_UNAVAILABLE, "connection refused")
    waits: list[float] = []
    for _ in range(6):
        wait_s = await floor.reapplier.look(UUID)
        assert wait_s, "it is tried again, and not at once"
        waits.append(wait_s)
        await floor.host.clock.sleep(wait_s)
    assert waits == [10, 20, 40, 40, 40, 40]
    del floor.host.errors["define"]
    assert await floor.reapplier.look(UUID) == 0
    assert await maximum(floor) == (4, GIB)


async def test_a_change_under_way_comes_first_and_is_no_attempt(floor_of: FloorOf) -> None:
    floor = await lost(floor_of)
    floor.host.before_call = lambda name: None
    begun = await floor.changes.begin(
        UUID,
        Target(Method.SET_MEMORY, memory_kib=500 * MIB),
        etag="",
        request_id="",
        caller="other",
        validate_only=False,
    )
    assert await floor.reapplier.look(UUID) is not None
    assert (await floor.drifts.get(UUID)).progress.attempts == 0
    await floor.operations.wait(begun.id, 30)
    await floor.reapplier.look(UUID)
    assert await maximum(floor) == (4, GIB)


async def test_a_full_daemon_and_a_definition_edited_meanwhile_are_tried_again(floor_of: FloorOf) -> None:
    floor = await lost(floor_of)
    floor.operations._max = 0
    assert await floor.reapplier.look(UUID) is not None
    assert (await floor.drifts.get(UUID)).progress.attempts == 0
    floor.operations._max = 4
    edits = [Edit(current_vcpus=1)]

    def edit(name: str) -> None:
        if name == "define" and edits:
            floor.host.edit_outside(edits.pop())

    floor.host.before_call = edit
    assert await floor.reapplier.look(UUID) == 10
    report = await floor.drifts.get(UUID)
    assert (report.progress.attempts, report.drift.status) == (1, DriftStatus.CEILING_LOST)
    floor.host.clock.time_s += 10
    assert await floor.reapplier.look(UUID) == 0
    assert await maximum(floor) == (4, GIB)


async def test_a_resize_is_left_alone(floor_of: FloorOf) -> None:
    floor = await lost(floor_of)
    floor.host.config_xml = floor.host.config_xml.replace("<nova:vcpus>2<", "<nova:vcpus>3<")
    assert await floor.reapplier.look(UUID) is None
    assert acts(floor) == []
    assert (await floor.drifts.get(UUID)).drift.status is DriftStatus.FLAVOR_CHANGED


@pytest.mark.parametrize(
    ("error", "kept"),
    [
        (NotFoundError(Reason.SERVER_NOT_FOUND, "gone"), False),
        (UnavailableError(Reason.NOVA_UNAVAILABLE, "HTTP 503"), True),
        (None, True),
    ],
)
async def test_the_record_of_a_deleted_server_goes_and_no_other(
    floor_of: FloorOf, error: HvsvcError | None, kept: bool
) -> None:
    floor = await lost(floor_of)
    floor.host.defined = False
    floor.host.server = replace(floor.host.server, host="cmp2")
    if error is not None:
        floor.host.errors["read_server"] = error
    await floor.reapplier.look(UUID)
    assert bool(floor.journal.desired) is kept


@asynccontextmanager
async def watching(floor: Floor) -> AsyncIterator[None]:
    task = asyncio.create_task(floor.reapplier.run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


QUICK = replace(CONFIG, debounce_s=0.01, sweep_interval_s=0.05)


async def test_what_was_lost_while_nobody_watched_is_seen_at_the_start(floor_of: FloorOf) -> None:
    floor = await lost(floor_of, replace(QUICK, sweep_interval_s=3600))
    async with watching(floor):
        await until(lambda: acts(floor) == ["define"])


async def test_an_event_is_enough(floor_of: FloorOf) -> None:
    floor = floor_of(host(nova=True), reapply=replace(QUICK, sweep_interval_s=3600))
    await floor.result(SCALE)
    async with watching(floor):
        await until(lambda: bool(floor.host._queues))
        floor.host.calls.clear()
        floor.host.hard_reboot()
        await until(lambda: acts(floor) == ["define"])


async def test_memory_taken_from_the_running_domain_is_an_event_too(floor_of: FloorOf) -> None:
    live = replace(QUICK, policy=ReapplyPolicy.LIVE, sweep_interval_s=3600)
    floor = floor_of(host(nova=True), reapply=live)
    await floor.result(SCALE)
    async with watching(floor):
        await until(lambda: bool(floor.host._queues))
        floor.host.calls.clear()
        floor.host._move_balloon(512 * MIB)
        floor.host.emit(LifecycleEvent.BALLOON_CHANGED)
        await until(lambda: acts(floor) == ["set_memory_live"])


async def test_a_lost_connection_is_followed_by_a_look_at_everything(floor_of: FloorOf) -> None:
    floor = floor_of(host(nova=True), reapply=replace(QUICK, sweep_interval_s=3600))
    await floor.result(SCALE)
    async with watching(floor):
        await until(lambda: bool(floor.host._queues))
        floor.host.lose_connection(UnavailableError(Reason.LIBVIRT_UNAVAILABLE, "gone"))
        await until(lambda: not floor.host._queues)
        floor.host.calls.clear()
        floor.host.hard_reboot()  # nobody hears it
        await until(lambda: acts(floor) == ["define"])


async def test_the_sweep_sees_what_no_event_told(floor_of: FloorOf) -> None:
    floor = floor_of(host(nova=True), reapply=QUICK)
    await floor.result(SCALE)
    floor.host.emit = lambda kind: None  # type: ignore[method-assign]
    async with watching(floor):
        await until(lambda: bool(floor.host._queues))
        floor.host.calls.clear()
        floor.host.hard_reboot()
        await until(lambda: acts(floor) == ["define"])


async def test_the_sweep_drops_the_record_of_an_undefined_plain_domain(floor_of: FloorOf) -> None:
    floor = floor_of(host(), reapply=QUICK)
    await floor.result(SCALE)
    floor.host.defined = False
    assert await floor.reapplier.look(UUID) is None
    assert floor.journal.desired, "not at its event: tools undefine and define"
    async with watching(floor):
        await until(lambda: not floor.journal.desired)


async def test_ga_07_the_sweep_reads_no_plain_domain_to_know_that_it_is_there(floor_of: FloorOf) -> None:
    floor = floor_of(host(), reapply=QUICK)
    await floor.result(SCALE)
    floor.host.errors["read_domain"] = DeadlineError(Reason.CALL_TIMED_OUT, "its QEMU is silent")
    assert list(await floor.reapplier._list_recorded(True)) == [UUID]
    assert floor.journal.desired
    floor.host.defined = False
    await floor.reapplier._list_recorded(True)
    assert not floor.journal.desired


async def test_a_bug_in_one_look_does_not_end_the_watch(floor_of: FloorOf) -> None:
    floor = await lost(floor_of, QUICK)
    bugs = [ZeroDivisionError("a bug")]

    def before_call(name: str) -> None:
        if name == "read_domain" and bugs:
            raise bugs.pop()

    floor.host.before_call = before_call
    async with watching(floor):
        await until(lambda: acts(floor) == ["define"])
