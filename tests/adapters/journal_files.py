"""What the journal's tests share: records, and a look into the file from outside."""

from __future__ import annotations

import dataclasses
import sqlite3
from contextlib import closing
from pathlib import Path

from hvsvc.adapters.journal import SqliteJournal
from hvsvc.domain.operation import OperationRecord
from hvsvc.domain.target import Method, Target

UUID = "6b5f16a8-3a41-426d-8a29-7cd0beda2ea6"
DAY_S = 86_400


def journal_at(path: Path, *, call_timeout_s: float = 20, keep_days: int = 90) -> SqliteJournal:
    return SqliteJournal(path, call_timeout_s=call_timeout_s, keep_days=keep_days)


def record(number: int = 1, **changes: object) -> OperationRecord:
    plain = OperationRecord(
        id=f"op-{number}",
        uuid=UUID,
        libvirt_name="instance-00000001",
        target=Target(Method.SET_VCPUS, vcpus=8),
        caller="unix",
        request_id="",
        create_time_s=1000.0 + number,
    )
    return dataclasses.replace(plain, **changes)  # type: ignore[arg-type]


def definitions(path: Path) -> list[tuple[str, str, float, str]]:
    with closing(sqlite3.connect(path)) as database:
        return list(
            database.execute("SELECT operation_id, uuid, time_s, xml FROM definitions ORDER BY time_s")
        )
