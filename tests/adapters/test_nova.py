"""What NovaServers reads and asks, and why it refuses; openstacksdk and HTTP are real."""

from __future__ import annotations

import pytest

from hvsvc.adapters.nova import NovaServers
from hvsvc.domain.facts import ServerFacts
from hvsvc.domain.flavor import Flavor
from hvsvc.errors import (
    AbortedError,
    FailedPreconditionError,
    HvsvcError,
    NotFoundError,
    NotPermittedError,
    Reason,
    UnavailableError,
)
from tests.fakes.cloud import OTHER_SERVER_ID, REQUEST_ID, SERVER_ID, FakeCloud, Fault, server
from tests.fakes.flavors import flavor


async def test_an_admin_reads_the_whole_server(cloud: FakeCloud, nova: NovaServers) -> None:
    cloud.servers[SERVER_ID] = server(
        {
            "locked": True,
            "status": "REBOOT",
            "OS-EXT-STS:task_state": "rebooting",
            "OS-EXT-SRV-ATTR:hypervisor_hostname": "cmp001.example.org",
        }
    )
    assert await nova.read_server(SERVER_ID) == ServerFacts(
        id=SERVER_ID,
        name="web-1",
        status="REBOOT",
        task_state="rebooting",
        vm_state="active",
        locked=True,
        host="cmp001",
        libvirt_name="instance-0000335c",
        project_id="p",
        flavor=Flavor("", "small", 2, 512, 1),
        host_status="UP",
        hypervisor_hostname="cmp001.example.org",
    )
    (seen,) = cloud.requests("server")
    assert seen.headers["OpenStack-API-Version"] == "compute 2.51"


async def test_a_member_reads_the_server_without_its_host(cloud: FakeCloud, nova: NovaServers) -> None:
    cloud.servers[SERVER_ID] = server(admin=False)
    found = await nova.read_server(SERVER_ID)
    assert (found.status, found.host, found.libvirt_name) == ("ACTIVE", None, None)
    assert found.host_status is None


async def test_a_soft_reboot_is_asked_and_its_action_followed(cloud: FakeCloud, nova: NovaServers) -> None:
    request_id = await nova.reboot_soft(SERVER_ID)

    assert request_id == REQUEST_ID
    (seen,) = cloud.requests("reboot")
    assert (seen.method, seen.path, seen.body) == (
        "POST",
        f"/compute/v2.1/servers/{SERVER_ID}/action",
        {"reboot": {"type": "SOFT"}},
    )
    assert await nova.read_reboot_result(SERVER_ID, request_id) is None
    cloud.actions[REQUEST_ID] = [{"event": "conductor_other", "result": "Success"}]
    assert await nova.read_reboot_result(SERVER_ID, request_id) is None
    cloud.actions[REQUEST_ID] = [{"event": "compute_reboot_instance", "result": None}]
    assert await nova.read_reboot_result(SERVER_ID, request_id) is None
    for result in ("Success", "Error"):
        cloud.actions[REQUEST_ID] = [{"event": "compute_reboot_instance", "result": result}]
        assert await nova.read_reboot_result(SERVER_ID, request_id) == result


async def test_the_older_header_names_the_action_too(cloud: FakeCloud, nova: NovaServers) -> None:
    cloud.errors["reboot"] = Fault(without=("x-openstack-request-id",))
    assert await nova.reboot_soft(SERVER_ID) == REQUEST_ID


async def test_a_reboot_whose_action_is_not_named_is_told_as_taken(
    cloud: FakeCloud, nova: NovaServers
) -> None:
    cloud.errors["reboot"] = Fault(without=("x-openstack-request-id", "x-compute-request-id"))
    with pytest.raises(UnavailableError, match=r"took the soft reboot.*cannot be followed"):
        await nova.reboot_soft(SERVER_ID)
    assert len(cloud.requests("reboot")) == 1


async def test_ids_cannot_lead_to_another_path(cloud: FakeCloud, nova: NovaServers) -> None:
    with pytest.raises(NotFoundError):
        await nova.read_server(f"{OTHER_SERVER_ID}/../{SERVER_ID}")
    with pytest.raises(NotFoundError):
        await nova.read_reboot_result(SERVER_ID, f"x/../../../servers/{SERVER_ID}?")
    assert [seen.path.count("/") for seen in cloud.requests("server") + cloud.requests("action")] == [4, 6]


REFUSALS = [
    (400, FailedPreconditionError, Reason.NOVA_REFUSED),
    (403, NotPermittedError, Reason.NOVA_NOT_PERMITTED),
    (404, NotFoundError, Reason.SERVER_NOT_FOUND),
    (406, FailedPreconditionError, Reason.NOVA_REFUSED),
    (413, UnavailableError, Reason.NOVA_UNAVAILABLE),
    (429, UnavailableError, Reason.NOVA_UNAVAILABLE),
    (500, UnavailableError, Reason.NOVA_UNAVAILABLE),
    (502, UnavailableError, Reason.NOVA_UNAVAILABLE),
    (503, UnavailableError, Reason.NOVA_UNAVAILABLE),
    (504, UnavailableError, Reason.NOVA_UNAVAILABLE),
]


