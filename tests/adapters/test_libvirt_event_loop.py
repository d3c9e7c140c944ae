"""libvirt's event loop in a process of its own."""

from __future__ import annotations

import subprocess
import sys


def test_one_thread_however_often_it_is_started_and_no_word_on_stderr() -> None:
    script = (
        "import threading, libvirt\n"
        "from hvsvc.adapters.libvirt_event_loop import start_event_loop\n"
        "for _ in range(3):\n"
        "    start_event_loop()\n"
        "print([thread.name for thread in threading.enumerate()])\n"
        "connection = libvirt.open('test:///default')\n"
        "try:\n"
        "    connection.lookupByName('nobody')\n"
        "except libvirt.libvirtError as err:\n"
        "    print(err.get_error_code())\n"
        "told = threading.Event()\n"
        "libvirt.virEventAddTimeout(1, lambda *_: told.set(), None)\n"
        "print(told.wait(20))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout == "['MainThread', 'libvirt-events']\n42\nTrue\n"
    assert (done.returncode, done.stderr) == (0, "")
