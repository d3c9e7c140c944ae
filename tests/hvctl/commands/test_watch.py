"""watch as a process."""

from __future__ import annotations

import json

import yaml

from hvsvc.v1 import domain_pb2
from tests.fakes.hvsvc_server import FakeHvsvc
from tests.fakes.service_messages import domain, off_domain, status
from tests.hvctl.conftest import Hvctl

Response = domain_pb2.WatchDomainsResponse


def changes() -> list[domain_pb2.WatchDomainsResponse]:
    return [
        Response(type=Response.TYPE_SNAPSHOT, domain=domain(max_vcpus=8)),
        Response(type=Response.TYPE_SNAPSHOT_END),
        Response(type=Response.TYPE_CHANGED, domain=domain(pending_reboot=True), event="RESUMED\x1b"),
        Response(type=Response.TYPE_REMOVED, domain=domain_pb2.Domain(libvirt_name="old"), event="UNDEFINED"),
    ]


def test_lines_for_people(hvctl: Hvctl, fake: FakeHvsvc) -> None:
    fake.changes = changes()
    fake.released.clear()
    done = hvctl("watch", "web-1", "--timeout", "3")
    assert done.returncode == 0
    assert done.stdout.splitlines() == [
        "snapshot  web-1 (instance-0000335c)  running  2 of 8 vCPUs  512 MiB of 1 GiB",
        "changed   web-1 (instance-0000335c)  running  2 of 2 vCPUs  512 MiB of 1 GiB  pending reboot  RESUMED\\x1b",
        "removed   old  UNDEFINED",
    ]
    assert list(fake.requests("WatchDomains")[0].names) == ["web-1"]


def test_json_is_one_object_a_line(hvctl: Hvctl, fake: FakeHvsvc) -> None:
    fake.changes = changes()
    fake.released.clear()
    out = hvctl("watch", "--timeout", "3", "-f", "json").stdout
    objects = [json.loads(line) for line in out.splitlines()]
    assert [item["type"] for item in objects] == ["SNAPSHOT", "SNAPSHOT_END", "CHANGED", "REMOVED"]
    assert objects[0]["domain"]["vcpus"]["maximum_live"] == 8
    assert objects[2]["event"] == "RESUMED\x1b"


def test_other_formats(hvctl: Hvctl, fake: FakeHvsvc) -> None:
    fake.changes = [Response(type=Response.TYPE_SNAPSHOT, domain=off_domain())]
    fake.released.clear()
    columns = ("-c", "type", "-c", "domain.state", "--timeout", "3")
    assert hvctl("watch", *columns, "-f", "value").stdout == "SNAPSHOT SHUT_OFF\n"
    assert hvctl("watch", *columns).stdout == "type=SNAPSHOT  domain.state=SHUT_OFF\n"
    documents = list(yaml.safe_load_all(hvctl("watch", *columns, "-f", "yaml").stdout))
    assert documents == [{"type": "SNAPSHOT", "domain": {"state": "SHUT_OFF"}}]


def test_a_lost_watch_is_taken_up_again(hvctl: Hvctl, fake: FakeHvsvc) -> None:
    fake.changes = [Response(type=Response.TYPE_SNAPSHOT, domain=off_domain())]
    fake.errors["WatchDomains"] = [None, None]
    fake.released.clear()
    done = hvctl("watch", "--timeout", "3")
    assert done.returncode == 0
    assert done.stdout.count("snapshot") == 2
    assert "trying again" in done.stderr


def test_a_watch_that_never_began_fails(hvctl: Hvctl, fake: FakeHvsvc) -> None:
    fake.errors["WatchDomains"] = [status(14, "libvirt is away")] * 3
    done = hvctl("watch")
    assert done.returncode == 6
    assert "libvirt is away" in done.stderr
