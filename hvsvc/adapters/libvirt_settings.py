"""What an operator can set about libvirt; the daemon fills it from its configuration."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LibvirtSettings:
    """Bounds of the libvirt and guest agent adapters. Times in seconds.

    `call_timeout_s` bounds one call. libvirt itself waits 30 s for a domain that is busy: a
    larger value lets its own answer arrive. `start_timeout_s` bounds a start.
    `statistics_timeout_s` bounds how long a read waits for what can hang with QEMU: the
    balloon's statistics, and with a libvirt newer than 9.0 the definition.
    `agent_timeout_s` bounds one command of the guest agent.

    `calls_in_flight` bounds the calls at once on a `Connection`, each of which has a native
    one of its own. `max_connections` bounds the connections of one kind (reads, changes,
    guest agent, watching) while calls hang on older ones: each hanging call holds one of
    libvirtd's 20 workers, so many would starve libvirtd itself.

    `event_backlog` is how many events a reader may lag behind.
    """

    uri: str = "qemu:///system"
    call_timeout_s: float = 40.0
    start_timeout_s: float = 60.0
    statistics_timeout_s: float = 2.0
    agent_timeout_s: int = 10
    calls_in_flight: int = 4
    max_connections: int = 3
    keepalive_interval_s: int = 5
    keepalive_count: int = 3
    event_backlog: int = 1000
