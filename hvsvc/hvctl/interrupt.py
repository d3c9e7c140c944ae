"""Ctrl-C: says what goes on without hvctl, and ends the process at once.

No exception is raised for it: one that cuts through a gRPC call can leave the channel
waiting for that call for ever (grpc/grpc#19973).
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Final, NoReturn

from hvsvc.hvctl.exit_codes import INTERRUPTED

_SHOW_CURSOR: Final = "\x1b[?25h"
_notes: Final[list[Callable[[], Sequence[str]]]] = []


def end_at_interrupt() -> None:
    """From now on SIGINT ends the process, unless the shell made it ignored (as for a job in the background)."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end)


@contextmanager
def if_interrupted(lines: Callable[[], Sequence[str]]) -> Iterator[None]:
    """Inside, an interrupt says these lines; the innermost wins."""
    _notes.append(lines)
    try:
        yield
    finally:
        _notes.pop()


def _end(_signum: int, _frame: FrameType | None) -> NoReturn:
    lines = ["", "hvctl: interrupted", *(_notes[-1]() if _notes else ())]
    cursor = _SHOW_CURSOR if sys.stderr.isatty() else ""
    # Past sys.stderr: the signal may have come in the middle of a write to it.
    os.write(2, (cursor + "\n".join(lines) + "\n").encode("utf-8", "backslashreplace"))
    os._exit(INTERRUPTED)
