"""What libvirt tells of a domain without its definition."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import libvirt
import pytest

from hvsvc.adapters.libvirt_facts import Listed
from hvsvc.adapters.libvirt_unread import read_nova, read_unread, refuse_silent
from hvsvc.domain.facts import DomainState
from hvsvc.domain.unread import UnreadDomain
from hvsvc.errors import AbortedError, DeadlineError, Reason
from tests.adapters.libvirt_parts import stopped_qemu
from tests.qemu_embed import EmbedRoot

Make = Callable[..., libvirt.virDomain]
LISTED = Listed(off=False, persistent=True, autostart=True, managed_save=False)
TIMED_OUT = DeadlineError(Reason.CALL_TIMED_OUT, "no answer in 2 s")
KIB = 1024


def nova(name: str, version: str) -> str:
    return (
        f"<metadata><n:instance xmlns:n='http://openstack.org/xmlns/libvirt/nova/{version}'><n:name>{name}</n:name>"
        "<n:flavor name='small'><n:vcpus>2</n:vcpus></n:flavor></n:instance></metadata>"
    )


async def test_ga_07_a_silent_qemu_is_seen_without_asking_it(embed_root: EmbedRoot, boot_guest: Make) -> None:
    domain = boot_guest(until="started", metadata=nova("web-1", "1.1"))
    refuse_silent(domain, 0.5)
    with stopped_qemu(embed_root, domain):
        refuse_silent(domain, 0.5)  # nobody asks it
        asking = asyncio.create_task(asyncio.to_thread(domain.memoryStats))
        async with asyncio.timeout(20):
            while domain.controlInfo()[2] < 500:  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        with pytest.raises(
            DeadlineError, match=f"domain {domain.name()}: its QEMU has not answered"
        ) as refused:
            refuse_silent(domain, 0.5)
        assert refused.value.reason is Reason.CALL_TIMED_OUT
        refuse_silent(domain, 3600)
        found = read_unread(domain, LISTED, TIMED_OUT, 0.5)
        assert "its QEMU has not answered" in found.error.message
        busy = AbortedError(Reason.DOMAIN_BUSY, "busy")
        assert read_unread(domain, LISTED, busy, 0.5).error is busy
    await asking
    assert read_unread(domain, LISTED, TIMED_OUT, 0.5) == UnreadDomain(
        uuid=domain.UUIDString(),
        libvirt_name=domain.name(),
        error=TIMED_OUT,
        id=domain.ID(),
        state=DomainState.RUNNING,
        persistent=True,
        autostart=True,
        maximum_vcpus=8,
        current_vcpus=2,
        maximum_memory_kib=1024 * KIB,
        used_memory_kib=domain.info()[2],
        nova=found.nova,
    )
    assert found.nova is not None
    assert (found.nova.name, found.nova.flavor, found.nova.flavor_vcpus) == ("web-1", "small", 2)


def test_a_domain_that_is_off_is_not_silent_and_has_nothing_live(define_domain: Make) -> None:
    domain = define_domain()
    refuse_silent(domain, 0)
    found = read_unread(domain, LISTED, TIMED_OUT, 0)
    assert (found.id, found.state, found.current_vcpus, found.maximum_vcpus) == (
        None,
        DomainState.SHUT_OFF,
        None,
        None,
    )
    assert (found.used_memory_kib, found.nova) == (None, None)


@pytest.mark.parametrize("version", ["1.0", "1.1"])
def test_novas_metadata_is_read_from_either_side(define_domain: Make, version: str) -> None:
    domain = define_domain(metadata=nova("web-1", version))
    found = read_nova(domain)
    assert found is not None
    assert found.name == "web-1"
    domain.create()
    domain.setMetadata(
        libvirt.VIR_DOMAIN_METADATA_ELEMENT,
        None,
        "n",
        f"http://openstack.org/xmlns/libvirt/nova/{version}",
        libvirt.VIR_DOMAIN_AFFECT_LIVE,
    )
    stored = read_nova(domain)
    assert stored is not None
    assert stored.name == "web-1"
