"""Targets: unix sockets, mutual TLS, and plaintext on the loopback alone."""

from __future__ import annotations

import datetime as dt
import ipaddress
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click
import grpc
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from hvsvc.hvctl.channel import open_channel, socket_path, socket_trouble
from hvsvc.hvctl.settings import Settings
from tests.fakes.hvsvc_server import FakeHvsvc, FakeServer
from tests.hvctl.conftest import Hvctl


@dataclass(frozen=True)
class Pair:
    """A certificate and its key."""

    cert: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @property
    def cert_pem(self) -> bytes:
        return self.cert.public_bytes(serialization.Encoding.PEM)

    @property
    def key_pem(self) -> bytes:
        return self.key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )


def make_pair(name: str, issuer: Pair | None = None) -> Pair:
    """A certificate for a DNS name, or, without an issuer, an authority."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = dt.datetime.now(dt.UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer.cert.subject if issuer else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(minutes=5))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=issuer is None, path_length=None), critical=True)
        .add_extension(
            x509.SubjectAlternativeName(
                [x509.DNSName(name), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
            )
            if name == "localhost"
            else x509.SubjectAlternativeName([x509.DNSName(name)]),
            critical=False,
        )
    )
    return Pair(builder.sign(issuer.key if issuer else key, hashes.SHA256()), key)


@dataclass(frozen=True)
class Tls:
    """A server that asks for client certificates, and the files of a client."""

    port: int
    directory: Path

    def options(self, *, ca: str = "ca", client: str | None = "client") -> list[str]:
        options = ["--tls-ca", str(self.directory / f"{ca}.pem")]
        if client:
            options += ["--tls-cert", str(self.directory / f"{client}.pem")]
            options += ["--tls-key", str(self.directory / f"{client}.key")]
        return options


@pytest.fixture
def tls(fake: FakeHvsvc, tmp_path: Path) -> Iterator[Tls]:
    authority, other_authority = make_pair("authority"), make_pair("other")
    server = make_pair("localhost", authority)
    pairs = {
        "ca": authority,
        "other-ca": other_authority,
        "client": make_pair("operator", authority),
        "stranger": make_pair("stranger", other_authority),
    }
    for name, pair in pairs.items():
        (tmp_path / f"{name}.pem").write_bytes(pair.cert_pem)
        (tmp_path / f"{name}.key").write_bytes(pair.key_pem)
    credentials = grpc.ssl_server_credentials(
        [(server.key_pem, server.cert_pem)], root_certificates=authority.cert_pem, require_client_auth=True
    )
    with FakeServer(fake, "127.0.0.1:0", credentials) as running:
        yield Tls(running.port, tmp_path)


def test_mutual_tls(hvctl: Hvctl, tls: Tls) -> None:
    done = hvctl(
        *tls.options(),
        "--target",
        f"localhost:{tls.port}",
        "vcpucount",
        "web-1",
        "-f",
        "value",
        "-c",
        "guest_online",
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "2\n", "")


def test_the_files_may_come_from_the_environment(hvctl: Hvctl, tls: Tls) -> None:
    files = {
        "HVCTL_TLS_CA": str(tls.directory / "ca.pem"),
        "HVCTL_TLS_CERT": str(tls.directory / "client.pem"),
        "HVCTL_TLS_KEY": str(tls.directory / "client.key"),
    }
    assert hvctl("dominfo", "web-1", "--target", f"127.0.0.1:{tls.port}", **files).returncode == 0


@pytest.mark.parametrize("which", [{"ca": "other-ca"}, {"client": "stranger"}, {"client": None}])
def test_the_wrong_certificate_on_either_side_gets_nothing(
    hvctl: Hvctl, tls: Tls, fake: FakeHvsvc, which: dict[str, str]
) -> None:
    done = hvctl("dominfo", "web-1", "--target", f"localhost:{tls.port}", *tls.options(**which))
    assert (done.returncode, done.stdout) == (6, "")
    assert done.stderr.startswith("hvctl: ")
    assert "--tls-ca (who signed the server's certificate)" in done.stderr
    assert fake.seen == []


def test_a_key_of_another_certificate_is_refused_before_the_call(
    hvctl: Hvctl, tls: Tls, fake: FakeHvsvc
) -> None:
    cert, key = tls.directory / "client.pem", tls.directory / "client.key"
    locked = tls.directory / "locked.key"
    private = serialization.load_pem_private_key(key.read_bytes(), None)
    locked.write_bytes(
        private.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(b"x"),
        )
    )
    stranger = tls.directory / "stranger.key"
    for file, message in (
        (stranger, f"--tls-key {stranger} is not the key of --tls-cert {cert}"),
        (cert, f"--tls-cert {cert} and --tls-key {cert} are not a PEM certificate and key"),
        (locked, f"--tls-key {locked}: a key with a pass phrase cannot be used"),
    ):
        words = ("--target", f"localhost:{tls.port}", "--tls-cert", str(cert), "--tls-key", str(file))
        done = hvctl("dominfo", "web-1", *words)
        assert (done.returncode, done.stderr.splitlines()[-1]) == (2, f"Error: {message}")
    assert fake.seen == []


def test_the_servers_name_is_checked(hvctl: Hvctl, tls: Tls) -> None:
    target = ("--target", f"localhost:{tls.port}")
    wrong = hvctl("dominfo", "web-1", *target, *tls.options(), "--tls-server-name", "compute-1")
    assert wrong.returncode == 6
    assert (
        hvctl("dominfo", "web-1", *target, *tls.options(), "--tls-server-name", "localhost").returncode == 0
    )


def test_plaintext_on_the_loopback_is_loud(hvctl: Hvctl, fake: FakeHvsvc) -> None:
    with FakeServer(fake, "127.0.0.1:0") as running:
        done = hvctl("--insecure", "--target", f"127.0.0.1:{running.port}", "dominfo", "web-1")
    assert done.returncode == 0
    assert done.stderr == f"hvctl: warning: plaintext to 127.0.0.1:{running.port}\n"


@pytest.mark.parametrize(
    "host", ["compute-1", "192.0.2.7", "[2001:db8::1]", "127.0.0.1.example.net", "localhost.example"]
)
def test_plaintext_to_another_host_is_refused(host: str) -> None:
    with pytest.raises(click.UsageError, match="plaintext"):
        open_channel(Settings(target=f"{host}:9443", insecure=True))


@pytest.mark.parametrize(
    "target",
    [
        "",
        "compute-1",
        "compute-1:",
        "compute-1:0",
        "compute-1:65536",
        "http://h:1",
        "dns:///h:1",
        "h:1/x",
        "unix:x",
    ],
)
def test_other_targets_are_refused_with_the_forms(target: str) -> None:
    with pytest.raises(click.UsageError, match="unix:///"):
        open_channel(Settings(target=target))


@pytest.mark.parametrize(
    "settings",
    [
        Settings(target="unix:///s", insecure=True),
        Settings(target="unix:///s", tls_server_name="x"),
        Settings(target="localhost:1", insecure=True, tls_server_name="x"),
        Settings(target="localhost:1", tls_cert=Path("/dev/null")),
        Settings(target="localhost:1", tls_key=Path("/dev/null")),
    ],
)
def test_options_that_contradict_are_refused(settings: Settings) -> None:
    with pytest.raises(click.UsageError):
        open_channel(settings)


def test_socket_path() -> None:
    assert socket_path("unix:///run/s") == socket_path("unix:/run/s") == "/run/s"
    assert socket_path("host:1") is None


def test_socket_trouble(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert socket_trouble("host:1") is None
    assert socket_trouble(f"unix://{tmp_path}/none") == ("UNAVAILABLE", f"there is no socket {tmp_path}/none")
    (tmp_path / "s").touch()
    assert socket_trouble(f"unix://{tmp_path}/s") is None
    # Root may write to everything: the answer of access(2) for another user is put in its place.
    monkeypatch.setattr(os, "access", lambda path, mode: (path, mode) != (f"{tmp_path}/s", os.W_OK))
    assert socket_trouble(f"unix://{tmp_path}/s") == (
        "PERMISSION_DENIED",
        f"you may not connect to {tmp_path}/s",
    )


def test_a_web_proxy_is_not_asked(hvctl: Hvctl, fake: FakeHvsvc) -> None:
    with FakeServer(fake, "127.0.0.1:0") as running:
        target = f"localhost:{running.port}"
        done = hvctl(
            "--insecure",
            "--target",
            target,
            "dominfo",
            "web-1",
            http_proxy="http://127.0.0.1:9",
            grpc_proxy="http://127.0.0.1:9",
        )
    assert done.returncode == 0
