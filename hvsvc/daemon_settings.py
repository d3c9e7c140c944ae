"""What each part of the daemon takes from the configuration."""

from __future__ import annotations

from hvsvc.adapters.libvirt_settings import LibvirtSettings
from hvsvc.config import Config
from hvsvc.domain.desired import ReapplyPolicy
from hvsvc.domain.reapply import Backoff
from hvsvc.operations.reapply import ReapplySettings
from hvsvc.operations.settings import Timeouts
from hvsvc.service.access import Access, Role
from hvsvc.service.interceptor import CallInterceptor, Gate
from hvsvc.service.metrics import Metrics
from hvsvc.service.pages import PageLimits
from hvsvc.service.server import ServerLimits


def libvirt_settings(config: Config) -> LibvirtSettings:
    """Bounds of the libvirt and guest agent adapters."""
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
    """Bounds of the waits of an operation."""
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
        own_work_timeout_s=config.limits.own_work_timeout_s,
    )


def reapply_settings(config: Config) -> ReapplySettings:
    """The policy and bounds of what is brought back."""
    drift = config.drift
    return ReapplySettings(
        policy=ReapplyPolicy(drift.reapply),
        sweep_interval_s=drift.sweep_interval_s,
        backoff=Backoff(drift.backoff_s, drift.max_backoff_s, drift.attempts),
    )


def server_limits(config: Config) -> ServerLimits:
    """Bounds of the gRPC server."""
    pages = PageLimits(config.limits.page_size, config.limits.max_page_size)
    return ServerLimits(calls=config.limits.max_rpcs, pages=pages)


def interceptor(config: Config, metrics: Metrics) -> CallInterceptor:
    """Who may do what, and how many calls at once."""
    access = Access(
        {name: Role[role.upper()] for name, role in config.access.sans.items()},
        unix=Role[config.access.unix_role.upper()],
        plaintext=Role[config.access.insecure_loopback_role.upper()],
    )
    return CallInterceptor(access, Gate(server_limits(config).long_calls), metrics)
