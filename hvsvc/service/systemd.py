"""sd_notify(3): tells the service manager how far the daemon is; silent where there is none."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Mapping


def notify(state: str, environ: Mapping[str, str] = os.environ) -> bool:
    """Sends one state, such as `READY=1`; False where nobody asked to be told.

    A manager that has gone away is no reason to fail, so errors of the socket count
    as not told.
    """
    address = environ.get("NOTIFY_SOCKET", "")
    if not address.startswith(("/", "@")):
        return False
    if address.startswith("@"):
        address = "\0" + address[1:]
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as channel:
        channel.setblocking(False)
        try:
            channel.sendto(state.encode(), address)
        except OSError:
            return False
    return True


def watchdog_interval_s(environ: Mapping[str, str] = os.environ) -> float | None:
    """How often the manager wants a sign of life, halved as its manual advises; None where it does not."""
    usec, pid = environ.get("WATCHDOG_USEC", ""), environ.get("WATCHDOG_PID", "")
    if not usec.isdecimal() or int(usec) == 0 or (pid and pid != str(os.getpid())):
        return None
    return int(usec) / 2e6


async def feed_watchdog(interval_s: float) -> None:
    """Gives signs of life for as long as the event loop turns."""
    while True:
        notify("WATCHDOG=1")
        await asyncio.sleep(interval_s)
