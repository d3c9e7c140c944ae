"""The real gRPC server on a real socket, with fake use cases behind it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

import grpc
from google.protobuf.message import Message
from google.rpc import error_details_pb2, status_pb2
from grpc_status import rpc_status

from hvsvc.domain.operation import OperationRecord, Result
from hvsvc.domain.outcome import Note, Outcome
from hvsvc.domain.plan import Plan
from hvsvc.domain.steps import Effect, Step, StepKind, StepRecord, StepState
from hvsvc.domain.target import Method, Target
from hvsvc.domain.topology import Topology
from hvsvc.errors import FailedPreconditionError, Reason
from hvsvc.service.access import Access, Role
from hvsvc.service.health import HealthServicer
from hvsvc.service.interceptor import CallInterceptor, Gate
from hvsvc.service.listening import listen_plaintext, listen_tls, listen_unix
from hvsvc.service.metrics import Metrics
from hvsvc.service.pages import PageLimits
from hvsvc.service.server import ServerLimits, UseCases, build_health, build_server
from hvsvc.service.tls import Certificates, TlsFiles
from tests.fakes.domains import WEB_UUID, running, shut_off
from tests.fakes.use_cases import FakeChanges, FakeDrifts, FakeOperations, FakeReads

TARGET = Target(Method.SCALE_DOMAIN, vcpus=4)
STEPS = (
    StepRecord(
        StepKind.SET_MEMORY_LIVE,
        Effect.LIVE,
        "memory first",
        state=StepState.DONE,
        start_time_s=100.0,
        end_time_s=101.5,
        evidence="1 GiB",
    ),
    StepRecord(
        StepKind.SET_VCPUS_LIVE,
        Effect.LIVE,
        "2 vCPUs more",
        state=StepState.FAILED,
        start_time_s=101.5,
        end_time_s=102.25,
    ),
    StepRecord(StepKind.ONLINE_GUEST_CPUS, Effect.LIVE, "online them"),
)


def record(operation_id: str = "op-1", **changes: object) -> OperationRecord:
    """An operation under way."""
    fields: dict[str, object] = {
        "id": operation_id,
        "uuid": WEB_UUID,
        "libvirt_name": "instance-0000335c",
        "target": TARGET,
        "caller": "unix",
        "request_id": "",
        "create_time_s": 100.0,
        "steps": STEPS,
    }
    return OperationRecord(**(fields | changes))  # type: ignore[arg-type]


def ended(operation_id: str = "op-2", create_time_s: float = 90.0) -> OperationRecord:
    """An operation that ended in part."""
    result = Result(
        Outcome.PARTIAL,
        (Note(Reason.GUEST_CPUS_OFFLINE, "one CPU stayed offline", {"online": "3"}),),
        True,
        running(),
        running(id=8),
    )
    return record(operation_id, create_time_s=create_time_s, end_time_s=create_time_s + 7.5, result=result)


def plan() -> Plan:
    """A plan with a step, a blocker and a warning."""
    return Plan(
        target=TARGET,
        etag="0f" * 32,
        steps=(Step(StepKind.REBOOT, Effect.REBOOT, "the ceiling is 4", None, None),),
        blockers=(
            FailedPreconditionError(
                Reason.REBOOT_REQUIRED, "needs a reboot: ask with reboot SOFT", {"live": 4}
            ),
        ),
        warnings=(Note(Reason.ROUNDED, "rounded up", {"used": "1024"}),),
        topology=Topology(sockets=8),
        xml_diff="-<vcpu>4</vcpu>\n+<vcpu>8</vcpu>\n",
    )


#: what a test may narrow
LIMITS = ServerLimits(calls=50, pages=PageLimits(default=3, maximum=5))


class Face:
    """A server that serves from entering to leaving, and what is behind it."""

    def __init__(self, access: Access, limits: ServerLimits) -> None:
        self.reads = FakeReads([running(), shut_off()])
        self.changes = FakeChanges(running(), plan(), record())
        self.operations = FakeOperations([record(), ended()])
        self.drifts = FakeDrifts([])
        self.health: HealthServicer = build_health()
        self.metrics = Metrics()
        self.target = ""
        self.server = build_server(
            UseCases(self.reads, self.changes, self.operations, self.drifts),
            CallInterceptor(access, Gate(limits.long_calls), self.metrics),
            self.health,
            limits,
        )

    async def __aenter__(self) -> Self:
        await self.server.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.server.stop(None)

    def counted(self, method: str, code: str) -> float:
        """RPCs of this method that ended with this code."""
        labels = {"method": method, "code": code}
        return self.metrics.registry.get_sample_value("hvsvc_rpcs_total", labels) or 0.0


def access(names: Mapping[str, Role] | None = None, unix: Role = Role.ADMIN) -> Access:
    """A policy."""
    return Access(names or {}, unix=unix, plaintext=Role.READER)


def unix_face(directory: Path, policy: Access | None = None, limits: ServerLimits = LIMITS) -> Face:
    """One that listens on a unix socket in `directory`."""
    face = Face(policy or access(), limits)
    path = directory / "hvsvc.sock"
    listen_unix(face.server, path, 0o660, None)
    face.target = f"unix:{path}"
    return face


def tls_face(files: TlsFiles, policy: Access) -> Face:
    """One that listens on a free port of 127.0.0.1 with mTLS."""
    face = Face(policy, LIMITS)
    port = listen_tls(face.server, "127.0.0.1:0", Certificates(files).credentials())
    face.target = f"127.0.0.1:{port}"
    return face


def plaintext_face(policy: Access) -> Face:
    """One that listens in plaintext on a free port of 127.0.0.1."""
    face = Face(policy, LIMITS)
    face.target = f"127.0.0.1:{listen_plaintext(face.server, '127.0.0.1:0', Role.READER)}"
    return face


M = TypeVar("M", bound=Message)


async def until(condition: Callable[[], bool]) -> None:
    """Returns once the condition holds; fails where it does not within 5 s."""
    async with asyncio.timeout(5):
        while not condition():  # noqa: ASYNC110 - what is waited for happens in the server, without an event
            await asyncio.sleep(0.01)


class Refusal:
    """Catches the error of an RPC and takes its rich status apart."""

    def __init__(self) -> None:
        self.code: grpc.StatusCode = grpc.StatusCode.OK
        self.status = status_pb2.Status()
        self.info = error_details_pb2.ErrorInfo()

    async def __aenter__(self) -> Refusal:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        assert isinstance(error, grpc.aio.AioRpcError), f"the call was not refused: {error!r}"
        self.code = error.code()
        status = rpc_status.from_call(error)
        if status is not None:
            self.status = status
            self.info = self.detail(error_details_pb2.ErrorInfo()) or self.info
        else:
            self.status.message = error.details() or ""
        return True

    @property
    def reason(self) -> str:
        """ErrorInfo.reason."""
        return str(self.info.reason)

    @property
    def field(self) -> str:
        """The field of BadRequest; "" where there is none."""
        found = self.detail(error_details_pb2.BadRequest())
        return found.field_violations[0].field if found else ""

    def detail(self, empty: M) -> M | None:
        """The detail of this type."""
        for packed in self.status.details:
            if packed.Unpack(empty):
                return empty
        return None
