"""Older journals are brought up to date, wholly or not at all."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from hvsvc.adapters import journal_schema


def version(path: Path) -> int:
    with closing(sqlite3.connect(path)) as database:
        return int(database.execute("PRAGMA user_version").fetchone()[0])


def columns(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as database:
        return [row[1] for row in database.execute("PRAGMA table_info(operations)")]


def open_and_close(path: Path) -> None:
    journal_schema.connect(path, 1).close()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "journal.db"
    open_and_close(path)
    return path


def test_a_new_journal_has_the_newest_version(path: Path) -> None:
    assert version(path) == len(journal_schema.MIGRATIONS)


def test_every_commit_is_synced(path: Path) -> None:
    with closing(journal_schema.connect(path, 1)) as database:
        assert database.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert database.execute("PRAGMA synchronous").fetchone() == (2,)


def test_an_older_journal_gets_what_is_missing_once(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    was = len(journal_schema.MIGRATIONS)
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("INSERT INTO operations VALUES ('op-1', 'u', 'c', '', 1.0, NULL, '{}')")
    newer = (
        *journal_schema.MIGRATIONS,
        ("ALTER TABLE operations ADD COLUMN note TEXT NOT NULL DEFAULT 'old'",),
    )
    monkeypatch.setattr(journal_schema, "MIGRATIONS", newer)

    open_and_close(path)
    open_and_close(path)

    assert version(path) == was + 1
    with closing(sqlite3.connect(path)) as database:
        assert database.execute("SELECT id, note FROM operations").fetchall() == [("op-1", "old")]


def test_a_step_that_fails_leaves_the_older_version_whole(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    was, before = version(path), columns(path)
    broken = ("ALTER TABLE operations ADD COLUMN note TEXT", "ALTER TABLE nowhere ADD COLUMN note TEXT")
    monkeypatch.setattr(journal_schema, "MIGRATIONS", (*journal_schema.MIGRATIONS, broken))

    with pytest.raises(sqlite3.OperationalError, match="nowhere"):
        open_and_close(path)

    assert version(path) == was
    assert columns(path) == before
