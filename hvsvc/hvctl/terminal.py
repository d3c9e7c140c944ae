"""Text for a terminal: made safe where it came from elsewhere, and folded at its width.

Server names, guest replies and libvirt's texts are written by others: an escape
sequence or a bidirectional override in them must never reach the terminal.
"""

from __future__ import annotations

import os
import sys
import textwrap
from typing import TextIO


def safe(text: object, *, keep: str = "") -> str:
    """The text with everything unprintable spelled out (`\\x1b`), but the characters in `keep`."""
    return "".join(
        char if char.isprintable() or char in keep else char.encode("unicode_escape").decode("ascii")
        for char in str(text)
    )


def folded(line: str, stream: TextIO | None = None) -> str:
    """The line broken between words at the width of the terminal it goes to (standard output unless named).

    What follows is indented four deeper than the line. Off a terminal the line stays whole, for grep and awk.
    """
    out = stream or sys.stdout
    if not out.isatty():
        return line
    width = os.get_terminal_size(out.fileno()).columns
    indent = " " * (len(line) - len(line.lstrip()) + 4)
    if width <= 2 * len(indent) or len(line) <= width:
        return line
    return textwrap.fill(
        line, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )
