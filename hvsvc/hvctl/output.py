"""Prints documents as the user asked: table, json, yaml or value."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import click

from hvsvc.hvctl.columns import find, select
from hvsvc.hvctl.document import Document
from hvsvc.hvctl.settings import Settings
from hvsvc.hvctl.terminal import safe

#: cells up to this length, such as "512 MiB", are not wrapped
_SHORT: Final = 10


def print_one(settings: Settings, document: Document, text: Callable[[], Iterable[str]]) -> None:
    """Print one document; `text` gives the lines of its table."""
    match settings.output_format:
        case "json" | "yaml":
            print_data(settings.output_format, select(document, settings.columns))
        case "value":
            columns = settings.columns or tuple(document)
            for column in columns:
                # Alone, a text of several lines (an XML diff) can be piped on as it is.
                click.echo(as_value(find(document, column), keep="\n\t" if len(columns) == 1 else ""))
        case _ if settings.columns:
            print_pairs([(column, as_value(find(document, column))) for column in settings.columns])
        case _:
            for line in text():
                click.echo(line)


def print_many(
    settings: Settings,
    documents: Sequence[Document],
    headings: Sequence[str],
    row: Callable[[Document], Sequence[str]],
) -> None:
    """Print a list; `row` gives the cells of the table under `headings`."""
    columns = settings.columns
    match settings.output_format:
        case "json" | "yaml":
            print_data(settings.output_format, [select(document, columns) for document in documents])
        case "value":
            for document in documents:
                print_row(document, columns)
        case _ if columns:
            print_table(columns, [[as_value(find(item, column)) for column in columns] for item in documents])
        case _:
            print_table(headings, [[safe(cell) for cell in row(item)] for item in documents])


def print_row(document: Document, columns: Sequence[str]) -> None:
    """One document of a list, its values on one line."""
    click.echo(" ".join(as_value(find(document, column)) for column in columns or tuple(document)))


def print_data(output_format: str, data: Any) -> None:
    """JSON or YAML; both spell out what is not ASCII, so nothing in it can act on a terminal."""
    if output_format == "json":
        click.echo(json.dumps(data, indent=2))
    else:
        import yaml  # noqa: PLC0415  15 ms that only this format needs

        click.echo(yaml.safe_dump(data, sort_keys=False), nl=False)


def print_pairs(pairs: Sequence[tuple[str, str]]) -> None:
    """Labels and values below each other."""
    for line in aligned(pairs):
        click.echo(line)


def aligned(pairs: Sequence[tuple[str, str]], *, least: int = 0) -> list[str]:
    """Lines of labels and values, the values in one column after `least` characters or more."""
    width = max((len(label) + 1 for label, _ in pairs), default=0)
    width = max(width, least)
    return [f"{f'{label}:':<{width}} {value}".rstrip() for label, value in pairs]


def print_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A table; off a terminal it is as wide as it needs, so that no value is cut or wrapped.

    On one it is wrapped between words alone, so that a name can be copied; where that is not enough it is too wide.
    """
    from rich.console import Console  # noqa: PLC0415  Rich takes longer to load than a call takes
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    columns = list(zip(headings, *rows, strict=True))
    wholes = [not any(" " in cell and len(cell) > _SHORT for cell in column[1:]) for column in columns]
    words = [
        max(len(word) for cell in column for word in ([cell] if whole else cell.split() or [""]))
        for column, whole in zip(columns, wholes, strict=True)
    ]
    console = Console(markup=False, highlight=False, emoji=False)
    console.width = max(console.width, sum(words) + 2 * len(words)) if console.is_terminal else 10_000
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for column, whole in zip(columns, wholes, strict=True):
        table.add_column(Text(column[0]), overflow="fold", no_wrap=whole)
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    with console.capture() as captured:
        console.print(table)
    for line in captured.get().splitlines():
        click.echo(line.rstrip())


def as_value(value: Any, *, keep: str = "") -> str:
    """One value as text: lists and objects as JSON, yes/no as JSON has them, nothing for what is absent."""
    if value is None:
        return ""
    if isinstance(value, (bool, list, dict)):
        return json.dumps(value)
    return safe(value, keep=keep)
