"""Reboots of domains that are not Nova's: an orderly shutdown, and nothing left down."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from hvsvc.domain.outcome import Outcome
from hvsvc.domain.target import Method, Target
from hvsvc.errors import (
    DeadlineError,
    FailedPreconditionError,
    GuestAgentError,
    Reason,
    UnavailableError,
)
from tests.fakes.host import host
from tests.fakes.targets import RAISE, mutations
from tests.operations.conftest import Floor

FloorOf = Callable[..., Floor]


async def test_a_plain_guest_that_ignores_shutdown_runs_on(floor_of: FloorOf) -> None:
    fake = host()
    fake.obeys_shutdown = False
    record = await floor_of(fake).run(RAISE)
    assert record.error is not None
    assert record.error.reason is Reason.SHUTDOWN_IGNORED
    assert fake.calls[1:] == [("shut_down", True), ("shut_down", False)]
    assert record.now is not None
    assert record.now.running
    assert record.now.live is not None
    assert record.now.live.maximum_vcpus == 2


async def test_an_agent_that_never_answers_the_shutdown_does_not_end_the_wait_for_it(
    floor_of: FloorOf,
) -> None:
    fake = host()

    async def no_answer(uuid: str, *, agent: bool) -> None:
        fake.calls.append(("shut_down", agent))
        fake.clock.at(30, fake._stop)
        await fake.clock.sleep(0)
        raise DeadlineError(Reason.CALL_TIMED_OUT, "no answer in 40 s")

    fake.shut_down = no_answer  # type: ignore[method-assign]
    assert (await floor_of(fake).result(RAISE)).outcome is Outcome.COMPLETE


async def test_a_shutdown_that_libvirt_refuses_ends_the_wait(floor_of: FloorOf) -> None:
    fake = host()
    fake.errors["shut_down"] = FailedPreconditionError(Reason.HYPERVISOR_REFUSED, "libvirt says no")
    record = await floor_of(fake).run(RAISE)
    assert record.error is fake.errors["shut_down"]
    assert record.now is not None
    assert record.now.running


@pytest.mark.parametrize("after_s", [0, 2])
async def test_rb_06_a_guest_that_goes_off_before_its_agent_could_answer_is_started_again(
    floor_of: FloorOf, after_s: float
) -> None:
    """Seen on libvirt 9.0: "End of file from agent socket", an internal error, of a guest that had obeyed."""
    fake = host()

    async def end_of_file(uuid: str, *, agent: bool) -> None:
        fake.calls.append(("shut_down", agent))
        fake.clock.at(after_s, fake._stop)
        await fake.clock.sleep(0)
        raise FailedPreconditionError(Reason.HYPERVISOR_REFUSED, "End of file from agent socket")

    fake.shut_down = end_of_file  # type: ignore[method-assign]
    assert (await floor_of(fake).result(RAISE)).outcome is Outcome.COMPLETE
    assert [call for call in fake.calls if call[0] == "shut_down"] == [("shut_down", True)]


async def test_where_the_agent_fails_the_power_button_is_pressed(floor_of: FloorOf) -> None:
    fake = host()
    shut_down = fake.shut_down

    async def agent_fails(uuid: str, *, agent: bool) -> None:
        if agent:
            fake.calls.append(("shut_down", agent))
            raise FailedPreconditionError(Reason.HYPERVISOR_REFUSED, "the agent's file system is read-only")
        await shut_down(uuid, agent=agent)

    fake.shut_down = agent_fails  # type: ignore[method-assign]
    assert (await floor_of(fake).result(RAISE)).outcome is Outcome.COMPLETE
    assert [call for call in fake.calls if call[0] == "shut_down"] == [
        ("shut_down", True),
        ("shut_down", False),
    ]


@pytest.mark.parametrize("agent_does", ["nothing", "refuse"])
async def test_where_the_agent_does_not_shut_down_the_power_button_is_pressed(
    floor_of: FloorOf, agent_does: str
) -> None:
    fake = host()
    press = fake.shut_down

    async def shut_down(uuid: str, *, agent: bool) -> None:
        if not agent:
            await press(uuid, agent=agent)
        elif agent_does == "refuse":
            raise GuestAgentError(Reason.AGENT_SILENT, "the agent does not answer")
        else:
            await asyncio.sleep(3600)

    fake.shut_down = shut_down  # type: ignore[method-assign]
    assert (await floor_of(fake).result(RAISE)).outcome is Outcome.COMPLETE
    assert fake.calls[1] == ("shut_down", False)


async def test_a_libvirt_that_restarts_while_the_guest_goes_down_leaves_no_domain_down(
    floor_of: FloorOf,
) -> None:
    fake = host()
    away = UnavailableError(Reason.LIBVIRT_UNAVAILABLE, "connection refused")

    async def lost(uuid: str, *, agent: bool) -> None:
        fake.calls.append(("shut_down", agent))
        fake.clock.at(1, lambda: fake.errors.update(read_domain=away))
        fake.clock.at(2, fake._stop)
        fake.clock.at(8, fake.errors.clear)
        raise away

    fake.shut_down = lost  # type: ignore[method-assign]
    result = await floor_of(fake).result(RAISE)
    assert result.outcome is Outcome.COMPLETE
    assert mutations(fake) == ["define", "shut_down", "start"]


async def test_a_libvirt_that_was_away_when_the_guest_was_to_be_asked_is_told_as_such(
    floor_of: FloorOf,
) -> None:
    fake = host()
    fake.errors["shut_down"] = UnavailableError(Reason.LIBVIRT_UNAVAILABLE, "connection refused")
    record = await floor_of(fake).run(Target(Method.REBOOT_DOMAIN))
    assert record.error is fake.errors["shut_down"]
    assert record.now is not None
    assert record.now.running


async def test_a_guest_that_stops_by_itself_just_before_it_is_asked_is_started_again(
    floor_of: FloorOf,
) -> None:
    fake = host()

    async def too_late(uuid: str, *, agent: bool) -> None:
        fake.clock.at(0.1, fake._stop)
        raise FailedPreconditionError(Reason.DOMAIN_NOT_RUNNING, "it is not running")

    fake.shut_down = too_late  # type: ignore[method-assign]
    assert (await floor_of(fake).result(RAISE)).outcome is Outcome.COMPLETE


async def test_without_acpi_only_the_agent_is_asked(floor_of: FloorOf) -> None:
    fake = host(acpi=False)
    fake.obeys_shutdown = False
    error = await floor_of(fake).error(Target(Method.REBOOT_DOMAIN))
    assert error.reason is Reason.SHUTDOWN_IGNORED
    assert fake.calls == [("shut_down", True)]
