"""Sizes with a unit, exact; all else refused with what to write."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hvsvc.hvctl.sizes import LARGEST_KIB, format_kib, parse_size_kib


@pytest.mark.parametrize(
    ("text", "kib"),
    [
        ("16GiB", 16777216),
        ("512MiB", 524288),
        ("1TiB", 1073741824),
        ("12582912KiB", 12582912),
        ("16 GiB", 16777216),
        (" 1gib ", 1048576),
        ("18446744073709551615KiB", LARGEST_KIB),
    ],
)
def test_accepted(text: str, kib: int) -> None:
    assert parse_size_kib(text) == kib


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("16777216", "no unit: write 16777216MiB, 16777216GiB or 16777216KiB"),
        ("16GB", "16GiB"),
        ("16G", "16GiB"),
        ("512m", "512MiB"),
        ("5EiB", "5GiB"),
        ("512B", "512GiB"),
        ("1.5GiB", "write 1536MiB"),
        ("0.3KiB", "write 1KiB"),
        ("0MiB", "out of range"),
        ("18446744073709551616KiB", "out of range"),
        ("-1GiB", "whole number and a unit"),
        ("GiB", "whole number and a unit"),
        ("", "whole number and a unit"),
        ("1e3MiB", "whole number and a unit"),
        ("\u0661GiB", "whole number and a unit"),
        ("1GiB2MiB", "whole number and a unit"),
    ],
)
def test_refused_with_what_to_write(text: str, hint: str) -> None:
    with pytest.raises(ValueError, match=hint):
        parse_size_kib(text)


@given(st.integers(1, LARGEST_KIB))
def test_a_formatted_size_reads_back_as_itself(kib: int) -> None:
    assert parse_size_kib(format_kib(kib)) == kib


@pytest.mark.parametrize(
    ("kib", "text"),
    [(0, "0 KiB"), (1023, "1023 KiB"), (1024, "1 MiB"), (12582912, "12 GiB"), (1 << 30, "1 TiB")],
)
def test_format(kib: int, text: str) -> None:
    assert format_kib(kib) == text
