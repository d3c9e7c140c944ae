"""The hypervisor as operations use it: on the embedded QEMU driver and on a libvirtd that dies."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

import libvirt
import pytest

from hvsvc.adapters.libvirt_domains import LibvirtDomains
from hvsvc.adapters.libvirt_settings import LibvirtSettings
from hvsvc.domain.facts import DomainState, LifecycleEvent
from hvsvc.errors import (
    AbortedError,
    FailedPreconditionError,
    NotFoundError,
    Reason,
    UnavailableError,
)
from tests.adapters.libvirt_parts import NOBODY, config_of, opened
from tests.adapters.test_libvirt_list import nova
from tests.guest_domains import GuestDomains, GuestImage
from tests.private_libvirtd import PrivateLibvirtd
from tests.qemu_embed import EmbedRoot

Make = Callable[..., libvirt.virDomain]


@pytest.fixture
async def hypervisor(embed_root: EmbedRoot, embed: libvirt.virConnect) -> AsyncIterator[LibvirtDomains]:
    async with opened(LibvirtSettings(uri=embed_root.uri, statistics_timeout_s=0.5)) as domains:
        await domains.open()
        yield domains


async def test_a_domain_grows_stops_and_starts_and_its_events_tell(
    hypervisor: LibvirtDomains, define_domain: Make
) -> None:
    domain = define_domain(max_vcpus=4)
    uuid = domain.UUIDString()
    async with hypervisor.events(uuid) as events, asyncio.timeout(60):
        before = await hypervisor.read_domain(uuid)
        assert before.config_xml is not None
        await hypervisor.define(uuid, before.etag, before.config_xml.replace(">524288<", ">393216<"))
        await hypervisor.start(uuid)
        with pytest.raises(FailedPreconditionError) as caught:
            await hypervisor.start(uuid)
        assert caught.value.reason is Reason.START_FAILED
        await hypervisor.set_vcpus_live(uuid, 3)
        facts = await hypervisor.read_domain(uuid)
        assert facts.live is not None
        assert (facts.live.current_vcpus, facts.balloon.actual_kib) == (3, 1024 * 1024)
        assert (facts.state, facts.etag == before.etag) == (DomainState.RUNNING, False)
        await asyncio.to_thread(domain.destroy)
        seen = []
        while LifecycleEvent.STOPPED_DESTROYED not in seen:
            event = await anext(events)
            assert (event.uuid, event.libvirt_name) == (uuid, domain.name())
            seen.append(event.kind)
    told = [kind for kind in seen if kind in {LifecycleEvent.DEFINED_UPDATED, LifecycleEvent.STARTED}]
    assert told == [LifecycleEvent.DEFINED_UPDATED, LifecycleEvent.STARTED]


async def test_what_is_not_there(hypervisor: LibvirtDomains) -> None:
    for call in (
        hypervisor.read_domain(NOBODY),
        hypervisor.read_balloon(NOBODY),
        hypervisor.start(NOBODY),
        hypervisor.set_vcpus_live(NOBODY, 2),
        hypervisor.define(NOBODY, "", "<domain/>"),
    ):
        with pytest.raises(NotFoundError) as caught:
            await call
        assert caught.value.reason is Reason.DOMAIN_NOT_FOUND
    assert await hypervisor.find_uuids(NOBODY) == []


async def test_a_uuid_finds_one_domain_whatever_others_are_called(
    hypervisor: LibvirtDomains, define_domain: Make
) -> None:
    domain = define_domain()
    uuid = domain.UUIDString()
    define_domain(name=uuid)
    assert await hypervisor.find_uuids(uuid.upper()) == [(uuid, domain.name())]


async def test_the_uuid_of_a_domain_that_is_not_here_is_nobodys_server_name(
    hypervisor: LibvirtDomains, define_domain: Make
) -> None:
    # a tenant who calls a server by the id of another, which left this host, must not get what was meant for that
    elsewhere = "0b7c3f5e-1d2a-4e6b-8c9d-a1b2c3d4e5f6"
    named = define_domain(name="instance-1", metadata=nova(elsewhere))
    assert await hypervisor.find_uuids(elsewhere) == []
    assert await hypervisor.find_uuids(elsewhere.upper()) == []
    # a libvirt name is the host's own choice, and 32 digits without dashes are a name like any other
    own = define_domain(name=elsewhere)
    assert await hypervisor.find_uuids(elsewhere) == [(own.UUIDString(), elsewhere)]
    digits = elsewhere.replace("-", "")
    other = define_domain(name="instance-2", metadata=nova(digits))
    assert await hypervisor.find_uuids(digits) == [(other.UUIDString(), other.name())]
    assert named.name() == "instance-1"


async def test_xml_05_a_refused_definition_is_reported_as_such(
    hypervisor: LibvirtDomains, define_domain: Make
) -> None:
    domain = define_domain(max_vcpus=4)
    facts = await hypervisor.read_domain(domain.UUIDString())
    with pytest.raises(FailedPreconditionError) as caught:
        await hypervisor.define(facts.uuid, facts.etag, config_of(domain).replace(">4</vcpu>", ">6</vcpu>"))
    assert caught.value.reason is Reason.DEFINITION_REFUSED
    assert (await hypervisor.read_domain(facts.uuid)).etag == facts.etag


async def test_api_02_of_two_defines_at_once_one_is_aborted(
    hypervisor: LibvirtDomains, define_domain: Make
) -> None:
    facts = await hypervisor.read_domain(define_domain().UUIDString())
    assert facts.config_xml is not None
    xmls = [facts.config_xml.replace(">524288<", f">{kib}<") for kib in (262144, 393216)]
    ended = await asyncio.gather(
        *(hypervisor.define(facts.uuid, facts.etag, xml) for xml in xmls), return_exceptions=True
    )
    assert [type(one) for one in ended] == [type(None), AbortedError]
    config = (await hypervisor.read_domain(facts.uuid)).config
    assert config is not None
    assert config.current_memory_kib == 262144


async def test_rb_06_the_balloon_of_a_domain_that_is_off(
    hypervisor: LibvirtDomains, define_domain: Make
) -> None:
    with pytest.raises(FailedPreconditionError) as caught:
        await hypervisor.read_balloon(define_domain().UUIDString())
    assert caught.value.reason is Reason.DOMAIN_NOT_RUNNING


async def test_read_host_is_of_the_domains_machine(hypervisor: LibvirtDomains, define_domain: Make) -> None:
    facts = await hypervisor.read_domain(define_domain(machine="q35").UUIDString())
    assert (await hypervisor.read_host(facts)).machine_max_vcpus in {288, 4096}  # QEMU 7.2, 10.0; pc has 255


async def test_a_killed_libvirtd_ends_the_events_and_all_recovers_without_a_restart(
    guest_image: GuestImage,
) -> None:
    daemon = PrivateLibvirtd()
    try:
        daemon.start()
        connection = libvirt.open(daemon.uri)
        uuid = connection.defineXML(
            GuestDomains(connection, guest_image, daemon.path).render_xml()
        ).UUIDString()
        connection.close()
        async with opened(LibvirtSettings(uri=daemon.uri)) as hypervisor:
            await hypervisor.open()
            before = await hypervisor.read_domain(uuid)
            async with hypervisor.events() as events, asyncio.timeout(30):
                daemon.kill()
                with pytest.raises(UnavailableError) as caught:
                    await anext(events)
                assert caught.value.reason is Reason.LIBVIRT_UNAVAILABLE
            for call in (
                hypervisor.read_domain(uuid),
                hypervisor.start(uuid),
                hypervisor.probe(),
                hypervisor.read_domains(),
            ):
                with pytest.raises(UnavailableError):
                    await call
            await asyncio.to_thread(daemon.start)
            assert await hypervisor.read_domain(uuid) == before
            async with hypervisor.events(uuid) as events, asyncio.timeout(30):
                assert before.config_xml is not None
                await hypervisor.define(uuid, before.etag, before.config_xml)
                assert (await anext(events)).kind is LifecycleEvent.DEFINED_UPDATED
    finally:
        daemon.stop()


async def test_open_says_that_libvirt_is_not_there(private_libvirtd: PrivateLibvirtd) -> None:
    async with opened(LibvirtSettings(uri=f"{private_libvirtd.uri}.none")) as hypervisor:
        with pytest.raises(UnavailableError) as caught:
            await hypervisor.open()
        assert caught.value.reason is Reason.LIBVIRT_UNAVAILABLE
        with pytest.raises(UnavailableError):
            async with hypervisor.events():
                raise AssertionError("there are no events")
