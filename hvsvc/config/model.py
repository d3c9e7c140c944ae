"""The daemon's settings, section by section: every limit and every timeout stands here.

`docs/configuration.md` lists the same keys; a test compares the two.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from hvsvc.config.section import Section, number, setting, whole
from hvsvc.config.values import (
    SOCKET_PATH_BYTES,
    AbsolutePath,
    Address,
    Group,
    LocalUri,
    LoopbackAddress,
    Name,
    PemFile,
    Role,
    SocketMode,
    SocketPath,
)
from hvsvc.domain.limits import HostLimits

_HOST_PORT = '"HOST:PORT"; port 0 picks a free one'


class Libvirt(Section):
    """The hypervisor of this host."""

    uri: LocalUri = setting(
        "qemu:///system",
        '"qemu:///…", "qemu+unix:///…" or "test:///…": a hypervisor of this host',
        "libvirt connection",
    )
    call_timeout_s: float = number(
        40, 1, 600, "longest wait for one call; libvirt itself waits 30 s for a domain that is busy"
    )
    statistics_timeout_s: float = number(
        2,
        0.1,
        60,
        "longest wait of a read for what can hang with QEMU: statistics, and with libvirt above 9.0 the definition",
    )
    calls_in_flight: int = whole(
        4, 1, 64, "calls at once of one kind (reads, changes, agents), each on a connection of its own"
    )
    max_connections: int = whole(
        3, 1, 10, "sets of these connections of one kind, while calls hang in older ones"
    )
    keepalive_interval_s: int = whole(5, 1, 60, "time between two keepalive probes of a connection")
    keepalive_count: int = whole(3, 1, 20, "unanswered probes after which a connection is given up")


class Guest(Section):
    """Waits for what happens inside the guest."""

    agent_timeout_s: int = whole(10, 1, 300, "longest wait for one reply of the guest agent")
    boot_timeout_s: float = number(120, 1, 3600, "longest wait for the guest to boot after a reboot")
    ready_timeout_s: float = number(
        10,
        1,
        600,
        "longest wait, before CPUs are added or a reboot is asked for, for a sign that a guest nobody rebooted is up; "
        "one whose balloon driver reported before is waited for as long as for a boot",
    )
    cpu_online_timeout_s: float = number(20, 1, 600, "longest wait for new CPUs to be online in the guest")
    balloon_timeout_s: float = number(60, 1, 3600, "longest wait for the balloon to reach its target")
    report_timeout_s: float = number(
        12, 1, 300, "longest wait for the guest's own memory figures; Nova has its domains report every 10 s"
    )
    poll_interval_s: float = number(
        0.25,
        0.05,
        10,
        "longest time between two looks at a guest that is waited for; the first ones come faster",
    )


class Nova(Section):
    """Nova's API; leave the section out on a host without OpenStack."""

    cloud: Name = setting(
        ...,
        'a name in clouds.yaml, or "envvars" for the OS_* environment',
        "which cloud and credential to use; clouds.yaml is looked for where openstacksdk does: "
        "$OS_CLIENT_CONFIG_FILE, the working directory, ~/.config/openstack, /etc/openstack",
    )
    call_timeout_s: float = number(
        30, 1, 600, "longest wait for one call of Nova's API, repetitions included"
    )
    reboot_timeout_s: float = number(
        300,
        10,
        3600,
        "longest wait for a soft reboot; Nova itself may wait 60 s for the guest agent and 120 s for the guest "
        "before it falls back to a hard reboot",
    )
    poll_interval_s: float = number(0.5, 0.1, 30, "time between two looks at a reboot that is waited for")


class Placement(Section):
    """What a server has allocated in Placement, with the credential of `[nova]`."""

    policy: Literal["off", "report", "enforce"] = setting(
        "report",
        '"off", "report" or "enforce"',
        "not asked; shown, and a growth beyond it warned of; or raised before a growth and kept at the truth",
    )
    call_timeout_s: float = number(10, 1, 600, "longest wait for one call of it, repetitions included")


class Reboot(Section):
    """Reboots of domains that Nova does not know: hvsvc shuts them down and starts them."""

    shutdown_timeout_s: float = number(120, 5, 3600, "longest wait for the guest to shut down when asked")
    start_timeout_s: float = number(60, 5, 3600, "longest wait for the domain to start")


class Listen(Section):
    """Where clients connect."""

    unix: SocketPath = setting(
        "/run/hvsvc/hvsvc.sock", f"an absolute path of at most {SOCKET_PATH_BYTES} bytes", "unix socket"
    )
    unix_mode: SocketMode = setting(
        0o660, "0o600 to 0o770: octal, nothing for others", "permissions of the unix socket"
    )
    unix_group: Group | None = setting(
        None, "a group of this host", "group of the unix socket; absent: the daemon's own"
    )
    tcp: Address | None = setting(
        None, _HOST_PORT, "TCP with mutual TLS; needs [tls] and [access.sans]; absent: no TCP"
    )
    insecure_loopback_tcp: LoopbackAddress | None = setting(
        None,
        '"127.0.0.1:PORT", "[::1]:PORT" or "localhost:PORT"; port 0 picks a free one',
        "TCP without TLS and without authentication: every local user may connect; for tests; absent: none",
    )


