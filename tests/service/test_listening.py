"""Listeners: permissions of the unix socket, and what may not be taken over."""

from __future__ import annotations

import grp
import os
import socket
import stat
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from structlog.testing import capture_logs

from hvsvc.service.access import Role
from hvsvc.service.listening import ListenError, listen_plaintext, listen_tls, listen_unix
from hvsvc.v1 import domain_pb2, scaling_pb2
from hvsvc.v1.domain_pb2_grpc import DomainServiceStub
from hvsvc.v1.scaling_pb2_grpc import ScalingServiceStub
from tests.fakes.face import Refusal, access, plaintext_face, unix_face


@pytest.fixture
async def server() -> AsyncIterator[grpc.aio.Server]:
    made = grpc.aio.server(options=[("grpc.so_reuseport", 0)])
    yield made
    await made.stop(None)


@pytest.mark.parametrize("mode", [0o660, 0o600])
async def test_unix_socket_has_its_mode_from_the_first_moment(
    tmp_path: Path, server: grpc.aio.Server, mode: int
) -> None:
    before = os.umask(0o022)
    try:
        listen_unix(server, tmp_path / "s.sock", mode, None)
        assert os.umask(0o022) == 0o022, "the umask was not put back"
    finally:
        os.umask(before)
    state = (tmp_path / "s.sock").stat()
    assert stat.S_ISSOCK(state.st_mode)
    assert stat.S_IMODE(state.st_mode) == mode


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give a file to any group")
async def test_unix_socket_has_its_group(tmp_path: Path, server: grpc.aio.Server) -> None:
    group = next(each for each in grp.getgrall() if each.gr_gid not in (0, os.getegid()))
    listen_unix(server, tmp_path / "s.sock", 0o660, group.gr_name)
    assert (tmp_path / "s.sock").stat().st_gid == group.gr_gid


async def test_unknown_group(tmp_path: Path, server: grpc.aio.Server) -> None:
    with pytest.raises(ListenError, match="no-such-group"):
        listen_unix(server, tmp_path / "s.sock", 0o660, "no-such-group")
    assert not (tmp_path / "s.sock").exists()


async def test_a_stale_socket_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "hvsvc.sock"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(os.fspath(path))
    assert path.exists()
    async with unix_face(tmp_path) as face, grpc.aio.insecure_channel(face.target) as channel:
        stub: Any = DomainServiceStub(channel)
        assert (await stub.GetDomain(domain_pb2.GetDomainRequest(name="db"))).libvirt_name == "db"
    assert not path.exists()


async def test_a_living_socket_is_not_taken_over(tmp_path: Path, server: grpc.aio.Server) -> None:
    async with unix_face(tmp_path) as face:
        with pytest.raises(ListenError, match="another process listens"):
            listen_unix(server, tmp_path / "hvsvc.sock", 0o660, None)
        async with grpc.aio.insecure_channel(face.target) as channel:
            stub: Any = DomainServiceStub(channel)
            await stub.GetDomain(domain_pb2.GetDomainRequest(name="db"))


async def test_a_socket_with_a_full_backlog_counts_as_living(tmp_path: Path, server: grpc.aio.Server) -> None:
    path = tmp_path / "busy.sock"
    with socket.socket(socket.AF_UNIX) as busy, socket.socket(socket.AF_UNIX) as waiting:
        busy.bind(os.fspath(path))
        busy.listen(0)
        waiting.connect(os.fspath(path))
        with pytest.raises(ListenError, match="another process listens"):
            listen_unix(server, path, 0o660, None)
    assert path.exists()


async def test_a_file_in_the_way_is_left_alone(tmp_path: Path, server: grpc.aio.Server) -> None:
    (tmp_path / "s.sock").write_text("precious")
    with pytest.raises(ListenError, match="no socket"):
        listen_unix(server, tmp_path / "s.sock", 0o660, None)
    assert (tmp_path / "s.sock").read_text() == "precious"


async def test_no_folder(tmp_path: Path, server: grpc.aio.Server) -> None:
    with pytest.raises(ListenError, match="cannot listen"):
        listen_unix(server, tmp_path / "none" / "s.sock", 0o660, None)


async def test_a_port_in_use(server: grpc.aio.Server) -> None:
    async with plaintext_face(access()) as face:
        with pytest.raises(ListenError, match="insecure_loopback_tcp"):
            listen_plaintext(server, face.target, Role.READER)
        credentials = grpc.local_server_credentials()
        with pytest.raises(ListenError, match=r"\[listen\] tcp"):
            listen_tls(server, face.target, credentials)


async def test_plaintext_warns_loudly_and_has_the_role_it_was_given() -> None:
    with capture_logs() as logs:
        async with plaintext_face(access()) as face, grpc.aio.insecure_channel(face.target) as channel:
            stub: Any = DomainServiceStub(channel)
            await stub.GetDomain(domain_pb2.GetDomainRequest(name="db"))
            changes: Any = ScalingServiceStub(channel)
            async with Refusal() as refusal:
                await changes.SetVcpus(scaling_pb2.SetVcpusRequest(name="db", vcpus=1))
    assert refusal.code is grpc.StatusCode.PERMISSION_DENIED
    warning = next(each for each in logs if each["event"] == "plaintext_listener")
    assert (warning["log_level"], warning["role"]) == ("warning", "reader")
    assert "no authentication" in warning["danger"]
