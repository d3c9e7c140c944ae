"""Where the benchmarks run: a libvirtd of their own, the daemon on it, and a connection of each kind."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import grpc
import libvirt
from cryptography import x509

from tests.bench.empty_service import METHOD
from tests.fakes.certificates import Authority, write_files
from tests.guest_domains import GuestDomains, GuestImage, build_guest
from tests.hvsvc_process import HvsvcProcess
from tests.libvirt_loop import start_event_loop
from tests.private_libvirtd import PrivateLibvirtd

_ROOT = Path(__file__).parents[2]
_CLIENT = "bench.example"
# Guests grow far above what this host has CPUs for: that is not what is measured.
_SECTIONS = """
[limits]
vcpu_overcommit_ratio = 1000
memory_overcommit_ratio = 100
[access.sans]
"{client}" = "admin"
[tls]
cert = "{directory}/server.pem"
key = "{directory}/server.key"
client_ca = "{directory}/clients.pem"
"""
_KEEPALIVE_S, _KEEPALIVE_COUNT = 5, 3


@dataclass(frozen=True)
class Site:
    """What every benchmark needs.

    `connection` is as the daemon's own: read-write, with an event loop and keepalive. `channels` and `empty`,
    an empty call's way there and back, are by transport: "unix" and "mtls".
    """

    libvirtd: PrivateLibvirtd
    connection: libvirt.virConnect
    domains: GuestDomains
    daemon: HvsvcProcess
    channels: dict[str, grpc.Channel]
    empty: dict[str, Callable[[], object]]


@contextmanager
def open_site() -> Iterator[Site]:
    """Starts all of it, and takes it away again."""
    with ExitStack() as stack:
        directory = Path(tempfile.mkdtemp(prefix="hv-b-", dir="/tmp"))
        directory.chmod(0o755)
        stack.callback(shutil.rmtree, directory)
        authority = Authority("bench")
        write_files(directory, authority.sign_server(), authority.pem)
        client = authority.sign(x509.DNSName(_CLIENT))
        credentials = grpc.ssl_channel_credentials(authority.pem, client.key, client.cert)

        start_event_loop()
        libvirtd = PrivateLibvirtd()
        stack.callback(libvirtd.stop)
        libvirtd.start()
        connection = libvirt.open(libvirtd.uri)
        stack.callback(connection.close)
        connection.setKeepAlive(_KEEPALIVE_S, _KEEPALIVE_COUNT)
        domains = stack.enter_context(GuestDomains(connection, _build_image(directory), libvirtd.path))

        sections = _SECTIONS.format(client=_CLIENT, directory=directory)
        daemon = stack.enter_context(HvsvcProcess(libvirtd.uri, sections, listen='tcp = "127.0.0.1:0"'))
        port = daemon.event("listening")["port"]
        empty_socket, empty_port = stack.enter_context(_empty_service(directory))
        empty = {
            "unix": stack.enter_context(grpc.insecure_channel(f"unix:{empty_socket}")),
            "mtls": stack.enter_context(grpc.secure_channel(f"127.0.0.1:{empty_port}", credentials)),
        }
        yield Site(
            libvirtd,
            connection,
            domains,
            daemon,
            {
                "unix": stack.enter_context(daemon.channel()),
                "mtls": stack.enter_context(grpc.secure_channel(f"127.0.0.1:{port}", credentials)),
            },
            {transport: _empty_call(channel) for transport, channel in empty.items()},
        )


def _build_image(directory: Path) -> GuestImage:
    image = build_guest(directory / "guest")
    image.kernel.parent.chmod(0o755)
    return image


@contextmanager
def _empty_service(directory: Path) -> Iterator[tuple[Path, int]]:
    socket = directory / "empty"
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.bench.empty_service", socket, directory],
        cwd=_ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        yield socket, int(process.stdout.readline())
    finally:
        process.terminate()
        process.communicate()


def _empty_call(channel: grpc.Channel) -> Callable[[], object]:
    call: grpc.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(METHOD)
    return lambda: call(b"", timeout=10)
