"""What each part of the daemon takes, out of the configuration."""

from __future__ import annotations

from hvsvc.adapters.libvirt_settings import LibvirtSettings
from hvsvc.config import Config
from hvsvc.domain.desired import ReapplyPolicy
from hvsvc.domain.reapply import Backoff
from hvsvc.operations.reapply import ReapplySettings
from hvsvc.operations.settings import Timeouts
from hvsvc.service.pages import PageLimits
from hvsvc.service.server import ServerLimits


def reapply_settings(config: Config) -> ReapplySettings:
    """The watch over what was asked for."""
    drift = config.drift
    return ReapplySettings(
        policy=ReapplyPolicy(drift.reapply),
        sweep_interval_s=drift.sweep_interval_s,
        backoff=Backoff(drift.backoff_s, drift.max_backoff_s, drift.attempts),
    )


def libvirt_settings(config: Config) -> LibvirtSettings:
    """The connections to libvirt and to the guest agents."""
    return LibvirtSettings(
        uri=config.libvirt.uri,
        call_timeout_s=config.libvirt.call_timeout_s,
        statistics_timeout_s=config.libvirt.statistics_timeout_s,
        start_timeout_s=config.reboot.start_timeout_s,
        agent_timeout_s=config.guest.agent_timeout_s,
        calls_in_flight=config.libvirt.calls_in_flight,
        max_connections=config.libvirt.max_connections,
        keepalive_interval_s=config.libvirt.keepalive_interval_s,
        keepalive_count=config.libvirt.keepalive_count,
        event_backlog=config.limits.watch_queue,
    )


def timeouts(config: Config) -> Timeouts:
    """The bounds of every wait of an operation."""
    defaults = Timeouts()
    return Timeouts(
        reboot_timeout_s=config.nova.reboot_timeout_s if config.nova else defaults.reboot_timeout_s,
        shutdown_timeout_s=config.reboot.shutdown_timeout_s,
        start_timeout_s=config.reboot.start_timeout_s,
        guest_boot_timeout_s=config.guest.boot_timeout_s,
        guest_ready_timeout_s=config.guest.ready_timeout_s,
        guest_report_timeout_s=config.guest.report_timeout_s,
        cpu_online_timeout_s=config.guest.cpu_online_timeout_s,
        balloon_timeout_s=config.guest.balloon_timeout_s,
        poll_interval_s=config.guest.poll_interval_s,
        nova_poll_interval_s=config.nova.poll_interval_s if config.nova else defaults.nova_poll_interval_s,
    )


def server_limits(config: Config) -> ServerLimits:
    """What callers may ask."""
    pages = PageLimits(config.limits.page_size, config.limits.max_page_size)
    return ServerLimits(calls=config.limits.max_rpcs, pages=pages)
