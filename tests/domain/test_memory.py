"""Sizes: every unit of libvirt in, KiB out."""

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hvsvc.domain.memory import format_kib, parse_memory_kib, parse_number
from hvsvc.errors import FailedPreconditionError, Reason


# The right-hand numbers are what libvirt 9.0's QEMU driver stored for these.
@pytest.mark.parametrize(
    ("text", "unit", "kib"),
    [
        ("262144", None, 262144),
        ("262144", "", 262144),
        ("256", "MB", 250000),
        ("256", "mib", 262144),
        ("256", "MiB", 262144),
        ("256", "M", 262144),
        ("262144001", "B", 256001),
        ("262144001", "byte", 256001),
        ("262144001", "BYTES", 256001),
        ("262144001", "b", 256001),
        ("262144", "k", 262144),
        ("262144", "KB", 256000),
        ("262144", "kB", 256000),
        ("262144", "KIB", 262144),
        ("1", "g", 1048576),
        ("1", "GB", 976563),
        ("1", "GiB", 1048576),
        ("1", "t", 2**30),
        ("1", "TB", 976562500),
        ("1", "PiB", 2**40),
        ("1", "pb", 976562500000),
        ("7", "EiB", 7881299347898368),
        (" 262144", None, 262144),
        ("\n+262144", None, 262144),
        ("0262144", None, 262144),
        ("0", "GiB", 0),
    ],
)
def test_xml_08_every_unit_becomes_kib_rounded_up(text: str, unit: str | None, kib: int) -> None:
    assert parse_memory_kib(text, unit) == kib


@pytest.mark.parametrize(
    ("text", "unit"),
    [
        ("1", "QiB"),
        ("1", "Ki"),
        ("1", "kibi"),
        ("1", " KiB"),
        ("1", "KiB "),
        ("1", "i"),
        ("1", "ib"),
        ("1", "bb"),
        ("1", "\u212aiB"),  # KELVIN SIGN, which lower() turns into k
        ("262144 ", None),
        ("-262144", None),
        ("262144.5", None),
        ("0x100", None),
        ("1e3", None),
        ("1_000", None),
        ("\u0661\u0662", None),  # digits, but not ASCII ones
        ("", None),
        (" ", None),
        ("+", None),
        ("8", "EiB"),
        ("9223372036854775807", "b"),
        ("9223372036854775808", "b"),
        ("99999999999999999999", "EiB"),
        ("1" * 5000, None),
    ],
)
def test_xml_08_what_libvirt_refuses_is_refused(text: str, unit: str | None) -> None:
    with pytest.raises(FailedPreconditionError) as caught:
        parse_memory_kib(text, unit, "<memory>")
    assert caught.value.reason is Reason.BROKEN_DEFINITION
    assert "<memory>" in caught.value.message
    assert len(caught.value.message) < 300


@given(
    size=st.integers(0, 2**32),
    unit=st.sampled_from(["b", "KB", "KiB", "MB", "MiB", "GB", "GiB"]),
)
def test_xml_08_rounding_never_loses_a_byte(size: int, unit: str) -> None:
    base = 1 if unit == "b" else (1024 if "i" in unit else 1000) ** (" KMG".index(unit[0]))
    assert parse_memory_kib(str(size), unit) == math.ceil(Fraction(size * base, 1024))


def test_topo_13_blanks_after_a_number_are_no_number() -> None:
    with pytest.raises(FailedPreconditionError, match="<vcpu>"):
        parse_number("\n 4\n", "<vcpu>")
    assert parse_number("\n 4", "<vcpu>") == 4


@pytest.mark.parametrize(
    ("kib", "words"),
    [
        (16777216, "16 GiB"),
        (524288, "512 MiB"),
        (262145, "262145 KiB"),
        (1024, "1 MiB"),
        (1023, "1023 KiB"),
        (0, "0 KiB"),
        (2**30, "1 TiB"),
        (2**40, "1024 TiB"),
        (1536 * 1024, "1536 MiB"),
    ],
)
def test_sizes_for_people_are_exact(kib: int, words: str) -> None:
    assert format_kib(kib) == words
