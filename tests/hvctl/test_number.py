"""Numbers of options."""

from __future__ import annotations

import click
import pytest

from hvsvc.hvctl.number import Number


@pytest.mark.parametrize(("text", "number"), [("1.5", 1.5), ("1024", 1024.0)])
def test_a_number_within_the_bounds(text: str, number: float) -> None:
    assert Number(min=1, max=1024).convert(text, None, None) == number


@pytest.mark.parametrize("text", ["nan", "-nan", "NaN", "0.9", "1025", "inf", "two", ""])
def test_what_is_none(text: str) -> None:
    with pytest.raises(click.BadParameter):
        Number(min=1, max=1024).convert(text, None, None)
