"""The journal's table of desired states: one record a domain, as JSON text.

Each function runs in the journal's own thread and is on disk when it returns.
"""

from __future__ import annotations

import json
import sqlite3

from pydantic import TypeAdapter, ValidationError
from pydantic_core import to_jsonable_python

from hvsvc.domain.desired import DesiredState
from hvsvc.errors import Reason, UnavailableError

_RECORD = TypeAdapter(DesiredState)


def replace(
    database: sqlite3.Connection, uuid: str, known: DesiredState | None, wanted: DesiredState | None
) -> bool:
    """Stores `wanted` in place of `known`; False, and nothing done, where another one is there."""
    with database:
        database.execute("BEGIN IMMEDIATE")
        if read(database, uuid) != known:
            return False
        if wanted is None:
            database.execute("DELETE FROM desired WHERE uuid = ?", (uuid,))
        else:
            # names may hold lone surrogates, which UTF-8 cannot; JSON's escapes can
            text = json.dumps(to_jsonable_python(wanted), separators=(",", ":"))
            database.execute("INSERT OR REPLACE INTO desired (uuid, record) VALUES (?, ?)", (uuid, text))
    return True


def read(database: sqlite3.Connection, uuid: str) -> DesiredState | None:
    """The record of one domain."""
    found = database.execute("SELECT record FROM desired WHERE uuid = ?", (uuid,)).fetchone()
    return None if found is None else _decode(found[0])


def read_all(database: sqlite3.Connection) -> list[DesiredState]:
    """All records, ordered by uuid."""
    return [_decode(text) for (text,) in database.execute("SELECT record FROM desired ORDER BY uuid")]


def _decode(text: str) -> DesiredState:
    try:
        return _RECORD.validate_python(json.loads(text))
    except (ValidationError, ValueError) as err:
        raise UnavailableError(
            Reason.JOURNAL_UNAVAILABLE,
            "a desired state in the journal cannot be understood: it is damaged, or was written by another version "
            "of hvsvc; restore the journal from a backup, or move it away to begin with an empty one",
        ) from err
