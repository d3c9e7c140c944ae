"""Finding, reporting, listing and watching domains."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from hvsvc.domain.edit_definition import Edit
from hvsvc.domain.facts import DomainFacts, DomainState, LifecycleEvent
from hvsvc.domain.unread import DomainList, UnreadDomain
from hvsvc.errors import (
    DeadlineError,
    GuestAgentError,
    InvalidArgumentError,
    NotFoundError,
    Reason,
    UnavailableError,
)
from hvsvc.operations.reads import WatchItem, WatchKind
from tests.fakes.host import host
from tests.fakes.targets import RAISE
from tests.fakes.worlds import UUID
from tests.operations.conftest import Floor

FloorOf = Callable[..., Floor]


@pytest.mark.parametrize("name", [f"domains/{UUID}", UUID, UUID.upper(), "instance-00000001", "web-1"])
async def test_a_domain_is_found_by_each_of_its_names(floor_of: FloorOf, name: str) -> None:
    assert await floor_of(host(nova=True)).reads.resolve(name) == UUID


async def test_a_name_under_domains_must_be_a_uuid(floor_of: FloorOf) -> None:
    with pytest.raises(NotFoundError):
        await floor_of(host(nova=True)).reads.resolve("domains/web-1")


async def test_a_name_of_several_domains_is_refused_with_the_candidates(floor_of: FloorOf) -> None:
    fake = host()

    async def twins(name: str) -> Sequence[tuple[str, str]]:
        return [("a" * 8, "instance-1"), ("b" * 8, "instance-2")]

    fake.find_uuids = twins  # type: ignore[method-assign]
    with pytest.raises(InvalidArgumentError) as refused:
        await floor_of(fake).reads.resolve("web")
    assert refused.value.reason is Reason.AMBIGUOUS_NAME
    assert "instance-1" in refused.value.metadata["candidates"]
    assert "instance-2" in refused.value.metadata["candidates"]


async def test_basic_does_not_ask_the_guest(floor_of: FloorOf) -> None:
    fake = host()
    asked: list[str] = []
    fake.before_call = asked.append
    floor = floor_of(fake)
    assert (await floor.reads.get(UUID, full=False)).guest is None
    assert "read_cpus" not in asked
    found = await floor.reads.get(UUID, full=True)
    assert found.guest is not None
    assert found.guest.online == 2


async def test_a_silent_guest_is_part_of_the_answer(floor_of: FloorOf) -> None:
    fake = host()
    fake.agent_error = GuestAgentError(Reason.AGENT_SILENT, "no answer")
    found = await floor_of(fake).reads.get(UUID, full=True)
    assert found.guest is None
    assert found.guest_error is fake.agent_error


async def test_list_filters_and_pages(floor_of: FloorOf) -> None:
    reads = floor_of(host(nova=True)).reads

    async def count(**changes: object) -> int:
        arguments: dict[str, object] = {
            "states": frozenset(),
            "nova_server": "",
            "after_uuid": "",
            "limit": 10,
            "full": False,
            **changes,
        }
        return len(await reads.list(**arguments))  # type: ignore[arg-type]

    assert await count() == 1
    assert await count(states=frozenset({DomainState.SHUT_OFF})) == 0
    assert await count(states=frozenset({DomainState.RUNNING})) == 1
    assert await count(nova_server="web-1") == 1
    assert await count(nova_server="web-2") == 0
    assert await count(after_uuid=UUID) == 0
    assert await count(limit=0) == 0
    assert await count(full=True) == 1


async def test_watch_gives_a_snapshot_then_changes_then_the_loss(floor_of: FloorOf) -> None:
    fake = host()
    floor = floor_of(fake)
    items: list[WatchItem] = []

    async def watch() -> None:
        async for item in floor.reads.watch([]):
            items.append(item)
            if item.kind is WatchKind.SNAPSHOT_END:
                fake.edit_outside(Edit(current_memory_kib=256 * 1024))
                fake.emit(LifecycleEvent.DEFINED_UPDATED)
            if item.kind is WatchKind.CHANGED:
                fake.errors["read_domain"] = NotFoundError(Reason.DOMAIN_NOT_FOUND, "gone")
                fake.emit(LifecycleEvent.UNDEFINED)
            if item.kind is WatchKind.REMOVED:
                fake.lose_connection(UnavailableError(Reason.LIBVIRT_UNAVAILABLE, "lost"))

    with pytest.raises(UnavailableError):
        await asyncio.wait_for(watch(), 5)
    assert [item.kind for item in items] == [
        WatchKind.SNAPSHOT,
        WatchKind.SNAPSHOT_END,
        WatchKind.CHANGED,
        WatchKind.REMOVED,
    ]
    changed = items[2].facts
    assert isinstance(changed, DomainFacts)
    assert changed.config is not None
    assert changed.config.current_memory_kib == 256 * 1024
    assert items[2].event == "DEFINED UPDATED"
    assert items[3].uuid == UUID


SILENT = DeadlineError(Reason.CALL_TIMED_OUT, "its QEMU is silent")


async def test_ga_07_a_domain_that_cannot_be_read_is_listed_as_such(floor_of: FloorOf) -> None:
    fake = host(nova=True)
    fake.errors["read_domain"] = SILENT
    reads = floor_of(fake).reads

    async def ask(
        states: frozenset[DomainState] = frozenset(), server: str = "", after: str = ""
    ) -> Sequence[DomainFacts | UnreadDomain]:
        return await reads.list(states=states, nova_server=server, after_uuid=after, limit=5, full=True)

    (found,) = await ask()
    assert isinstance(found, UnreadDomain)
    assert (found.uuid, found.error) == (UUID, SILENT)
    assert await ask(states=frozenset({DomainState.RUNNING})) == [found]
    assert await ask(states=frozenset({DomainState.SHUT_OFF})) == []
    assert await ask(after=UUID) == []
    assert await ask(server="web-1") == [], "it is running, and Nova's metadata were read: it has none"
    nameless = replace(found, state=None)

    async def barely() -> DomainList:
        return DomainList([], [nameless])

    fake.read_domains = barely  # type: ignore[method-assign]
    assert await ask(server="web-1") == [nameless]
    assert await ask(states=frozenset({DomainState.SHUT_OFF})) == [nameless]
    with pytest.raises(DeadlineError):
        await reads.get(UUID, full=True)


async def test_ga_07_a_read_for_a_caller_is_hasty_and_one_of_an_operation_is_not(floor_of: FloorOf) -> None:
    fake = host()
    asked: list[bool] = []
    read = fake.read_domain

    async def note(uuid: str, *, hasty: bool = False) -> DomainFacts:
        asked.append(hasty)
        return await read(uuid, hasty=hasty)

    fake.read_domain = note  # type: ignore[method-assign]
    floor = floor_of(fake)
    await floor.reads.get(UUID, full=False)
    assert asked == [True]
    await floor.changes.plan(UUID, RAISE)
    assert asked == [True, True]
    await floor.result(RAISE)
    assert (asked[2], set(asked[3:])) == (True, {False})


async def test_ga_07_a_watch_goes_on_beside_a_domain_that_cannot_be_read(floor_of: FloorOf) -> None:
    fake = host()
    fake.errors["read_domain"] = SILENT
    seen: list[tuple[WatchKind, type, str]] = []
    async for item in floor_of(fake).reads.watch([UUID]):
        seen.append((item.kind, type(item.facts), item.event))
        if item.kind is WatchKind.SNAPSHOT_END:
            fake.emit(LifecycleEvent.SUSPENDED)
        if item.kind is WatchKind.CHANGED and len(seen) == 3:
            del fake.errors["read_domain"]
            fake.emit(LifecycleEvent.RESUMED)
        if len(seen) == 4:
            break
    assert seen == [
        (WatchKind.SNAPSHOT, UnreadDomain, ""),
        (WatchKind.SNAPSHOT_END, type(None), ""),
        (WatchKind.CHANGED, UnreadDomain, "SUSPENDED"),
        (WatchKind.CHANGED, DomainFacts, "RESUMED"),
    ]


async def test_hundreds_who_watch_one_event_cost_one_read(floor_of: FloorOf) -> None:
    fake = host()
    reads = floor_of(fake).reads
    watches = [aiter(reads.watch([])) for _ in range(200)]
    for watch in watches:
        assert [(await anext(watch)).kind for _ in range(2)] == [WatchKind.SNAPSHOT, WatchKind.SNAPSHOT_END]
    calls: list[str] = []
    fake.before_call = calls.append
    changes = asyncio.gather(*(anext(watch) for watch in watches))
    await asyncio.sleep(0)
    fake.emit(LifecycleEvent.SUSPENDED)
    assert {(item.kind, item.event) for item in await changes} == {(WatchKind.CHANGED, "SUSPENDED")}
    assert calls.count("read_domain") == 1
    for watch in watches:
        await watch.aclose()  # type: ignore[attr-defined]


async def test_watch_of_a_name_that_fits_nothing(floor_of: FloorOf) -> None:
    with pytest.raises(NotFoundError):
        await anext(aiter(floor_of(host()).reads.watch(["nobody"])))


async def test_the_host_is_summed_over_its_domains(floor_of: FloorOf) -> None:
    floor = floor_of(host(maximum=8, current=3))
    room = await floor.reads.host()
    assert (room.resources.pcpus, room.running_domains) == (8, 1)
    assert (room.current_vcpus, room.maximum_vcpus, room.vcpus_left) == (3, 8, 8 * 16 - 3)
