"""The server as a whole: every RPC of the contract is served, has a role and has a test."""

from __future__ import annotations

import ast
import asyncio
import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.longrunning import operations_pb2
from google.protobuf.descriptor import ServiceDescriptor
from grpc_health.v1 import health_pb2
from grpc_health.v1.health_pb2_grpc import HealthStub
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from hvsvc.service.access import NEEDED
from hvsvc.v1 import desired_pb2, domain_pb2, domain_pb2_grpc, drift_pb2, operation_pb2, scaling_pb2
from tests.fakes.face import LIMITS, unix_face

#: each service and the module that tests it
SERVICES: list[tuple[ServiceDescriptor, str]] = [
    (domain_pb2.DESCRIPTOR.services_by_name["DomainService"], "test_domain_service.py"),
    (drift_pb2.DESCRIPTOR.services_by_name["DriftService"], "test_drift_service.py"),
    (scaling_pb2.DESCRIPTOR.services_by_name["ScalingService"], "test_scaling_service.py"),
    (operation_pb2.DESCRIPTOR.services_by_name["OperationService"], "test_operation_service.py"),
    (operations_pb2.DESCRIPTOR.services_by_name["Operations"], "test_operation_service.py"),
    (health_pb2.DESCRIPTOR.services_by_name["Health"], "test_health.py"),
    (reflection_pb2.DESCRIPTOR.services_by_name["ServerReflection"], "test_server.py"),
]
RPCS = [(service, method.name, module) for service, module in SERVICES for method in service.methods]


@pytest.mark.parametrize(
    ("service", "method", "module"), RPCS, ids=[f"{service.name}.{method}" for service, method, _ in RPCS]
)
def test_every_rpc_has_a_role_and_a_test(service: ServiceDescriptor, method: str, module: str) -> None:
    assert f"/{service.full_name}/{method}" in NEEDED
    snake = re.sub(r"(?<!^)(?=[A-Z])", "_", method).lower()
    tree = ast.parse(Path(__file__).with_name(module).read_text())
    names = [
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.AsyncFunctionDef)
        and node.name.startswith(f"test_{snake}")
        and any(isinstance(part, ast.Assert) for part in ast.walk(node))
    ]
    assert names, f"{module} has no async test_{snake}… that asserts something"


def test_no_role_is_left_over() -> None:
    assert set(NEEDED) == {f"/{service.full_name}/{method}" for service, method, _ in RPCS}


def test_every_service_of_our_protos_is_listed() -> None:
    ours = {
        service.full_name
        for file in (desired_pb2, domain_pb2, drift_pb2, operation_pb2, scaling_pb2)
        for service in file.DESCRIPTOR.services_by_name.values()
    }
    assert ours <= {service.full_name for service, _ in SERVICES}
    assert len(list(Path("protos/hvsvc/v1").glob("*.proto"))) == 5, "list the new file's services above"


async def test_server_reflection_info_lists_what_is_served(tmp_path: Path) -> None:
    async with unix_face(tmp_path) as face, grpc.aio.insecure_channel(face.target) as channel:
        stub: Any = reflection_pb2_grpc.ServerReflectionStub(channel)
        requests = [
            reflection_pb2.ServerReflectionRequest(list_services=""),
            reflection_pb2.ServerReflectionRequest(file_containing_symbol="hvsvc.v1.ScalingService"),
        ]
        listed, found = [each async for each in stub.ServerReflectionInfo(iter(requests))]
    assert {each.name for each in listed.list_services_response.service} == {
        service.full_name for service, _ in SERVICES
    }
    assert found.file_descriptor_response.file_descriptor_proto


async def test_garbage_on_the_socket_harms_nobody_else(tmp_path: Path) -> None:
    preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
    async with unix_face(tmp_path) as face, grpc.aio.insecure_channel(face.target) as channel:
        health = HealthStub(channel)
        for junk in (b"\x00" * 5000, b"GET / HTTP/1.1\r\n\r\n", preface + b"\xff" * 5000, preface):
            reader, writer = await asyncio.open_unix_connection(tmp_path / "hvsvc.sock")
            writer.write(junk)
            writer.write_eof()
            await asyncio.wait_for(reader.read(), 20)
            writer.close()
            assert (await health.Check(health_pb2.HealthCheckRequest(), timeout=5)).status


async def test_many_refusals_at_once_leave_the_connection_usable(tmp_path: Path) -> None:
    # a caller's next call may come before the server has let go of its last one
    async with unix_face(tmp_path, limits=replace(LIMITS, calls=200)) as face:
        # callers of their own threads, as most are: their ends and the server's cross on the wire
        with grpc.insecure_channel(face.target) as channel, ThreadPoolExecutor(50) as callers:
            stub = domain_pb2_grpc.DomainServiceStub(channel)

            def ask(_: int) -> grpc.StatusCode:
                with pytest.raises(grpc.RpcError) as refused:
                    stub.GetDomain(domain_pb2.GetDomainRequest(name=""), timeout=60)
                code: grpc.StatusCode = refused.value.code()
                return code

            loop = asyncio.get_running_loop()
            codes = await asyncio.gather(*(loop.run_in_executor(callers, ask, n) for n in range(1000)))
    assert set(codes) == {grpc.StatusCode.INVALID_ARGUMENT}


@pytest.mark.parametrize(("service", "method", "module"), RPCS)
async def test_every_rpc_is_served(
    tmp_path: Path, service: ServiceDescriptor, method: str, module: str
) -> None:
    streams = service.methods_by_name[method]
    async with unix_face(tmp_path) as face, grpc.aio.insecure_channel(face.target) as channel:
        name = f"/{service.full_name}/{method}"
        codecs: Any = {"request_serializer": bytes, "response_deserializer": bytes}
        code = grpc.StatusCode.OK
        try:
            if streams.client_streaming:
                await channel.stream_stream(name, **codecs)(iter([b""]), timeout=5).read()
            elif streams.server_streaming:
                await channel.unary_stream(name, **codecs)(b"", timeout=1).read()
            else:
                await channel.unary_unary(name, **codecs)(b"", timeout=5)
        except grpc.aio.AioRpcError as err:
            code = err.code()
    assert code not in (grpc.StatusCode.UNIMPLEMENTED, grpc.StatusCode.INTERNAL, grpc.StatusCode.UNKNOWN)
