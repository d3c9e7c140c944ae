"""Roots for `qemu:///embed`, the real QEMU driver inside the calling process.

A root can be open in one process at a time, and a process can have one root open; a process that comes later
finds the domains of the earlier one, running ones included. The session's own root is for the test process; a
daemon under test gets a root of its own.
"""

import os
import shutil
import signal
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Self

# As root, libvirt would start QEMU as libvirt-qemu, which cannot enter a private directory: probing QEMU's
# capabilities then takes a minute and every start fails. Nothing here needs confinement, and cgroups or mount
# namespaces may be missing in a container, as may virtlogd.
QEMU_CONF = """\
user = "root"
group = "root"
dynamic_ownership = 0
security_driver = "none"
namespaces = []
cgroup_controllers = []
stdio_handler = "file"
"""


class EmbedRoot:
    """A directory for the embedded driver; closing it ends the QEMU processes that it left running."""

    def __init__(self, path: Path | None = None, capabilities_of: "EmbedRoot | None" = None) -> None:
        """Make a root, in the empty directory `path` or in a new one.

        `capabilities_of` gives it what that one knows of QEMU, which saves some 3 s.
        """
        # The agent's socket lies deep in the root and must stay under 108 characters: a short name, and not
        # below pytest's tmp_path.
        self.path = path or Path(tempfile.mkdtemp(prefix="hv-", dir="/tmp"))
        (self.path / "etc").mkdir()
        if os.geteuid() == 0:
            (self.path / "etc/qemu.conf").write_text(QEMU_CONF)
        if capabilities_of is not None and (known := capabilities_of.path / "cache").exists():
            shutil.copytree(known, self.path / "cache")

    @property
    def uri(self) -> str:
        """The connection URI of this root."""
        return f"qemu:///embed?root={self.path}"

    def close(self) -> None:
        """End what still runs in the root and remove it."""
        end_qemu(self.path / "run/qemu")
        shutil.rmtree(self.path)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def end_qemu(run_dir: Path) -> None:
    """Kill the QEMU processes whose pid files lie in `run_dir`, and only those."""
    for pid_file in run_dir.glob("*.pid"):
        if pid_file.name == "driver.pid":  # the process that has the driver open, perhaps this one
            continue
        pid = int(pid_file.read_text())
        try:
            command = Path(f"/proc/{pid}/cmdline").read_bytes()
            if b"qemu-system" in command:
                os.kill(pid, signal.SIGKILL)
        except (FileNotFoundError, ProcessLookupError):
            continue
