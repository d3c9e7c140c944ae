"""The daemon as a process of its own, with everything it writes in one short directory."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import grpc

#: bounds for a busy machine, never measures
_START_TIMEOUT_S = 90
#: longer than [shutdown] grace_s, which a running operation may use up
_STOP_TIMEOUT_S = 90
_PROGRAM = "import sys; sys.argv[0] = 'hvsvc'; {before}; from hvsvc.start import main; main()"


class DaemonProcess:
    """`hvsvc serve` on a libvirt URI; ready when it said so to its service manager.

    :param sections: further TOML.
    :param before: Python to run in the process first, for what only a fault inside can show.
    """

    def __init__(
        self,
        uri: str,
        sections: str = "",
        *,
        listen: str = "",
        before: str = "pass",
        environ: dict[str, str] | None = None,
    ) -> None:
        # A socket's path has at most 107 bytes: not below pytest's tmp_path.
        self.path = Path(tempfile.mkdtemp(prefix="hv-d-", dir="/tmp"))
        self.config = self.path / "hvsvc.toml"
        self.config.write_text(
            f'[libvirt]\nuri = "{uri}"\nkeepalive_interval_s = 1\n'
            f'[listen]\nunix = "{self.socket}"\n{listen}\n'
            f'[journal]\npath = "{self.path}/journal.db"\n'
            f'[log]\nformat = "json"\n{sections}\n'
        )
        self._before = before
        self._environ = environ or {}
        self._manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._manager.bind(os.fspath(self.path / "notify"))
        self._manager.settimeout(_START_TIMEOUT_S)
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def socket(self) -> Path:
        """Its unix socket."""
        return self.path / "s"

    @property
    def target(self) -> str:
        """Its gRPC target."""
        return f"unix:{self.socket}"

    def spawn(self) -> subprocess.Popen[bytes]:
        """Starts the process and does not wait for it."""
        with (self.path / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [
                    sys.executable,
                    "-c",
                    _PROGRAM.format(before=self._before),
                    "serve",
                    "--config",
                    self.config,
                ],
                env={**os.environ, "NOTIFY_SOCKET": os.fspath(self.path / "notify"), **self._environ},
                stderr=log,
                stdout=log,
            )
        return self.process

    def start(self) -> None:
        """Starts the process and waits until it is ready."""
        self.spawn()
        assert self.next_state() == "READY=1", self.read_log()

    def start_again(self) -> None:
        """Starts it anew after a stop, which it has announced."""
        assert self.next_state() == "STOPPING=1"
        self.start()

    def next_state(self) -> str:
        """What it tells its service manager next."""
        try:
            return self._manager.recv(200).decode()
        except TimeoutError as err:
            raise AssertionError(f"the daemon said nothing:\n{self.read_log()}") from err

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Asks it to end and returns its exit code."""
        assert self.process is not None
        self.process.send_signal(number)
        return self.process.wait(_STOP_TIMEOUT_S)

    def channel(self) -> grpc.Channel:
        """A channel to its unix socket."""
        return grpc.insecure_channel(self.target, options=[("grpc.use_local_subchannel_pool", 1)])

    def read_log(self) -> str:
        """All it wrote."""
        return (self.path / "log").read_text()

    def events(self) -> list[dict[str, Any]]:
        """Its log lines."""
        return [json.loads(line) for line in self.read_log().splitlines() if line.endswith("}")]

    def event(self, name: str) -> dict[str, Any]:
        """Its first log line of this event, which is waited for."""
        deadline = time.monotonic() + _START_TIMEOUT_S
        while time.monotonic() < deadline:
            for each in self.events():
                if each["event"] == name:
                    return each
            time.sleep(0.05)
        raise AssertionError(f"no {name} in the log:\n{self.read_log()}")

    def close(self) -> None:
        """Ends it, however it is, and removes its directory."""
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self._manager.close()
        shutil.rmtree(self.path)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
