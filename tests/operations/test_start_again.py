"""The start after a shutdown: by what runs, not by what libvirt answered; with a way back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from hvsvc.domain.edit_definition import Edit
from hvsvc.domain.outcome import Outcome
from hvsvc.domain.read_definition import parse_definition
from hvsvc.domain.target import Method, RebootMode, Target
from hvsvc.errors import (
    AbortedError,
    DeadlineError,
    FailedPreconditionError,
    HvsvcError,
    NotPermittedError,
    Reason,
    UnavailableError,
)
from tests.fakes.host import FakeHost, host
from tests.fakes.targets import RAISE, mutations
from tests.fakes.worlds import GIB, UUID
from tests.operations.conftest import Floor

FloorOf = Callable[..., Floor]
REFUSED = FailedPreconditionError(Reason.START_FAILED, "cannot set up guest memory")
AWAY = UnavailableError(Reason.LIBVIRT_UNAVAILABLE, "connection refused")
PENDING = replace(RAISE, reboot=RebootMode.NEVER)


async def test_topo_12_mem_10_a_definition_that_does_not_start_is_taken_back(floor_of: FloorOf) -> None:
    fake = host()
    before = fake.config_xml
    fake.errors["start once"] = REFUSED
    floor = floor_of(fake)
    record = await floor.run(RAISE)
    assert record.error is not None
    assert record.error.reason is Reason.START_FAILED
    assert record.error.metadata == {"restored": "true"}
    assert fake.config_xml == before
    assert record.now is not None
    assert record.now.running
    assert mutations(fake) == ["define", "shut_down", "define", "start"]
    kept = await floor.journal.read_kept_definition(record.uuid)
    assert kept is not None
    assert parse_definition(kept).maximum_vcpus == 8, "the definition that did not start is kept too"


@pytest.mark.parametrize("told", [True, False], ids=["the start fails", "it is ended after its start"])
async def test_mem_06_a_restored_domain_that_libvirt_ends_for_the_one_before_is_started_once_more(
    floor_of: FloorOf, told: bool
) -> None:
    fake = host()
    before, start, starts = fake.config_xml, fake.start, 0

    async def start_badly(uuid: str) -> None:
        nonlocal starts
        starts += 1
        if starts == 1 or (starts == 2 and told):
            raise REFUSED
        await start(uuid)
        if starts == 2:
            fake._stop()

    fake.start = start_badly  # type: ignore[method-assign]
    record = await floor_of(fake).run(RAISE)
    assert record.error is not None
    assert record.error.metadata == {"restored": "true"}
    assert record.now is not None
    assert record.now.running
    assert (fake.config_xml, starts) == (before, 3)


async def test_a_restored_domain_that_does_not_start_either_is_told_to_be_off(floor_of: FloorOf) -> None:
    fake = host()
    fake.errors["start"] = REFUSED
    error = await floor_of(fake).error(RAISE)
    assert error.message.startswith("the domain is off")
    assert "nor could the ceiling before be restored" in error.message


async def test_a_pending_definition_of_an_earlier_operation_is_taken_back_too(floor_of: FloorOf) -> None:
    fake = host()
    before = fake.config_xml
    floor = floor_of(fake)
    assert (await floor.result(PENDING)).outcome is Outcome.PENDING_REBOOT
    fake.errors["start once"] = REFUSED
    error = await floor.error(Target(Method.REBOOT_DOMAIN))
    assert error.metadata == {"restored": "true"}
    assert fake.config_xml == before


async def test_of_two_pending_ceilings_the_one_that_ran_comes_back_not_the_one_between(
    floor_of: FloorOf,
) -> None:
    fake = host()
    floor = floor_of(fake)
    await floor.result(PENDING)
    await floor.result(replace(PENDING, max_vcpus=16, max_memory_kib=8 * GIB))
    fake.errors["start once"] = REFUSED
    assert (await floor.error(Target(Method.REBOOT_DOMAIN))).metadata == {"restored": "true"}
    stored = parse_definition(fake.config_xml)
    assert (stored.maximum_vcpus, stored.current_vcpus, stored.memory_kib) == (2, 2, GIB // 2)


async def test_xml_04_an_edit_made_since_the_definition_was_kept_is_not_lost(floor_of: FloorOf) -> None:
    fake = host()
    floor = floor_of(fake)
    await floor.result(PENDING)
    fake.config_xml = fake.config_xml.replace("<memballoon", "<rng model='virtio'/><memballoon")
    fake.errors["start once"] = REFUSED
    assert (await floor.error(Target(Method.REBOOT_DOMAIN))).metadata == {"restored": "true"}
    assert "<rng " in fake.config_xml
    assert parse_definition(fake.config_xml).maximum_vcpus == 2


async def test_a_definition_that_hvsvc_did_not_raise_is_left_alone(floor_of: FloorOf) -> None:
    fake = host()
    floor = floor_of(fake)
    await floor.result(replace(PENDING, max_vcpus=4, max_memory_kib=None))
    fake.edit_outside(Edit(maximum_vcpus=2, topology=parse_definition(fake.live_xml or "").topology))
    edited = fake.config_xml
    await floor.drifts.forget(UUID)  # else the reboot would be refused
    fake.errors["start once"] = REFUSED
    record = await floor.run(Target(Method.REBOOT_DOMAIN))
    assert record.error is not None
    assert record.error.message.startswith("the domain is off")
    assert "something else is at fault" in record.error.message
    assert fake.config_xml == edited
    assert mutations(fake) == ["define", "shut_down"]


@pytest.mark.parametrize("answer", [AWAY, AbortedError(Reason.DOMAIN_BUSY, "another job")])
async def test_a_start_that_could_not_be_asked_for_is_asked_for_again(
    floor_of: FloorOf, answer: HvsvcError
) -> None:
    fake = host()
    fake.errors["start once"] = answer
    assert (await floor_of(fake).result(RAISE)).outcome is Outcome.COMPLETE
    assert mutations(fake) == ["define", "shut_down", "start"]


@pytest.mark.parametrize("answer", [AWAY, DeadlineError(Reason.CALL_TIMED_OUT, "no answer in 60 s"), REFUSED])
async def test_a_domain_that_runs_whatever_was_answered_is_not_taken_back(
    floor_of: FloorOf, answer: HvsvcError
) -> None:
    fake = host()

    async def start(uuid: str) -> None:
        fake.calls.append(("start", None))
        fake.clock.at(20 if isinstance(answer, DeadlineError) else 0, fake._start)
        await fake.clock.sleep(0)
        raise answer

    fake.start = start  # type: ignore[method-assign]
    assert (await floor_of(fake).result(RAISE)).outcome is Outcome.COMPLETE
    assert mutations(fake) == ["define", "shut_down", "start"]


@pytest.mark.parametrize("answer", [AWAY, NotPermittedError(Reason.LIBVIRT_NOT_PERMITTED, "access denied")])
async def test_a_domain_left_down_is_told_so(floor_of: FloorOf, answer: HvsvcError) -> None:
    fake = host()
    fake.errors["start"] = type(answer)(answer.reason, answer.message)
    start_s = fake.clock.time_s
    error = await floor_of(fake).error(RAISE)
    assert error.reason is answer.reason
    assert "shut down for the reboot" in error.message
    assert "virsh start" in error.message
    assert fake.clock.time_s - start_s < 200
    assert _maximum(fake) == 8, "only a definition that does not start is taken back"


def _maximum(fake: FakeHost) -> int:
    return parse_definition(fake.config_xml).maximum_vcpus
