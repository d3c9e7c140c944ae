"""NovaServers on a real Keystone and Nova: fields, a soft reboot and its action, refusals, an ordinary member."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest

from hvsvc.adapters.nova import NovaServers
from hvsvc.errors import (
    AbortedError,
    FailedPreconditionError,
    HvsvcError,
    NotFoundError,
    NotPermittedError,
    Reason,
)
from tests.lab.cloud import Lab, Server


@pytest.fixture(scope="module")
def server(lab: Lab) -> Iterator[Server]:
    made = lab.create_server("adapter")
    yield made
    lab.delete_server(made)


@pytest.fixture(autouse=True)
def clouds(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", str(lab.clouds_yaml))


@pytest.fixture
async def admin(clouds: None) -> AsyncIterator[NovaServers]:
    servers = NovaServers("lab-admin", call_timeout_s=60)
    yield servers
    servers.close()


@pytest.fixture
async def member(clouds: None) -> AsyncIterator[NovaServers]:
    servers = NovaServers("lab-demo", call_timeout_s=60)
    yield servers
    servers.close()


async def reboot_and_follow(servers: NovaServers, server: Server) -> tuple[str, str]:
    """Soft reboot, until its action has a result and Nova no task: request id and result."""
    request_id = await servers.reboot_soft(server.id)
    return request_id, await follow(servers, server, request_id)


async def follow(servers: NovaServers, server: Server, request_id: str) -> str:
    """Waits until the action has a result and Nova no task on the server."""
    for _ in range(240):
        result = await servers.read_reboot_result(server.id, request_id)
        if result is not None and (await servers.read_server(server.id)).task_state is None:
            return result
        await asyncio.sleep(0.5)
    raise AssertionError(f"reboot {request_id} was not over within 120 s")


async def test_an_admin_reads_every_field(lab: Lab, server: Server, admin: NovaServers) -> None:
    found = await admin.read_server(server.id)
    seen = lab.nova_server(server.id)
    assert (found.id, found.name, found.libvirt_name) == (server.id, server.name, server.libvirt_name)
    assert found.host == seen.compute_host
    assert (found.status, found.task_state, found.vm_state, found.locked) == ("ACTIVE", None, "active", False)


async def test_a_member_reads_what_a_reboot_needs(lab: Lab, server: Server, member: NovaServers) -> None:
    found = await member.read_server(server.id)
    assert (found.name, found.status, found.task_state, found.locked) == (server.name, "ACTIVE", None, False)
    assert (found.host, found.libvirt_name) == (None, None)


async def test_a_member_reboots_and_follows_exactly_this_action(
    lab: Lab, server: Server, member: NovaServers
) -> None:
    before = lab.domain_id(server)
    request_id, result = await reboot_and_follow(member, server)

    assert result == "Success"
    assert lab.domain_id(server) not in {before, None}
    actions = {
        action.request_id: action.action for action in lab.cloud("admin").compute.server_actions(server.id)
    }
    assert actions[request_id] == "reboot"
    lab.wait_booted(server)

    second, _ = await reboot_and_follow(member, server)
    assert second != request_id
    lab.wait_booted(server)


async def test_a_second_reboot_during_the_first_is_told_as_busy(
    lab: Lab, server: Server, admin: NovaServers
) -> None:
    request_id = await admin.reboot_soft(server.id)
    with pytest.raises(AbortedError, match="task reboot") as caught:
        await admin.reboot_soft(server.id)
    assert caught.value.reason is Reason.SERVER_BUSY
    assert await follow(admin, server, request_id) == "Success"
    lab.wait_active(server)
    lab.wait_booted(server)


async def test_a_locked_server_shows_and_refuses_a_member(
    lab: Lab, server: Server, member: NovaServers
) -> None:
    compute = lab.cloud("demo").compute
    compute.lock_server(server.id)
    try:
        assert (await member.read_server(server.id)).locked
        with pytest.raises(FailedPreconditionError, match="unlock") as caught:
            await member.reboot_soft(server.id)
        assert caught.value.reason is Reason.SERVER_LOCKED
    finally:
        compute.unlock_server(server.id)
    assert not (await member.read_server(server.id)).locked


async def test_a_paused_server_is_refused_with_its_status(
    lab: Lab, server: Server, admin: NovaServers
) -> None:
    compute = lab.cloud("admin").compute
    compute.pause_server(server.id)
    try:
        for _ in range(60):
            if (await admin.read_server(server.id)).status == "PAUSED":
                break
            await asyncio.sleep(0.5)
        with pytest.raises(FailedPreconditionError, match="status PAUSED") as caught:
            await admin.reboot_soft(server.id)
        assert caught.value.reason is Reason.NOVA_REFUSED
    finally:
        compute.unpause_server(server.id)
        lab.wait_active(server)


async def test_what_is_not_there_is_not_found(server: Server, admin: NovaServers) -> None:
    for call in (
        admin.read_server("00000000-0000-0000-0000-000000000000"),
        admin.reboot_soft("00000000-0000-0000-0000-000000000000"),
        admin.read_reboot_result(server.id, "req-00000000-0000-0000-0000-000000000000"),
    ):
        with pytest.raises(NotFoundError) as caught:
            await call
        assert caught.value.reason is Reason.SERVER_NOT_FOUND


async def test_a_server_of_another_project_is_not_found_by_a_member(lab: Lab, member: NovaServers) -> None:
    other = lab.create_server("other", project="admin", booted=False)
    try:
        calls: list[HvsvcError] = []
        for call in (member.read_server(other.id), member.reboot_soft(other.id)):
            with pytest.raises(NotFoundError) as caught:
                await call
            calls.append(caught.value)
        assert [error.reason for error in calls] == [Reason.SERVER_NOT_FOUND] * 2
    finally:
        lab.delete_server(other)


async def test_a_wrong_password_is_told_as_not_permitted(
    lab: Lab, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", "/nonexistent/clouds.yaml")
    for key, value in {**lab.env("demo"), "OS_PASSWORD": "not-the-password"}.items():
        monkeypatch.setenv(key, value)
    servers = NovaServers("envvars", call_timeout_s=60)
    with pytest.raises(NotPermittedError, match="Keystone refused") as caught:
        await servers.read_server(server.id)
    servers.close()
    assert caught.value.reason is Reason.NOVA_NOT_PERMITTED
    assert "not-the-password" not in caught.value.message
