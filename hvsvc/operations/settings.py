"""Bounds of every wait of an operation; the daemon fills them from its configuration."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Timeouts:
    """All in seconds.

    `reboot_timeout_s` bounds a reboot through Nova: Nova itself waits 120 s for a soft
    shutdown, after up to 60 s for an agent that does not answer, before it turns to a
    hard one. `guest_boot_timeout_s` bounds the wait for the guest after a reboot,
    `guest_ready_timeout_s` the wait for a sign of a guest that nobody rebooted.
    `guest_report_timeout_s` bounds the wait for the guest's own memory figures after the
    balloon moved: Nova has its domains report every 10 s. `poll_interval_s` is the longest
    time between two looks at a guest; `Deadline.pause` sets the pace. `own_work_timeout_s`
    bounds how long a request waits for what hvsvc does to the domain by itself.
    """

    reboot_timeout_s: float = 300.0
    shutdown_timeout_s: float = 120.0
    start_timeout_s: float = 60.0
    guest_boot_timeout_s: float = 120.0
    guest_ready_timeout_s: float = 10.0
    cpu_online_timeout_s: float = 20.0
    balloon_timeout_s: float = 60.0
    guest_report_timeout_s: float = 12.0
    poll_interval_s: float = 0.25
    nova_poll_interval_s: float = 0.5
    own_work_timeout_s: float = 10.0
