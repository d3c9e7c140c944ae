"""The demo's guest, a domain named web-1.

`guest.py start ROOT IMAGE_DIR` defines it, boots it and leaves it running; `guest.py stop ROOT` ends it.

The embedded QEMU driver of ROOT can be open in one process at a time. QEMU itself outlives the process that
started it, and the next process that opens ROOT, here the hvsvc daemon, finds the running domain again.
"""

import signal
import sys
from pathlib import Path

import libvirt

from tests.guest_domains import GuestDomains, GuestImage
from tests.libvirt_loop import start_event_loop
from tests.qemu_embed import EmbedRoot, end_qemu


def start(root: Path, image: Path) -> None:
    """Boot web-1 with 2 of 2 vCPUs and 512 of 512 MiB, as a flavor of that size would."""
    start_event_loop()
    connection = libvirt.open(EmbedRoot(root).uri)
    domains = GuestDomains(connection, GuestImage(image / "vmlinuz", image / "initrd.img"), root)
    domains.boot(name="web-1", max_vcpus=2, max_memory_mib=512)
    connection.close()


def stop(root: Path) -> None:
    """End what runs in ROOT."""
    end_qemu(root / "run/qemu")


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # run.sh says what Ctrl-C means and clears up
    if sys.argv[1] == "start":
        start(Path(sys.argv[2]), Path(sys.argv[3]))
    else:
        stop(Path(sys.argv[2]))
