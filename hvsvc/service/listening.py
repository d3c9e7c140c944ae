"""Where the server listens: unix socket by file permissions, TCP with mTLS, plaintext on loopback only."""

from __future__ import annotations

import errno
import grp
import os
import socket
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import grpc
import structlog

from hvsvc.service.access import Role

_log = structlog.stdlib.get_logger("hvsvc.listen")


class ListenError(Exception):
    """A listener cannot be opened; the message says which and why."""


def listen_unix(server: grpc.aio.Server, path: Path, mode: int, group: str | None) -> None:
    """Opens the socket with this mode and group; a socket file that nobody listens on any more is replaced.

    gRPC unlinks whatever socket is in its way, so a second daemon would silently take
    over the first one's: whether someone listens is asked here before.

    :raises ListenError: in use, or not a socket; no such folder or group.
    """
    gid = None if group is None else _group_id(group)
    _clear(path)
    try:
        with _umask(0o777 & ~mode):
            server.add_insecure_port(f"unix:{path}")
        if gid is not None:
            os.chown(path, -1, gid)
    except (OSError, RuntimeError) as err:
        raise ListenError(f"[listen] unix: cannot listen on {path}: {err}") from err


def listen_tls(server: grpc.aio.Server, address: str, credentials: grpc.ServerCredentials) -> int:
    """Opens a TCP listener with mutual TLS; returns its port.

    :raises ListenError: address in use or not of this host.
    """
    try:
        return server.add_secure_port(address, credentials)
    except RuntimeError as err:
        raise ListenError(f"[listen] tcp: cannot listen on {address}: {err}") from err


def listen_plaintext(server: grpc.aio.Server, address: str, role: Role) -> int:
    """Opens a TCP listener without any authentication and warns of it; returns its port.

    :param address: a loopback address, which the configuration has checked.
    :raises ListenError: address in use.
    """
    try:
        port = server.add_insecure_port(address)
    except RuntimeError as err:
        raise ListenError(f"[listen] insecure_loopback_tcp: cannot listen on {address}: {err}") from err
    _log.warning(
        "plaintext_listener",
        address=address,
        port=port,
        role=role.name.lower(),
        danger="no authentication: every local user and process can connect; for tests only",
    )
    return port


def _group_id(group: str) -> int:
    try:
        return grp.getgrnam(group).gr_gid
    except KeyError as err:
        raise ListenError(f"[listen] unix_group: there is no group {group!r} on this host") from err


def _clear(path: Path) -> None:
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    except OSError as err:
        raise ListenError(f"[listen] unix: cannot look at {path}: {err}") from err
    if not stat.S_ISSOCK(mode):
        raise ListenError(
            f"[listen] unix: {path} exists and is no socket; move it away or choose another path"
        )
    if _answers(path):
        raise ListenError(f"[listen] unix: another process listens on {path}; stop it or choose another path")
    path.unlink(missing_ok=True)


def _answers(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1)
        code = probe.connect_ex(os.fspath(path))
    # Anything but a refusal (a full backlog, a missing permission) may be a living listener.
    return code not in (errno.ECONNREFUSED, errno.ENOENT)


@contextmanager
def _umask(mask: int) -> Iterator[None]:
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)
