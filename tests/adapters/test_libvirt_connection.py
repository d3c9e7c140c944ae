"""One connection: opened, used, broken, closed."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from pathlib import Path

import libvirt
import pytest

from hvsvc.adapters.libvirt_connection import Connection
from hvsvc.adapters.libvirt_settings import LibvirtSettings
from hvsvc.errors import Reason, UnavailableError
from tests.private_libvirtd import PrivateLibvirtd
from tests.qemu_embed import EmbedRoot


def connect(uri: str, *, read_only: bool = False) -> Connection:
    return Connection(LibvirtSettings(uri=uri), "test", read_only=read_only, prepare=None, on_closed=None)


async def test_a_retired_connection_closes_after_its_last_call(private_libvirtd: PrivateLibvirtd) -> None:
    connection = connect(private_libvirtd.uri)
    await connection.wait_open()
    await connection.slots.acquire()
    go = threading.Event()
    call = connection.run(lambda native: (go.wait(20), native.isAlive())[1], "ask", Reason.HYPERVISOR_REFUSED)
    connection.retire()
    assert not connection.finished
    go.set()
    assert await call == 1
    assert connection.finished


async def test_ga_07_calls_at_once_share_no_native_connection(private_libvirtd: PrivateLibvirtd) -> None:
    connection = connect(private_libvirtd.uri)
    await connection.wait_open()
    barrier = threading.Barrier(4, timeout=20)
    seen: set[libvirt.virConnect] = set()

    def note(native: libvirt.virConnect) -> int:
        seen.add(native)
        barrier.wait()
        return int(native.isAlive())

    for _ in range(2):
        for _ in range(4):
            await connection.slots.acquire()
        calls = [connection.run(note, "ask", Reason.HYPERVISOR_REFUSED) for _ in range(4)]
        assert await asyncio.gather(*calls) == [1, 1, 1, 1]
    assert len(seen) == 4, "and each thread keeps its own"
    connection.retire()


async def test_every_native_connection_is_closed_with_it() -> None:
    daemon = PrivateLibvirtd()  # of its own: nobody else opens or closes anything there
    try:
        daemon.start()
        ends = Path("/proc") / (daemon.path / "pid").read_text().strip() / "fd"
        connection = connect(daemon.uri)
        await connection.wait_open()
        barrier = threading.Barrier(4, timeout=20)
        for _ in range(4):
            await connection.slots.acquire()
        calls = [connection.run(lambda _: barrier.wait(), "ask", Reason.HYPERVISOR_REFUSED) for _ in range(4)]
        await asyncio.gather(*calls)
        opened = count(ends)
        connection.retire()
        async with asyncio.timeout(20):
            while count(ends) > opened - 4:  # noqa: ASYNC110  native threads close them
                await asyncio.sleep(0.05)
    finally:
        daemon.stop()


def count(folder: Path) -> int:
    return len(list(folder.iterdir()))


async def test_a_read_only_connection_cannot_change_anything(private_libvirtd: PrivateLibvirtd) -> None:
    connection = connect(private_libvirtd.uri, read_only=True)
    await connection.wait_open()
    await connection.slots.acquire()
    with pytest.raises(Exception, match="read only") as caught:
        await connection.run(
            lambda native: native.defineXML("<domain/>"), "define", Reason.DEFINITION_REFUSED
        )
    assert caught.value.reason is Reason.LIBVIRT_NOT_PERMITTED  # type: ignore[attr-defined]
    connection.retire()


async def test_a_connection_that_cannot_be_opened_is_dead(private_libvirtd: PrivateLibvirtd) -> None:
    connection = connect(f"{private_libvirtd.uri}.none")
    with pytest.raises(UnavailableError):
        await connection.wait_open()
    assert connection.dead
    connection.retire()


async def test_ga_07_a_libvirtd_that_does_not_answer_is_given_up_by_keepalive() -> None:
    daemon = PrivateLibvirtd()
    try:
        daemon.start()
        closed = asyncio.Event()
        # one thread: another would open a native connection of its own, and nothing keeps that alive yet
        settings = LibvirtSettings(
            uri=daemon.uri, keepalive_interval_s=1, keepalive_count=1, calls_in_flight=1
        )
        connection = Connection(settings, "test", read_only=False, prepare=None, on_closed=closed.set)
        await connection.wait_open()
        pid = int((daemon.path / "pid").read_text())
        os.kill(pid, signal.SIGSTOP)
        try:
            await connection.slots.acquire()
            with pytest.raises(UnavailableError):
                await connection.run(lambda native: native.getHostname(), "ask", Reason.HYPERVISOR_REFUSED)
            await asyncio.wait_for(closed.wait(), 30)
            assert connection.dead
        finally:
            os.kill(pid, signal.SIGCONT)
        connection.retire()
    finally:
        daemon.stop()


async def test_the_embedded_driver_is_opened_once_however_many_ask(
    embed_root: EmbedRoot, embed: libvirt.virConnect
) -> None:
    """libvirt has room for some twenty opens in the life of a process."""
    for _ in range(40):
        connections = [connect(embed_root.uri), connect(embed_root.uri, read_only=True)]
        await asyncio.gather(*(connection.wait_open() for connection in connections))
        for connection in connections:
            connection.retire()
    last = connect(embed_root.uri)
    await last.wait_open()
    await last.slots.acquire()
    assert await last.run(lambda native: native.isAlive(), "ask", Reason.HYPERVISOR_REFUSED) == 1
    last.retire()
