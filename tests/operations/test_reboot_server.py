"""Reboots through Nova: soft only, bounded, refused where Nova or the operator says no."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from hvsvc.domain.outcome import Outcome
from hvsvc.errors import (
    DeadlineError,
    Reason,
    UnavailableError,
)
from tests.fakes.host import host
from tests.fakes.targets import RAISE, mutations
from tests.operations.conftest import Floor

FloorOf = Callable[..., Floor]


async def test_rb_01_a_reboot_in_the_same_process_is_not_applied(floor_of: FloorOf) -> None:
    fake = host(nova=True)
    fake.nova_reboot = "same process"
    start_s = fake.clock.time_s
    error = await floor_of(fake).error(RAISE)
    assert error.reason is Reason.REBOOT_NOT_APPLIED
    assert error.metadata == {"result": "Success", "status": "ACTIVE"}
    assert "in the same QEMU process (id 7)" in error.message
    assert fake.clock.time_s - start_s < 30


async def test_a_reboot_that_a_restarted_nova_compute_dropped_is_told_when_its_task_ends(
    floor_of: FloorOf,
) -> None:
    fake = host(nova=True)
    fake.nova_reboot, fake.nova_seconds = "dropped", 60
    start_s = fake.clock.time_s
    error = await floor_of(fake).error(RAISE)
    assert error.reason is Reason.REBOOT_NOT_APPLIED
    assert error.metadata == {"result": "", "status": "ACTIVE"}
    assert "result of the reboot: none" in error.message
    assert 60 <= fake.clock.time_s - start_s < 90


async def test_a_reboot_that_a_restarted_nova_compute_made_a_hard_one_is_told_when_its_task_ends(
    floor_of: FloorOf,
) -> None:
    fake = host(nova=True)
    fake.nova_reboot, fake.nova_seconds = "hard later", 60
    start_s = fake.clock.time_s
    error = await floor_of(fake).error(RAISE)
    assert error.reason is Reason.CEILING_LOST
    assert 60 <= fake.clock.time_s - start_s < 90


async def test_a_task_that_the_database_does_not_show_yet_is_waited_for(floor_of: FloorOf) -> None:
    fake = host(nova=True)
    asked = fake.reboot_soft

    async def reboot_soft(server_id: str) -> str:
        answer = await asked(server_id)
        busy, fake.server = fake.server, replace(fake.server, task_state=None)
        fake.clock.at(2.5, lambda: setattr(fake, "server", busy))
        return answer

    fake.reboot_soft = reboot_soft  # type: ignore[method-assign]
    assert (await floor_of(fake).result(RAISE)).outcome is Outcome.COMPLETE


async def test_nova_that_never_finishes_is_bounded(floor_of: FloorOf) -> None:
    fake = host(nova=True)
    fake.nova_reboot = "never"
    start_s = fake.clock.time_s
    error = await floor_of(fake).error(RAISE)
    assert isinstance(error, DeadlineError)
    assert "task_state rebooting" in error.message
    assert "the domain is running; its id was" in error.message
    assert "Nova may still do it" in error.message
    assert 300 <= fake.clock.time_s - start_s < 310


async def test_nova_that_goes_away_during_the_reboot(floor_of: FloorOf) -> None:
    fake = host(nova=True)
    down = UnavailableError(Reason.NOVA_UNAVAILABLE, "connection refused")
    fake.clock.at(1, lambda: fake.errors.update(read_server=down, read_reboot_result=down))
    result = await floor_of(fake).result(RAISE)
    assert result.outcome is Outcome.UNCONFIRMED
    assert result.reasons[0].reason is Reason.NOVA_STATE_UNKNOWN
    assert result.after.live is not None
    assert result.after.live.maximum_vcpus == 8


async def test_a_libvirt_that_restarts_during_the_reboot_does_not_end_the_operation(
    floor_of: FloorOf,
) -> None:
    fake = host(nova=True)
    away = UnavailableError(Reason.LIBVIRT_UNAVAILABLE, "connection refused")
    asked = fake.reboot_soft

    async def reboot_soft(server_id: str) -> str:
        fake.clock.at(1, lambda: fake.errors.update(read_domain=away))
        fake.clock.at(9, fake.errors.clear)
        return await asked(server_id)

    fake.reboot_soft = reboot_soft  # type: ignore[method-assign]
    assert (await floor_of(fake).result(RAISE)).outcome is Outcome.COMPLETE


async def test_a_server_in_error_is_told(floor_of: FloorOf) -> None:
    fake = host(nova=True)
    fake.nova_reboot = "error"
    error = await floor_of(fake).error(RAISE)
    assert error.reason is Reason.NOVA_REFUSED
    assert error.metadata == {"result": "Error", "status": "ERROR"}


async def test_a_server_in_error_whose_task_stayed_is_told_at_once(floor_of: FloorOf) -> None:
    fake = host(nova=True)
    fake.nova_reboot = "never"
    start_s = fake.clock.time_s
    fake.clock.at(3, lambda: setattr(fake, "server", replace(fake.server, status="ERROR")))
    error = await floor_of(fake).error(RAISE)
    assert error.metadata == {"result": "", "status": "ERROR"}
    assert fake.clock.time_s - start_s < 30


async def test_a_server_locked_after_the_plan_is_not_rebooted(floor_of: FloorOf) -> None:
    fake = host(nova=True)
    fake.before_call = lambda name: (
        setattr(fake, "server", replace(fake.server, locked=True)) if name == "define" else None
    )
    error = await floor_of(fake).error(RAISE)
    assert error.reason is Reason.SERVER_LOCKED
    assert "reboot_soft" not in mutations(fake)


@pytest.mark.parametrize("kind", [DeadlineError, UnavailableError])
async def test_a_reboot_whose_answer_was_lost_may_have_happened(
    floor_of: FloorOf, kind: type[DeadlineError | UnavailableError]
) -> None:
    fake = host(nova=True)
    fake.errors["reboot_soft"] = kind(Reason.NOVA_UNAVAILABLE, "no answer")
    error = await floor_of(fake).error(RAISE)
    assert type(error) is kind
    assert "whether Nova took it is not known" in error.message
