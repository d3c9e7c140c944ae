"""Reads of domains beside one whose QEMU does not answer (case GA-07): on the real driver, and on a libvirt as told.

What a silent QEMU hides depends on libvirt: 9.0 gives out its definition, newer ones make whoever asks for it
wait. The fake is of the newer kind, wherever the tests run.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace

import libvirt
import pytest

from hvsvc.adapters.libvirt_domains import LibvirtDomains
from hvsvc.adapters.libvirt_facts import XmlReader, read_balloon, read_facts
from hvsvc.adapters.libvirt_reads import LibvirtReads
from hvsvc.adapters.libvirt_settings import LibvirtSettings
from hvsvc.adapters.libvirt_unread import DEFINITION_WAITS_SINCE
from hvsvc.domain.facts import Balloon, DomainFacts, DomainState
from hvsvc.domain.unread import DomainList, UnreadDomain
from hvsvc.errors import AbortedError, DeadlineError, NotFoundError, Reason
from tests.adapters.libvirt_parts import NOBODY, opened, stopped_qemu
from tests.fakes.busy_libvirt import BusyLibvirt
from tests.qemu_embed import EmbedRoot

Make = Callable[..., libvirt.virDomain]
DEFINITION_WAITS = libvirt.getVersion() >= DEFINITION_WAITS_SINCE
ACTUAL_KIB = 1024 * 1024
#: far above what many reads of domains that answer take, far below libvirt's own 30 s for one that does not
BOUND_S = 15


@pytest.fixture
async def hypervisor(embed_root: EmbedRoot, embed: libvirt.virConnect) -> AsyncIterator[LibvirtDomains]:
    settings = LibvirtSettings(uri=embed_root.uri, statistics_timeout_s=1.0)
    async with opened(settings) as domains:
        await domains.open()
        yield domains


async def wait_occupied(domain: libvirt.virDomain) -> None:
    """Waits until somebody waits for the domain's QEMU."""
    async with asyncio.timeout(BOUND_S):
        while domain.controlInfo()[0] != libvirt.VIR_DOMAIN_CONTROL_OCCUPIED:  # noqa: ASYNC110
            await asyncio.sleep(0.01)


def find(domains: DomainList, uuid: str) -> DomainFacts | UnreadDomain:
    every: list[DomainFacts | UnreadDomain] = [*domains.read, *domains.unread]
    (found,) = (one for one in every if one.uuid == uuid)
    return found


def check_silent(found: DomainFacts | UnreadDomain, domain: libvirt.virDomain) -> None:
    """All that this libvirt tells of a domain whose QEMU is silent."""
    if not DEFINITION_WAITS:
        assert isinstance(found, DomainFacts)
        assert (found.state, found.balloon) == (DomainState.RUNNING, Balloon())
        return
    assert isinstance(found, UnreadDomain)
    assert found.error.reason is Reason.CALL_TIMED_OUT
    assert (found.libvirt_name, found.id, found.state) == (domain.name(), domain.ID(), DomainState.RUNNING)
    assert (found.current_vcpus, found.maximum_vcpus) == (2, 8)
    assert found.maximum_memory_kib == ACTUAL_KIB
    assert found.persistent


async def test_the_list_says_what_reading_each_one_says(
    hypervisor: LibvirtDomains, define_domain: Make, boot_guest: Make
) -> None:
    off, running = define_domain(), boot_guest(until="started")
    running.suspend()
    domains = await hypervisor.read_domains()
    assert list(domains.unread) == []
    for domain in (off, running):
        # these two are read for a single domain only
        expected = replace(read_facts(domain, XmlReader(), ("none", "0")), messages=(), autostart_once=None)
        if domain is running:
            expected = replace(expected, balloon=read_balloon(running))
        found = find(domains, domain.UUIDString())
        assert isinstance(found, DomainFacts)
        assert (found.cpu_time_ns or 0) <= (expected.cpu_time_ns or 0), (
            "QEMU answers, so it is never quite at rest"
        )
        assert replace(found, security=expected.security, cpu_time_ns=expected.cpu_time_ns) == expected


