"""`scale --via resize` as a process: consent, refusals before anything is touched, results and exit codes."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hvsvc.v1 import scaling_pb2
from tests.fakes.cloud import CloudsYaml, FakeCloud, Fault, server
from tests.fakes.flavors import own_flavor
from tests.fakes.hvsvc_server import FakeHvsvc
from tests.fakes.service_messages import GIB, UUID, domain, error_info, off_domain, status
from tests.hvctl.conftest import Hvctl

Run = Callable[..., "subprocess.CompletedProcess[str]"]
BIG = scaling_pb2.ResizeRoad.Flavor(id="f-big", name="big", vcpus=4, memory_mib=1024)
SIZE = ("--vcpus", "4", "--memory", "1GiB")
CONSENT = ("--reboot", "soft")


@pytest.fixture
def fake_cloud(fake: FakeHvsvc) -> Iterator[FakeCloud]:
    """web-1 has flavor small, and big is just the size that is asked for."""
    resize = scaling_pb2.ResizeRoad(exact=BIG, consequences=["the server restarts"])
    fake.plan = scaling_pb2.PlanScaleResponse(domain=domain(), etag="aa11", resize=resize)
    fake.domains = [domain(vcpus=4, max_vcpus=4, memory_kib=GIB)]
    with FakeCloud(servers={UUID: server({"id": UUID})}) as cloud:
        cloud.then = {
            "resize": [{"status": "VERIFY_RESIZE", "flavor": own_flavor("big", 4, 1024)}],
            "confirmResize": [{"status": "ACTIVE"}],
        }
        yield cloud


@pytest.fixture
def run(hvctl: Hvctl, fake_cloud: FakeCloud, tmp_path: Path) -> Run:
    path = tmp_path / "clouds.yaml"
    fake_cloud.write_clouds_yaml(CloudsYaml(path))

    def call(*args: str, cloud: str = "fake") -> subprocess.CompletedProcess[str]:
        words = ("scale", "web-1", "--via", "resize", "-f", "json", *args)
        return hvctl(*words, OS_CLIENT_CONFIG_FILE=str(path), HVCTL_CLOUD=cloud)

    return call


def error(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(done.stdout)["error"]
    return found


def actions(cloud: FakeCloud) -> list[str]:
    return [seen.place for seen in cloud.seen if seen.path.endswith("/action")]


def test_a_resize_prints_what_it_ended_with(run: Run, fake: FakeHvsvc, fake_cloud: FakeCloud) -> None:
    done = run(*SIZE, *CONSENT)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert (document["outcome"], document["changed"], document["flavor"]) == ("COMPLETE", True, "big")
    assert document["before"]["vcpus"]["current_live"] == 2
    assert document["after"]["vcpus"]["guest_online"] == 4
    assert [step["kind"] for step in document["steps"]] == ["RESIZE", "VERIFY", "CONFIRM"]
    assert actions(fake_cloud) == ["resize", "confirmResize"]
    assert {name for name, _ in fake.seen} == {"PlanScale", "GetDomain"}, "hvsvc itself changes nothing"


def test_a_resize_without_consent_is_refused(run: Run, fake_cloud: FakeCloud) -> None:
    done = run(*SIZE)
    assert done.returncode == 4
    assert error(done)["reason"] == "REBOOT_REQUIRED"
    assert "add --reboot soft" in done.stderr
    assert actions(fake_cloud) == []


def test_a_dry_run_asks_nova_for_nothing(run: Run, fake_cloud: FakeCloud) -> None:
    done = run(*SIZE, *CONSENT, "--dry-run")
    assert done.returncode == 0
    document = json.loads(done.stdout)
    assert (document["outcome"], document["changed"]) == ("VALIDATED", False)
    assert [(step["kind"], step["state"]) for step in document["steps"]] == [
        ("RESIZE", "PENDING"),
        ("VERIFY", "PENDING"),
        ("CONFIRM", "PENDING"),
    ]
    assert "big" in document["steps"][0]["why"], "the flavor that is taken"
    assert actions(fake_cloud) == []


def test_a_server_of_that_size_already_is_left_alone(
    run: Run, fake: FakeHvsvc, fake_cloud: FakeCloud
) -> None:
    done = run("--vcpus", "2", "--memory", "512MiB")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert (document["outcome"], document["changed"]) == ("COMPLETE", False)
    fake.plan.domain.vcpus.current_live = 1
    done = run("--vcpus", "2", "--memory", "512MiB")
    assert done.returncode == 4
    assert "without --via resize" in done.stderr
    assert actions(fake_cloud) == []


def test_only_the_flavor_of_just_the_size_is_taken(run: Run, fake: FakeHvsvc, fake_cloud: FakeCloud) -> None:
    above = scaling_pb2.ResizeRoad.Flavor(id="f", name="more", vcpus=6, memory_mib=2048)
    fake.plan.resize.CopyFrom(scaling_pb2.ResizeRoad(above=above))
    done = run(*SIZE, *CONSENT)
    assert done.returncode == 4
    assert "more: --vcpus 6 --memory 2048MiB" in done.stderr
    fake.plan.resize.CopyFrom(scaling_pb2.ResizeRoad(consequences=["no flavor has that"]))
    assert "no flavor has that" in run(*SIZE, *CONSENT).stderr
    fake.plan.ClearField("resize")
    assert run(*SIZE, *CONSENT).returncode == 6
    assert actions(fake_cloud) == []


@pytest.mark.parametrize(
    ("changes", "code", "reason"),
    [
        ({"OS-EXT-STS:task_state": "rebooting"}, 5, "SERVER_BUSY"),
        ({"locked": True}, 4, "SERVER_LOCKED"),
        ({"host_status": "DOWN"}, 6, "NOVA_UNAVAILABLE"),
        ({"host_status": "UNKNOWN"}, 6, "NOVA_UNAVAILABLE"),
        ({"status": "VERIFY_RESIZE"}, 4, "SERVER_NOT_ACTIVE"),
    ],
)
def test_a_server_that_is_not_ready_is_refused(
    run: Run, fake_cloud: FakeCloud, changes: dict[str, Any], code: int, reason: str
) -> None:
    fake_cloud.servers[UUID] |= changes
    done = run(*SIZE, *CONSENT)
    assert (done.returncode, error(done)["reason"]) == (code, reason)
    assert actions(fake_cloud) == []


@pytest.mark.parametrize(
    ("state", "reason"), [("SHUTOFF", "SERVER_NOT_ACTIVE"), ("ACTIVE", "DOMAIN_NOT_RUNNING")]
)
def test_a_server_that_is_off_is_refused_whichever_size_is_named(
    run: Run, fake: FakeHvsvc, fake_cloud: FakeCloud, state: str, reason: str
) -> None:
    off = off_domain()
    off.nova.CopyFrom(fake.plan.domain.nova)
    off.uuid = fake.plan.domain.uuid
    fake.plan.domain.CopyFrom(off)
    fake_cloud.servers[UUID] |= {"status": state}
    for sizes in (("--vcpus", "4"), ("--memory", "1GiB"), SIZE):
        done = run(*sizes, *CONSENT)
        assert (done.returncode, error(done)["reason"]) == (4, reason), done.stderr
    assert actions(fake_cloud) == []


def test_an_etag_of_another_definition_is_refused(run: Run, fake_cloud: FakeCloud) -> None:
    assert run(*SIZE, *CONSENT, "--etag", "bb22").returncode == 5
    assert run(*SIZE, *CONSENT, "--etag", "aa11", "--dry-run").returncode == 0
    assert actions(fake_cloud) == []


def test_a_domain_that_is_not_novas_has_no_such_road(run: Run, fake: FakeHvsvc) -> None:
    fake.plan.domain.CopyFrom(off_domain())
    assert run(*SIZE, *CONSENT).returncode == 4


@pytest.mark.parametrize(
    "words",
    [
        ("--max-vcpus", "8"),
        ("--max-memory", "2GiB"),
        ("--topology", "cores"),
        ("--online", "all"),
        ("--no-wait",),
        ("--request-id", "3e2f9c52-86f2-4d5b-a6a8-0a8f5f3f5b11"),
    ],
)
def test_options_that_this_road_has_not_are_refused(
    run: Run, fake: FakeHvsvc, words: tuple[str, ...]
) -> None:
    done = run(*SIZE, *CONSENT, *words)
    assert (done.returncode, words[0] in done.stderr) == (2, True)
    assert fake.seen == []


def test_it_needs_a_size_and_a_cloud(run: Run) -> None:
    assert "--vcpus, --memory" in run(*CONSENT).stderr
    done = run(*SIZE, *CONSENT, cloud="")
    assert (done.returncode, "--cloud NAME" in done.stderr) == (2, True)


@pytest.mark.parametrize(
    ("answer", "code", "words"),
    [(403, 8, "nothing was changed"), (503, 6, "whether Nova took the resize is not known")],
)
def test_what_nova_does_not_take_is_told(
    run: Run, fake_cloud: FakeCloud, answer: int, code: int, words: str
) -> None:
    fake_cloud.errors["resize"] = Fault(status=answer)
    done = run(*SIZE, *CONSENT)
    assert (done.returncode, json.loads(done.stdout)["changed"]) == (code, False)
    assert words in done.stderr


def test_an_outcome_holds_only_where_the_domain_is_read_at_the_end(run: Run, fake: FakeHvsvc) -> None:
    gone = status(14, "going down", [error_info("SHUTTING_DOWN")])
    fake.errors["GetDomain"] = [None, *[gone] * 3]
    done = run(*SIZE, *CONSENT)
    assert done.returncode == 7, done.stderr
    document = json.loads(done.stdout)
    assert document["outcome"] == "UNCONFIRMED"
    assert "after" not in document
    assert [reason["reason"] for reason in document["reasons"]] == ["LIBVIRT_UNAVAILABLE"]


def test_a_server_that_moved_is_not_judged_by_the_host_that_it_left(
    run: Run, fake: FakeHvsvc, fake_cloud: FakeCloud
) -> None:
    # that host keeps the domain, shut off, until the resize is confirmed: it was reverted for it
    left = off_domain()
    left.uuid = UUID
    fake.domains = [left]
    fake_cloud.then["resize"][-1]["hostId"] = "h2"
    done = run(*SIZE, *CONSENT)
    document = json.loads(done.stdout)
    assert actions(fake_cloud) == ["resize", "confirmResize"]
    assert (done.returncode, document["outcome"]) == (7, "UNCONFIRMED"), done.stderr
    assert [reason["reason"] for reason in document["reasons"]] == ["LIBVIRT_UNAVAILABLE"]
    assert "after" not in document
