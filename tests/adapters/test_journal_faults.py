"""Every fault of the journal's file has its answer, and what was acknowledged survives a kill."""

from __future__ import annotations

import asyncio
import resource
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path

import pytest

from hvsvc.adapters.journal import SqliteJournal
from hvsvc.domain.desired import DesiredState
from hvsvc.errors import Reason, UnavailableError
from tests.adapters.journal_files import UUID, definitions, journal_at, record


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal.db"


async def assert_unavailable(action: Callable[[], object], words: str) -> None:
    with pytest.raises(UnavailableError, match=words) as caught:
        await action()  # type: ignore[misc]
    assert caught.value.reason is Reason.JOURNAL_UNAVAILABLE
    assert (
        caught.value.__cause__ is not None
        or "in use" in words
        or "not a journal" in words
        or "newer" in words
    )


def world_readable(path: Path) -> None:
    path.touch(mode=0o644)


async def test_only_its_owner_may_read_the_file_and_its_side_files(path: Path) -> None:
    world_readable(path)
    async with journal_at(path) as journal:
        await journal.begin(record())
        files = sorted(path.parent.iterdir())
        assert {file.name for file in files} >= {"journal.db", "journal.db-wal", "journal.db.lock"}
        assert {file.stat().st_mode & 0o777 for file in files} == {0o600}


async def test_two_daemons_cannot_share_a_journal(path: Path) -> None:
    async with journal_at(path) as first:
        await first.begin(record())
        second = journal_at(path)
        await assert_unavailable(second.open, "in use by another hvsvc")
        await second.close()
        assert await first.read("op-1") == record()
    async with journal_at(path) as third:
        assert await third.read("op-1") == record()


async def test_an_open_journal_can_be_read_by_other_programs(path: Path) -> None:
    async with journal_at(path) as journal:
        await journal.keep_definition("op-1", UUID, "<x/>", 1.0)
        assert definitions(path) == [("op-1", UUID, 1.0, "<x/>")]


async def test_using_it_before_it_is_open_is_told(path: Path) -> None:
    journal = journal_at(path)
    with pytest.raises(UnavailableError, match="not open"):
        await journal.read("op-1")
    await journal.close()


def garbage(path: Path) -> None:
    path.write_bytes(b"not a database at all, " * 500)


def no_folder(path: Path) -> None:
    path.parent.rmdir()


def folder_instead(path: Path) -> None:
    path.mkdir()


def other_database(path: Path) -> None:
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE recipes (name TEXT)")


def newer_hvsvc(path: Path) -> None:
    asyncio.run(make_empty(path))
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA user_version = 99")


async def make_empty(path: Path) -> None:
    async with journal_at(path):
        pass


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (garbage, "damaged"),
        (no_folder, "No such file or directory.*folder exists"),
        (folder_instead, "Is a directory"),
        (other_database, "not a journal of hvsvc"),
        (newer_hvsvc, "newer hvsvc .its tables have version 99"),
    ],
)
def test_a_file_that_cannot_be_used_is_left_as_it_is(
    path: Path, spoil: Callable[[Path], None], words: str
) -> None:
    spoil(path)
    before = path.read_bytes() if path.is_file() else None

    async def attempt() -> None:
        journal = journal_at(path)
        await assert_unavailable(journal.open, words)
        await journal.close()

    asyncio.run(attempt())
    assert (path.read_bytes() if path.is_file() else None) == before


