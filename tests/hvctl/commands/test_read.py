"""list, dominfo and vcpucount as processes."""

from __future__ import annotations

import json

import pytest
import yaml

from hvsvc.v1 import desired_pb2, domain_pb2
from tests.fakes.hvsvc_server import FakeHvsvc
from tests.fakes.service_messages import UUID, domain, drift, error_info, host, off_domain, status
from tests.hvctl.conftest import HVCTL, Hvctl, clean_env
from tests.hvctl.terminal_session import TerminalSession


def test_vcpucount_json_is_one_object_of_the_contract(hvctl: Hvctl) -> None:
    done = hvctl("vcpucount", "web-1", "-f", "json")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout) == dict.fromkeys(
        (
            "maximum_config",
            "maximum_live",
            "current_config",
            "current_live",
            "guest_present",
            "guest_online",
        ),
        2,
    )


def test_vcpucount_leaves_out_what_is_not_known(hvctl: Hvctl, fake: FakeHvsvc) -> None:
    fake.domains = [off_domain()]
    assert json.loads(hvctl("vcpucount", "backup", "-f", "json").stdout) == {
        "maximum_config": 4,
        "current_config": 1,
    }
    assert hvctl("vcpucount", "backup").stdout.split() == ["maximum", "config", "4", "current", "config", "1"]


def test_dominfo_json_is_the_whole_domain(hvctl: Hvctl) -> None:
    report = json.loads(hvctl("-f", "json", "dominfo", "web-1").stdout)
    assert report["uuid"] == UUID
    assert report["memory"]["maximum_live_kib"] == 1048576
    assert report["nova"]["name"] == "web-1"
    assert report["placement"]["vcpu_pins"] == [{"vcpu": 0, "cpuset": "3"}]
    assert yaml.safe_load(hvctl("dominfo", "web-1", "-f", "yaml").stdout) == report


@pytest.mark.parametrize("name", ["web-1", UUID, "instance-0000335c", f"domains/{UUID}", " odd name"])
def test_the_name_goes_to_the_service_as_it_is(hvctl: Hvctl, fake: FakeHvsvc, name: str) -> None:
    assert hvctl("dominfo", name).returncode == 0
    (request,) = fake.requests("GetDomain")
    assert request.name == name
    assert request.view == domain_pb2.DOMAIN_VIEW_FULL


def test_no_guest_asks_for_the_basic_view(hvctl: Hvctl, fake: FakeHvsvc) -> None:
    hvctl("dominfo", "web-1", "--no-guest")
    assert fake.requests("GetDomain")[0].view == domain_pb2.DOMAIN_VIEW_BASIC


def test_options_after_the_command_win(hvctl: Hvctl) -> None:
    done = hvctl("-f", "json", "-c", "uuid", "vcpucount", "web-1", "-f", "value", "-c", "maximum_live")
    assert done.stdout == "2\n"


def test_a_wrong_column_is_refused_before_the_call(hvctl: Hvctl, fake: FakeHvsvc) -> None:
    done = hvctl("vcpucount", "web-1", "-c", "uuid")
    assert done.returncode == 2
    assert "no column 'uuid'" in done.stderr
    assert fake.seen == []


def test_list_reads_every_page(hvctl: Hvctl, fake: FakeHvsvc) -> None:
    fake.domains = [domain(libvirt_name=f"instance-{number}") for number in range(5)]
    done = hvctl("list", "-f", "value", "-c", "libvirt_name")
    assert done.stdout.split() == [f"instance-{number}" for number in range(5)]
    assert [request.page_token for request in fake.requests("ListDomains")] == ["", "2", "4"]


def test_list_shows_the_room_to_grow_by_name(hvctl: Hvctl, fake: FakeHvsvc) -> None:
    full = domain(vcpus=2, max_vcpus=2, memory_kib=1048576, pending_reboot=True)
    full.id = 8
    other = domain(vcpus=4, max_vcpus=4, memory_kib=1048576)
    other.id = 9
    other.conditions.add(reason="CONFIG_LIVE_DIFFER", message="vCPUs config 2, live 4")
    lost = domain(drift=drift(), pending_reboot=True)
    lost.id = 10
    silent = domain_pb2.Domain(uuid=UUID, libvirt_name="silent", id=11, state=domain_pb2.DOMAIN_STATE_RUNNING)
    silent.conditions.add(reason="CALL_TIMED_OUT", message="its QEMU has not answered libvirt for 9 s")
    fake.domains = [domain(vcpus=2, max_vcpus=8), full, other, lost, off_domain(), silent]
    fake.host = host()
    rows = [line.split("  ") for line in hvctl("list").stdout.splitlines()]
    cells = [[cell.strip() for cell in row if cell.strip()] for row in rows]
    assert cells == [
        ["Id", "Server", "Name", "State", "vCPUs", "Memory", "Room to grow", "Note"],
        ["-", "-", "backup", "shut off", "1", "1 GiB", "-"],
        ["11", "-", "silent", "running", "-", "-", "-", "not read: CALL_TIMED_OUT"],
        ["7", "web-1", "instance-0000335c", "running", "2", "512 MiB", "+6 vCPUs, +512 MiB"],
        ["8", "web-1", "instance-0000335c", "running", "2", "1 GiB", "none", "pending reboot"],
        ["9", "web-1", "instance-0000335c", "running", "4", "1 GiB", "none", "next start differs"],
        ["10", "web-1", "instance-0000335c", "running", "2", "512 MiB", "+512 MiB", "ceiling lost"],
        [],
        ["Room to grow together: +6 vCPUs, +1 GiB; the host could give 124 vCPUs and 94 GiB more"],
    ]
    assert len(json.loads(hvctl("list", "-f", "json").stdout)) == 6


