"""What the journal keeps, on a real file: operations, replaced definitions, and how they are found again."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from hvsvc.domain.steps import Effect, StepKind, StepRecord, StepState
from hvsvc.errors import InternalError
from tests.adapters.journal_files import DAY_S, UUID, definitions, journal_at, record


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal.db"


async def test_an_operation_is_read_back_as_it_was_last_stored(path: Path) -> None:
    running = record(
        steps=(
            StepRecord(
                StepKind.DEFINE_CONFIG, Effect.LIVE, "why", state=StepState.RUNNING, start_time_s=1001.5
            ),
        )
    )
    async with journal_at(path) as journal:
        await journal.begin(record())
        assert await journal.read("op-1") == record()
        await journal.update(running)
        assert await journal.read("op-1") == running
        assert await journal.read("op-2") is None
    async with journal_at(path) as journal:
        assert await journal.read("op-1") == running


async def test_updating_what_was_never_begun_is_a_bug(path: Path) -> None:
    async with journal_at(path) as journal:
        with pytest.raises(InternalError, match="op-1"):
            await journal.update(record())


async def test_beginning_the_same_operation_twice_is_a_bug_and_keeps_the_first(path: Path) -> None:
    async with journal_at(path) as journal:
        await journal.begin(record())
        with pytest.raises(sqlite3.IntegrityError):
            await journal.begin(record(caller="other"))
        assert await journal.read("op-1") == record()
        await journal.begin(record(2))


async def test_the_replaced_definition_is_kept_and_outlives_its_operation(path: Path) -> None:
    xml = "<domain>\n  <name>ünï</name>\n</domain>"
    async with journal_at(path) as journal:
        await journal.begin(record(end_time_s=1002.0))
        await journal.keep_definition("op-1", UUID, xml, 1001.5)
        assert await journal.delete("op-1")
    assert definitions(path) == [("op-1", UUID, 1001.5, xml)]


async def test_only_an_ended_operation_is_forgotten(path: Path) -> None:
    async with journal_at(path) as journal:
        await journal.begin(record())
        assert not await journal.delete("op-1")
        await journal.update(record(end_time_s=1002.0))
        assert await journal.delete("op-1")
        assert not await journal.delete("op-1")
        assert await journal.read("op-1") is None


async def test_pages_are_newest_first_and_follow_each_other_without_gap_or_repetition(path: Path) -> None:
    async with journal_at(path) as journal:
        for number in (3, 1, 5, 2, 4):
            await journal.begin(record(number, create_time_s=1000.0 + number // 2))  # 2, 3 and 4, 5 tie
        pages: list[list[str]] = []
        before = None
        while page := await journal.read_page(uuid=None, done=None, before=before, limit=2):
            pages.append([found.id for found in page])
            before = (page[-1].create_time_s, page[-1].id)
    assert pages == [["op-5", "op-4"], ["op-3", "op-2"], ["op-1"]]


async def test_pages_filter_by_domain_and_by_end(path: Path) -> None:
    async with journal_at(path) as journal:
        await journal.begin(record(1, end_time_s=1002.0))
        await journal.begin(record(2))
        await journal.begin(record(3, uuid="other"))

        async def ids(uuid: str | None, done: bool | None) -> list[str]:
            return [item.id for item in await journal.read_page(uuid=uuid, done=done, before=None, limit=9)]

        assert await ids(UUID, None) == ["op-2", "op-1"]
        assert await ids(UUID, True) == ["op-1"]
        assert await ids(UUID, False) == ["op-2"]
        assert await ids(None, False) == ["op-3", "op-2"]


async def test_a_request_is_found_by_caller_id_and_age(path: Path) -> None:
    async with journal_at(path) as journal:
        await journal.begin(record(1, request_id="r", caller="a"))
        await journal.begin(record(2, request_id="r", caller="a"))
        await journal.begin(record(3, request_id="r", caller="b"))
        await journal.begin(record(4, request_id="", caller="a"))

        async def find(caller: str, request_id: str, since_s: float) -> str | None:
            found = await journal.read_by_request(caller, request_id, since_s)
            return found.id if found else None

        assert await find("a", "r", 0) == "op-2"
        assert await find("a", "r", 1002.0) == "op-2"
        assert await find("a", "r", 1002.5) is None
        assert await find("b", "r", 0) == "op-3"
        assert await find("c", "r", 0) is None
        assert await find("a", "", 0) is None, "no request id is not the same request id"


async def test_unfinished_operations_are_listed_oldest_first(path: Path) -> None:
    async with journal_at(path) as journal:
        for number in (2, 1):
            await journal.begin(record(number))
        await journal.begin(record(3, end_time_s=1004.0))
    async with journal_at(path) as journal:
        unfinished = await journal.read_page(uuid=None, done=False, before=None, limit=10)
        assert [item.id for item in unfinished] == ["op-2", "op-1"]


async def test_old_ended_operations_and_definitions_go_when_the_next_begins(path: Path) -> None:
    async with journal_at(path, keep_days=10) as journal:
        await journal.begin(record(1, end_time_s=1000.0))
        await journal.begin(record(2, end_time_s=2000.0))
        await journal.begin(record(3))
        await journal.keep_definition("op-1", UUID, "<old/>", 1000.0)
        await journal.keep_definition("op-2", UUID, "<new/>", 2000.0)
        await journal.begin(record(4, create_time_s=10 * DAY_S + 1500.0))
        left = await journal.read_page(uuid=None, done=None, before=None, limit=9)
    assert [item.id for item in left] == ["op-4", "op-3", "op-2"], "op-3 has not ended, however old"
    assert [xml for *_, xml in definitions(path)] == ["<new/>"]
