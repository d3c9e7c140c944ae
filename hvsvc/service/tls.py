"""TLS of the TCP listener: client certificates are required, and files are read again when they change.

gRPC asks for the certificates before every handshake, so a rotation needs neither a
restart nor a signal. A set that does not work (half written, key of another
certificate) is logged once and the one before stays in force.
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from pathlib import Path

import grpc
import structlog

_log = structlog.stdlib.get_logger("hvsvc.tls")

#: inode, size and change time of each file
_Stamp = tuple[tuple[int, int, int], ...]


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """Where the PEM files are: the daemon's chain and key, and the CAs that client certificates come from."""

    cert: Path
    key: Path
    client_ca: Path

    @property
    def all(self) -> tuple[Path, Path, Path]:
        """Every file."""
        return (self.cert, self.key, self.client_ca)


class Certificates:
    """The certificates in force."""

    def __init__(self, files: TlsFiles) -> None:
        """Reads the files for the first time.

        :raises OSError: where a file cannot be read.
        :raises ssl.SSLError: where one holds no PEM, or the key is of another certificate.
        """
        self._files = files
        self._seen = self._stamp()
        self._first = self._load()

    def credentials(self) -> grpc.ServerCredentials:
        """Credentials that follow the files."""
        return grpc.dynamic_ssl_server_credentials(
            self._first,
            self._fetch,  # type: ignore[arg-type] # grpc documents None, its stubs do not know it
            require_client_authentication=True,
        )

    def _fetch(self) -> grpc.ServerCertificateConfiguration | None:
        # Called by gRPC in a thread of its own, one handshake at a time; None keeps what is in force.
        try:
            stamp = self._stamp()
            if stamp == self._seen:
                return None
            self._seen = stamp
            fresh = self._load()
        except (OSError, ValueError) as err:  # ssl.SSLError is an OSError
            _log.error("certificates_refused", error=str(err), kept="the ones before")
            return None
        _log.info("certificates_reloaded", cert=str(self._files.cert))
        return fresh

    def _load(self) -> grpc.ServerCertificateConfiguration:
        check = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        check.load_cert_chain(self._files.cert, self._files.key)
        check.load_verify_locations(self._files.client_ca)
        if not check.cert_store_stats()["x509_ca"]:
            raise ValueError(f"{self._files.client_ca} holds no CA certificate")
        cert, key, client_ca = (path.read_bytes() for path in self._files.all)
        return grpc.ssl_server_certificate_configuration([(key, cert)], root_certificates=client_ca)

    def _stamp(self) -> _Stamp:
        states = (path.stat() for path in self._files.all)
        return tuple((state.st_ino, state.st_size, state.st_mtime_ns) for state in states)
