"""Memory sizes: libvirt's units in, KiB out."""

from __future__ import annotations

import re

from hvsvc.domain.xml_document import broken

#: the largest size libvirt takes, in bytes
_MAX_BYTES = 2**63 - 1
_POWERS = {letter: power for power, letter in enumerate("kmgtpe", start=1)}
_DIGITS = re.compile(r"[ \t\n\v\f\r]*\+?([0-9]{1,20})", re.ASCII)


def parse_number(text: str, element: str) -> int:
    """A number as libvirt reads it: decimal digits, blanks and a plus sign before them, nothing after.

    Case TOPO-13: libvirt 9.0 refuses blanks after the digits.

    :raises FailedPreconditionError: BROKEN_DEFINITION naming `element`.
    """
    match = _DIGITS.fullmatch(text)
    if match is None:
        raise broken(f"{element} is {text[:40]!r}, not a whole number of 0 or more")
    return int(match.group(1))


def parse_memory_kib(text: str, unit: str | None, element: str = "a memory size") -> int:
    """A size of the domain XML in KiB, rounded up; without a unit it is KiB.

    The units are those of libvirt's virScaleInteger (case XML-08): `b`, `byte`, `bytes`;
    a letter of `kmgtpe` alone or with `iB` for powers of 1024; a letter with `b` for
    powers of 1000; in any case of letters.

    :raises FailedPreconditionError: BROKEN_DEFINITION naming `element` for what libvirt
        refuses too: another unit, no whole number, or 8 EiB and more.
    """
    size = parse_number(text, element) * _bytes_of_unit(unit or "KiB", element)
    kib = -(-size // 1024)
    if kib * 1024 > _MAX_BYTES:
        raise broken(f"{element} is {text}{unit or ' KiB'}, which is 8 EiB or more")
    return kib


def _bytes_of_unit(unit: str, element: str) -> int:
    folded = unit.lower() if unit.isascii() else ""
    if folded in ("b", "byte", "bytes"):
        return 1
    power = _POWERS.get(folded[:1], 0)
    base = {"": 1024, "ib": 1024, "b": 1000}.get(folded[1:], 0)
    if not power or not base:
        raise broken(f"{element} has the unit {unit[:40]!r}, which libvirt does not know")
    return int(base**power)


def format_kib(kib: int) -> str:
    """A size for people, exact: in the largest of KiB, MiB, GiB and TiB that divides it."""
    size, units = kib, iter(("KiB", "MiB", "GiB", "TiB"))
    unit = next(units)
    for larger in units:
        if size == 0 or size % 1024:
            break
        size, unit = size // 1024, larger
    return f"{size} {unit}"
