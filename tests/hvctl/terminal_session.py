"""A process on a pseudo-terminal, its output read as a person would see it come."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Self


class TerminalSession:
    """A process with stdin, stdout and stderr on one terminal of its own; a context."""

    def __init__(self, args: Sequence[str], env: dict[str, str]) -> None:
        master, slave = pty.openpty()
        self._master = master
        self._process = subprocess.Popen(
            args, env=env, stdin=slave, stdout=slave, stderr=slave, start_new_session=True
        )
        os.close(slave)
        self.output = ""

    def read_until(self, pattern: str, timeout_s: float = 30) -> str:
        """Everything shown until something matches `pattern`; fails where it never comes."""
        deadline_s = time.monotonic() + timeout_s
        while not re.search(pattern, self.output):
            if not self._read_some(deadline_s):
                raise AssertionError(f"{pattern!r} was never shown; shown was: {self.output!r}")
        return self.output

    def interrupt(self) -> None:
        """What Ctrl-C does."""
        self._process.send_signal(signal.SIGINT)

    def finish(self, timeout_s: float = 30) -> int:
        """Read to the end; the exit code."""
        deadline_s = time.monotonic() + timeout_s
        while self._read_some(deadline_s):
            pass
        return self._process.wait(timeout=timeout_s)

    def _read_some(self, deadline_s: float) -> bool:
        ready, _, _ = select.select([self._master], [], [], max(deadline_s - time.monotonic(), 0))
        if not ready:
            return False
        try:
            data = os.read(self._master, 65536)
        except OSError:  # EIO: the other side is closed
            return False
        self.output += data.decode("utf-8", "replace")
        return bool(data)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, err: BaseException | None, tb: TracebackType | None
    ) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        os.close(self._master)
