"""A resize through Nova as hvctl follows it: confirmed, reverted, or left as it was."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hvsvc.hvctl import resize as module
from hvsvc.hvctl.cloud import Cloud, CloudError, CloudServer
from hvsvc.hvctl.document import Document, document_of
from hvsvc.hvctl.resize import Resize, ResizeError
from hvsvc.v1 import domain_pb2
from tests.fakes.cloud import SERVER_ID, CloudsYaml, FakeCloud, Fault, server
from tests.fakes.flavors import own_flavor
from tests.fakes.service_messages import GIB, domain

BIG = {"id": "f-big", "name": "big", "vcpus": 4, "memory_mib": 1024}
RESIZING = {"status": "RESIZE", "OS-EXT-STS:task_state": "resize_migrating"}
RESIZED = {"status": "VERIFY_RESIZE", "OS-EXT-STS:task_state": None, "flavor": own_flavor("big", 4, 1024)}
CONFIRMED = {"status": "ACTIVE", "OS-EXT-STS:task_state": None, "flavor": own_flavor("big", 4, 1024)}
AS_BEFORE = {"status": "ACTIVE", "OS-EXT-STS:task_state": None, "flavor": own_flavor("small", 2, 512)}
GROWN = domain(vcpus=4, max_vcpus=4, memory_kib=GIB)


@pytest.fixture
def fake_cloud(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeCloud]:
    """A cloud whose resize works; waits are short."""
    path = tmp_path / "clouds.yaml"
    monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", str(path))
    monkeypatch.setattr(module, "_POLL_S", 0.01)
    monkeypatch.setattr(module, "VERIFY_TIMEOUT_S", 0.5)
    monkeypatch.setattr(module, "SILENT_TIMEOUT_S", 0.1)
    monkeypatch.setattr(module, "UNREACHABLE_TIMEOUT_S", 0.1)
    with FakeCloud(servers={SERVER_ID: server()}) as running:
        running.write_clouds_yaml(CloudsYaml(path))
        running.then = {
            "resize": [RESIZING, RESIZED],
            "confirmResize": [{"OS-EXT-STS:task_state": "confirming"}, CONFIRMED],
            "revertResize": [{"status": "REVERT_RESIZE"}, AS_BEFORE],
        }
        yield running


def resize_of(read: Callable[[CloudServer], Document | None], *, timeout_s: float = 10) -> Resize:
    cloud = Cloud("fake", 5)
    before = document_of(domain())
    return Resize(cloud, cloud.read_server(SERVER_ID), BIG, read, before, time.monotonic() + timeout_s)


def reads(*reports: domain_pb2.Domain | None) -> Callable[[CloudServer], Document | None]:
    """The domain at each look; the last stays."""
    left = [None if report is None else document_of(report) for report in reports]
    return lambda _server: left.pop(0) if len(left) > 1 else left[0]


def kinds(resize: Resize) -> list[tuple[Any, Any]]:
    return [(step["kind"], step["state"]) for step in resize.steps]


def actions(cloud: FakeCloud) -> list[str]:
    return [
        place
        for seen in cloud.seen
        if (place := seen.place).removesuffix("Resize") != place or place == "resize"
    ]


def failed(resize: Resize) -> str:
    with pytest.raises(ResizeError) as caught:
        resize.run()
    return caught.value.failure.message


def test_a_resize_is_verified_and_then_confirmed(fake_cloud: FakeCloud) -> None:
    resize = resize_of(reads(domain(), GROWN))
    assert resize.run() == "COMPLETE"
    assert kinds(resize) == [("RESIZE", "DONE"), ("VERIFY", "DONE"), ("CONFIRM", "DONE")]
    assert actions(fake_cloud) == ["resize", "confirmResize"]
    assert fake_cloud.requests("resize")[0].body == {"resize": {"flavorRef": "f-big"}}
    assert resize.taken


def test_a_wrong_size_is_reverted(fake_cloud: FakeCloud) -> None:
    resize = resize_of(reads(domain(vcpus=3, max_vcpus=4, memory_kib=GIB)))
    assert "vcpus.current_live is 3, not 4" in failed(resize)
    assert kinds(resize)[-1] == ("REVERT", "DONE")
    assert actions(fake_cloud) == ["resize", "revertResize"]


def test_a_guest_that_answered_before_and_not_after_is_reverted(fake_cloud: FakeCloud) -> None:
    silent = domain(vcpus=4, max_vcpus=4, memory_kib=GIB)
    silent.vcpus.ClearField("guest_online")
    assert "does not say which CPUs" in failed(resize_of(reads(silent)))
    assert actions(fake_cloud) == ["resize", "revertResize"]


def test_a_guest_that_never_answered_is_confirmed_but_not_complete(fake_cloud: FakeCloud) -> None:
    silent = domain(vcpus=4, max_vcpus=4, memory_kib=GIB)
    silent.vcpus.ClearField("guest_online")
    resize = resize_of(reads(silent))
    del resize.before["vcpus"]["guest_online"]
    assert resize.run() == "UNCONFIRMED"
    assert [reason["reason"] for reason in resize.reasons] == ["GUEST_CPUS_UNKNOWN"]
    assert actions(fake_cloud) == ["resize", "confirmResize"]


def test_without_hvsvc_on_the_new_host_nova_alone_is_not_complete(fake_cloud: FakeCloud) -> None:
    resize = resize_of(reads(None))
    assert resize.run() == "UNCONFIRMED"
    assert [reason["reason"] for reason in resize.reasons] == ["LIBVIRT_UNAVAILABLE"]


def test_a_resize_that_quietly_goes_back_to_active_is_seen(fake_cloud: FakeCloud) -> None:
    fake_cloud.then["resize"] = [{"OS-EXT-STS:task_state": "resize_prep"}, AS_BEFORE]
    fake_cloud.events = [{"event": "conductor_migrate_server", "result": "Error"}]
    resize = resize_of(reads(domain()))
    message = failed(resize)
    assert "no host has room" in message
    assert "goes on as it was, with flavor small" in message
    assert kinds(resize) == [("RESIZE", "FAILED")]
    assert actions(fake_cloud) == ["resize"]


def test_a_server_in_error_is_neither_confirmed_nor_reverted(fake_cloud: FakeCloud) -> None:
    fake_cloud.then["resize"] = [{"status": "ERROR", "OS-EXT-STS:task_state": None}]
    assert "status ERROR" in failed(resize_of(reads(domain())))
    assert actions(fake_cloud) == ["resize"]


def test_a_confirmation_that_ends_in_error_is_told(fake_cloud: FakeCloud) -> None:
    fake_cloud.then["confirmResize"] = [{"status": "ERROR"}]
    resize = resize_of(reads(GROWN))
    assert "confirmation of the resize" in failed(resize)
    assert kinds(resize)[-1] == ("CONFIRM", "FAILED")


def test_a_nova_that_confirms_by_itself_is_not_taken_for_a_failure(fake_cloud: FakeCloud) -> None:
    fake_cloud.then["resize"] = [RESIZING, RESIZED, RESIZED, CONFIRMED]
    fake_cloud.errors["confirmResize"] = Fault(status=409)
    fake_cloud.coming[SERVER_ID] = []
    assert resize_of(reads(GROWN)).run() == "COMPLETE"


def test_a_refused_resize_changes_nothing(fake_cloud: FakeCloud) -> None:
    fake_cloud.errors["resize"] = Fault(status=403)
    resize = resize_of(reads(domain()))
    with pytest.raises(CloudError) as caught:
        resize.run()
    assert caught.value.failure.code == "PERMISSION_DENIED"
    assert not resize.taken


def test_a_nova_that_is_away_for_a_while_is_waited_for(fake_cloud: FakeCloud) -> None:
    resize = resize_of(reads(GROWN))
    fake_cloud.errors["server"] = Fault(status=503, times=3)
    assert resize.run() == "COMPLETE"


def test_the_wait_is_bounded(fake_cloud: FakeCloud) -> None:
    fake_cloud.then["resize"] = [RESIZING]
    resize = resize_of(reads(domain()), timeout_s=0.1)
    with pytest.raises(ResizeError) as caught:
        resize.run()
    assert caught.value.failure.code == "DEADLINE_EXCEEDED"
    assert "openstack server resize confirm" in caught.value.failure.message
