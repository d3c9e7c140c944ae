"""A certificate authority for tests, and files of what it signs."""

from __future__ import annotations

import datetime as dt
import ipaddress
from dataclasses import dataclass
from pathlib import Path

import grpc
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from hvsvc.service.tls import TlsFiles

_DAY = dt.timedelta(days=1)


@dataclass(frozen=True)
class Pem:
    """A certificate and its key."""

    cert: bytes
    key: bytes


class Authority:
    """Signs certificates."""

    def __init__(self, name: str) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        basic = x509.BasicConstraints(ca=True, path_length=0)
        builder = _builder(self._name, self._name, self._key.public_key())
        self._cert = builder.add_extension(basic, critical=True).sign(self._key, hashes.SHA256())
        self.pem = self._cert.public_bytes(serialization.Encoding.PEM)

    def sign(self, *names: x509.GeneralName, common_name: str = "someone") -> Pem:
        """A certificate with these subject alternative names."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])
        builder = _builder(subject, self._name, key.public_key())
        if names:
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        cert = builder.sign(self._key, hashes.SHA256())
        return Pem(
            cert.public_bytes(serialization.Encoding.PEM),
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            ),
        )

    def sign_server(self) -> Pem:
        """A certificate for 127.0.0.1."""
        return self.sign(x509.IPAddress(ipaddress.ip_address("127.0.0.1")), common_name="hvsvc")


def write_files(directory: Path, server: Pem, client_ca: bytes) -> TlsFiles:
    """The daemon's files; written aside and moved, as a careful rotation does."""
    files = TlsFiles(directory / "server.pem", directory / "server.key", directory / "clients.pem")
    for path, content in zip(files.all, (server.cert, server.key, client_ca), strict=True):
        aside = path.with_suffix(".new")
        aside.write_bytes(content)
        aside.rename(path)
    return files


def channel(target: str, server_ca: bytes, client: Pem | None) -> grpc.aio.Channel:
    """A channel with this client certificate, or none."""
    credentials = grpc.ssl_channel_credentials(
        server_ca, client.key if client else None, client.cert if client else None
    )
    # A channel of its own for each: gRPC would share one connection, handshake included.
    return grpc.aio.secure_channel(target, credentials, options=[("grpc.use_local_subchannel_pool", 1)])


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey
) -> x509.CertificateBuilder:
    now = dt.datetime.now(dt.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _DAY)
        .not_valid_after(now + _DAY)
    )