@pytest.mark.parametrize("by", ["hvsvc", "another"])
async def test_ga_07_a_qemu_that_does_not_answer_hides_no_other_domain(
    hypervisor: LibvirtDomains, embed_root: EmbedRoot, boot_guest: Make, by: str
) -> None:
    stuck, well = boot_guest(until="started"), boot_guest(until="started")
    uuid = stuck.UUIDString()
    asking: asyncio.Task[dict[str, int]] | None = None
    with stopped_qemu(embed_root, stuck):
        if by == "hvsvc":
            first = await hypervisor.read_domain(uuid, hasty=True)
            assert (first.state, first.balloon) == (DomainState.RUNNING, Balloon())
        else:
            asking = asyncio.create_task(asyncio.to_thread(stuck.memoryStats))
            await wait_occupied(stuck)
        with pytest.raises(DeadlineError):
            await hypervisor.read_balloon(uuid)
        async with asyncio.timeout(BOUND_S):
            for _ in range(20):
                domains = await hypervisor.read_domains()
                check_silent(find(domains, uuid), stuck)
                found = find(domains, well.UUIDString())
                assert isinstance(found, DomainFacts)
                assert found.balloon.actual_kib == ACTUAL_KIB
                assert (await hypervisor.read_domain(well.UUIDString())).balloon.actual_kib == ACTUAL_KIB
                if DEFINITION_WAITS:
                    with pytest.raises(DeadlineError, match="QEMU has not answered"):
                        await hypervisor.read_domain(uuid, hasty=True)
                else:
                    assert (await hypervisor.read_domain(uuid, hasty=True)).balloon == Balloon()
            assert await hypervisor.find_uuids(stuck.name()) == [(uuid, stuck.name())]
    async with asyncio.timeout(60):
        while (await hypervisor.read_domain(uuid)).balloon.actual_kib != ACTUAL_KIB:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    if asking is not None:
        assert (await asking)["actual"] == ACTUAL_KIB


# ---------------------------------------------------------------- on a libvirt newer than 9.0, as told


@asynccontextmanager
async def reading(
    fake: BusyLibvirt, monkeypatch: pytest.MonkeyPatch, **settings: float
) -> AsyncIterator[LibvirtReads]:
    monkeypatch.setattr(libvirt, "open", fake.open)
    wanted = {"statistics_timeout_s": 0.5, **settings}
    reads = LibvirtReads(LibvirtSettings(uri="test:///fake", **wanted), XmlReader())  # type: ignore[arg-type]
    try:
        yield reads
    finally:
        for domain in fake.domains:
            domain.wake()
        reads.link.close()


