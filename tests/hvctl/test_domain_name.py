"""The DOMAIN argument; its completion is tested with the shells."""

from __future__ import annotations

import click
import pytest

from hvsvc.hvctl.domain_name import domain_name


def test_any_name_is_for_the_service_to_find() -> None:
    for name in ("web-1", "domains/6d0f2f04-3f4b-4a55-9b7f-9a4c8f0d1a11", "instance-0000335c", " x y "):
        assert domain_name(name) == name


@pytest.mark.parametrize("name", ["", "  ", "\t"])
def test_an_empty_word_is_refused(name: str) -> None:
    with pytest.raises(click.BadParameter):
        domain_name(name)
