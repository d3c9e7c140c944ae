"""Text of others cannot act on the terminal."""

from __future__ import annotations

import io
import os
import termios

import pytest

from hvsvc.hvctl.terminal import folded, safe


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


LINE = "  PARTIAL: one two three four five six seven eight"


def test_off_a_terminal_a_line_stays_whole() -> None:
    assert folded(LINE, io.StringIO()) == LINE


@pytest.mark.parametrize(
    ("columns", "shown"),
    [
        (30, "  PARTIAL: one two three four\n      five six seven eight"),
        (50, LINE),
        (8, LINE),
        (0, LINE),
    ],
)
def test_on_a_terminal_a_line_is_broken_between_words(columns: int, shown: str) -> None:
    master, slave = os.openpty()
    with os.fdopen(master), os.fdopen(slave, "w") as terminal:
        termios.tcsetwinsize(slave, (24, columns))
        assert folded(LINE, terminal) == shown
