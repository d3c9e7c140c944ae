"""Answers that are not those of Nova or Keystone are no facts."""

from __future__ import annotations

import pytest

from hvsvc.adapters.nova import NovaServers
from hvsvc.errors import (
    Reason,
    UnavailableError,
)
from tests.fakes.cloud import OTHER_SERVER_ID, REQUEST_ID, SERVER_ID, FakeCloud, Fault
from tests.fakes.flavors import flavor, own_flavor

NONSENSE = [
    b"",
    b"<html>maintenance</html>",
    b"[]",
    b"null",
    b"{}",
    b'{"server": null}',
    b"\xff\xfe",
    b"[" * 100_000,
]


@pytest.mark.parametrize("body", NONSENSE, ids=range(len(NONSENSE)))
async def test_an_answer_that_is_not_novas_is_no_fact(
    cloud: FakeCloud, nova: NovaServers, body: bytes
) -> None:
    cloud.actions[REQUEST_ID] = []
    cloud.errors |= {"server": Fault(body=body), "action": Fault(body=body)}
    for call in (nova.read_server(SERVER_ID), nova.read_reboot_result(SERVER_ID, REQUEST_ID)):
        with pytest.raises(UnavailableError, match="makes no sense") as caught:
            await call
        assert caught.value.reason is Reason.NOVA_UNAVAILABLE


@pytest.mark.parametrize("body", [*NONSENSE, b"404 Not Found", b'{"error": {"code": 404}}'])
async def test_a_404_that_is_not_novas_says_nothing_of_the_server(
    cloud: FakeCloud, nova: NovaServers, body: bytes
) -> None:
    # a proxy without a backend says it too, and a record is dropped where Nova knows a server no more
    cloud.actions[REQUEST_ID] = []
    cloud.errors |= {place: Fault(status=404, body=body) for place in ("server", "action", "reboot")}
    for call in (
        nova.read_server(SERVER_ID),
        nova.read_reboot_result(SERVER_ID, REQUEST_ID),
        nova.reboot_soft(SERVER_ID),
    ):
        with pytest.raises(UnavailableError, match="not one of Nova") as caught:
            await call
        assert caught.value.reason is Reason.NOVA_UNAVAILABLE
    assert len(cloud.requests("reboot")) == 1


@pytest.mark.parametrize(
    "changes",
    [
        {"id": OTHER_SERVER_ID},
        {"locked": "no"},
        {"locked": None},
        {"status": 5},
        {"OS-EXT-STS:task_state": False},
    ],
)
async def test_a_server_with_odd_values_is_no_fact(
    cloud: FakeCloud, nova: NovaServers, changes: dict[str, object]
) -> None:
    cloud.servers[SERVER_ID] |= changes
    with pytest.raises(UnavailableError, match="makes no sense"):
        await nova.read_server(SERVER_ID)


async def test_a_server_whose_task_is_not_told_is_no_idle_server(cloud: FakeCloud, nova: NovaServers) -> None:
    del cloud.servers[SERVER_ID]["OS-EXT-STS:task_state"]
    with pytest.raises(UnavailableError, match="task_state"):
        await nova.read_server(SERVER_ID)


@pytest.mark.parametrize("place", ["discovery", "auth"])
@pytest.mark.parametrize("body", NONSENSE, ids=range(len(NONSENSE)))
async def test_a_keystone_that_makes_no_sense_is_unavailable(
    cloud: FakeCloud, nova: NovaServers, place: str, body: bytes
) -> None:
    cloud.errors[place] = Fault(body=body)
    with pytest.raises(UnavailableError) as caught:
        await nova.read_server(SERVER_ID)
    assert caught.value.reason is Reason.NOVA_UNAVAILABLE
    assert len(cloud.requests(place)) == 3
    cloud.errors.clear()
    assert (await nova.read_server(SERVER_ID)).id == SERVER_ID


@pytest.mark.parametrize("key", ["vcpus", "ram", "disk"])
@pytest.mark.parametrize("amount", [-1, 2**31, 10**30])
async def test_a_size_that_no_flavor_can_have_is_no_fact(
    cloud: FakeCloud, nova: NovaServers, key: str, amount: int
) -> None:
    cloud.flavors = [[flavor("odd", 4, 1024) | {key: amount}]]
    cloud.servers[SERVER_ID]["flavor"] = own_flavor("odd", 4, 1024) | {key: amount}
    for call in (nova.list_flavors(), nova.read_server(SERVER_ID)):
        with pytest.raises(UnavailableError, match="makes no sense"):
            await call
