"""drift and forget as processes."""

from __future__ import annotations

import json

import pytest

from hvsvc.v1 import desired_pb2
from tests.fakes.hvsvc_server import FakeHvsvc
from tests.fakes.service_messages import UUID, drift, error_info, status
from tests.hvctl.conftest import Hvctl


@pytest.fixture(autouse=True)
def drifts(fake: FakeHvsvc) -> None:
    fake.drifts = [
        drift(),
        drift(desired_pb2.Drift.STATUS_IN_SYNC, server_name="db", libvirt_name="instance-2"),
    ]


def test_without_a_domain_those_that_drift_are_listed(hvctl: Hvctl) -> None:
    done = hvctl("drift")
    assert done.returncode == 0
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["Server", "web-1"]
    everything = hvctl("drift", "--all", "-f", "json")
    assert [item["status"] for item in json.loads(everything.stdout)] == ["CEILING_LOST", "IN_SYNC"]


def test_an_empty_list_says_why(hvctl: Hvctl, fake: FakeHvsvc) -> None:
    del fake.drifts[0]
    assert hvctl("drift").stdout == "Nothing differs; domains on record: 1 (--all shows them).\n"
    assert json.loads(hvctl("drift", "-f", "json").stdout) == []
    assert hvctl("drift", "-f", "value", "-c", "status").stdout == ""
    fake.drifts.clear()
    assert hvctl("drift", "--all").stdout.startswith("Nothing is on record")


def test_one_domain_is_asked_by_its_name(hvctl: Hvctl, fake: FakeHvsvc) -> None:
    found = json.loads(hvctl("drift", "web-1", "-f", "json").stdout)
    assert (found["status"], found["desired"]["max_vcpus"], found["policy"]) == ("CEILING_LOST", 8, "REPORT")
    assert fake.requests("GetDrift")[0].name == "web-1"
    assert fake.requests("SetReapplyPolicy") == []


@pytest.mark.parametrize(
    ("word", "number"),
    [
        ("report", desired_pb2.REAPPLY_POLICY_REPORT),
        ("config", desired_pb2.REAPPLY_POLICY_CONFIG),
        ("live", desired_pb2.REAPPLY_POLICY_LIVE),
        ("default", desired_pb2.REAPPLY_POLICY_UNSPECIFIED),
    ],
)
def test_a_policy_is_set(hvctl: Hvctl, fake: FakeHvsvc, word: str, number: int) -> None:
    assert hvctl("drift", "web-1", "--policy", word).returncode == 0
    (request,) = fake.requests("SetReapplyPolicy")
    assert (request.name, request.policy) == ("web-1", number)


@pytest.mark.parametrize(
    "words", [("--policy", "config"), ("web-1", "--all"), ("web-1", "--policy", "reboot")]
)
def test_options_that_do_not_fit_are_refused_before_a_call(
    hvctl: Hvctl, fake: FakeHvsvc, words: tuple[str, ...]
) -> None:
    assert hvctl("drift", *words).returncode == 2
    assert fake.seen == []


def test_nothing_recorded_is_not_found_with_a_hint(hvctl: Hvctl, fake: FakeHvsvc) -> None:
    fake.errors["GetDrift"] = [status(5, "nothing is recorded", [error_info("NOTHING_RECORDED")])]
    done = hvctl("drift", "web-1")
    assert done.returncode == 3
    assert "hvctl drift --all" in done.stderr


def test_forget_says_what_it_was(hvctl: Hvctl, fake: FakeHvsvc) -> None:
    done = hvctl("forget", UUID, "-f", "json")
    assert json.loads(done.stdout)["desired"]["vcpus"] == 4
    assert [request.name for request in fake.requests("ForgetDesiredState")] == [UUID]


def test_a_lost_answer_to_forget_is_not_asked_again(hvctl: Hvctl, fake: FakeHvsvc) -> None:
    fake.errors["ForgetDesiredState"] = [status(14, "going down"), None]
    fake.errors["GetDrift"] = [status(14, "going down"), None]
    assert hvctl("forget", "web-1").returncode == 6
    assert len(fake.requests("ForgetDesiredState")) == 1
    assert hvctl("drift", "web-1").returncode == 0
