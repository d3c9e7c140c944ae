"""grpc.health.v1 through the server's real socket."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2
from grpc_health.v1.health_pb2_grpc import HealthStub
from structlog.testing import capture_logs

from hvsvc.errors import Reason, UnavailableError
from hvsvc.service.health import follow
from hvsvc.service.server import DOMAIN_SERVICE, LONG_RUNNING_SERVICE, OPERATION_SERVICE, SCALING_SERVICE
from tests.fakes.face import Face

UNKNOWN, SERVING, NOT_SERVING, SERVICE_UNKNOWN = range(4)


@pytest.fixture
async def stub(face: Face) -> AsyncIterator[Any]:
    async with grpc.aio.insecure_channel(face.target) as channel:
        yield HealthStub(channel)


async def check(stub: Any, service: str) -> int:
    reply = await stub.Check(health_pb2.HealthCheckRequest(service=service))
    return int(reply.status)


async def test_check_follows_libvirt_and_the_end(face: Face, stub: Any) -> None:
    on_libvirt, always = ("", DOMAIN_SERVICE, SCALING_SERVICE), (OPERATION_SERVICE, LONG_RUNNING_SERVICE)
    assert [await check(stub, each) for each in on_libvirt] == [NOT_SERVING] * 3
    assert [await check(stub, each) for each in always] == [SERVING] * 2
    face.health.libvirt(up=True)
    assert [await check(stub, each) for each in on_libvirt] == [SERVING] * 3
    face.health.libvirt(up=False)
    assert await check(stub, "") == NOT_SERVING
    face.health.libvirt(up=True)
    face.health.stop()
    assert [await check(stub, each) for each in (*on_libvirt, *always)] == [NOT_SERVING] * 5


async def test_check_of_an_unknown_service(stub: Any) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await check(stub, "hvsvc.v1.Nothing")
    assert caught.value.code() is grpc.StatusCode.NOT_FOUND


async def test_watch_tells_every_watcher_even_after_one_left(face: Face, stub: Any) -> None:
    first, second = (stub.Watch(health_pb2.HealthCheckRequest(service="")) for _ in range(2))
    assert [(await each.read()).status for each in (first, second)] == [NOT_SERVING] * 2
    first.cancel()
    await asyncio.sleep(0.05)
    face.health.libvirt(up=True)
    assert (await asyncio.wait_for(second.read(), 5)).status == SERVING


async def test_watch_of_an_unknown_service_waits(stub: Any) -> None:
    watch = stub.Watch(health_pb2.HealthCheckRequest(service="nothing"))
    assert (await watch.read()).status == SERVICE_UNKNOWN
    watch.cancel()


class Libvirt:
    """A probe that answers from a list: True, an error, or None for silence."""

    def __init__(self, *answers: bool | Exception | None) -> None:
        self.answers = list(answers)
        self.told: list[bool] = []
        self.over = asyncio.Event()

    async def probe(self) -> None:
        if not self.answers:
            self.over.set()
            await asyncio.Event().wait()
        answer = self.answers.pop(0)
        if answer is None:
            await asyncio.Event().wait()
        if isinstance(answer, Exception):
            raise answer

    async def follow(self) -> list[tuple[str, str]]:
        """Follows until the answers are used up; returns the events logged."""
        with capture_logs() as logs:
            following = asyncio.create_task(follow(self.probe, self.told.append, interval_s=0.02))
            await asyncio.wait(
                {following, asyncio.create_task(self.over.wait())}, return_when="FIRST_COMPLETED"
            )
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)
        return [(each["event"], each.get("error", "")) for each in logs]


async def test_follow_tells_each_probe_and_logs_each_change_once() -> None:
    gone = UnavailableError(Reason.LIBVIRT_UNAVAILABLE, "no libvirtd")
    libvirt = Libvirt(gone, gone, True, True, gone, True)
    assert await libvirt.follow() == [
        ("libvirt_unreachable", "no libvirtd"),
        ("libvirt_reachable", ""),
        ("libvirt_unreachable", "no libvirtd"),
        ("libvirt_reachable", ""),
    ]
    assert libvirt.told == [False, False, True, True, False, True]


async def test_follow_takes_silence_for_absence() -> None:
    libvirt = Libvirt(True, None, True)
    assert await libvirt.follow() == [
        ("libvirt_reachable", ""),
        ("libvirt_unreachable", "no answer within 0.04 s"),
        ("libvirt_reachable", ""),
    ]


async def test_follow_does_not_hide_a_bug() -> None:
    with pytest.raises(ZeroDivisionError):
        await follow(Libvirt(ZeroDivisionError("x")).probe, lambda up: None, interval_s=0.02)
