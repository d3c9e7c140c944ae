"""The daemon: the one place where adapters, operations and the gRPC face are put together.

It begins to serve before libvirt answers, with health NOT_SERVING, and follows libvirt
from then on: a host whose libvirtd starts later, or restarts, needs no order of units.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path

import click
import grpc
import structlog

from hvsvc import daemon_settings
from hvsvc.adapters.clock import SystemClock
from hvsvc.adapters.guest_agent import GuestAgent
from hvsvc.adapters.journal import SqliteJournal
from hvsvc.adapters.libvirt_domains import LibvirtDomains
from hvsvc.adapters.nova_later import LaterServers, import_nova
from hvsvc.adapters.placement_later import LaterPlacement, import_placement
from hvsvc.config import Config, load_config
from hvsvc.config.values import split_address
from hvsvc.domain.allocation import PlacementPolicy
from hvsvc.errors import HvsvcError
from hvsvc.operations.allocation_keeper import AllocationKeeper
from hvsvc.operations.changes import Changes
from hvsvc.operations.context import Tools
from hvsvc.operations.domain_locks import DomainLocks
from hvsvc.operations.drifts import Drifts
from hvsvc.operations.reads import DomainReads
from hvsvc.operations.reapply import Reapplier
from hvsvc.operations.running import Operations
from hvsvc.operations.surroundings import Surroundings
from hvsvc.service import logs, systemd
from hvsvc.service.access import Role
from hvsvc.service.health import HealthServicer, follow
from hvsvc.service.listening import ListenError, listen_plaintext, listen_tls, listen_unix
from hvsvc.service.metrics import Metrics
from hvsvc.service.server import UseCases, build_health, build_server
from hvsvc.service.tls import Certificates, TlsFiles

#: for replies under way when everything else has ended
_LAST_REPLIES_S = 1.0

_VERSION = version("hvsvc")

_log = structlog.stdlib.get_logger("hvsvc.daemon")


class StartError(Exception):
    """The daemon cannot start; the message says what to change."""


@dataclass(frozen=True, slots=True)
class Parts:
    """What outlives a single call."""

    hypervisor: LibvirtDomains
    servers: LaterServers | None
    operations: Operations
    reapplier: Reapplier
    keeper: AllocationKeeper | None
    use_cases: UseCases


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(_VERSION, prog_name="hvsvc", message="%(prog)s %(version)s")
def main() -> None:
    """Grows the running OpenStack servers of this KVM host; hvctl is its client."""


_config_option = click.option(
    "--config",
    "config_file",
    required=True,
    type=click.Path(path_type=Path, dir_okay=False),
    help="Settings, TOML; docs/configuration.md lists the keys.",
)


@main.command()
@_config_option
def serve(config_file: Path) -> None:
    """Serve until SIGTERM or SIGINT; a second one ends at once.

    Exit code 0 after a stop, 1 where it cannot start, 2 for settings that are wrong.
    """
    config = _load(config_file)
    logs.configure(config.log.level, config.log.format)
    try:
        asyncio.run(run(config))
    except (StartError, ListenError) as err:
        _log.error("cannot_start", error=str(err))
        sys.exit(1)


@main.command()
@_config_option
def check(config_file: Path) -> None:
    """Only check the settings, the certificates and the cloud they name.

    Exit code 0 where hvsvc would start with them, else 2. The folders of socket and
    journal are not looked at: the service manager makes them at the start.
    """
    config = _load(config_file)
    try:
        _certificates(config)
        if config.nova is not None:
            import_nova(config.nova.cloud, call_timeout_s=config.nova.call_timeout_s).check()
    except (StartError, HvsvcError) as err:
        click.echo(f"{config_file}: {err}", err=True)
        sys.exit(2)
    click.echo(f"{config_file}: ok")


def _load(config_file: Path) -> Config:
    try:
        return load_config(config_file)
    except HvsvcError as err:
        click.echo(err.message, err=True)
        sys.exit(2)


async def run(config: Config) -> None:
    """Serves until told to stop, then ends in order.

    :raises StartError: where the journal, a certificate or the metrics port cannot be used.
    :raises ListenError: where a listener cannot be opened.
    """
    stop = _stop_on_signals()
    metrics, health = Metrics(), build_health()
    async with AsyncExitStack() as stack:
        parts = await _assemble(config, stack, metrics)
        metrics.follow_ceilings(parts.reapplier.count_lost)
        server = build_server(
            parts.use_cases,
            daemon_settings.interceptor(config, metrics),
            health,
            daemon_settings.server_limits(config),
        )
        stack.push_async_callback(server.stop, None)
        _listen(server, config, stack)
        _serve_metrics(config, metrics, stack)
        await server.start()
        _log.info("serving", version=_VERSION, unix=config.listen.unix, tcp=config.listen.tcp)
        systemd.notify("READY=1")
        async with asyncio.TaskGroup() as background:
            tasks = [
                background.create_task(_follow_libvirt(config, parts.hypervisor, health, metrics)),
                background.create_task(_load_nova(parts.servers)),
                background.create_task(parts.reapplier.run()),
            ]
            if parts.keeper is not None:
                tasks.append(background.create_task(parts.keeper.run()))
            if (interval_s := systemd.watchdog_interval_s()) is not None:
                tasks.append(background.create_task(systemd.feed_watchdog(interval_s)))
            await stop.wait()
            _log.info("stopping", grace_s=config.shutdown.grace_s)
            systemd.notify("STOPPING=1")
            health.stop()
            # Reads go on meanwhile, so that whoever waits for an operation learns how it ended.
            await parts.operations.drain(config.shutdown.grace_s)
            await server.stop(_LAST_REPLIES_S)
            for task in tasks:
                task.cancel()
    _log.info("stopped")


def _stop_on_signals() -> asyncio.Event:
    stop = asyncio.Event()

    def received(number: signal.Signals) -> None:
        if stop.is_set():
            _log.warning("ended_at_once", signal=number.name)
            os._exit(128 + number)
        stop.set()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, received, number)
    return stop


async def _assemble(config: Config, stack: AsyncExitStack, metrics: Metrics) -> Parts:
    clock = SystemClock()
    journal = SqliteJournal(
        config.journal.path, call_timeout_s=config.journal.call_timeout_s, keep_days=config.journal.keep_days
    )
    try:
        await stack.enter_async_context(journal)
        operations = Operations(
            journal, clock, max_operations=config.limits.max_operations, ended=metrics.operation_ended
        )
        if interrupted := await operations.end_interrupted():
            _log.warning("operations_were_interrupted", count=interrupted)
    except HvsvcError as err:
        raise StartError(f"[journal] path: {err.message}") from err

    settings = daemon_settings.libvirt_settings(config)
    hypervisor, guest = LibvirtDomains(settings), GuestAgent(settings)
    stack.push_async_callback(hypervisor.close)
    stack.push_async_callback(guest.close)
    servers = None
    if config.nova is not None:
        servers = LaterServers(
            partial(import_nova, config.nova.cloud, call_timeout_s=config.nova.call_timeout_s)
        )
        stack.push_async_callback(servers.close)

    policy, placement = PlacementPolicy.OFF, None
    if config.nova is not None:
        policy = PlacementPolicy(config.placement.policy)
    if config.nova is not None and policy is not PlacementPolicy.OFF:
        placement = LaterPlacement(
            partial(import_placement, config.nova.cloud, call_timeout_s=config.placement.call_timeout_s)
        )
        stack.push_async_callback(placement.close)

    around = Surroundings(hypervisor, guest, servers, config.host_limits, placement, policy)
    reads = DomainReads(around)
    tools = Tools(around, journal, clock, daemon_settings.timeouts(config))
    locks = DomainLocks()
    keeper = None
    if policy is PlacementPolicy.ENFORCE:
        keeper = AllocationKeeper(tools, locks, sweep_interval_s=config.drift.sweep_interval_s)
    changes = Changes(tools, reads, operations, locks)
    reapplier = Reapplier(tools, changes, operations, daemon_settings.reapply_settings(config))
    drifts = Drifts(around, journal, reads, reapplier)
    use_cases = UseCases(reads, changes, operations, drifts)
    return Parts(hypervisor, servers, operations, reapplier, keeper, use_cases)


def _certificates(config: Config) -> Certificates | None:
    if config.tls is None:
        return None
    try:
        return Certificates(TlsFiles(config.tls.cert, config.tls.key, config.tls.client_ca))
    except (OSError, ValueError) as err:
        raise StartError(f"[tls]: {err}; give PEM files whose key belongs to the certificate") from err


def _listen(server: grpc.aio.Server, config: Config, stack: AsyncExitStack) -> None:
    listen = config.listen
    listen_unix(server, Path(listen.unix), listen.unix_mode, listen.unix_group)
    # gRPC removes the socket of a server that has served, not of one that never started.
    stack.callback(Path(listen.unix).unlink, missing_ok=True)
    certificates = _certificates(config)
    if listen.tcp is not None and certificates is not None:
        port = listen_tls(server, listen.tcp, certificates.credentials())
        _log.info("listening", tcp=listen.tcp, port=port)
    if listen.insecure_loopback_tcp is not None:
        listen_plaintext(
            server, listen.insecure_loopback_tcp, Role[config.access.insecure_loopback_role.upper()]
        )


def _serve_metrics(config: Config, metrics: Metrics, stack: AsyncExitStack) -> None:
    if config.metrics.listen is None:
        return
    try:
        stack.callback(metrics.serve(*split_address(config.metrics.listen)))
    except OSError as err:
        raise StartError(f"[metrics] listen: cannot listen on {config.metrics.listen}: {err}") from err


async def _follow_libvirt(
    config: Config, hypervisor: LibvirtDomains, health: HealthServicer, metrics: Metrics
) -> None:
    def tell(up: bool) -> None:
        health.libvirt(up=up)
        metrics.libvirt(up=up)

    await follow(hypervisor.probe, tell, interval_s=config.libvirt.keepalive_interval_s)


async def _load_nova(servers: LaterServers | None) -> None:
    if servers is None:
        return
    try:
        loaded = await servers.load()
        await asyncio.to_thread(loaded.check)
    except HvsvcError as err:
        _log.error("nova_not_usable", reason=err.reason.value, error=err.message)
