"""The product as its users have it: the daemon as a process, and hvctl against it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.daemon_process import DaemonProcess

HVCTL = Path(sys.executable).parent / "hvctl"
_SERVING_TIMEOUT_S = 90


@dataclass(frozen=True)
class Answer:
    """What one hvctl said."""

    code: int
    stdout: str
    stderr: str

    @property
    def json(self) -> Any:
        """Its output, given with `-f json`."""
        return json.loads(self.stdout)


class HvsvcProcess(DaemonProcess):
    """A daemon that serves when the `with` begins, and hvctl to ask it."""

    def hvctl(self, *words: str, timeout_s: float = 400) -> Answer:
        """Runs hvctl as in a pipe."""
        return self._run((*self._target, *words), dict(os.environ), timeout_s)

    def hvctl_anywhere(self, *words: str, timeout_s: float = 400) -> Answer:
        """Runs hvctl without telling it where the daemon is."""
        environ = {key: value for key, value in os.environ.items() if key != "HVCTL_TARGET"}
        return self._run(words, environ, timeout_s)

    def _run(self, words: tuple[str, ...], environ: dict[str, str], timeout_s: float) -> Answer:
        done = subprocess.run(
            [HVCTL, *words],
            env=environ,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )
        return Answer(done.returncode, done.stdout, done.stderr)

    def hvctl_json(self, *words: str) -> Any:
        """The JSON answer of an hvctl that must succeed."""
        answer = self.hvctl(*words, "-f", "json")
        assert answer.code == 0, answer
        return answer.json

    def hvctl_start(self, *words: str) -> subprocess.Popen[str]:
        """Starts an hvctl and does not wait for it."""
        return subprocess.Popen(
            [HVCTL, *self._target, *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    @property
    def _target(self) -> tuple[str, str]:
        # typed: a --cloud that is typed wins over HVCTL_TARGET
        return ("--target", f"unix://{self.socket}")

    def wait_serving(self) -> None:
        """Waits until libvirt answers the daemon."""
        end = time.monotonic() + _SERVING_TIMEOUT_S
        while self.hvctl("health").code != 0:
            assert time.monotonic() < end, f"not serving:\n{self.read_log()}"
            time.sleep(0.1)

    def __enter__(self) -> Self:
        self.start()
        self.wait_serving()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            print(f"--- the end of hvsvc's log\n{self.read_log()[-6000:]}")
        if self.process is not None and self.process.poll() is None:
            self.stop()
        super().__exit__(kind, value, trace)
