"""libvirt's list form of ids."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hvsvc.domain.id_list import format_id_list, parse_id_list
from hvsvc.errors import FailedPreconditionError, Reason


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("0", {0}),
        ("0-3,^2,7", {0, 1, 3, 7}),
        ("0-3,^9", {0, 1, 2, 3}),
        ("^1,0-1", {0, 1}),
        (" 0 , 2 - 3 ", {0, 2, 3}),
        ("5-5", {5}),
        ("65535", {65535}),
        ("00012", {12}),
    ],
)
def test_lists_are_read_as_libvirt_reads_them(text: str, ids: set[int]) -> None:
    assert parse_id_list(text) == ids


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        ",",
        "0,",
        "a",
        "3-1",
        "-1",
        "0-",
        "^",
        "^0-3",
        "0-1,^0,^1",
        "0--1",
        "1.5",
        "65536",
        "0-4294967295",
        "99999999999999999999",
        "\u0661",
        "0;1",
        "0 1",
    ],
)
def test_what_is_no_list_or_would_fill_the_memory_is_refused(text: str) -> None:
    with pytest.raises(FailedPreconditionError) as caught:
        parse_id_list(text, "cpuset of <vcpupin>")
    assert caught.value.reason is Reason.BROKEN_DEFINITION
    assert "cpuset of <vcpupin>" in caught.value.message


@pytest.mark.parametrize(
    ("ids", "text"), [([], ""), ([3], "3"), ([1, 0], "0-1"), ([0, 1, 2, 4, 6, 7], "0-2,4,6-7"), ([2, 2], "2")]
)
def test_lists_are_written_as_libvirt_writes_them(ids: list[int], text: str) -> None:
    assert format_id_list(ids) == text


@given(st.sets(st.integers(0, 65535), min_size=1, max_size=40))
def test_a_written_list_reads_back(ids: set[int]) -> None:
    assert parse_id_list(format_id_list(ids)) == ids
