"""Mutual TLS on a real TCP socket: who gets in, and rotation without a restart."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Any

import grpc
import pytest
from cryptography import x509
from structlog.testing import capture_logs

from hvsvc.service.access import Role
from hvsvc.service.tls import Certificates, TlsFiles
from hvsvc.v1 import domain_pb2, scaling_pb2
from hvsvc.v1.domain_pb2_grpc import DomainServiceStub
from hvsvc.v1.scaling_pb2_grpc import ScalingServiceStub
from tests.fakes.certificates import Authority, Pem, channel, write_files
from tests.fakes.face import Refusal, access, tls_face

POLICY = access({"ops.example": Role.ADMIN, "spiffe://example/monitor": Role.READER, "10.0.0.9": Role.READER})
ADMIN = x509.DNSName("ops.example")
READER = x509.UniformResourceIdentifier("spiffe://example/monitor")


async def get(target: str, server_ca: bytes, client: Pem | None) -> domain_pb2.Domain:
    async with channel(target, server_ca, client) as opened:
        stub: Any = DomainServiceStub(opened)
        domain: domain_pb2.Domain = await stub.GetDomain(domain_pb2.GetDomainRequest(name="db"), timeout=5)
        return domain


async def set_vcpus(target: str, server_ca: bytes, client: Pem | None) -> Any:
    async with channel(target, server_ca, client) as opened:
        stub: Any = ScalingServiceStub(opened)
        return await stub.SetVcpus(scaling_pb2.SetVcpusRequest(name="db", vcpus=2), timeout=5)


async def test_an_admin_changes_and_is_named_in_the_journal(tmp_path: Path) -> None:
    ca = Authority("ca")
    files = write_files(tmp_path, ca.sign_server(), ca.pem)
    async with tls_face(files, POLICY) as face:
        client = ca.sign(x509.DNSName("other.example"), ADMIN, READER)
        assert (await set_vcpus(face.target, ca.pem, client)).name == "operations/op-1"
        assert face.changes.table.last["caller"] == "dns:ops.example"


async def test_a_reader_reads_and_may_not_change(tmp_path: Path) -> None:
    ca = Authority("ca")
    files = write_files(tmp_path, ca.sign_server(), ca.pem)
    async with tls_face(files, POLICY) as face:
        client = ca.sign(READER)
        assert (await get(face.target, ca.pem, client)).libvirt_name == "db"
        async with Refusal() as refusal:
            await set_vcpus(face.target, ca.pem, client)
        assert (refusal.code, refusal.reason) == (grpc.StatusCode.PERMISSION_DENIED, "NOT_PERMITTED")
        assert dict(refusal.info.metadata) == {
            "caller": "uri:spiffe://example/monitor",
            "role": "reader",
            "needed": "admin",
        }
        assert face.changes.table.calls == []


async def test_a_verified_name_on_no_list_may_nothing(tmp_path: Path) -> None:
    ca = Authority("ca")
    files = write_files(tmp_path, ca.sign_server(), ca.pem)
    async with tls_face(files, POLICY) as face:
        for client in (ca.sign(x509.DNSName("ops.example.evil")), ca.sign(x509.DNSName("*.example"))):
            async with Refusal() as refusal:
                await get(face.target, ca.pem, client)
            assert refusal.code is grpc.StatusCode.PERMISSION_DENIED
        assert face.reads.table.calls == []


async def test_the_common_name_is_no_identity(tmp_path: Path) -> None:
    ca = Authority("ca")
    files = write_files(tmp_path, ca.sign_server(), ca.pem)
    async with tls_face(files, POLICY) as face:
        async with Refusal() as refusal:
            await get(face.target, ca.pem, ca.sign(common_name="ops.example"))
        assert (refusal.code, refusal.reason) == (grpc.StatusCode.UNAUTHENTICATED, "NOT_AUTHENTICATED")


async def test_no_certificate_or_one_of_another_ca_gets_no_connection(tmp_path: Path) -> None:
    ca, other = Authority("ca"), Authority("ca")
    files = write_files(tmp_path, ca.sign_server(), ca.pem)
    async with tls_face(files, POLICY) as face:
        for client in (None, other.sign(ADMIN)):
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await get(face.target, ca.pem, client)
            assert caught.value.code() in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED)
        assert face.reads.table.calls == []


async def test_rotation_of_certificate_and_ca_needs_no_restart(tmp_path: Path) -> None:
    old, new = Authority("old"), Authority("new")
    files = write_files(tmp_path, old.sign_server(), old.pem)
    old_client, new_client = old.sign(ADMIN), new.sign(ADMIN)
    async with tls_face(files, POLICY) as face:
        await get(face.target, old.pem, old_client)
        with capture_logs() as logs:
            write_files(tmp_path, new.sign_server(), new.pem)
            await get(face.target, new.pem, new_client)
        assert [each["event"] for each in logs if each["event"].startswith("certificates")] == [
            "certificates_reloaded"
        ]
        with pytest.raises(grpc.aio.AioRpcError):
            await get(face.target, new.pem, old_client)


async def test_a_bad_rotation_keeps_the_old_set_and_says_so_once(tmp_path: Path) -> None:
    ca = Authority("ca")
    files = write_files(tmp_path, ca.sign_server(), ca.pem)
    client = ca.sign(ADMIN)
    async with tls_face(files, POLICY) as face:
        with capture_logs() as logs:
            files.key.write_bytes(ca.sign_server().key)
            await get(face.target, ca.pem, client)
            await get(face.target, ca.pem, client)
            files.cert.unlink()
            await get(face.target, ca.pem, client)
        events = [each["event"] for each in logs if each["event"].startswith("certificates")]
        assert events == ["certificates_refused", "certificates_refused"]
        write_files(tmp_path, ca.sign_server(), ca.pem)
        with capture_logs() as logs:
            await get(face.target, ca.pem, client)
        assert "certificates_reloaded" in [each["event"] for each in logs]


def test_files_that_do_not_work_are_refused_at_the_start(tmp_path: Path) -> None:
    ca = Authority("ca")
    good = ca.sign_server()
    with pytest.raises(OSError, match=r"server\.pem"):
        Certificates(TlsFiles(tmp_path / "server.pem", tmp_path / "server.key", tmp_path / "clients.pem"))
    with pytest.raises(ssl.SSLError):
        Certificates(write_files(tmp_path, Pem(good.cert, ca.sign_server().key), ca.pem))
    with pytest.raises(ssl.SSLError):
        Certificates(write_files(tmp_path, good, b"no pem"))
    with pytest.raises(ValueError, match="no CA"):
        Certificates(write_files(tmp_path, good, good.cert))
