"""Desired states in the journal's file."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from hvsvc.domain.desired import DesiredState, ReapplyPolicy
from hvsvc.domain.topology import Topology, TopologyMode, TopologyPolicy
from hvsvc.errors import Reason, UnavailableError
from tests.adapters.journal_files import UUID, journal_at

FULL = DesiredState(
    UUID,
    "odd \udc80 name",
    "unix",
    1234.5,
    max_vcpus=8,
    max_memory_kib=2 << 20,
    topology=TopologyPolicy(TopologyMode.EXACT, Topology(2, 1, 1, 2, 2)),
    vcpus=4,
    memory_kib=1 << 20,
    policy=ReapplyPolicy.LIVE,
    server_name="web-1",
    seen_in_nova=True,
    nova_host="cmp1",
    is_server=True,
    flavor="small",
    flavor_vcpus=2,
    flavor_memory_mib=512,
)
PLAIN = DesiredState("11111111-2222-4333-8444-555555555555", "backup", "unix", 1.0)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal.db"


async def test_a_record_survives_the_process_exactly(path: Path) -> None:
    async with journal_at(path) as journal:
        assert await journal.replace_desired(UUID, None, FULL)
        assert await journal.replace_desired(PLAIN.uuid, None, PLAIN)
    async with journal_at(path) as journal:
        assert await journal.read_desired(UUID) == FULL
        assert await journal.read_all_desired() == [PLAIN, FULL]


async def test_only_the_record_that_was_read_is_replaced(path: Path) -> None:
    newer = replace(FULL, max_vcpus=16)
    async with journal_at(path) as journal:
        assert await journal.replace_desired(UUID, None, FULL)
        assert not await journal.replace_desired(UUID, None, newer)
        assert not await journal.replace_desired(UUID, newer, None)
        assert await journal.read_desired(UUID) == FULL
        assert await journal.replace_desired(UUID, FULL, newer)
        assert await journal.read_desired(UUID) == newer
        assert await journal.replace_desired(UUID, newer, None)
        assert await journal.read_desired(UUID) is None
        assert await journal.read_all_desired() == []


async def test_a_record_outlives_the_operations_of_its_domain(path: Path) -> None:
    async with journal_at(path) as journal:
        await journal.replace_desired(UUID, None, FULL)
        assert not await journal.delete("op-1")
        assert await journal.read_desired(UUID) == FULL


@pytest.mark.parametrize("text", ["{", "[]", '{"uuid": 7}'])
async def test_a_damaged_record_is_told_as_such(path: Path, text: str) -> None:
    async with journal_at(path) as journal:
        await journal.replace_desired(UUID, None, FULL)
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("UPDATE desired SET record = ?", (text,))
    async with journal_at(path) as journal:
        with pytest.raises(UnavailableError) as refused:
            await journal.read_desired(UUID)
    assert refused.value.reason is Reason.JOURNAL_UNAVAILABLE