class Tls(Section):
    """Certificates of `[listen] tcp`, PEM; read again when they change, without a restart."""

    cert: PemFile = setting(..., "an existing file", "the daemon's certificate chain")
    key: PemFile = setting(..., "an existing file", "its private key")
    client_ca: PemFile = setting(
        ..., "an existing file", "the authority that signs the clients' certificates"
    )


class Access(Section):
    """Who may do what: `reader` may read and plan, `admin` may also change."""

    unix_role: Role = setting("admin", '"admin" or "reader"', "role of whoever can open the unix socket")
    insecure_loopback_role: Role = setting(
        "reader", '"admin" or "reader"', "role of whoever connects to [listen] insecure_loopback_tcp"
    )
    sans: dict[Name, Role] = setting(
        {},
        'a table `"NAME" = "admin"` or `"NAME" = "reader"`',
        "roles of callers over mutual TLS, by a subject alternative name of their certificate (DNS name, "
        "URI, e-mail or IP address), compared exactly; who is not listed is refused",
    )


class Limits(Section):
    """What a caller may ask of this host and of the daemon."""

    vcpu_overcommit_ratio: float = number(16.0, 0.1, 1000, "vCPUs of all running domains for each host CPU")
    memory_overcommit_ratio: float = number(1.5, 0.1, 100, "memory of all running domains against the host's")
    memory_floor_reserve_kib: int = whole(
        131_072,
        0,
        1_073_741_824,
        "memory that a guest keeps free when it is shrunk, "
        "and the least that can be stored for its next start",
    )
    memory_floor_reserve_ratio: float = number(
        0.10, 0, 1, "the same as a part of the guest's memory; the larger of the two counts"
    )
    max_operations: int = whole(16, 1, 1000, "operations that run at once; one more is refused")
    own_work_timeout_s: float = number(
        10,
        0.1,
        600,
        "longest time that a request waits for what hvsvc does to the domain by itself (a re-apply, its allocation "
        "in Placement) before it is refused as DOMAIN_BUSY",
    )
    max_rpcs: int = whole(1000, 1, 100_000, "calls and streams served at once; one more is refused")
    page_size: int = whole(100, 1, 500, "entries of a list's page where the caller does not say")
    max_page_size: int = whole(500, 1, 500, "most entries of a list's page, whatever the caller says")
    watch_queue: int = whole(
        1024, 16, 1_000_000, "events kept for a reader that lags; one more ends its stream"
    )


class Drift(Section):
    """What was asked for and is not there any more; hvsvc never reboots for it."""

    reapply: Literal["report", "config", "live"] = setting(
        "report",
        '"report", "config" or "live"',
        "what hvsvc does by itself, unless set otherwise for a domain: only report it, write a lost ceiling into the "
        "stored definition again, or also grow the running domain again within its ceiling",
    )
    sweep_interval_s: float = number(
        300, 1, 86_400, "time between two looks at every recorded domain; events are looked at as they come"
    )
    backoff_s: float = number(
        10, 0.1, 3600, "time before a domain is re-applied again after it lost it at once; doubles each time"
    )
    max_backoff_s: float = number(600, 0.1, 86_400, "longest such time")
    attempts: int = whole(
        5, 1, 100, "times a domain is re-applied in vain before hvsvc leaves it until somebody acts"
    )


class Journal(Section):
    """The record of operations and of the definitions they replaced."""

    path: AbsolutePath = setting(
        Path("/var/lib/hvsvc/journal.db"),
        "an absolute path in an existing folder",
        "SQLite database, made with mode 0600",
    )
    call_timeout_s: float = number(10, 1, 300, "longest wait for the disk")
    keep_days: int = whole(
        90, 1, 3650, "age at which operations that have ended, and definitions, are dropped"
    )


class Log(Section):
    """The log, on standard error."""

    level: Literal["debug", "info", "warning", "error"] = setting(
        "info", '"debug", "info", "warning" or "error"', "least severity"
    )
    format: Literal["console", "json"] = setting(
        "console", '"console" or "json"', "for people or for machines"
    )


class Metrics(Section):
    """Prometheus metrics over HTTP, without authentication."""

    listen: Address | None = setting(
        None, _HOST_PORT, "where they are served, best on loopback; absent: nowhere"
    )


class Shutdown(Section):
    """The end of the daemon."""

    grace_s: float = number(
        30, 0, 3600, "longest wait for running calls and operation steps when the daemon is told to stop"
    )


class Config(Section):
    """All settings."""

    libvirt: Libvirt = Libvirt()
    guest: Guest = Guest()
    nova: Nova | None = None
    placement: Placement = Placement()
    reboot: Reboot = Reboot()
    listen: Listen = Listen()
    tls: Tls | None = None
    access: Access = Access()
    limits: Limits = Limits()
    drift: Drift = Drift()
    journal: Journal = Journal()
    log: Log = Log()
    metrics: Metrics = Metrics()
    shutdown: Shutdown = Shutdown()

    @property
    def host_limits(self) -> HostLimits:
        """The part of the limits that planning needs."""
        return HostLimits(
            vcpu_overcommit_ratio=self.limits.vcpu_overcommit_ratio,
            memory_overcommit_ratio=self.limits.memory_overcommit_ratio,
            memory_floor_reserve_kib=self.limits.memory_floor_reserve_kib,
            memory_floor_reserve_ratio=self.limits.memory_floor_reserve_ratio,
        )
