"""Deadlines, turns and connections of a link (case GA-07), on real connections with calls that hang as told."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager

import libvirt
import pytest

from hvsvc.adapters.libvirt_link import Link
from hvsvc.adapters.libvirt_settings import LibvirtSettings
from hvsvc.errors import DeadlineError, NotFoundError, Reason, UnavailableError
from tests.private_libvirtd import PrivateLibvirtd

# The link and its connections are real; what a domain's state does to a call is the test's to say.
_SETTINGS = LibvirtSettings(uri="test:///default", call_timeout_s=20, max_connections=2)
_NOBODY = "00000000-0000-0000-0000-000000000000"


@asynccontextmanager
async def opened(settings: LibvirtSettings = _SETTINGS) -> AsyncIterator[Link]:
    link = Link(settings, "test")
    try:
        yield link
    finally:
        link.close()


class Hanging:
    """Native calls that hang until they are let go; `entered` counts those that began."""

    def __init__(self) -> None:
        self._go = threading.Event()
        self.entered = 0

    def __call__(self, _connection: libvirt.virConnect) -> str:
        self.entered += 1
        assert self._go.wait(60)
        return "came back"

    def let_go(self) -> None:
        self._go.set()


@pytest.fixture
def hanging() -> Iterator[Hanging]:
    calls = Hanging()
    yield calls
    calls.let_go()


def read_thread(_connection: libvirt.virConnect) -> str:
    return threading.current_thread().name


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110  a native thread changes it
            await asyncio.sleep(0.01)


async def hang(link: Link, hanging: Hanging, domain: str) -> None:
    await link.call(id, "ask")  # a connection is open: the deadline is that of the call
    with pytest.raises(DeadlineError) as caught:
        await link.call(hanging, "ask", timeout_s=0.2, domain=domain)
    assert caught.value.reason is Reason.CALL_TIMED_OUT


async def test_ga_07_the_caller_gets_its_deadline_while_the_call_goes_on(hanging: Hanging) -> None:
    async with opened() as link:
        await hang(link, hanging, "stuck")
        assert link.hangs("stuck")
        assert not link.hangs("other")
        hanging.let_go()
        await until(lambda: not link.hangs("stuck"))
        assert await link.call(lambda _: 7, "ask", domain="stuck") == 7


async def test_ga_07_a_second_call_of_the_domain_waits_without_a_place(hanging: Hanging) -> None:
    async with opened() as link:
        await hang(link, hanging, "stuck")
        for _ in range(8):
            await hang(link, hanging, "stuck")
        assert hanging.entered == 1
        # one place of four is taken, by the one call that hangs
        barrier = threading.Barrier(3, timeout=20)
        together = [
            link.call(lambda _: barrier.wait(), "ask", domain=f"other-{number}") for number in range(3)
        ]
        assert sorted(await asyncio.gather(*together)) == [0, 1, 2]


async def test_a_call_takes_its_turn_when_the_one_before_comes_back_in_time(hanging: Hanging) -> None:
    async with opened() as link:
        first = asyncio.create_task(link.call(hanging, "ask", domain="one"))
        await until(lambda: hanging.entered == 1)
        second = asyncio.create_task(link.call(lambda _: "second", "ask", domain="one"))
        hanging.let_go()
        assert (await first, await second) == ("came back", "second")


async def test_ga_07_hanging_domains_never_starve_the_others(hanging: Hanging) -> None:
    """Two of four places hang: the connection is left, and all four places of a new one are free."""
    async with opened() as link:
        await hang(link, hanging, "stuck-1")
        before = link._current
        assert await link.call(lambda _: 7, "ask") == 7
        assert link._current is before
        await hang(link, hanging, "stuck-2")
        assert await link.call(lambda _: 7, "ask") == 7
        assert link._current is not before
        barrier = threading.Barrier(4, timeout=20)
        together = await asyncio.gather(*(link.call(lambda _: barrier.wait(), "ask") for _ in range(4)))
        assert sorted(together) == [0, 1, 2, 3]


async def test_connections_left_behind_are_bounded_and_come_back_in_time(hanging: Hanging) -> None:
    async with opened() as link:
        for number in range(4):
            await hang(link, hanging, f"stuck-{number}")
        # max_connections is 2: the second one is not left, its two free places serve on
        barrier = threading.Barrier(2, timeout=20)
        assert len(await asyncio.gather(*(link.call(lambda _: barrier.wait(), "ask") for _ in range(2)))) == 2
        await hang(link, hanging, "stuck-4")
        await hang(link, hanging, "stuck-5")
        with pytest.raises(DeadlineError):
            await link.call(read_thread, "ask", timeout_s=0.1)
        assert hanging.entered == 6
        hanging.let_go()
        assert (await link.call(read_thread, "ask")).startswith("libvirt-test-")


async def test_whoever_waits_for_a_place_of_a_connection_that_is_left_gets_one_on_the_next(
    hanging: Hanging,
) -> None:
    async with opened(LibvirtSettings(uri="test:///default", calls_in_flight=1)) as link:
        await link.call(id, "ask")
        stuck = asyncio.create_task(hang(link, hanging, "stuck"))
        await until(lambda: hanging.entered == 1)
        waiting = [asyncio.create_task(link.call(read_thread, "ask", domain=f"d{n}")) for n in range(3)]
        await stuck
        assert await asyncio.gather(*waiting) == ["libvirt-test-1"] * 3


async def test_a_caller_that_gives_up_leaves_the_turn_to_the_call(hanging: Hanging) -> None:
    async with opened() as link:
        caller = asyncio.create_task(link.call(hanging, "ask", domain="one"))
        await until(lambda: hanging.entered == 1)
        caller.cancel()
        with pytest.raises(asyncio.CancelledError):
            await caller
        with pytest.raises(DeadlineError):
            await link.call(lambda _: 1, "ask", timeout_s=0.1, domain="one")
        hanging.let_go()
        assert await link.call(lambda _: 2, "ask", domain="one") == 2


async def test_grace_prolongs_a_deadline_once(hanging: Hanging) -> None:
    async with opened() as link:
        await link.call(id, "ask")
        asked: list[bool] = []

        async def grace() -> float:
            asked.append(True)
            return 20

        call = asyncio.create_task(link.call(hanging, "ask", timeout_s=0.1, grace=grace))
        await asyncio.sleep(0.4)
        assert not call.done()
        hanging.let_go()
        assert await call == "came back"
        assert asked == [True]


async def test_a_call_that_comes_back_while_grace_is_asked_is_not_lost(hanging: Hanging) -> None:
    async with opened() as link:
        await link.call(id, "ask")

        async def grace() -> float:
            hanging.let_go()
            await until(lambda: not link._turns)
            return 0

        assert await link.call(hanging, "ask", timeout_s=0.1, grace=grace, domain="one") == "came back"
        assert not link.hangs("one")


async def test_ga_07_a_call_whose_caller_left_hangs_from_its_deadline_on(hanging: Hanging) -> None:
    """A client with little patience leaves; who comes next must not wait for what is known to hang."""
    async with opened() as link:
        caller = asyncio.create_task(link.call(hanging, "ask", timeout_s=0.3, domain="one"))
        await until(lambda: hanging.entered == 1)
        caller.cancel()
        with pytest.raises(asyncio.CancelledError):
            await caller
        assert not link.hangs("one")
        await until(lambda: link.hangs("one"))
        hanging.let_go()
        await until(lambda: not link.hangs("one"))


async def test_errors_of_libvirt_are_translated_with_the_reason_of_the_call() -> None:
    async with opened() as link:
        with pytest.raises(NotFoundError) as caught:
            await link.call(lambda connection: connection.lookupByUUIDString(_NOBODY), "read it")
        assert caught.value.reason is Reason.DOMAIN_NOT_FOUND
        assert isinstance(caught.value.__cause__, libvirt.libvirtError)


async def test_a_killed_libvirtd_is_unavailable_and_recovers_without_a_restart() -> None:
    daemon = PrivateLibvirtd()
    try:
        daemon.start()
        closed: list[bool] = []
        settings = LibvirtSettings(uri=daemon.uri)
        link = Link(settings, "test", on_closed=lambda: closed.append(True))
        try:
            assert await link.call(lambda connection: connection.isAlive(), "ask") == 1
            daemon.kill()
            for _ in range(2):
                with pytest.raises(UnavailableError) as caught:
                    await link.call(lambda connection: connection.getHostname(), "ask")
                assert caught.value.reason is Reason.LIBVIRT_UNAVAILABLE
            await until(lambda: bool(closed))
            daemon.start()
            assert await link.call(lambda connection: connection.isAlive(), "ask") == 1
            assert closed == [True]
        finally:
            link.close()
    finally:
        daemon.stop()
