"""libvirt's own event loop: one native thread for the whole process.

libvirt knows one event loop a process; keepalive, events and the embedded driver all need
it, and it must be registered before the first connection is opened
(https://libvirt.org/html/libvirt-libvirt-event.html#virEventRegisterDefaultImpl).
"""

from __future__ import annotations

import logging
import threading
import time

import libvirt

_logger = logging.getLogger(__name__)
_lock = threading.Lock()
_threads: list[threading.Thread] = []


def start_event_loop() -> None:
    """Registers and runs libvirt's event loop; later calls do nothing.

    libvirt would also print every error to stderr: that is silenced, since each error is
    translated and reported where it is caught.
    """
    with _lock:
        if _threads:
            return
        libvirt.registerErrorHandler(_ignore_error, None)
        libvirt.virEventRegisterDefaultImpl()
        thread = threading.Thread(target=_run, name="libvirt-events", daemon=True)
        _threads.append(thread)
        thread.start()


def _ignore_error(_context: object, _error: object) -> None:
    """Replaces libvirt's default handler, which prints."""


def _run() -> None:
    while True:
        try:
            libvirt.virEventRunDefaultImpl()
        except libvirt.libvirtError:
            _logger.exception("libvirt's event loop failed for one turn")
            time.sleep(0.1)  # no busy loop where it fails again and again
