"""The `-c COLUMN` option: dotted paths into a document, such as `vcpus.maximum_live`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import click

from hvsvc.hvctl.document import ANY_KEYS, Document, Shape


def check_columns(columns: Iterable[str], shape: Shape) -> None:
    """Refuse a column that no document of this shape can have; before any call, so that nothing is done.

    :raise click.UsageError: names the columns there are at the level that failed.
    """
    for column in columns:
        level: Shape | None = shape
        for part in column.split("."):
            if level is ANY_KEYS:
                level = None
            elif level is None or part not in level:
                there = f"there are: {', '.join(level)}" if level else "there is nothing below"
                within = "" if part == column else f" in {column!r}"
                raise click.UsageError(f"no column {part!r}{within}; {there}")
            else:
                level = level[part]


def find(document: Any, column: str) -> Any:
    """Value at the path, through lists item by item; None where it is absent."""
    value = document
    for part in column.split("."):
        if isinstance(value, list):
            value = [item.get(part) if isinstance(item, Mapping) else None for item in value]
        elif isinstance(value, Mapping):
            value = value.get(part)
        else:
            return None
    return value


def select(document: Document, columns: Iterable[str]) -> Document:
    """The document with these columns alone, nested as before; all of it where none is named."""
    chosen: Document = {}
    for column in columns:
        _copy(document, column.split("."), chosen)
    return chosen if columns else document


def _copy(source: Mapping[str, Any], path: list[str], into: Document) -> None:
    part, *rest = path
    if part not in source:
        return
    value = source[part]
    if not rest:
        into[part] = value
    elif isinstance(value, list):
        kept = into.setdefault(part, [{} for _ in value])
        for item, target in zip(value, kept, strict=True):
            if isinstance(item, Mapping):
                _copy(item, rest, target)
    elif isinstance(value, Mapping):
        _copy(value, rest, into.setdefault(part, {}))
