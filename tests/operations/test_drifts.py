"""Reading, setting and dropping records, over a host that behaves as told."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

import pytest

from hvsvc.domain.desired import ReapplyPolicy
from hvsvc.domain.drift import DriftStatus
from hvsvc.domain.facts import ServerFacts
from hvsvc.domain.target import Method, RebootMode, Target
from hvsvc.errors import (
    DeadlineError,
    FailedPreconditionError,
    HvsvcError,
    InvalidArgumentError,
    NotFoundError,
    Reason,
    UnavailableError,
)
from tests.fakes.host import host
from tests.fakes.targets import RAISE
from tests.fakes.worlds import GIB, UUID
from tests.operations.conftest import Floor

FloorOf = Callable[..., Floor]
SCALE = Target(Method.SCALE_DOMAIN, vcpus=4, memory_kib=GIB, reboot=RebootMode.SOFT)


async def test_get_drift_compares_at_each_look(floor_of: FloorOf) -> None:
    floor = floor_of(host(nova=True))
    await floor.result(SCALE)
    seen = [(await floor.drifts.get("web-1")).drift.status]
    floor.host.hard_reboot()
    seen.append((await floor.drifts.get(UUID)).drift.status)
    floor.host.defined = False
    floor.host.server = replace(floor.host.server, host="cmp2")
    seen.append((await floor.drifts.get("web-1")).drift.status)
    floor.host.errors["read_server"] = UnavailableError(Reason.NOVA_UNAVAILABLE, "HTTP 503")
    seen.append((await floor.drifts.get("instance-00000001")).drift.status)
    floor.host.errors["read_server"] = NotFoundError(Reason.SERVER_NOT_FOUND, "gone")
    seen += [report.drift.status for report in await floor.drifts.list()]
    assert seen == [
        DriftStatus.IN_SYNC,
        DriftStatus.CEILING_LOST,
        DriftStatus.MOVED,
        DriftStatus.UNKNOWN,
        DriftStatus.GONE,
    ]
    assert floor.journal.desired, "a read drops nothing"


async def test_ga_07_a_domain_that_cannot_be_read_is_unknown_and_hides_no_other(floor_of: FloorOf) -> None:
    floor = floor_of(host(nova=True))
    await floor.result(SCALE)
    other = "11111111-2222-4333-8444-555555555555"
    floor.journal.desired[other] = replace(floor.journal.desired[UUID], uuid=other)
    floor.host.errors["read_domain"] = DeadlineError(Reason.CALL_TIMED_OUT, "its QEMU is silent")
    listed = {report.desired.uuid: report.drift for report in await floor.drifts.list()}
    assert listed.keys() == {UUID, other}
    for drift in (listed[UUID], (await floor.drifts.get(UUID)).drift):
        assert drift.status is DriftStatus.UNKNOWN
        assert "its QEMU is silent" in drift.differences[0]


async def test_the_guest_is_part_of_it(floor_of: FloorOf) -> None:
    floor = floor_of(host(nova=True))
    await floor.result(SCALE)
    floor.host.guest[3] = False
    report = await floor.drifts.get(UUID)
    assert (report.drift.status, report.drift.differences) == (
        DriftStatus.SHRUNK,
        ("guest CPUs online: 4 asked, 3 found",),
    )


async def test_what_was_never_asked_is_not_found(floor_of: FloorOf) -> None:
    floor = floor_of(host(nova=True))
    for name in (UUID, "web-1", "other"):
        with pytest.raises(NotFoundError) as refused:
            await floor.drifts.get(name)
        assert refused.value.reason is Reason.NOTHING_RECORDED
    assert await floor.drifts.list() == []
    assert await floor.drifts.of(await floor.host.read_domain(UUID)) is None


async def test_a_name_of_two_records_of_domains_that_left_is_refused(floor_of: FloorOf) -> None:
    floor = floor_of(host(nova=True))
    await floor.result(RAISE)
    other = "11111111-2222-4333-8444-555555555555"
    floor.journal.desired[other] = replace(floor.journal.desired[UUID], uuid=other)
    floor.host.defined = False
    with pytest.raises(InvalidArgumentError) as refused:
        await floor.drifts.get("web-1")
    assert refused.value.reason is Reason.AMBIGUOUS_NAME
    assert other in refused.value.metadata["candidates"]


async def test_a_uuid_names_the_record_of_one_domain_whatever_other_servers_are_called(
    floor_of: FloorOf,
) -> None:
    floor = floor_of(host(nova=True))
    await floor.result(SCALE)
    floor.host.defined = False
    other = "11111111-2222-4333-8444-555555555555"
    floor.journal.desired[other] = replace(floor.journal.desired[UUID], uuid=other, server_name=UUID)
    assert (await floor.drifts.get(UUID)).desired.uuid == UUID
    assert (await floor.drifts.forget(UUID)).uuid == UUID
    assert floor.journal.desired.keys() == {other}
    with pytest.raises(NotFoundError) as caught:
        await floor.drifts.forget(UUID)
    assert caught.value.reason is Reason.NOTHING_RECORDED
    assert floor.journal.desired.keys() == {other}, "that is not the record which was meant"


async def test_a_report_has_the_names_of_now(floor_of: FloorOf) -> None:
    floor = floor_of(host(nova=True))
    await floor.result(RAISE)
    floor.journal.desired[UUID] = replace(
        floor.journal.desired[UUID], libvirt_name="old", server_name="old-1"
    )
    facts = await floor.host.read_domain(UUID)
    for report in (await floor.drifts.get(UUID), *await floor.drifts.list(), await floor.drifts.of(facts)):
        assert report is not None
        assert (report.desired.libvirt_name, report.desired.server_name) == ("instance-00000001", "web-1")
    floor.host.defined = False
    assert (await floor.drifts.get(UUID)).desired.server_name == "old-1", "all that is known of one that left"


async def test_a_report_of_a_domain_does_not_fail_for_its_journal(floor_of: FloorOf) -> None:
    floor = floor_of(host(nova=True))
    await floor.result(RAISE)
    facts = await floor.host.read_domain(UUID)
    assert await floor.drifts.of(facts) is not None
    floor.journal.errors["read_desired"] = UnavailableError(Reason.JOURNAL_UNAVAILABLE, "disk")
    assert await floor.drifts.of(facts) is None
    with pytest.raises(UnavailableError):
        await floor.drifts.get(UUID)


async def test_forget_drops_the_record_and_touches_nothing(floor_of: FloorOf) -> None:
    floor = floor_of(host(nova=True))
    await floor.result(RAISE)
    before = list(floor.host.calls)
    assert (await floor.drifts.forget("web-1")).max_vcpus == 8
    assert (floor.journal.desired, floor.host.calls) == ({}, before)
    with pytest.raises(NotFoundError):
        await floor.drifts.forget("web-1")


async def test_a_report_tells_what_the_policy_and_the_attempts_make_of_it(floor_of: FloorOf) -> None:
    floor = floor_of(host(nova=True).settle())
    await floor.result(SCALE)
    assert (await floor.drifts.get(UUID)).progress.waits_for == ""
    floor.host.hard_reboot()
    report = await floor.drifts.get(UUID)
    assert "policy is report" in report.progress.waits_for
    assert "hvctl raise" in report.drift.next_step
    lost = await floor.drifts.set_policy(UUID, ReapplyPolicy.CONFIG)
    assert "by itself" in lost.drift.next_step
    assert "hvctl raise" not in lost.drift.next_step
    for _ in range(2):
        floor.host.hard_reboot()
        await floor.reapplier.look(UUID)
    assert (await floor.drifts.get(UUID)).progress.attempts == 1


async def test_guest_cpus_that_are_offline_are_not_said_to_be_brought_back(floor_of: FloorOf) -> None:
    """Under LIVE, too, nobody brings them online: "nothing: hvsvc grows it again by itself" was no advice."""
    floor = floor_of(host(nova=True).settle())
    await floor.result(SCALE)
    floor.host.guest[3] = False
    shrunk = await floor.drifts.set_policy(UUID, ReapplyPolicy.LIVE)
    assert "took offline" in shrunk.progress.waits_for
    assert "--online all" in shrunk.drift.next_step
    before = list(floor.host.calls)
    await floor.reapplier.look(UUID)
    assert floor.host.calls == before


async def test_the_policy_is_the_domains_own_or_the_configured_one(floor_of: FloorOf) -> None:
    floor = floor_of(host(nova=True))
    await floor.result(RAISE)
    assert (await floor.drifts.get(UUID)).policy is ReapplyPolicy.REPORT
    report = await floor.drifts.set_policy("web-1", ReapplyPolicy.LIVE)
    assert (report.policy, floor.journal.desired[UUID].policy) == (ReapplyPolicy.LIVE, ReapplyPolicy.LIVE)
    assert (await floor.drifts.set_policy("web-1", None)).policy is ReapplyPolicy.REPORT
    await floor.result(Target(Method.RAISE_CEILING, max_vcpus=6))
    assert floor.journal.desired[UUID].max_vcpus == 6


@pytest.mark.parametrize(
    "error",
    [
        UnavailableError(Reason.LIBVIRT_UNAVAILABLE, "libvirtd restarts"),
        FailedPreconditionError(Reason.BROKEN_DEFINITION, "<vcpu> is 0"),
    ],
)
async def test_a_policy_that_was_set_is_answered_also_where_the_domain_cannot_be_read(
    floor_of: FloorOf, error: HvsvcError
) -> None:
    floor = floor_of(host(nova=True))
    await floor.result(RAISE)
    floor.host.errors["read_domain"] = error
    report = await floor.drifts.set_policy(f"domains/{UUID}", ReapplyPolicy.LIVE)
    assert (report.policy, floor.journal.desired[UUID].policy) == (ReapplyPolicy.LIVE, ReapplyPolicy.LIVE)
    assert report.drift.status is DriftStatus.UNKNOWN
    assert error.message in report.drift.differences[0]


async def test_nova_is_asked_for_all_that_left_at_once(floor_of: FloorOf) -> None:
    # one after the other, a Nova that does not answer would take its time for each
    floor = floor_of(host(nova=True))
    await floor.result(RAISE)
    floor.host.defined = False
    uuids = [f"11111111-2222-4333-8444-55555555555{number}" for number in range(5)]
    for uuid in uuids:
        floor.journal.desired[uuid] = replace(floor.journal.desired[UUID], uuid=uuid)
    everybody = asyncio.Barrier(6)

    async def read_server(uuid: str) -> ServerFacts:
        async with asyncio.timeout(5):
            await everybody.wait()
        raise UnavailableError(Reason.NOVA_UNAVAILABLE, f"no word of {uuid}")

    floor.host.read_server = read_server  # type: ignore[assignment,method-assign]
    reports = await floor.drifts.list()
    assert [report.desired.uuid for report in reports] == sorted([UUID, *uuids])
    assert all(f"no word of {report.desired.uuid}" in report.drift.differences[0] for report in reports)
