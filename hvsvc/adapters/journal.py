"""The journal: operations, replaced definitions and desired states in a SQLite file that survives a crash.

One thread owns the database: calls run there in the order in which they were made,
and the loop never waits for the disk. A call that returned is on the disk (WAL with
synchronous=FULL).
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

from hvsvc.adapters import journal_desired, journal_schema
from hvsvc.adapters.bounded_call import call_bounded
from hvsvc.adapters.journal_codec import decode, encode
from hvsvc.adapters.workers import Workers
from hvsvc.domain.desired import DesiredState
from hvsvc.domain.operation import OperationRecord
from hvsvc.errors import InternalError, Reason, UnavailableError

T = TypeVar("T")
Work = Callable[[sqlite3.Connection], T]
#: takes back what the work did, from what it returned
Undo = Callable[[sqlite3.Connection, T], None]

_DAY_S = 86_400
_DAMAGED = "it is damaged: restore it from a backup, or move it away to begin with an empty one"
_UNREACHABLE = "check that its folder exists and that both belong to the user that hvsvc runs as"
_REPLACED = "its file was removed or replaced since hvsvc started: put it back, or restart hvsvc without it"
#: next step by SQLite's primary result code; any other code is a fault of ours
_NEXT_STEPS = {
    sqlite3.SQLITE_FULL: "the disk is full: free space there",
    sqlite3.SQLITE_IOERR: "the disk failed, or a file size limit is reached: see the kernel log",
    sqlite3.SQLITE_CORRUPT: _DAMAGED,
    sqlite3.SQLITE_NOTADB: _DAMAGED,
    sqlite3.SQLITE_BUSY: "another program holds it: end that program",
    sqlite3.SQLITE_PROTOCOL: "another program holds it: end that program",
    sqlite3.SQLITE_CANTOPEN: _UNREACHABLE,
    sqlite3.SQLITE_PERM: _UNREACHABLE,
    sqlite3.SQLITE_READONLY: _UNREACHABLE,
}


class SqliteJournal:
    """The `Journal` of a running daemon; `open` it first, `close` it last.

    Every method raises UnavailableError(JOURNAL_UNAVAILABLE) when the file is damaged,
    the disk is full or fails, or does not answer within `call_timeout_s`. What is written
    after that is undone where it tells of what never was: an operation, a record.

    :param path: the database file, made where it is missing; its folder must exist.
    :param keep_days: age from which ended operations and definitions are dropped
        when the next operation begins.
    """

    def __init__(self, path: Path, *, call_timeout_s: float, keep_days: int) -> None:
        self._path = path
        self._call_timeout_s = call_timeout_s
        self._keep_s = keep_days * _DAY_S
        self._thread = Workers(1, "journal")
        self._lock: int | None = None
        self._connection: sqlite3.Connection | None = None
        self._file: os.stat_result | None = None

    async def open(self) -> None:
        """Takes the file for this process and brings its tables up to date.

        :raises UnavailableError: JOURNAL_UNAVAILABLE; also where another hvsvc uses
            it, where it is some other file, or of a newer hvsvc.
        """
        await self._call(self._open)

    def _open(self) -> None:
        self._lock = journal_schema.lock(self._path)
        try:
            self._connection = journal_schema.connect(self._path, self._call_timeout_s)
            self._file = self._path.stat()
        except BaseException:
            self._close()
            raise

    async def close(self) -> None:
        """Closes the file after the calls made so far; for good."""
        try:
            await self._call(self._close)
        finally:
            self._thread.stop()

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def begin(self, operation: OperationRecord) -> None:
        """Stores a new operation, and drops what is older than `keep_days`."""

        def write(database: sqlite3.Connection) -> None:
            oldest_s = operation.create_time_s - self._keep_s
            with database:
                database.execute("BEGIN IMMEDIATE")
                database.execute("DELETE FROM operations WHERE end_time_s < ?", (oldest_s,))
                database.execute("DELETE FROM definitions WHERE time_s < ?", (oldest_s,))
                database.execute(
                    "INSERT INTO operations "
                    "(id, uuid, caller, request_id, create_time_s, end_time_s, record) "
                    "VALUES (?, ?, ?, ?, ?, ?, ?)",
                    (
                        operation.id,
                        operation.uuid,
                        operation.caller,
                        operation.request_id,
                        operation.create_time_s,
                        operation.end_time_s,
                        encode(operation),
                    ),
                )

        def undo(database: sqlite3.Connection, _: None) -> None:
            database.execute("DELETE FROM operations WHERE id = ?", (operation.id,))

        await self._write(write, undo)

    async def update(self, operation: OperationRecord) -> None:
        """Stores the operation's new state; returns when it is on disk."""

        def write(database: sqlite3.Connection) -> None:
            changed = database.execute(
                "UPDATE operations SET end_time_s = ?, record = ? WHERE id = ?",
                (operation.end_time_s, encode(operation), operation.id),
            )
            if changed.rowcount != 1:
                raise InternalError(
                    Reason.INTERNAL, f"operation {operation.id} was updated before it was begun"
                )

        await self._write(write)

    async def keep_definition(self, operation_id: str, uuid: str, xml: str, time_s: float) -> None:
        """Keeps a definition before it is replaced; returns when it is on disk."""

        def write(database: sqlite3.Connection) -> None:
            database.execute(
                "INSERT INTO definitions (operation_id, uuid, time_s, xml) VALUES (?, ?, ?, ?)",
                (operation_id, uuid, time_s, xml),
            )

        await self._write(write)

    async def read_kept_definition(self, uuid: str) -> str | None:
        """The definition kept last for this domain; None where none was."""

        def read(database: sqlite3.Connection) -> str | None:
            found = database.execute(
                "SELECT xml FROM definitions WHERE uuid = ? ORDER BY time_s DESC, rowid DESC LIMIT 1", (uuid,)
            ).fetchone()
            return None if found is None else str(found[0])

        return await self._use(read)

    async def read(self, operation_id: str) -> OperationRecord | None:
        """Reads one operation."""
        return next(iter(await self._read("WHERE id = ?", operation_id)), None)

    async def read_by_request(self, caller: str, request_id: str, since_s: float) -> OperationRecord | None:
        """The newest operation begun by this request of this caller, not older than `since_s`."""
        found = await self._read(
            "WHERE caller = ? AND request_id = ? AND request_id <> '' AND create_time_s >= ? "
            "ORDER BY create_time_s DESC, id DESC LIMIT 1",
            caller,
            request_id,
            since_s,
        )
        return next(iter(found), None)

    async def read_page(
        self, *, uuid: str | None, done: bool | None, before: tuple[float, str] | None, limit: int
    ) -> Sequence[OperationRecord]:
        """Newest first; `before` is (create_time_s, id) of the last one of the page before."""
        wanted: list[str] = []
        values: list[float | str] = []
        if uuid is not None:
            wanted.append("uuid = ?")
            values.append(uuid)
        if done is not None:
            wanted.append(f"end_time_s IS {'NOT ' if done else ''}NULL")
        if before is not None:
            wanted.append("(create_time_s, id) < (?, ?)")
            values.extend(before)
        where = f"WHERE {' AND '.join(wanted)} " if wanted else ""
        return await self._read(f"{where}ORDER BY create_time_s DESC, id DESC LIMIT ?", *values, limit)

    async def delete(self, operation_id: str) -> bool:
        """Forgets an operation that has ended; False where there was none. Its definition is kept."""

        def write(database: sqlite3.Connection) -> bool:
            deleted = database.execute(
                "DELETE FROM operations WHERE id = ? AND end_time_s IS NOT NULL", (operation_id,)
            )
            return deleted.rowcount == 1

        return await self._write(write)

    async def replace_desired(
        self, uuid: str, known: DesiredState | None, wanted: DesiredState | None
    ) -> bool:
        """Stores what a domain was asked for in place of `known`; False where another one is there."""

        def undo(database: sqlite3.Connection, replaced: bool) -> None:
            if replaced:
                journal_desired.replace(database, uuid, wanted, known)

        return await self._write(
            lambda database: journal_desired.replace(database, uuid, known, wanted), undo
        )

    async def read_desired(self, uuid: str) -> DesiredState | None:
        """What this domain was asked for."""
        return await self._use(lambda database: journal_desired.read(database, uuid))

    async def read_all_desired(self) -> Sequence[DesiredState]:
        """What every domain was asked for, ordered by uuid."""
        return await self._use(journal_desired.read_all)

    async def _read(self, clause: str, *values: float | str) -> list[OperationRecord]:
        def read(database: sqlite3.Connection) -> list[OperationRecord]:
            # The clause is one of those above, never anyone's input.
            rows = database.execute(f"SELECT record FROM operations {clause}", values)  # noqa: S608
            return [decode(record) for (record,) in rows]

        return await self._use(read)

    async def _write(self, work: Work[T], undo: Undo[T] | None = None) -> T:
        def write(database: sqlite3.Connection) -> T:
            # SQLite goes on with a file that was removed or replaced, and all of it is gone at the next start
            if self._file is None or not _is_at(self._path, self._file):
                raise self._unavailable(_REPLACED)
            return work(database)

        return await self._use(write, undo)

    async def _use(self, work: Work[T], undo: Undo[T] | None = None) -> T:
        def run() -> T:
            return work(self._opened())

        return await self._call(run, None if undo is None else lambda done: undo(self._opened(), done))

    def _opened(self) -> sqlite3.Connection:
        if self._connection is None:
            raise self._unavailable("it is not open")
        return self._connection

    async def _call(self, work: Callable[[], T], undo: Callable[[T], None] | None = None) -> T:
        try:
            return await call_bounded(self._thread, work, self._call_timeout_s, undo)
        except TimeoutError as err:
            raise self._unavailable(
                f"the disk gave no answer in {self._call_timeout_s:g} s ([journal] call_timeout_s): check it"
            ) from err
        except OSError as err:
            raise self._unavailable(f"{err.strerror}: {_UNREACHABLE}") from err
        except sqlite3.DatabaseError as err:
            # Text that is not UTF-8 comes without a code.
            code = getattr(err, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT)
            next_step = _NEXT_STEPS.get(code & 0xFF)
            if next_step is None:
                raise
            raise self._unavailable(next_step) from err

    def _unavailable(self, what: str) -> UnavailableError:
        return UnavailableError(
            Reason.JOURNAL_UNAVAILABLE,
            f"the journal {self._path} cannot be used: {what}; nothing is changed without it",
            {"path": self._path},
        )


def _is_at(path: Path, file: os.stat_result) -> bool:
    try:
        return os.path.samestat(file, path.stat())
    except FileNotFoundError:
        return False
