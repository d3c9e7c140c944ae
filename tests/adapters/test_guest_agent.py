"""The guest agent of a real guest, real or replaced inside it by one that says anything."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path

import libvirt
import pytest

from hvsvc.adapters.guest_agent import GuestAgent
from hvsvc.adapters.libvirt_settings import LibvirtSettings
from hvsvc.domain.facts import GuestCpu
from hvsvc.errors import GuestAgentError, NotFoundError, Reason, UnavailableError
from tests.fakes.guest_stub import GuestStub, block_command, stop_agent
from tests.guest_domains import GuestDomains, GuestImage, read_guest_cpus, wait_for
from tests.private_libvirtd import PrivateLibvirtd
from tests.qemu_embed import EmbedRoot

pytestmark = pytest.mark.guest

_LIVE = libvirt.VIR_DOMAIN_AFFECT_LIVE
_ERROR = b'{"error": {"class": "GenericError", "desc": "no"}}\n'
_TWO_CPUS = [{"logical-id": 0, "online": True}, {"logical-id": 7, "online": False, "can-offline": True}]


@pytest.fixture
async def agent(embed_root: EmbedRoot, embed: libvirt.virConnect) -> AsyncIterator[GuestAgent]:
    agent = GuestAgent(LibvirtSettings(uri=embed_root.uri, agent_timeout_s=2))
    yield agent
    await agent.close()


@pytest.fixture(scope="module")
def stubbed(
    embed: libvirt.virConnect, guest_image: GuestImage, console_dir: Path
) -> Iterator[tuple[str, GuestStub]]:
    """A guest whose agent is the stub, for all tests of the module that need one."""
    with GuestDomains(embed, guest_image, console_dir) as domains:
        domain = domains.boot(until="booted")
        yield domain.UUIDString(), GuestStub(domain)


async def reason_of(asked: Awaitable[object]) -> Reason:
    with pytest.raises(GuestAgentError) as caught:
        await asked
    return caught.value.reason


async def until(reason: Reason, ask: Callable[[], Awaitable[object]]) -> None:
    """Asks until the agent, which is about to be replaced, gives this reason."""
    for _ in range(100):
        try:
            await ask()
        except GuestAgentError as err:
            if err.reason is reason:
                return
        await asyncio.sleep(0.2)
    raise AssertionError(f"never {reason}")


async def test_reads_and_onlines_what_it_is_told_and_nothing_else(
    agent: GuestAgent, boot_guest: Callable[..., libvirt.virDomain]
) -> None:
    domain = boot_guest(until="booted")
    uuid = domain.UUIDString()
    assert (await agent.read_cpus(uuid)).cpus == (
        GuestCpu(0, online=True, can_offline=False),
        GuestCpu(1, online=True, can_offline=True),
    )
    domain.setVcpusFlags(5, _LIVE)
    wait_for(lambda: len(read_guest_cpus(domain)) == 5, "five CPUs in the guest")
    await agent.set_online(uuid, frozenset({0, 3, 4}))
    assert (await agent.read_cpus(uuid)).offline_ids == {2}
    # Of a list the agent does what comes before the first failure: no error, read again.
    await agent.set_online(uuid, frozenset({2, 77}))
    assert (await agent.read_cpus(uuid)).offline_ids == frozenset()
    assert await reason_of(agent.set_online(uuid, frozenset({77}))) is Reason.AGENT_REFUSED
    await agent.set_online(uuid, frozenset({0}))
    await agent.ping(uuid)


async def test_ga_01_not_configured_not_connected_not_running(
    agent: GuestAgent,
    boot_guest: Callable[..., libvirt.virDomain],
    define_domain: Callable[..., libvirt.virDomain],
) -> None:
    without = boot_guest(agent=False, until="started").UUIDString()
    deaf = boot_guest(words="noga", until="started").UUIDString()
    off = define_domain().UUIDString()
    for asked in (agent.read_cpus, agent.ping):
        assert await reason_of(asked(without)) is Reason.AGENT_NOT_CONFIGURED
        assert await reason_of(asked(deaf)) is Reason.AGENT_NOT_CONNECTED
        assert await reason_of(asked(off)) is Reason.AGENT_NOT_CONNECTED
    with pytest.raises(NotFoundError):
        await agent.read_cpus("00000000-0000-0000-0000-000000000000")


async def test_ga_02_a_blocked_command_is_told_from_a_refusal(
    agent: GuestAgent, boot_guest: Callable[..., libvirt.virDomain]
) -> None:
    domain = boot_guest(until="booted")
    uuid = domain.UUIDString()
    block_command(domain, "guest-set-vcpus")
    await until(Reason.AGENT_COMMAND_MISSING, lambda: agent.set_online(uuid, frozenset({1})))
    await agent.ping(uuid)
    assert (await agent.read_cpus(uuid)).online == 2


async def test_ga_07_a_silent_agent_holds_up_nobody_else(
    agent: GuestAgent, boot_guest: Callable[..., libvirt.virDomain]
) -> None:
    silent, well = boot_guest(until="booted"), boot_guest(until="booted")
    stop_agent(silent)
    await until(Reason.AGENT_SILENT, lambda: agent.ping(silent.UUIDString()))
    asked = [asyncio.create_task(reason_of(agent.read_cpus(silent.UUIDString()))) for _ in range(6)]
    await asyncio.sleep(0.1)
    assert (await agent.read_cpus(well.UUIDString())).online == 2
    assert not any(task.done() for task in asked)
    for task in asked:
        task.cancel()


@pytest.mark.parametrize(
    "said",
    [
        pytest.param(None, id="null"),
        pytest.param([], id="empty"),
        pytest.param({"vcpus": []}, id="object"),
        pytest.param([[0]], id="list"),
        pytest.param([{"logical-id": -1, "online": True}], id="negative"),
        pytest.param([{"logical-id": 2**31, "online": True}], id="huge"),
        pytest.param([{"logical-id": 0, "online": True}] * 2, id="twice"),
    ],
)
async def test_ga_03_replies_that_make_no_sense(
    agent: GuestAgent, stubbed: tuple[str, GuestStub], said: object
) -> None:
    uuid, stub = stubbed
    stub.answer("guest-get-vcpus", said)
    assert await reason_of(agent.read_cpus(uuid)) is Reason.AGENT_REPLY_INVALID
    await agent.ping(uuid)


async def test_cpu_15_ids_with_gaps(agent: GuestAgent, stubbed: tuple[str, GuestStub]) -> None:
    uuid, stub = stubbed
    stub.answer("guest-get-vcpus", _TWO_CPUS)
    cpus = await agent.read_cpus(uuid)
    assert cpus.ids == {0, 7}
    assert cpus.online == 1


async def test_ga_06_a_frozen_agent_is_alive_and_not_thawed(
    agent: GuestAgent, stubbed: tuple[str, GuestStub]
) -> None:
    uuid, stub = stubbed
    for command in ("guest-get-vcpus", "guest-ping"):
        stub.answer(command, _ERROR)
    stub.answer("guest-fsfreeze-status", "frozen")
    assert await reason_of(agent.read_cpus(uuid)) is Reason.AGENT_FROZEN
    await agent.ping(uuid)
    stub.answer("guest-fsfreeze-status", "thawed")
    assert await reason_of(agent.read_cpus(uuid)) is not Reason.AGENT_FROZEN


async def test_an_error_that_nothing_explains_is_a_refusal(
    agent: GuestAgent, stubbed: tuple[str, GuestStub]
) -> None:
    uuid, stub = stubbed
    stub.answer("guest-get-vcpus", _ERROR)
    stub.answer("guest-fsfreeze-status", _ERROR)
    commands = {"version": "1", "supported_commands": [{"name": "guest-get-vcpus", "enabled": True}]}
    stub.answer("guest-info", commands)
    assert await reason_of(agent.read_cpus(uuid)) is Reason.AGENT_REFUSED
    assert await reason_of(agent.set_online(uuid, frozenset({1}))) is Reason.AGENT_COMMAND_MISSING


async def test_ga_03_a_reply_that_is_no_json_silences_the_agent_for_libvirt(
    agent: GuestAgent, boot_guest: Callable[..., libvirt.virDomain]
) -> None:
    domain = boot_guest(until="booted")
    GuestStub(domain).answer("guest-get-vcpus", b'{"return": [}\n')
    assert await reason_of(agent.read_cpus(domain.UUIDString())) is Reason.AGENT_SILENT
    assert domain.isActive()


async def test_no_libvirt_is_unavailable(private_libvirtd: PrivateLibvirtd) -> None:
    nowhere = private_libvirtd.uri + ".none"
    agent = GuestAgent(LibvirtSettings(uri=nowhere))
    with pytest.raises(UnavailableError) as caught:
        await agent.ping("00000000-0000-0000-0000-000000000000")
    assert caught.value.reason is Reason.LIBVIRT_UNAVAILABLE
    await agent.close()
