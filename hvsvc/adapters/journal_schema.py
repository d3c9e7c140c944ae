"""The journal's database file: who may open it, its tables, and how older files are brought up to date."""

from __future__ import annotations

import fcntl
import os
import sqlite3
from pathlib import Path

from hvsvc.errors import Reason, UnavailableError

#: "hvsj" in the file's header (`PRAGMA application_id`): tells a journal from any other SQLite file
APPLICATION_ID = 0x6876736A

#: Entry N brings a file of version N (`PRAGMA user_version`) to version N + 1. Append only.
MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        """CREATE TABLE operations (
            id TEXT PRIMARY KEY,
            uuid TEXT NOT NULL,
            caller TEXT NOT NULL,
            request_id TEXT NOT NULL,
            create_time_s REAL NOT NULL,
            end_time_s REAL,
            record TEXT NOT NULL
        ) STRICT""",
        "CREATE INDEX operations_by_time ON operations (create_time_s, id)",
        "CREATE INDEX operations_by_domain ON operations (uuid, create_time_s, id)",
        """CREATE INDEX operations_by_request ON operations (caller, request_id, create_time_s)
            WHERE request_id <> ''""",
        "CREATE INDEX operations_by_end ON operations (end_time_s)",
        """CREATE TABLE definitions (
            operation_id TEXT NOT NULL,
            uuid TEXT NOT NULL,
            time_s REAL NOT NULL,
            xml TEXT NOT NULL
        ) STRICT""",
        "CREATE INDEX definitions_by_domain ON definitions (uuid, time_s)",
        "CREATE INDEX definitions_by_time ON definitions (time_s)",
    ),
    (
        """CREATE TABLE desired (
            uuid TEXT PRIMARY KEY,
            record TEXT NOT NULL
        ) STRICT""",
    ),
)


def lock(path: Path) -> int:
    """Takes the journal for this process; the lock goes with the descriptor that is returned.

    Two daemons on one journal would each end the other's operations as abandoned.
    A file of its own, because closing any descriptor of the database would drop
    SQLite's locks on it (sqlite.org/howtocorrupt.html, section 2.2).

    :raises UnavailableError: JOURNAL_UNAVAILABLE; another process holds it.
    :raises OSError: the file cannot be made.
    """
    descriptor = os.open(path.with_name(path.name + ".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as err:
        os.close(descriptor)
        raise UnavailableError(
            Reason.JOURNAL_UNAVAILABLE,
            f"the journal {path} is in use by another hvsvc; stop that one, or set another [journal] path",
            {"path": path},
        ) from err
    return descriptor


def connect(path: Path, busy_timeout_s: float) -> sqlite3.Connection:
    """Opens or makes the database, mode 0600, and brings its tables up to date.

    :raises UnavailableError: JOURNAL_UNAVAILABLE; it is some other file, or of a newer hvsvc.
    :raises OSError: the file cannot be made or its mode not be set.
    :raises sqlite3.DatabaseError: it is damaged, or the disk is full.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        os.fchmod(
            descriptor, 0o600
        )  # definitions may hold secrets; SQLite gives its side files the same mode
    finally:
        os.close(descriptor)
    connection = sqlite3.connect(path, timeout=busy_timeout_s, isolation_level=None)
    try:
        _check_origin(connection, path)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA cell_size_check = ON")
        _migrate(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    return int(connection.execute(f"PRAGMA {name}").fetchone()[0])


def _check_origin(connection: sqlite3.Connection, path: Path) -> None:
    empty = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0] == 0
    if not empty and _pragma(connection, "application_id") != APPLICATION_ID:
        raise UnavailableError(
            Reason.JOURNAL_UNAVAILABLE,
            f"{path} is a database, but not a journal of hvsvc; set another [journal] path",
            {"path": path},
        )
    version = _pragma(connection, "user_version")
    if version > len(MIGRATIONS):
        raise UnavailableError(
            Reason.JOURNAL_UNAVAILABLE,
            f"the journal {path} was written by a newer hvsvc (its tables have version {version}; this one "
            f"knows {len(MIGRATIONS)}); install the newer hvsvc again, or set another [journal] path",
            {"path": path, "version": version, "known": len(MIGRATIONS)},
        )


def _migrate(connection: sqlite3.Connection) -> None:
    for version in range(_pragma(connection, "user_version"), len(MIGRATIONS)):
        with connection:  # all of a version or nothing of it
            connection.execute("BEGIN IMMEDIATE")
            for statement in MIGRATIONS[version]:
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {version + 1}")
