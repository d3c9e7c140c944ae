"""The installed programs as processes: `hvsvc serve` with a configuration of its own, and hvctl against it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

BIN = Path(sys.executable).parent


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


class HvsvcProcess:
    """A daemon of its own folder, socket and journal; ended, in order, at the end of the `with`."""

    def __init__(
        self,
        libvirt_uri: str,
        *,
        cloud: str | None = None,
        env: Mapping[str, str] | None = None,
        toml: str = "",
    ) -> None:
        self.folder = tempfile.TemporaryDirectory(prefix="hvsvc-", dir="/tmp")
        self.path = Path(self.folder.name)
        self.socket = self.path / "hvsvc.sock"
        self.log = self.path / "hvsvc.log"
        self.config = self.path / "hvsvc.toml"
        nova = f'[nova]\ncloud = "{cloud}"\n' if cloud else ""
        self.config.write_text(
            f'[libvirt]\nuri = "{libvirt_uri}"\n[listen]\nunix = "{self.socket}"\n'
            f'[journal]\npath = "{self.path}/journal.db"\n{nova}{toml}'
        )
        self._env = {**os.environ, **(env or {})}
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, timeout_s: float = 20) -> Self:
        """Starts the daemon and waits until libvirt answers it."""
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [BIN / "hvsvc", "serve", "--config", self.config], stdout=log, stderr=log, env=self._env
            )
        end = time.monotonic() + timeout_s
        while self.hvctl("health").code != 0:
            assert self.process.poll() is None, f"the daemon ended:\n{self.log.read_text()}"
            assert time.monotonic() < end, f"not serving after {timeout_s:g} s:\n{self.log.read_text()}"
            time.sleep(0.1)
        return self

    def stop(self, number: signal.Signals = signal.SIGTERM, timeout_s: float = 60) -> int:
        """Ends the daemon; its exit code."""
        assert self.process is not None
        if self.process.poll() is None:
            self.process.send_signal(number)
        code = self.process.wait(timeout_s)
        self.process = None
        return code

    def hvctl(self, *words: str, timeout_s: float = 400) -> Answer:
        """Runs hvctl against this daemon, as in a pipe."""
        done = subprocess.run(
            [BIN / "hvctl", *words],
            env={**os.environ, "HVCTL_TARGET": f"unix://{self.socket}"},
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

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            print(f"--- log of hvsvc ({self.config})\n{self.log.read_text()[-6000:]}")
        if self.process is not None:
            self.stop()
        self.folder.cleanup()
