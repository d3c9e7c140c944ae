"""hvctl's own view of Nova: servers by id and name, and what a cloud that fails is reported as."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hvsvc.hvctl.cloud import Cloud, CloudError, CloudServer
from tests.fakes.cloud import (
    OTHER_SERVER_ID,
    REQUEST_ID,
    SERVER_ID,
    CloudsYaml,
    FakeCloud,
    Fault,
    server,
)


@pytest.fixture
def fake_cloud(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeCloud]:
    """A cloud "fake" in clouds.yaml, with the server web-1."""
    path = tmp_path / "clouds.yaml"
    monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", str(path))
    with FakeCloud(servers={SERVER_ID: server()}) as running:
        running.write_clouds_yaml(CloudsYaml(path))
        yield running


@pytest.fixture
def cloud(fake_cloud: FakeCloud) -> Cloud:
    return Cloud("fake", 5)


def failure(call: object, *args: object) -> tuple[str, str, str]:
    with pytest.raises(CloudError) as caught:
        call(*args)  # type: ignore[operator]
    found = caught.value.failure
    return found.code, found.reason, found.message


def test_a_server_is_found_by_id_and_by_its_whole_name(fake_cloud: FakeCloud, cloud: Cloud) -> None:
    fake_cloud.servers[OTHER_SERVER_ID] = server({"id": OTHER_SERVER_ID, "name": "web-1.example"})
    expected = CloudServer(
        SERVER_ID, "web-1", "ACTIVE", None, False, "small", 2, 512, "cmp001", None, "UP", "h1"
    )
    assert cloud.find_servers(SERVER_ID.upper()) == [expected]
    assert cloud.find_servers("web-1") == [expected]
    assert cloud.find_servers("web") == []
    assert cloud.find_servers(OTHER_SERVER_ID.replace("0", "1")) == []


def test_a_name_is_never_a_pattern(fake_cloud: FakeCloud, cloud: Cloud) -> None:
    fake_cloud.servers[SERVER_ID] |= {"name": "a.(b+c)&d"}
    assert [found.id for found in cloud.find_servers("a.(b+c)&d")] == [SERVER_ID]
    assert cloud.find_servers("a.*") == []


def test_a_member_looks_in_its_own_project(fake_cloud: FakeCloud, cloud: Cloud) -> None:
    fake_cloud.admin = False
    fake_cloud.servers[SERVER_ID] = server(admin=False)
    (found,) = cloud.find_servers("web-1")
    assert (found.id, found.host) == (SERVER_ID, None)
    assert len(fake_cloud.requests("servers")) == 2


def test_an_action_is_asked_once_and_its_failure_seen(fake_cloud: FakeCloud, cloud: Cloud) -> None:
    fake_cloud.events = [{"event": "conductor_migrate_server", "result": "Error"}]
    request_id = cloud.act(SERVER_ID, {"resize": {"flavorRef": "f"}}, "resize")
    assert request_id == REQUEST_ID
    assert cloud.action_failed(SERVER_ID, request_id)
    assert not cloud.action_failed(SERVER_ID, "")
    fake_cloud.actions[REQUEST_ID] = [{"event": "cold_migrate", "result": "Success"}]
    assert not cloud.action_failed(SERVER_ID, request_id)
    fake_cloud.errors["resize"] = Fault(status=503)
    code, reason, _ = failure(cloud.act, SERVER_ID, {"resize": {"flavorRef": "f"}}, "resize")
    assert (code, reason, len(fake_cloud.requests("resize"))) == ("UNAVAILABLE", "NOVA_UNAVAILABLE", 2)


@pytest.mark.parametrize(
    ("status", "code", "reason"),
    [
        (400, "FAILED_PRECONDITION", "NOVA_REFUSED"),
        (403, "PERMISSION_DENIED", "NOVA_NOT_PERMITTED"),
        (404, "NOT_FOUND", "SERVER_NOT_FOUND"),
        (409, "ABORTED", "SERVER_BUSY"),
        (500, "UNAVAILABLE", "NOVA_UNAVAILABLE"),
    ],
)
def test_statuses_of_nova_have_their_codes(
    fake_cloud: FakeCloud, cloud: Cloud, status: int, code: str, reason: str
) -> None:
    fake_cloud.errors["resize"] = Fault(status=status)
    found = failure(cloud.act, SERVER_ID, {"resize": {"flavorRef": "f"}}, "resize")
    assert found[:2] == (code, reason)
    assert "words that must not matter" not in found[2]


@pytest.mark.parametrize("body", [b"<html>no backend</html>", b"[]", b"{}", b"null", b"1"])
def test_a_404_that_is_not_novas_is_no_missing_server(
    fake_cloud: FakeCloud, cloud: Cloud, body: bytes
) -> None:
    fake_cloud.errors |= {place: Fault(status=404, body=body) for place in ("server", "action")}
    for call, *args in ((cloud.find_servers, SERVER_ID), (cloud.read_server, SERVER_ID)):
        assert failure(call, *args)[:2] == ("UNAVAILABLE", "NOVA_UNAVAILABLE")
    assert failure(cloud.action_failed, SERVER_ID, REQUEST_ID)[0] == "UNAVAILABLE"


@pytest.mark.parametrize(
    "body", [b'{"x": 1}', b'{"server": 5, "instanceAction": []}', b'{"instanceAction": {"events": [1]}}']
)
def test_an_answer_that_is_not_novas_is_told_as_such(
    fake_cloud: FakeCloud, cloud: Cloud, body: bytes
) -> None:
    fake_cloud.errors |= {place: Fault(body=body) for place in ("server", "action")}
    fake_cloud.actions[REQUEST_ID] = []
    for call, *args in (
        (cloud.find_servers, SERVER_ID),
        (cloud.read_server, SERVER_ID),
        (cloud.action_failed, SERVER_ID, REQUEST_ID),
    ):
        assert failure(call, *args)[:2] == ("UNAVAILABLE", "NOVA_UNAVAILABLE")


def test_a_keystone_that_refuses_or_is_away(fake_cloud: FakeCloud, cloud: Cloud) -> None:
    fake_cloud.errors["auth"] = Fault(status=401)
    code, reason, message = failure(cloud.read_server, SERVER_ID)
    assert (code, reason) == ("PERMISSION_DENIED", "NOVA_NOT_PERMITTED")
    assert "not-to-be-shown" not in message
    del fake_cloud.errors["auth"]
    fake_cloud.stop()
    assert failure(Cloud("fake", 5).read_server, SERVER_ID)[:2] == ("UNAVAILABLE", "NOVA_UNAVAILABLE")


@pytest.mark.parametrize("body", [b"<html>", b"[]", b'{"server": []}', b'{"server": {"id": "x"}}'])
def test_an_answer_that_is_not_novas_is_unavailable(fake_cloud: FakeCloud, cloud: Cloud, body: bytes) -> None:
    fake_cloud.errors["server"] = Fault(body=body)
    assert failure(cloud.read_server, SERVER_ID)[0] == "UNAVAILABLE"


def test_a_cloud_that_is_not_there_is_named(fake_cloud: FakeCloud) -> None:
    code, reason, message = failure(Cloud, "nope", 5)
    assert (code, reason) == ("FAILED_PRECONDITION", "NOVA_NOT_CONFIGURED")
    assert "nope" in message


def test_without_openstacksdk_it_says_what_to_install() -> None:
    program = (
        "import sys; sys.modules['openstack'] = None\n"
        "from hvsvc.hvctl.main import run\n"
        "sys.exit(run(['--cloud', 'c', 'dominfo', 'web-1']))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 4
    assert "pip install openstacksdk" in done.stderr
    assert "Traceback" not in done.stderr
