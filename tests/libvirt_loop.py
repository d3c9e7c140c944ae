"""One event loop for every libvirt connection of the test process."""

import threading

import libvirt

_lock = threading.Lock()
_started = False


def start_event_loop() -> None:
    """Run libvirt's default event loop in a thread of its own; later calls do nothing.

    It must run before the first connection is opened: the embedded driver talks to QEMU and to the guest
    agent through it (https://libvirt.org/drvqemu.html#embedded-driver), and keepalive and events need it as
    well.
    """
    global _started  # noqa: PLW0603  libvirt itself has one event loop a process
    with _lock:
        if _started:
            return
        libvirt.virEventRegisterDefaultImpl()
        libvirt.registerErrorHandler(lambda _context, _error: None, None)
        threading.Thread(target=_run, name="libvirt-events", daemon=True).start()
        _started = True


def _run() -> None:
    while True:
        libvirt.virEventRunDefaultImpl()
