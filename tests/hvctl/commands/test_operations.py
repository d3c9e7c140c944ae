"""operations as processes."""

from __future__ import annotations

import json

import pytest

from tests.fakes.hvsvc_server import FakeHvsvc
from tests.fakes.service_messages import UUID, ended, error_info, failed, growth_steps, running, status
from tests.hvctl.conftest import Hvctl


@pytest.fixture(autouse=True)
def reports(fake: FakeHvsvc) -> None:
    fake.reports = [
        running(growth_steps(1), name="operations/1"),
        ended(name="operations/2"),
        failed(9, "gone", [error_info("CEILING_LOST")], name="operations/3"),
        failed(13, "bug", name="operations/4"),
    ]


def test_list_is_the_default_and_reads_every_page(hvctl: Hvctl, fake: FakeHvsvc) -> None:
    done = hvctl("operations")
    rows = [line.split() for line in done.stdout.splitlines()]
    assert [(row[0], row[-1]) for row in rows] == [
        ("Operation", "Status"),
        ("operations/1", "running"),
        ("operations/2", "COMPLETE"),
        ("operations/3", "CEILING_LOST"),
        ("operations/4", "INTERNAL"),
    ]
    assert rows[1][1:3] == ["web-1", "instance-0000335c"]
    assert rows[1][-2] == "2023-11-14T22:13:20Z"
    assert [request.page_token for request in fake.requests("ListOperations")] == ["", "2"]
    assert hvctl("operations", "list").stdout == done.stdout


@pytest.mark.parametrize(
    ("options", "narrowed"),
    [
        ((), ""),
        (("--running",), "done = false"),
        (("--domain", "web 1"), 'domain = "web 1"'),
        (("--running", "--domain", UUID), f'domain = "{UUID}" AND done = false'),
    ],
)
def test_the_service_filters(hvctl: Hvctl, fake: FakeHvsvc, options: tuple[str, ...], narrowed: str) -> None:
    assert hvctl("operations", "list", *options).returncode == 0
    assert {request.filter for request in fake.requests("ListOperations")} == {narrowed}


def test_a_name_that_a_filter_cannot_hold_is_refused(hvctl: Hvctl, fake: FakeHvsvc) -> None:
    assert hvctl("operations", "list", "--domain", 'x" OR "y').returncode == 2
    assert fake.seen == []


def test_the_limit(hvctl: Hvctl, fake: FakeHvsvc) -> None:
    found = json.loads(hvctl("operations", "list", "--limit", "2", "-f", "json").stdout)
    assert [item["name"] for item in found] == ["operations/1", "operations/2"]
    assert len(fake.requests("ListOperations")) == 1


def test_the_format_may_stand_before_the_second_word(hvctl: Hvctl) -> None:
    assert len(json.loads(hvctl("operations", "-f", "json").stdout)) == 4
    assert len(json.loads(hvctl("operations", "-f", "json", "list").stdout)) == 4


@pytest.mark.parametrize("name", ["1", "operations/1"])
def test_show(hvctl: Hvctl, fake: FakeHvsvc, name: str) -> None:
    done = hvctl("operations", "show", name, "-f", "json")
    assert done.returncode == 0
    assert json.loads(done.stdout)["done"] is False
    assert fake.requests("GetOperation")[0].name == "operations/1"


def test_watch_ends_as_the_command_would_have(hvctl: Hvctl, fake: FakeHvsvc) -> None:
    done = hvctl("operations", "watch", "1", "-f", "json")
    assert done.returncode == 1
    assert json.loads(done.stdout)["error"]["message"] == "bug"
    fake.reports = [ended()]
    assert hvctl("operations", "watch", "2").returncode == 0


def test_cancel_shows_what_is_now(hvctl: Hvctl, fake: FakeHvsvc) -> None:
    done = hvctl("operations", "cancel", "1", "-f", "json")
    assert done.returncode == 0
    assert json.loads(done.stdout)["name"] == "operations/1"
    assert fake.requests("CancelOperation")[0].name == "operations/1"


def test_cancel_of_one_that_ended_says_that_nothing_was_cancelled(hvctl: Hvctl, fake: FakeHvsvc) -> None:
    fake.reports = [ended(name="operations/2")]
    done = hvctl("operations", "cancel", "2")
    assert done.returncode == 0
    assert "operations/2 had ended already; nothing was cancelled" in done.stderr
    assert fake.requests("CancelOperation") == []


def test_delete(hvctl: Hvctl, fake: FakeHvsvc) -> None:
    done = hvctl("operations", "delete", "2", "-f", "json")
    assert json.loads(done.stdout) == {"name": "operations/2", "deleted": True}
    assert fake.requests("DeleteOperation")[0].name == "operations/2"
    assert hvctl("operations", "delete", "2").stdout == "operations/2 is deleted\n"


def test_an_unknown_operation(hvctl: Hvctl, fake: FakeHvsvc) -> None:
    fake.errors["GetOperation"] = [status(5, "no such operation", [error_info("OPERATION_NOT_FOUND")])]
    done = hvctl("operations", "show", "9")
    assert done.returncode == 3
    assert "hvctl operations list" in done.stderr
