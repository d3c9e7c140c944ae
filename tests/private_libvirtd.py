"""A libvirtd of the tests' own, for comparing with the real virsh and for faults of the connection.

libvirtd decides by its user whether it is a system or a session daemon, so as root it is started as `nobody`.
Everything it writes lies in one temporary directory. Guests under TCG, hotplug and the guest agent work there
as with the system daemon.
"""

import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import libvirt

from tests.qemu_embed import end_qemu

_READY_TIMEOUT_S = 90.0
_CONFIG = """\
auth_unix_ro = "none"
auth_unix_rw = "none"
log_outputs = "3:file:{log}"
"""


class PrivateLibvirtd:
    """A running session libvirtd; `stop` ends it, its domains and its directory.

    `kill` and `start` again imitate a restart.
    """

    def __init__(self) -> None:
        # The agent's socket lies deep in here and must stay under 108 characters.
        self.path = Path(tempfile.mkdtemp(prefix="hv-", dir="/tmp"))
        self.path.chmod(0o755)
        (self.path / "libvirtd.conf").write_text(_CONFIG.format(log=self.path / "log"))
        self._as_user: list[str] = []
        if os.geteuid() == 0:
            shutil.chown(self.path, "nobody", "nogroup")
            self._as_user = [
                "setpriv",
                "--reuid=nobody",
                "--regid=nogroup",
                "--clear-groups",
                "--pdeathsig=TERM",
            ]
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def socket(self) -> Path:
        """The read-write socket."""
        return self.path / "r/libvirt/libvirt-sock"

    @property
    def uri(self) -> str:
        """The connection URI, for libvirt-python and for `virsh -c`."""
        return f"qemu+unix:///session?socket={self.socket}"

    def start(self) -> None:
        """Start libvirtd and wait until it answers."""
        home = str(self.path)
        environment = {
            "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
            "HOME": home,
            "XDG_RUNTIME_DIR": f"{home}/r",
            "XDG_CONFIG_HOME": f"{home}/c",
            "XDG_CACHE_HOME": f"{home}/k",
            "XDG_DATA_HOME": f"{home}/d",
        }
        command = [*self._as_user, "libvirtd", "-f", f"{home}/libvirtd.conf", "-p", f"{home}/pid"]
        with (self.path / "stderr").open("ab") as stderr:
            self._process = subprocess.Popen(
                command, env=environment, cwd="/", stdin=subprocess.DEVNULL, stderr=stderr
            )
        deadline = time.monotonic() + _READY_TIMEOUT_S
        while True:
            try:
                libvirt.open(self.uri).close()
            except libvirt.libvirtError as err:
                if time.monotonic() > deadline or self._process.poll() is not None:
                    raise RuntimeError(f"libvirtd did not start: {self.read_log()}") from err
                time.sleep(0.05)
            else:
                return

    def kill(self) -> None:
        """End libvirtd as a crash would; its domains go on running."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def stop(self) -> None:
        """End libvirtd and its domains, and remove its directory."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait()
            self._process = None
        end_qemu(self.path / "r/libvirt/qemu/run")
        shutil.rmtree(self.path)

    def virsh(self, *arguments: str) -> str:
        """What the real virsh prints for these arguments (in the C locale); fails if virsh does."""
        done = subprocess.run(
            ["virsh", "-c", self.uri, *arguments],
            env={**os.environ, "LC_ALL": "C"},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise AssertionError(f"virsh {' '.join(arguments)}: {done.stderr.strip()}")
        return done.stdout

    def read_log(self) -> str:
        """The end of what libvirtd logged, for a failing test to show."""
        files = [self.path / "stderr", self.path / "log"]
        return "\n".join(file.read_text(errors="replace")[-2000:] for file in files if file.exists())