@pytest.mark.parametrize(
    ("status", "kind", "reason"), [*REFUSALS, (401, NotPermittedError, Reason.NOVA_NOT_PERMITTED)]
)
async def test_statuses_of_nova_have_their_errors(
    cloud: FakeCloud, nova: NovaServers, status: int, kind: type[HvsvcError], reason: Reason
) -> None:
    for place in ("server", "reboot", "action"):
        cloud.errors[place] = Fault(status=status)
    for call in (
        nova.read_server(SERVER_ID),
        nova.reboot_soft(SERVER_ID),
        nova.read_reboot_result(SERVER_ID, REQUEST_ID),
    ):
        with pytest.raises(kind) as caught:
            await call
        assert type(caught.value) is kind
        assert caught.value.reason is reason
        assert caught.value.metadata["httpStatus"] == str(status)
        assert "words that must not matter" not in caught.value.message


@pytest.mark.parametrize(
    ("status", "kind", "reason"),
    [
        (401, NotPermittedError, Reason.NOVA_NOT_PERMITTED),
        (403, NotPermittedError, Reason.NOVA_NOT_PERMITTED),
        (404, UnavailableError, Reason.NOVA_UNAVAILABLE),
        (500, UnavailableError, Reason.NOVA_UNAVAILABLE),
        (503, UnavailableError, Reason.NOVA_UNAVAILABLE),
    ],
)
async def test_statuses_of_keystone_have_their_errors(
    cloud: FakeCloud, nova: NovaServers, status: int, kind: type[HvsvcError], reason: Reason
) -> None:
    cloud.errors["auth"] = Fault(status=status)
    for call in (nova.read_server(SERVER_ID), nova.reboot_soft(SERVER_ID)):
        with pytest.raises(kind) as caught:
            await call
        assert type(caught.value) is kind
        assert caught.value.reason is reason
        assert "not-to-be-shown" not in str(caught.value)
    assert cloud.requests("reboot") == []


@pytest.mark.parametrize(
    ("changes", "kind", "reason", "words"),
    [
        ({"locked": True}, FailedPreconditionError, Reason.SERVER_LOCKED, "unlock"),
        ({"OS-EXT-STS:task_state": "resize_prep"}, AbortedError, Reason.SERVER_BUSY, "resize_prep"),
        ({"status": "SHUTOFF"}, FailedPreconditionError, Reason.NOVA_REFUSED, "status SHUTOFF"),
    ],
)
async def test_a_conflict_is_explained_from_the_servers_state(
    cloud: FakeCloud,
    nova: NovaServers,
    changes: dict[str, object],
    kind: type[HvsvcError],
    reason: Reason,
    words: str,
) -> None:
    cloud.servers[SERVER_ID] |= changes
    cloud.errors["reboot"] = Fault(status=409)
    with pytest.raises(kind, match=words) as caught:
        await nova.reboot_soft(SERVER_ID)
    assert caught.value.reason is reason


async def test_a_conflict_that_cannot_be_explained_is_still_a_refusal(
    cloud: FakeCloud, nova: NovaServers
) -> None:
    cloud.errors |= {"reboot": Fault(status=409), "server": Fault(status=500)}
    with pytest.raises(FailedPreconditionError) as caught:
        await nova.reboot_soft(SERVER_ID)
    assert caught.value.reason is Reason.NOVA_REFUSED


async def test_a_server_made_from_a_volume_is_told_by_its_missing_image(
    cloud: FakeCloud, nova: NovaServers
) -> None:
    assert not (await nova.read_server(SERVER_ID)).volume_backed
    cloud.servers[SERVER_ID] = server({"image": ""})
    assert (await nova.read_server(SERVER_ID)).volume_backed


async def test_flavors_of_all_pages_are_listed_but_those_that_are_disabled(
    cloud: FakeCloud, nova: NovaServers
) -> None:
    hidden = flavor("hidden", 8, 2048, **{"os-flavor-access:is_public": False, "extra_specs": {"a": "b"}})
    gone = flavor("gone", 8, 2048, **{"OS-FLV-DISABLED:disabled": True})
    cloud.flavors = [[flavor("big", 4, 1024), gone], [hidden]]
    assert await nova.list_flavors() == [
        Flavor("f-big", "big", 4, 1024, 1),
        Flavor("f-hidden", "hidden", 8, 2048, 1, public=False, extra_specs={"a": "b"}),
    ]
    first, second = cloud.requests("flavors")
    assert first.path.endswith("/flavors/detail?is_public=None")
    assert second.path.endswith("&marker=f-gone")
    assert first.headers["OpenStack-API-Version"] == "compute 2.61"


async def test_access_to_a_flavor_is_that_of_the_project(cloud: FakeCloud, nova: NovaServers) -> None:
    cloud.flavor_projects = {"f-hidden": ["p1"]}
    assert await nova.may_use_flavor("f-hidden", "p1")
    assert not await nova.may_use_flavor("f-hidden", "p2")
    cloud.admin = False
    assert await nova.may_use_flavor("f-hidden", "p2"), "a member's list holds what it may use alone"
    cloud.errors["access"] = Fault(status=503)
    with pytest.raises(UnavailableError):
        await nova.may_use_flavor("f-hidden", "p1")
