"""The session with a cloud that is slow, gone, back or not configured."""

from __future__ import annotations

import pytest

from hvsvc.adapters.nova import NovaServers
from hvsvc.errors import (
    FailedPreconditionError,
    Reason,
    UnavailableError,
)
from tests.fakes.cloud import REQUEST_ID, SERVER_ID, CloudsYaml, FakeCloud, Fault


@pytest.mark.parametrize("fault", [Fault(status=503), Fault(cut=True)], ids=["503", "cut"])
async def test_a_reboot_is_never_asked_twice(cloud: FakeCloud, nova: NovaServers, fault: Fault) -> None:
    fault.times = 1
    cloud.errors["reboot"] = fault
    with pytest.raises(UnavailableError):
        await nova.reboot_soft(SERVER_ID)
    assert len(cloud.requests("reboot")) == 1


async def test_a_reboot_is_never_asked_twice_though_clouds_yaml_says_so(
    cloud: FakeCloud, nova: NovaServers, clouds_yaml: CloudsYaml
) -> None:
    told = clouds_yaml.read().replace('"region_name"', '"compute_status_code_retries": 5, "region_name"')
    clouds_yaml.write(told)
    cloud.errors["reboot"] = Fault(status=503)
    with pytest.raises(UnavailableError):
        await nova.reboot_soft(SERVER_ID)
    assert len(cloud.requests("reboot")) == 1


async def test_a_revoked_token_is_renewed_and_does_not_show(cloud: FakeCloud, nova: NovaServers) -> None:
    await nova.read_server(SERVER_ID)
    cloud.token = "token-2"
    assert (await nova.read_server(SERVER_ID)).id == SERVER_ID
    cloud.token = "token-3"
    assert await nova.reboot_soft(SERVER_ID) == REQUEST_ID
    assert [seen.headers["X-Auth-Token"] for seen in cloud.requests("reboot")] == ["token-2", "token-3"]


async def test_it_connects_when_the_cloud_comes_up_after_the_daemon(
    cloud: FakeCloud, nova: NovaServers
) -> None:
    cloud.stop()
    with pytest.raises(UnavailableError, match="cloud fake cannot be reached"):
        await nova.read_server(SERVER_ID)
    cloud.start()
    assert (await nova.read_server(SERVER_ID)).id == SERVER_ID


async def test_it_reconnects_after_the_cloud_was_gone(cloud: FakeCloud, nova: NovaServers) -> None:
    await nova.read_server(SERVER_ID)
    cloud.stop()
    with pytest.raises(UnavailableError) as caught:
        await nova.reboot_soft(SERVER_ID)
    assert caught.value.reason is Reason.NOVA_UNAVAILABLE
    cloud.start()
    assert await nova.reboot_soft(SERVER_ID) == REQUEST_ID


async def test_a_keystone_that_asks_for_a_token_to_sign_in_with_loses_no_thread(
    cloud: FakeCloud, nova: NovaServers
) -> None:
    cloud.errors["discovery"] = Fault(status=401)
    for _ in range(6):  # more than there are threads
        with pytest.raises(UnavailableError):
            await nova.read_server(SERVER_ID)
    cloud.errors.clear()
    assert (await nova.read_server(SERVER_ID)).id == SERVER_ID


async def test_a_corrected_clouds_yaml_counts_without_a_restart(
    cloud: FakeCloud, nova: NovaServers, clouds_yaml: CloudsYaml
) -> None:
    right = clouds_yaml.read()
    clouds_yaml.write(right.replace("/identity/v3", "/identity/nowhere"))
    cloud.errors["discovery"] = Fault(status=404)
    with pytest.raises(UnavailableError):
        await nova.read_server(SERVER_ID)
    clouds_yaml.write(right)
    cloud.errors.clear()
    assert (await nova.read_server(SERVER_ID)).id == SERVER_ID


@pytest.mark.parametrize(
    "text",
    [
        '{"clouds": {"other": {}}}',
        '{"clouds": {"fake": {"auth": {"username": "u"}}}}',
        '{"clouds": {"fake": {"auth_type": "no-such-plugin", "auth": {}}}}',
        "clouds: [unclosed",
        "clouds: 5",
        "",
    ],
)
async def test_a_cloud_that_is_not_configured_is_told_with_the_key(
    clouds_yaml: CloudsYaml, text: str
) -> None:
    clouds_yaml.write(text)
    nova = NovaServers("fake", call_timeout_s=20)
    with pytest.raises(FailedPreconditionError, match=r"cloud fake \(\[nova\] cloud\)") as caught:
        nova.check()
    assert caught.value.reason is Reason.NOVA_NOT_CONFIGURED
    with pytest.raises(FailedPreconditionError) as later:
        await nova.read_server(SERVER_ID)
    assert later.value.reason is Reason.NOVA_NOT_CONFIGURED
    nova.close()


async def test_the_environment_serves_in_place_of_clouds_yaml(
    cloud: FakeCloud, clouds_yaml: CloudsYaml, monkeypatch: pytest.MonkeyPatch
) -> None:
    clouds_yaml.write("")
    nova = NovaServers("envvars", call_timeout_s=20)
    with pytest.raises(FailedPreconditionError, match="cloud envvars"):
        nova.check()
    for key, value in {
        "OS_AUTH_URL": f"{cloud.url}/identity/v3",
        "OS_USERNAME": "u",
        "OS_PASSWORD": "p",
        "OS_PROJECT_NAME": "p",
        "OS_USER_DOMAIN_NAME": "Default",
        "OS_PROJECT_DOMAIN_NAME": "Default",
        "OS_REGION_NAME": "RegionOne",
    }.items():
        monkeypatch.setenv(key, value)
    nova.check()
    assert (await nova.read_server(SERVER_ID)).id == SERVER_ID
    nova.close()


async def test_checking_a_cloud_does_not_call_it(cloud: FakeCloud, nova: NovaServers) -> None:
    nova.check()
    assert cloud.seen == []
