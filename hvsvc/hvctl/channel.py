"""The connection to hvsvc: a unix socket, TLS, or plaintext on the loopback."""

from __future__ import annotations

import ipaddress
import json
import os
import re
from pathlib import Path
from typing import Final

import click
import grpc

from hvsvc.hvctl.settings import Settings

_HOST_PORT: Final = re.compile(r"(\[[0-9A-Fa-f:.%]+\]|[A-Za-z0-9._-]+):([0-9]{1,5})", re.ASCII)

#: A call that found no connection, or lost it, is repeated: a read changes nothing, and a
#: change carries a request_id, so the service answers with the operation it began.
_SERVICE_CONFIG: Final = {
    "methodConfig": [
        {
            "name": [
                {"service": f"hvsvc.v1.{name}"}
                for name in ("DomainService", "ScalingService", "OperationService")
            ]
            # Not ForgetDesiredState: what was dropped by the first attempt would not be found by the next.
            + [
                {"service": "hvsvc.v1.DriftService", "method": method}
                for method in ("GetDrift", "ListDrifts", "SetReapplyPolicy")
            ],
            "retryPolicy": {
                "maxAttempts": 3,
                "initialBackoff": "0.2s",
                "maxBackoff": "1s",
                "backoffMultiplier": 2,
                "retryableStatusCodes": ["UNAVAILABLE"],
            },
        }
    ]
}
_OPTIONS: Final = (
    ("grpc.service_config", json.dumps(_SERVICE_CONFIG)),
    # hvsvc is reached directly: a proxy meant for web pages must not see it.
    ("grpc.enable_http_proxy", 0),
    # Servers allow one ping in 5 minutes unless told otherwise; this finds a dead connection under a watch.
    ("grpc.keepalive_time_ms", 310_000),
    ("grpc.keepalive_timeout_ms", 20_000),
    # A list of 500 domains, each with its pins, is larger than gRPC's 4 MiB.
    ("grpc.max_receive_message_length", 64 << 20),
)


def open_channel(settings: Settings) -> grpc.Channel:
    """A channel to `settings.target`; nothing is sent yet.

    :raise click.UsageError: for a target of another form, TLS files that do not fit
        together, or plaintext to a host that is not this one.
    """
    tls_files = (settings.tls_ca, settings.tls_cert, settings.tls_key)
    if path := socket_path(settings.target):
        if any(tls_files) or settings.tls_server_name or settings.insecure:
            raise click.UsageError("--tls-* and --insecure are for HOST:PORT; a unix socket needs neither")
        return grpc.insecure_channel(f"unix:{path}", options=_OPTIONS)
    host, port = _host_port(settings.target)
    address = f"{host}:{port}"
    if settings.insecure:
        if any(tls_files) or settings.tls_server_name:
            raise click.UsageError("--insecure and --tls-* exclude each other")
        if not _is_loopback(host):
            raise click.UsageError(
                f"--insecure would send everything in plaintext to {host}; it is for this host alone. "
                "Use TLS: --tls-ca, --tls-cert and --tls-key"
            )
        click.echo(f"hvctl: warning: plaintext to {address}", err=True)
        return grpc.insecure_channel(address, options=_OPTIONS)
    if bool(settings.tls_cert) != bool(settings.tls_key):
        raise click.UsageError("--tls-cert and --tls-key go together")
    if settings.tls_cert and settings.tls_key:
        _check_pair(settings.tls_cert, settings.tls_key)
    credentials = grpc.ssl_channel_credentials(
        *(_read(file) for file in (settings.tls_ca, settings.tls_key, settings.tls_cert))
    )
    name = settings.tls_server_name
    return grpc.secure_channel(
        address,
        credentials,
        options=(*_OPTIONS, *([("grpc.ssl_target_name_override", name)] if name else [])),
    )


def connection_words(settings: Settings) -> str:
    """What may keep a connection to HOST:PORT from being made, as the hints name it; empty for a unix socket."""
    if settings.target.startswith("unix:"):
        return ""
    if settings.insecure:
        return "in plaintext"
    return "over TLS" if settings.tls_cert else "over TLS without a certificate"


def socket_path(target: str) -> str | None:
    """Path of a `unix:` target; None for another target.

    :raise click.UsageError: for a path that is not absolute.
    """
    if not target.startswith("unix:"):
        return None
    path = target.removeprefix("unix:").removeprefix("//")
    if not path.startswith("/"):
        raise click.UsageError(
            f"--target {target!r}: write an absolute path, such as unix:///run/hvsvc/hvsvc.sock"
        )
    return path


def socket_trouble(target: str) -> tuple[str, str] | None:
    """Why the socket of a `unix:` target cannot be connected to: gRPC status name and message.

    gRPC reports each of these as UNAVAILABLE, with the difference in English text only.
    """
    path = socket_path(target)
    if path is None:
        return None
    if not Path(path).exists():
        return "UNAVAILABLE", f"there is no socket {path}"
    if not os.access(path, os.W_OK):
        return "PERMISSION_DENIED", f"you may not connect to {path}"
    return None


def _host_port(target: str) -> tuple[str, int]:
    found = _HOST_PORT.fullmatch(target)
    if found is None or not 1 <= int(found[2]) <= 65535:
        raise click.UsageError(
            f"--target {target!r}: write unix:///PATH or HOST:PORT, such as compute-1:9443"
        )
    return found[1], int(found[2])


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _check_pair(cert: Path, key: Path) -> None:
    """Refuses files that gRPC would only call a failed handshaker, or wait for a pass phrase at."""
    import ssl  # noqa: PLC0415  5 ms that only TLS needs

    def no_pass_phrase() -> str:
        raise click.UsageError(f"--tls-key {key}: a key with a pass phrase cannot be used")

    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_cert_chain(cert, key, no_pass_phrase)
    except ssl.SSLError as err:
        if err.reason == "KEY_VALUES_MISMATCH":
            raise click.UsageError(f"--tls-key {key} is not the key of --tls-cert {cert}") from err
        raise click.UsageError(
            f"--tls-cert {cert} and --tls-key {key} are not a PEM certificate and key"
        ) from err
    except OSError as err:
        raise click.UsageError(f"cannot read {cert} and {key}: {err.strerror}") from err


def _read(file: Path | None) -> bytes | None:
    try:
        return file.read_bytes() if file else None
    except OSError as err:
        raise click.UsageError(f"cannot read {file}: {err.strerror}") from err
