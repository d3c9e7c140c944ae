"""Text of others cannot act on the terminal."""

from __future__ import annotations

import pytest

from hvsvc.hvctl.terminal import safe


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("web-1", "web-1"),
        ("Überlingen 東京", "Überlingen 東京"),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("a\x9b2Jb", "a\\x9b2Jb"),
        ("a\rb\nc\td\x00\x7f", "a\\rb\\nc\\td\\x00\\x7f"),
        ("\u202egnp.exe", "\\u202egnp.exe"),
        ("\u2028", "\\u2028"),
        ("[bold]x[/bold]", "[bold]x[/bold]"),
    ],
)
def test_unprintable_is_spelled_out(text: str, shown: str) -> None:
    assert safe(text) == shown


def test_kept_characters_stay() -> None:
    assert safe("a\n\tb\x1b", keep="\n\t") == "a\n\tb\\x1b"
