"""Memory sizes on the command line: a whole number and a binary unit, nothing else.

A bare number is refused because virsh would take it for KiB and most people mean
something else. Decimal and short units (`16GB`, `16G`) are refused because their
meaning differs from tool to tool: virsh takes GB for 10^9 and G for 2^30.
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Final

import click

UNIT_KIB: Final[dict[str, int]] = {"KiB": 1, "MiB": 1 << 10, "GiB": 1 << 20, "TiB": 1 << 30}
#: uint64 of the contract
LARGEST_KIB: Final = (1 << 64) - 1

_SIZE: Final = re.compile(r"([0-9]+)(?:\.([0-9]+))?\s?([A-Za-z]*)", re.ASCII)


def parse_size_kib(text: str) -> int:
    """KiB of a size such as `16GiB`, `512MiB`, `2097152KiB` or `1TiB`; exact, 1 or more.

    :raise ValueError: for anything else; the message says what to write.
    """
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"{text!r} is not a size: write a whole number and a unit, such as 16GiB or 512MiB")
    whole, fraction, unit_text = found.groups()
    units = {unit.lower(): unit for unit in UNIT_KIB}
    unit = units.get(unit_text.lower())
    if not unit_text:
        raise ValueError(
            f"{text!r} has no unit: write {whole}MiB, {whole}GiB or {whole}KiB for what you mean"
        )
    if unit is None:
        meant = units.get(f"{unit_text[0].lower()}ib", "GiB")
        raise ValueError(
            f"{unit_text!r} is not a unit here, as tools disagree on short and decimal ones: "
            f"write KiB, MiB, GiB or TiB, such as {whole}{meant}"
        )
    if fraction is not None:
        raise ValueError(
            f"{text!r} is not whole: write {_whole(Fraction(f'{whole}.{fraction}') * UNIT_KIB[unit])}"
        )
    kib = int(whole) * UNIT_KIB[unit]
    if not 1 <= kib <= LARGEST_KIB:
        raise ValueError(f"{text!r} is out of range: 1KiB to {LARGEST_KIB}KiB")
    return kib


def format_kib(kib: int) -> str:
    """The size in the largest unit that keeps it whole, such as `16 GiB`."""
    for unit, factor in reversed(UNIT_KIB.items()):
        if kib and kib % factor == 0:
            return f"{kib // factor} {unit}"
    return f"{kib} KiB"


def _whole(kib: Fraction) -> str:
    return format_kib(max(1, round(kib))).replace(" ", "")


def size_kib(text: str) -> int:
    """Option type: as `parse_size_kib`, with a usage error."""
    try:
        return parse_size_kib(text)
    except ValueError as err:
        raise click.BadParameter(str(err)) from err