async def test_ga_07_a_domain_that_hangs_has_one_call_in_flight_however_many_ask(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fake = BusyLibvirt(3)
    stuck = fake.domains[1]
    async with reading(fake, monkeypatch) as reads, asyncio.timeout(BOUND_S):
        stuck.silence()
        for _ in range(5):
            lists = await asyncio.gather(
                *(reads.read_domains() for _ in range(10)),
                *(reads.read_domain(one.UUIDString(), hasty=True) for one in fake.domains),
                return_exceptions=True,
            )
            for found in lists[:10]:
                assert isinstance(found, DomainList)
                assert [one.balloon.actual_kib for one in found.read if one.uuid != stuck.UUIDString()] == [
                    512 * 1024,
                    512 * 1024,
                ]
            assert stuck.most_blocked == 1
            assert stuck.blocked == 1
        last = await reads.read_domains()
        assert [one.libvirt_name for one in last.unread] == ["instance-1"]
        assert "QEMU has not answered" in last.unread[0].error.message
        stuck.wake()
        while (await reads.read_domains()).unread:  # noqa: ASYNC110
            await asyncio.sleep(0.05)


async def test_ga_07_many_silent_domains_of_another_client_cost_no_call_that_waits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fake = BusyLibvirt(24)
    silent = fake.domains[:20]
    for domain in silent:
        domain.silence(kept_for_s=10)
    async with reading(fake, monkeypatch) as reads, asyncio.timeout(BOUND_S):
        for _ in range(3):
            found = await reads.read_domains()
            assert [one.uuid for one in found.unread] == [one.UUIDString() for one in silent]
            assert len(found.read) == 4
        assert {domain.most_blocked for domain in silent} == {0}


@pytest.mark.parametrize("definition_waits", [False, True])
async def test_ga_07_however_many_domains_hang_the_others_are_read(
    monkeypatch: pytest.MonkeyPatch, definition_waits: bool
) -> None:
    fake = BusyLibvirt(30, definition_waits=definition_waits)
    silent, well = fake.domains[:24], fake.domains[24:]
    for domain in silent:
        domain.silence()
    async with reading(fake, monkeypatch) as reads, asyncio.timeout(BOUND_S):
        first = await reads.read_domains()
        assert len(first.read) == 30, "each definition was read before QEMU was asked"
        hanging = {domain.UUIDString() for domain in silent if domain.blocked}
        assert 6 <= len(hanging) < 12, "there are 4 places each on 3 connections"
        for _ in range(3):
            found = await reads.read_domains()
            assert len(found.read) + len(found.unread) == 30
            assert {one.UUIDString() for one in well} <= {one.uuid for one in found.read}
            assert {one.uuid for one in found.unread} == (hanging if definition_waits else set())
        assert hanging == {domain.UUIDString() for domain in silent if domain.blocked}
        uuid = well[0].UUIDString()
        assert (await reads.read_domain(uuid, hasty=True)).balloon == Balloon()
        assert (await reads.read_domain(uuid, hasty=False)).balloon.actual_kib == 512 * 1024
        for domain in silent:
            domain.wake()
        while any(one.balloon.actual_kib is None for one in (await reads.read_domains()).read):  # noqa: ASYNC110
            await asyncio.sleep(0.05)


async def test_ga_07_what_just_became_silent_costs_each_list_its_patience_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fake = BusyLibvirt(3)
    stuck = fake.domains[0]
    stuck.silence(kept_for_s=0)
    async with reading(fake, monkeypatch) as reads, asyncio.timeout(BOUND_S):
        for _ in range(20):
            found = await reads.read_domains()
            assert ([one.uuid for one in found.unread], len(found.read)) == ([stuck.UUIDString()], 2)
        assert stuck.most_blocked == 1


async def test_a_domain_that_starts_is_waited_for_by_whoever_reads_it_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fake = BusyLibvirt(2)
    starting = fake.domains[0]
    starting.take_job()
    async with reading(fake, monkeypatch) as reads, asyncio.timeout(BOUND_S):
        alone = [
            asyncio.create_task(reads.read_domain(starting.UUIDString(), hasty=hasty))
            for hasty in (True, False)
        ]
        listed = await reads.read_domains()
        assert [one.uuid for one in listed.unread] == [starting.UUIDString()]
        assert len(listed.read) == 1
        assert not any(task.done() for task in alone)
        assert starting.most_blocked == 1
        starting.end_job()
        for facts in await asyncio.gather(*alone):
            assert facts.live is not None
            assert facts.live.maximum_vcpus == 8


async def test_ga_07_an_operation_waits_for_its_own_domain_as_long_as_libvirt_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fake = BusyLibvirt(1, job_wait_s=1.5)
    fake.domains[0].silence(kept_for_s=10)
    async with reading(fake, monkeypatch) as reads, asyncio.timeout(BOUND_S):
        with pytest.raises(AbortedError) as refused:
            await reads.read_domain(fake.domains[0].UUIDString(), hasty=False)
        assert refused.value.reason is Reason.DOMAIN_BUSY


async def test_a_domain_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    async with reading(BusyLibvirt(1), monkeypatch) as reads:
        with pytest.raises(NotFoundError):
            await reads.read_domain(NOBODY, hasty=True)