def test_host_is_a_document_too(hvctl: Hvctl, fake: FakeHvsvc) -> None:
    fake.host = host()
    found = json.loads(hvctl("host", "-f", "json").stdout)
    assert (found["pcpus"], found["vcpus_left"], found["memory_left_kib"]) == (8, 124, 94 << 20)
    assert hvctl("host", "-f", "value", "-c", "maximum_vcpus").stdout == "16\n"


def test_dominfo_shows_a_drift(hvctl: Hvctl, fake: FakeHvsvc) -> None:
    fake.domains = [domain(drift=drift())]
    lines = hvctl("dominfo", "web-1").stdout.splitlines()
    assert lines[lines.index("Drift: ceiling lost") + 1] == "  stored maximum vCPUs: 8 asked, 2 found"
    fake.domains = [domain(drift=drift(desired_pb2.Drift.STATUS_IN_SYNC))]
    assert "Drift" not in hvctl("dominfo", "web-1").stdout


def test_list_filters(hvctl: Hvctl, fake: FakeHvsvc) -> None:
    done = hvctl(
        "list", "--state", "shut-off", "--state", "paused", "--server", "web-1", "--guest", "-f", "json"
    )
    (request,) = fake.requests("ListDomains")
    assert list(request.states) == [domain_pb2.DOMAIN_STATE_SHUT_OFF, domain_pb2.DOMAIN_STATE_PAUSED]
    assert request.nova_server == "web-1"
    assert request.view == domain_pb2.DOMAIN_VIEW_FULL
    assert [item["libvirt_name"] for item in json.loads(done.stdout)] == ["backup"]


def test_an_empty_list(hvctl: Hvctl, fake: FakeHvsvc) -> None:
    fake.domains = []
    assert json.loads(hvctl("list", "-f", "json").stdout) == []


@pytest.mark.parametrize("output_format", ["table", "json", "yaml", "value"])
def test_hostile_names_reach_no_terminal(hvctl: Hvctl, fake: FakeHvsvc, output_format: str) -> None:
    evil = "\x1b]0;owned\x07\x9b2J\u202e[red]x[/red]\r"
    report = domain(libvirt_name=evil)
    report.nova.name = evil
    fake.domains = [report]
    for command in (("list",), ("dominfo", "x")):
        out = hvctl(*command, "-f", output_format).stdout
        assert not [char for char in out if not char.isprintable() and char != "\n"]
        assert "[red]x[/red]" in out


def test_candidates_of_an_ambiguous_name_are_shown(hvctl: Hvctl, fake: FakeHvsvc) -> None:
    candidates = f"domains/{UUID}, domains/11111111-2222-4333-8444-555555555555"
    error = status(3, "web-1 names 2 domains", [error_info("AMBIGUOUS_NAME", candidates=candidates)])
    fake.errors["GetDomain"] = [error]
    done = hvctl("dominfo", "web-1", "-f", "json")
    assert done.returncode == 2
    assert json.loads(done.stdout)["error"]["metadata"]["candidates"] == candidates
    assert f"candidate: domains/{UUID}\n" in done.stderr


def test_an_empty_name_is_bad_usage(hvctl: Hvctl, fake: FakeHvsvc) -> None:
    assert hvctl("dominfo", "").returncode == 2
    assert fake.seen == []


def test_on_a_narrow_terminal_names_stay_whole(target: str) -> None:
    env = clean_env(HVCTL_TARGET=target, COLUMNS="70", TERM="xterm")
    with TerminalSession([*HVCTL, "list"], env=env) as session:
        assert session.finish() == 0
    assert "instance-0000335c" in session.output
    assert "512 MiB" in session.output
    assert "+6 vCPUs, +512 MiB" not in session.output
