"""Defining: what is there is kept, what changed meanwhile is not overwritten."""

from __future__ import annotations

from collections.abc import Callable

from hvsvc.domain.edit_definition import Edit
from hvsvc.domain.read_definition import parse_definition
from hvsvc.errors import (
    AbortedError,
    FailedPreconditionError,
    Reason,
    UnavailableError,
)
from tests.fakes.host import host
from tests.fakes.targets import GROW, RAISE, ROOMY, mutations
from tests.fakes.worlds import MIB
from tests.operations.conftest import Floor

FloorOf = Callable[..., Floor]


async def test_api_02_an_edit_between_plan_and_define_is_not_lost(floor_of: FloorOf) -> None:
    fake = host(nova=True)
    fake.before_call = lambda name: (
        fake.edit_outside(Edit(current_memory_kib=256 * MIB)) if name == "define" else None
    )
    error = await floor_of(fake).error(RAISE)
    assert isinstance(error, AbortedError)
    assert error.reason is Reason.DEFINITION_CHANGED
    assert mutations(fake) == []
    assert parse_definition(fake.config_xml).current_memory_kib == 256 * MIB


async def test_api_02_an_edit_during_the_live_steps_is_not_lost(floor_of: FloorOf) -> None:
    fake = host(**ROOMY)
    fake.before_call = lambda name: (
        fake.edit_outside(Edit(current_memory_kib=256 * MIB)) if name == "set_vcpus_live" else None
    )
    record = await floor_of(fake).run(GROW)
    assert record.error is not None
    assert record.error.reason is Reason.DEFINITION_CHANGED
    assert parse_definition(fake.config_xml).current_memory_kib == 256 * MIB
    assert record.now is not None
    assert record.now.live is not None
    assert record.now.live.current_vcpus == 8


async def test_a_definition_that_cannot_be_kept_is_not_replaced(floor_of: FloorOf) -> None:
    fake = host(nova=True)
    floor = floor_of(fake)
    floor.journal.errors["keep_definition"] = UnavailableError(Reason.JOURNAL_UNAVAILABLE, "disk full")
    assert (await floor.error(RAISE)).reason is Reason.JOURNAL_UNAVAILABLE
    assert mutations(fake) == []


async def test_xml_05_a_refused_define_leaves_everything(floor_of: FloorOf) -> None:
    fake = host(nova=True)
    before = fake.config_xml
    fake.errors["define"] = FailedPreconditionError(Reason.DEFINITION_REFUSED, "libvirt says no")
    record = await floor_of(fake).run(RAISE)
    assert record.error is fake.errors["define"]
    assert fake.config_xml == before
    assert mutations(fake) == []
