"""Text that came from elsewhere, made safe to show.

Server names, guest replies and libvirt's texts are written by others: an escape
sequence or a bidirectional override in them must never reach the terminal.
"""

from __future__ import annotations


def safe(text: object, *, keep: str = "") -> str:
    """The text with everything unprintable spelled out (`\\x1b`), but the characters in `keep`."""
    return "".join(
        char if char.isprintable() or char in keep else char.encode("unicode_escape").decode("ascii")
        for char in str(text)
    )
