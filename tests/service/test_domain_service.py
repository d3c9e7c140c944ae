"""DomainService through the server's real socket."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import grpc
import pytest

from hvsvc.domain.facts import DomainState
from hvsvc.domain.unread import UnreadDomain
from hvsvc.errors import DeadlineError, ExhaustedError, InvalidArgumentError, Reason, UnavailableError
from hvsvc.operations.reads import WatchItem, WatchKind
from hvsvc.v1 import desired_pb2, domain_pb2
from hvsvc.v1.domain_pb2_grpc import DomainServiceStub
from tests.fakes.domains import DB_UUID, WEB_UUID, running, shut_off
from tests.fakes.drifts import report
from tests.fakes.face import Face, Refusal


@pytest.fixture
async def stub(face: Face) -> AsyncIterator[Any]:
    async with grpc.aio.insecure_channel(face.target) as channel:
        yield DomainServiceStub(channel)


async def test_get_domain_asks_the_guest_by_default(face: Face, stub: Any) -> None:
    domain = await stub.GetDomain(domain_pb2.GetDomainRequest(name="instance-0000335c"))
    assert domain.name == f"domains/{WEB_UUID}"
    assert domain.vcpus.guest_online == 1
    assert domain.read_time.seconds > 1_700_000_000
    assert face.reads.table.last == {"name": "instance-0000335c", "full": True}


async def test_get_domain_basic(face: Face, stub: Any) -> None:
    await stub.GetDomain(domain_pb2.GetDomainRequest(name="db", view=domain_pb2.DOMAIN_VIEW_BASIC))
    assert face.reads.table.last == {"name": "db", "full": False}


async def test_get_domain_that_is_not_there(stub: Any) -> None:
    async with Refusal() as refusal:
        await stub.GetDomain(domain_pb2.GetDomainRequest(name="web-9"))
    assert refusal.code is grpc.StatusCode.NOT_FOUND
    assert refusal.reason == "DOMAIN_NOT_FOUND"


async def test_get_domain_by_an_ambiguous_name_lists_the_candidates(face: Face, stub: Any) -> None:
    face.reads.table.errors["get"] = InvalidArgumentError(
        Reason.AMBIGUOUS_NAME, "2 domains are called web", {"candidates": "domains/1,domains/2"}, field="name"
    )
    async with Refusal() as refusal:
        await stub.GetDomain(domain_pb2.GetDomainRequest(name="web"))
    assert (refusal.code, refusal.reason) == (grpc.StatusCode.INVALID_ARGUMENT, "AMBIGUOUS_NAME")
    assert refusal.info.metadata["candidates"] == "domains/1,domains/2"
    assert refusal.field == "name"


@pytest.mark.parametrize(
    ("request_message", "field"),
    [
        (domain_pb2.GetDomainRequest(), "name"),
        (domain_pb2.GetDomainRequest(name="a\x00b"), "name"),
        (domain_pb2.GetDomainRequest(name="x" * 256), "name"),
        (domain_pb2.GetDomainRequest(name="web", view=7), "view"),  # type: ignore[arg-type]
    ],
)
async def test_get_domain_refuses_bad_fields_before_reading(
    face: Face, stub: Any, request_message: domain_pb2.GetDomainRequest, field: str
) -> None:
    async with Refusal() as refusal:
        await stub.GetDomain(request_message)
    assert (refusal.code, refusal.field) == (grpc.StatusCode.INVALID_ARGUMENT, field)
    assert face.reads.table.calls == []


async def test_list_domains_pages_by_uuid(face: Face, stub: Any) -> None:
    first = await stub.ListDomains(domain_pb2.ListDomainsRequest(page_size=1))
    assert [domain.uuid for domain in first.domains] == [WEB_UUID]
    assert first.next_page_token
    second = await stub.ListDomains(
        domain_pb2.ListDomainsRequest(page_size=1, page_token=first.next_page_token)
    )
    assert [domain.uuid for domain in second.domains] == [DB_UUID]
    assert second.next_page_token == ""
    assert face.reads.table.last == {
        "states": frozenset(),
        "nova_server": "",
        "after_uuid": WEB_UUID,
        "limit": 2,
        "full": False,
    }


async def test_ga_07_a_domain_that_cannot_be_read_is_told_with_what_is_known(face: Face, stub: Any) -> None:
    silent = UnreadDomain(
        "ffffffff-0000-4000-8000-000000000000",
        "instance-9",
        DeadlineError(Reason.CALL_TIMED_OUT, "its QEMU is silent"),
        id=9,
        state=DomainState.RUNNING,
        persistent=True,
        maximum_vcpus=8,
        current_vcpus=2,
        maximum_memory_kib=2048,
        used_memory_kib=1024,
    )
    face.reads.unread = [silent, replace(silent, uuid=silent.uuid[:-1] + "1", id=None, state=None)]
    found = (await stub.ListDomains(domain_pb2.ListDomainsRequest(page_size=5))).domains
    assert [domain.uuid for domain in found[:2]] == [WEB_UUID, DB_UUID]
    told, least = found[2:]
    assert (told.name, told.libvirt_name, told.id, told.state) == (
        f"domains/{silent.uuid}",
        "instance-9",
        9,
        domain_pb2.DOMAIN_STATE_RUNNING,
    )
    assert [(each.reason, each.message) for each in told.conditions] == [
        ("CALL_TIMED_OUT", "its QEMU is silent")
    ]
    assert (told.vcpus.maximum_live, told.vcpus.current_live) == (8, 2)
    assert (told.memory.maximum_live_kib, told.memory.current_live_kib) == (2048, 1024)
    assert told.persistent
    for absent in ("maximum_config", "current_config", "guest_online"):
        assert not told.vcpus.HasField(absent)
    assert not told.HasField("drift")
    assert (least.HasField("id"), least.state) == (False, domain_pb2.DOMAIN_STATE_UNSPECIFIED)


async def test_list_domains_passes_its_filters_on(face: Face, stub: Any) -> None:
    reply = await stub.ListDomains(
        domain_pb2.ListDomainsRequest(
            states=[domain_pb2.DOMAIN_STATE_SHUT_OFF, domain_pb2.DOMAIN_STATE_CRASHED],
            nova_server="web-1",
            view=domain_pb2.DOMAIN_VIEW_FULL,
        )
    )
    assert [domain.uuid for domain in reply.domains] == [DB_UUID]
    last = face.reads.table.last
    assert last["states"] == {DomainState.SHUT_OFF, DomainState.CRASHED}
    assert (last["nova_server"], last["full"], last["limit"]) == ("web-1", True, 4)


@pytest.mark.parametrize(
    ("request_message", "field"),
    [
        (domain_pb2.ListDomainsRequest(page_size=-1), "page_size"),
        (domain_pb2.ListDomainsRequest(page_size=6), "page_size"),
        (domain_pb2.ListDomainsRequest(page_token="x"), "page_token"),
        (domain_pb2.ListDomainsRequest(states=[domain_pb2.DOMAIN_STATE_UNSPECIFIED]), "states"),
        (domain_pb2.ListDomainsRequest(states=[99]), "states"),  # type: ignore[list-item]
        (domain_pb2.ListDomainsRequest(nova_server="a\nb"), "nova_server"),
        (domain_pb2.ListDomainsRequest(view=3), "view"),  # type: ignore[arg-type]
    ],
)
async def test_list_domains_refuses_bad_fields(
    face: Face, stub: Any, request_message: domain_pb2.ListDomainsRequest, field: str
) -> None:
    async with Refusal() as refusal:
        await stub.ListDomains(request_message)
    assert (refusal.code, refusal.field) == (grpc.StatusCode.INVALID_ARGUMENT, field)
    assert face.reads.table.calls == []


async def test_list_domains_refuses_a_token_of_another_filter(stub: Any) -> None:
    first = await stub.ListDomains(domain_pb2.ListDomainsRequest(page_size=1))
    async with Refusal() as refusal:
        await stub.ListDomains(
            domain_pb2.ListDomainsRequest(page_token=first.next_page_token, nova_server="web-1")
        )
    assert refusal.field == "page_token"


async def test_list_domains_while_libvirt_is_away(face: Face, stub: Any) -> None:
    face.reads.table.errors["list"] = UnavailableError(Reason.LIBVIRT_UNAVAILABLE, "libvirt does not answer")
    async with Refusal() as refusal:
        await stub.ListDomains(domain_pb2.ListDomainsRequest())
    assert (refusal.code, refusal.reason) == (grpc.StatusCode.UNAVAILABLE, "LIBVIRT_UNAVAILABLE")


async def test_watch_domains_snapshot_then_changes(face: Face, stub: Any) -> None:
    face.reads.items = [
        WatchItem(WatchKind.SNAPSHOT, WEB_UUID, "instance-0000335c", running()),
        WatchItem(WatchKind.SNAPSHOT_END),
        WatchItem(WatchKind.CHANGED, DB_UUID, "db", shut_off(), "STOPPED SHUTDOWN"),
        WatchItem(WatchKind.REMOVED, DB_UUID, "db", None, "UNDEFINED REMOVED"),
    ]
    call = stub.WatchDomains(domain_pb2.WatchDomainsRequest(names=["db", "web", "db"]))
    seen = [await call.read() for _ in face.reads.items]
    assert [each.type for each in seen] == [1, 2, 3, 4]
    assert [each.domain.uuid for each in seen] == [WEB_UUID, "", DB_UUID, DB_UUID]
    assert [each.event for each in seen] == ["", "", "STOPPED SHUTDOWN", "UNDEFINED REMOVED"]
    assert face.reads.table.last == {"names": ["db", "web"]}
    call.cancel()
    await asyncio.wait_for(face.reads.watch_left.wait(), 5)


async def test_watch_domains_ends_with_the_error_of_its_source(face: Face, stub: Any) -> None:
    face.reads.table.errors["watch"] = ExhaustedError(Reason.READER_TOO_SLOW, "the reader lags")
    async with Refusal() as refusal:
        await stub.WatchDomains(domain_pb2.WatchDomainsRequest()).read()
    assert (refusal.code, refusal.reason) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "READER_TOO_SLOW")


@pytest.mark.parametrize("names", [["ok", ""], ["a\x1bb"], ["x"] * 501])
async def test_watch_domains_refuses_bad_names(face: Face, stub: Any, names: list[str]) -> None:
    async with Refusal() as refusal:
        await stub.WatchDomains(domain_pb2.WatchDomainsRequest(names=names)).read()
    assert (refusal.code, refusal.field) == (grpc.StatusCode.INVALID_ARGUMENT, "names")
    assert face.reads.table.calls == []


async def test_get_domain_list_domains_and_watch_domains_carry_the_drift(face: Face, stub: Any) -> None:
    face.drifts.reports = [report()]
    face.reads.items = [
        WatchItem(WatchKind.CHANGED, WEB_UUID, "instance-0000335c", running(), "DEFINED UPDATED")
    ]
    one = await stub.GetDomain(domain_pb2.GetDomainRequest(name="instance-0000335c"))
    page = await stub.ListDomains(domain_pb2.ListDomainsRequest())
    stream = stub.WatchDomains(domain_pb2.WatchDomainsRequest())
    watched = await stream.read()
    stream.cancel()
    lost = desired_pb2.Drift.STATUS_CEILING_LOST
    assert one.drift.status == watched.domain.drift.status == lost
    assert {domain.uuid: domain.HasField("drift") for domain in page.domains} == {
        WEB_UUID: True,
        DB_UUID: False,
    }


async def test_get_host_sums_the_running_domains(face: Face, stub: Any) -> None:
    host = await stub.GetHost(domain_pb2.GetHostRequest())
    assert (host.pcpus, host.vcpu_capacity, host.running_domains) == (8, 128, 1)
    assert (host.current_vcpus, host.maximum_vcpus, host.vcpus_left) == (3, 4, 125)
    assert host.memory_left_kib == host.memory_capacity_kib - host.current_memory_kib
    assert host.read_time.seconds > 1_700_000_000
    assert face.reads.table.last == {}
