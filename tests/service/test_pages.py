"""Page tokens come back from hostile hands."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hvsvc.errors import InvalidArgumentError
from hvsvc.service import pages
from tests.fakes.domains import WEB_UUID


@pytest.mark.parametrize(("asked", "size"), [(0, 3), (1, 1), (5, 5)])
def test_page_size(asked: int, size: int) -> None:
    assert pages.PageLimits(3, 5).size(asked) == size


@pytest.mark.parametrize("asked", [-1, 6, 2**31 - 1, -(2**31)])
def test_page_size_out_of_range_is_refused(asked: int) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        pages.PageLimits(3, 5).size(asked)
    assert caught.value.field == "page_size"


def test_tokens_come_back() -> None:
    assert pages.domain_cursor(["running"], pages.domain_token(["running"], WEB_UUID)) == WEB_UUID
    token = pages.operation_token([None, True], (12.25, "op-9"))
    assert pages.operation_cursor([None, True], token) == (12.25, "op-9")


def test_no_token_is_the_first_page() -> None:
    assert pages.domain_cursor([], "") == ""
    assert pages.operation_cursor([], "") is None


def test_token_of_another_filter_is_refused() -> None:
    token = pages.domain_token([["running"], ""], WEB_UUID)
    with pytest.raises(InvalidArgumentError) as caught:
        pages.domain_cursor([["shut off"], ""], token)
    assert caught.value.field == "page_token"


def _forged(cursor: bytes) -> str:
    good = base64.urlsafe_b64decode(pages.domain_token([], WEB_UUID) + "==")
    return base64.urlsafe_b64encode(good[:8] + cursor).decode().rstrip("=")


@pytest.mark.parametrize(
    "cursor",
    [
        b"",
        b"null",
        b"[]",
        b"17",
        b'"../../etc"',
        b'["x","y"]',
        b'[NaN,"op"]',
        b'[Infinity,"op"]',
        b'[true,"op"]',
        b"[" * 300,
        b'[1.5,"' + b"x" * 65 + b'"]',
        b"\xff\xfe",
    ],
)
def test_forged_cursors_are_refused(cursor: bytes) -> None:
    with pytest.raises(InvalidArgumentError):
        pages.domain_cursor([], _forged(cursor))
    with pytest.raises(InvalidArgumentError):
        pages.operation_cursor([], _forged(cursor))


@given(st.text(min_size=1, max_size=600))
def test_any_text_is_a_cursor_or_a_refusal(token: str) -> None:
    for read in (pages.domain_cursor, pages.operation_cursor):
        with pytest.raises(InvalidArgumentError):
            read([], token)
