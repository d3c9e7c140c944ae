"""Nova's adapter, loaded in a thread and once."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from typing import cast

import pytest

from hvsvc.adapters.nova import NovaServers
from hvsvc.adapters.nova_later import LaterServers, import_nova
from hvsvc.domain.facts import ServerFacts
from hvsvc.domain.flavor import Flavor
from hvsvc.errors import FailedPreconditionError, Reason

FACTS = ServerFacts("s", "web-1", "ACTIVE", None, "active", False, None, None)


BIG = Flavor("f", "big", 4, 1024, 1)


class Servers:
    """Answers at once, and knows the threads that made it."""

    made_in: list[threading.Thread]

    def __init__(self) -> None:
        self.made_in = []
        self.closed = False

    def make(self) -> NovaServers:
        self.made_in.append(threading.current_thread())
        return cast("NovaServers", self)

    def close(self) -> None:
        self.closed = True

    async def read_server(self, server_id: str) -> ServerFacts:
        assert server_id == "s"
        return FACTS

    async def reboot_soft(self, server_id: str) -> str:
        raise FailedPreconditionError(Reason.SERVER_LOCKED, f"{server_id} is locked")

    async def read_reboot_result(self, server_id: str, request_id: str) -> str | None:
        return f"{server_id} {request_id}"

    async def list_flavors(self) -> list[Flavor]:
        return [BIG]

    async def may_use_flavor(self, flavor_id: str, project_id: str) -> bool:
        return (flavor_id, project_id) == ("f", "p1")


async def test_flavors_reach_the_real_one() -> None:
    later = LaterServers(Servers().make)
    assert await later.list_flavors() == [BIG]
    assert await later.may_use_flavor("f", "p1")
    assert not await later.may_use_flavor("f", "p2")
    await later.close()


async def test_calls_reach_the_real_one_which_is_made_once_and_off_the_loop() -> None:
    real = Servers()
    later = LaterServers(real.make)
    found = tuple(await asyncio.gather(later.read_server("s"), later.read_reboot_result("s", "req-1")))
    assert found == (FACTS, "s req-1")
    with pytest.raises(FailedPreconditionError):
        await later.reboot_soft("s")
    (made_in,) = real.made_in
    assert made_in is not threading.main_thread()
    await later.close()
    assert real.closed


async def test_closing_what_was_never_used_loads_nothing() -> None:
    real = Servers()
    await LaterServers(real.make).close()
    assert real.made_in == []


async def test_a_caller_that_goes_away_leaves_the_loading_to_the_others() -> None:
    real, go = Servers(), threading.Event()

    def make() -> NovaServers:
        go.wait(10)
        return real.make()

    later = LaterServers(make)
    first = asyncio.create_task(later.read_server("s"))
    second = asyncio.create_task(later.read_server("s"))
    await asyncio.sleep(0)
    first.cancel()
    go.set()
    assert await second == FACTS
    assert len(real.made_in) == 1


def test_it_makes_nova_servers() -> None:
    servers = import_nova("envvars", call_timeout_s=5)
    assert isinstance(servers, NovaServers)
    servers.close()


def test_importing_it_does_not_import_openstacksdk() -> None:
    program = "import sys, hvsvc.adapters.nova_later; sys.exit('openstack' in sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True)