def overwrite_inside(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[8192 : len(content) - 8192] = b"\xa5" * (len(content) - 16384)
    path.write_bytes(content)


async def test_pages_damaged_inside_are_found_when_they_are_read(path: Path) -> None:
    async with journal_at(path) as journal:
        for number in range(200):
            await journal.begin(record(number, caller="c" * 500))
    overwrite_inside(path)
    journal = journal_at(path)
    await journal.open()

    await assert_unavailable(
        lambda: journal.read_page(uuid=None, done=None, before=None, limit=500), "damaged"
    )

    await journal.close()


async def test_a_record_damaged_in_its_text_is_found_when_it_is_read(path: Path) -> None:
    async with journal_at(path) as journal:
        await journal.begin(record(1))
        await journal.begin(record(2))
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("UPDATE operations SET record = CAST(x'ff7b7d' AS TEXT) WHERE id = 'op-1'")
    async with journal_at(path) as journal:
        await assert_unavailable(lambda: journal.read("op-1"), "damaged")
        assert await journal.read("op-2") == record(2)


@contextmanager
def file_size_limit(limit: int) -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


async def test_a_disk_that_takes_no_more_loses_nothing_and_works_again_later(path: Path) -> None:
    async with journal_at(path) as journal:
        await journal.begin(record(1))
        with file_size_limit(64 * 1024):
            await assert_unavailable(
                lambda: journal.keep_definition("op-1", UUID, "x" * 200_000, 1.0), "disk"
            )
            await assert_unavailable(lambda: journal.begin(record(2, caller="c" * 200_000)), "disk")
            assert await journal.read("op-1") == record(1)
        assert await journal.read("op-2") is None
        await journal.begin(record(2))
        assert await journal.read("op-2") == record(2)
    assert definitions(path) == []


def move_aside(path: Path, *, replaced: bool) -> None:
    aside = path.with_name("aside")
    path.rename(aside)
    if replaced:
        path.write_bytes(aside.read_bytes())


def put_back(path: Path) -> None:
    path.with_name("aside").replace(path)


@pytest.mark.parametrize("replaced", [False, True])
async def test_nothing_is_written_to_a_file_that_no_start_would_find_again(
    path: Path, replaced: bool
) -> None:
    async with journal_at(path) as journal:
        await journal.begin(record())
        move_aside(path, replaced=replaced)
        for write in (
            journal.begin(record(2)),
            journal.update(record()),
            journal.keep_definition("op-1", UUID, "<domain/>", 1.0),
            journal.delete("op-1"),
            journal.replace_desired(UUID, None, DesiredState(UUID, "web-1", "unix", 1.0)),
        ):
            with pytest.raises(UnavailableError, match="removed or replaced") as caught:
                await write
            assert caught.value.reason is Reason.JOURNAL_UNAVAILABLE
        assert await journal.read("op-1") == record(), "what is known can still be asked for"
        put_back(path)
        await journal.begin(record(2))
    assert definitions(path) == []


async def test_another_program_that_holds_the_file_is_not_waited_for_longer_than_allowed(path: Path) -> None:
    async with journal_at(path, call_timeout_s=1.5) as journal:
        await journal.begin(record(1))
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            await assert_unavailable(
                lambda: journal.begin(record(2)), "another program holds it|gave no answer"
            )
            assert await journal.read("op-1") == record(1), "readers do not wait for writers"


async def test_a_caller_that_is_cancelled_as_its_answer_comes_ends(path: Path) -> None:
    # asyncio.wait_for of Python 3.11 loses that cancellation, and a daemon that was told to stop then never did
    async with journal_at(path) as journal:
        answered = asyncio.Event()

        async def read_for_ever() -> None:
            while True:
                await journal.read_all_desired()

        def cancel() -> None:
            reading.cancel()
            answered.set()

        submit = journal._thread.submit

        def submit_once(work: Callable[[], object]) -> object:
            journal._thread.submit = submit  # type: ignore[method-assign]
            future = submit(work)
            loop = asyncio.get_running_loop()
            # two rounds of the loop: when the answer is there, and nobody has taken it yet
            future.add_done_callback(lambda _: loop.call_soon_threadsafe(loop.call_soon, cancel))
            return future

        journal._thread.submit = submit_once  # type: ignore[assignment,method-assign]
        reading = asyncio.create_task(read_for_ever())
        await answered.wait()
        done, _ = await asyncio.wait({reading}, timeout=2)
        reading.cancel()
        assert done == {reading}


async def test_a_disk_that_hangs_blocks_neither_the_loop_nor_the_caller_for_good(path: Path) -> None:
    hang = threading.Event()
    async with journal_at(path, call_timeout_s=1.5) as journal:
        journal._thread.submit(hang.wait)
        ticks = 0
        waiting = asyncio.create_task(journal.begin(record(1)))
        while not waiting.done():
            await asyncio.sleep(0.01)
            ticks += 1
        await assert_unavailable(lambda: waiting, "gave no answer in 1.5 s")
        assert ticks > 3
        hang.set()
        await journal.begin(record(2))
        assert await journal.read("op-1") is None, (
            "a write that ran out of time before it began is not made later"
        )


@contextmanager
def slow_to_commit(journal: SqliteJournal) -> Iterator[threading.Event]:
    """The disk takes what is written next, and its answer comes when the event is set."""
    hang, submit = threading.Event(), journal._thread.submit

    def submit_slow(work: Callable[[], object]) -> object:
        def slow() -> object:
            journal._connection.set_trace_callback(lambda text: text.startswith("COMMIT") and hang.wait())  # type: ignore[union-attr]
            return work()

        journal._thread.submit = submit  # type: ignore[method-assign]
        return submit(slow)

    journal._thread.submit = submit_slow  # type: ignore[assignment,method-assign]
    try:
        yield hang
    finally:
        hang.set()


async def test_an_operation_whose_begin_is_stored_too_late_does_not_stay_for_ever(path: Path) -> None:
    async with journal_at(path, call_timeout_s=1.5) as journal:
        with slow_to_commit(journal) as hang:
            await assert_unavailable(lambda: journal.begin(record(1)), "gave no answer")
            hang.set()
            assert await journal.read("op-1") is None, "nobody runs it, so it would never end"
        await journal.begin(record(2))
    async with journal_at(path) as journal:
        found = await journal.read_page(uuid=None, done=None, before=None, limit=10)
        assert [each.id for each in found] == ["op-2"]


async def test_a_record_of_what_was_refused_for_a_slow_disk_is_taken_back(path: Path) -> None:
    first = DesiredState(UUID, "web", "tester", 1.0, max_vcpus=4)
    second = DesiredState(UUID, "web", "tester", 2.0, max_vcpus=8)
    async with journal_at(path, call_timeout_s=1.5) as journal:
        for known, wanted in ((None, first), (first, second), (first, None)):
            with slow_to_commit(journal) as hang:
                change = partial(journal.replace_desired, UUID, known, wanted)
                await assert_unavailable(change, "gave no answer")
                hang.set()
                assert await journal.read_desired(UUID) == known
            if known is None:
                assert await journal.replace_desired(UUID, None, first)


WRITER = """
import asyncio, dataclasses, sys
from pathlib import Path
from hvsvc.adapters.journal import SqliteJournal
from hvsvc.domain.operation import OperationRecord
from hvsvc.domain.target import Method, Target

async def main():
    async with SqliteJournal(Path(sys.argv[1]), call_timeout_s=20, keep_days=90) as journal:
        for number in range(100_000):
            plain = OperationRecord(id=f"op-{number:06}", uuid="u", libvirt_name="begun", caller="c", request_id="",
                                    target=Target(Method.SET_VCPUS), create_time_s=1000.0 + number)
            await journal.begin(plain)
            await journal.keep_definition(plain.id, "u", f"<n>{number}</n>", 1000.0)
            await journal.update(dataclasses.replace(plain, libvirt_name="updated", end_time_s=2000.0 + number))
            print(number, flush=True)

asyncio.run(main())
"""


def write_until_killed(path: Path, acknowledged: int) -> int:
    """Runs the writer, kills it once it acknowledged so many; returns how many it acknowledged in all."""
    writer = subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True)
    assert writer.stdout is not None
    count = 0
    with writer.stdout as lines:
        for line in lines:
            count = int(line) + 1
            if count == acknowledged:
                writer.send_signal(signal.SIGKILL)  # what is printed until it dies counts too
    assert writer.wait() == -signal.SIGKILL
    assert count >= acknowledged
    return count


@pytest.mark.parametrize("acknowledged", [1, 40, 150])
async def test_what_was_acknowledged_before_a_kill_is_there_after_it(path: Path, acknowledged: int) -> None:
    count = write_until_killed(path, acknowledged)

    async with journal_at(path) as journal:
        page = await journal.read_page(uuid=None, done=None, before=None, limit=100_000)
        unfinished = await journal.read_page(uuid=None, done=False, before=None, limit=1000)
        await journal.begin(record(1))
    found = {item.id: item for item in page}
    for number in range(count):
        written = found[f"op-{number:06}"]
        assert (written.libvirt_name, written.end_time_s) == ("updated", 2000.0 + number)
    assert len(found) - count in (0, 1)
    assert {item.id for item in unfinished} <= {f"op-{count:06}"}
    kept = {xml for *_, xml in definitions(path)}
    assert kept >= {f"<n>{number}</n>" for number in range(count)}
