"""raise, setvcpus, setmem, scale and reboot as processes: requests, results and exit codes."""

from __future__ import annotations

import json
import uuid
from typing import Any

import grpc
import pytest
from google.rpc.error_details_pb2 import PreconditionFailure

from hvsvc.hvctl import exit_codes
from hvsvc.v1 import domain_pb2, scaling_pb2
from tests.fakes.hvsvc_server import FakeHvsvc
from tests.fakes.service_messages import UUID, ended, error_info, failed, growth_steps, running, status
from tests.hvctl.conftest import Hvctl

REQUEST_ID = "3e2f9c52-86f2-4d5b-a6a8-0a8f5f3f5b11"
Policy = scaling_pb2.TopologyPolicy

EXACT = domain_pb2.Topology(sockets=2, dies=1, clusters=1, cores=2, threads=2)
HOW: dict[str, Any] = {"etag": "e1", "request_id": REQUEST_ID, "validate_only": True}
HOW_ARGS = ("--etag", "e1", "--request-id", REQUEST_ID, "--dry-run")


@pytest.mark.parametrize(
    ("args", "rpc", "request_sent"),
    [
        (
            (
                "raise",
                "web-1",
                "--max-vcpus",
                "8",
                "--max-memory",
                "2GiB",
                "--topology",
                "2x1x2x2",
                "--boot-vcpus",
                "4",
                "--boot-memory",
                "1GiB",
                "--reboot",
                "soft",
                *HOW_ARGS,
            ),
            "RaiseCeiling",
            scaling_pb2.RaiseCeilingRequest(
                name="web-1",
                max_vcpus=8,
                max_memory_kib=2 << 20,
                topology=Policy(mode=Policy.MODE_EXACT, exact=EXACT),
                boot_vcpus=4,
                boot_memory_kib=1 << 20,
                reboot=scaling_pb2.REBOOT_MODE_SOFT,
                **HOW,
            ),
        ),
        (
            ("setvcpus", "web-1", "8", "--live", "--online", "all", *HOW_ARGS),
            "SetVcpus",
            scaling_pb2.SetVcpusRequest(
                name="web-1",
                vcpus=8,
                affect=scaling_pb2.AFFECT_LIVE,
                guest_cpus=scaling_pb2.GUEST_CPUS_ALL,
                **HOW,
            ),
        ),
        (
            ("setmem", "web-1", "1GiB", "--config", *HOW_ARGS),
            "SetMemory",
            scaling_pb2.SetMemoryRequest(
                name="web-1", memory_kib=1 << 20, affect=scaling_pb2.AFFECT_CONFIG, **HOW
            ),
        ),
        (
            (
                "scale",
                "web-1",
                "--vcpus",
                "8",
                "--memory",
                "1GiB",
                "--max-vcpus",
                "16",
                "--max-memory",
                "4GiB",
                "--topology",
                "sockets",
                "--reboot",
                "never",
                "--online",
                "new",
                *HOW_ARGS,
            ),
            "ScaleDomain",
            scaling_pb2.ScaleDomainRequest(
                name="web-1",
                vcpus=8,
                memory_kib=1 << 20,
                max_vcpus=16,
                max_memory_kib=4 << 20,
                topology=Policy(mode=Policy.MODE_GROW_SOCKETS),
                reboot=scaling_pb2.REBOOT_MODE_NEVER,
                guest_cpus=scaling_pb2.GUEST_CPUS_NEW,
                **HOW,
            ),
        ),
        (
            ("reboot", "web-1", *HOW_ARGS),
            "RebootDomain",
            scaling_pb2.RebootDomainRequest(name="web-1", **HOW),
        ),
    ],
)
def test_every_option_is_a_field_of_the_request(
    hvctl: Hvctl, fake: FakeHvsvc, args: tuple[str, ...], rpc: str, request_sent: Any
) -> None:
    fake.reports = [ended(scaling_pb2.OUTCOME_VALIDATED, changed=False)]
    done = hvctl(*args)
    assert done.returncode == 0, done.stderr
    assert fake.requests(rpc) == [request_sent]


def test_what_is_not_asked_is_not_sent_but_a_fresh_request_id(hvctl: Hvctl, fake: FakeHvsvc) -> None:
    fake.reports = [ended()]
    for _ in range(2):
        hvctl("setvcpus", "web-1", "8")
    first, second = fake.requests("SetVcpus")
    assert first.request_id != second.request_id
    assert uuid.UUID(first.request_id).version == 4
    assert first == scaling_pb2.SetVcpusRequest(
        name="web-1", vcpus=8, affect=scaling_pb2.AFFECT_LIVE_AND_CONFIG, request_id=first.request_id
    )


def test_live_and_config_together_are_the_default_as_in_virsh(hvctl: Hvctl, fake: FakeHvsvc) -> None:
    fake.reports = [ended()]
    hvctl("setmem", "web-1", "1GiB", "--live", "--config")
    assert fake.requests("SetMemory")[0].affect == scaling_pb2.AFFECT_LIVE_AND_CONFIG


def test_a_change_is_followed_to_its_end_and_only_the_result_is_printed(
    hvctl: Hvctl, fake: FakeHvsvc
) -> None:
    fake.reports = [running(growth_steps(0)), running(growth_steps(1)), running(growth_steps(2)), ended()]
    done = hvctl("scale", "web-1", "--vcpus", "8", "-f", "json")
    assert (done.returncode, done.stderr) == (0, "")
    result = json.loads(done.stdout)
    assert (result["done"], result["outcome"], result["changed"], result["reasons"]) == (
        True,
        "COMPLETE",
        True,
        [],
    )
    assert result["after"]["vcpus"]["guest_online"] == 8
    assert [step["state"] for step in result["steps"]] == ["DONE"] * 3


@pytest.mark.parametrize(
    ("outcome", "code"),
    [
        (scaling_pb2.OUTCOME_COMPLETE, 0),
        (scaling_pb2.OUTCOME_PENDING_REBOOT, 0),
        (scaling_pb2.OUTCOME_VALIDATED, 0),
        (scaling_pb2.OUTCOME_PARTIAL, 7),
        (scaling_pb2.OUTCOME_UNCONFIRMED, 7),
        (scaling_pb2.OUTCOME_UNSPECIFIED, 7),
    ],
)
def test_exit_code_of_an_outcome(
    hvctl: Hvctl, fake: FakeHvsvc, outcome: scaling_pb2.Outcome.ValueType, code: int
) -> None:
    fake.reports = [ended(outcome)]
    assert hvctl("raise", "web-1", "--max-vcpus", "8").returncode == code


def test_a_reboot_that_was_asked_for_and_is_still_pending_is_not_done(hvctl: Hvctl, fake: FakeHvsvc) -> None:
    fake.reports = [ended(scaling_pb2.OUTCOME_PENDING_REBOOT)]
    assert hvctl("raise", "web-1", "--max-vcpus", "8", "--reboot", "soft").returncode == 7
    assert hvctl("reboot", "web-1").returncode == 7


@pytest.mark.parametrize("code", [code for code in grpc.StatusCode if code.name not in {"OK", "UNAVAILABLE"}])
def test_exit_code_of_a_refusal_and_of_a_failure_is_the_same(
    hvctl: Hvctl, fake: FakeHvsvc, code: grpc.StatusCode
) -> None:
    number = code.value[0]
    fake.errors["ScaleDomain"] = [status(number, "refused", [error_info("HYPERVISOR_REFUSED")])]
    refused = hvctl("scale", "web-1", "--vcpus", "8", "-f", "json")
    assert refused.returncode == exit_codes.BY_STATUS[code.name]
    assert json.loads(refused.stdout)["error"]["code"] == code.name
    fake.reports = [running(growth_steps(0)), failed(number, "failed", [error_info("START_FAILED")])]
    ended_badly = hvctl("scale", "web-1", "--vcpus", "8", "-f", "json")
    assert ended_badly.returncode == exit_codes.BY_STATUS[code.name]
    assert json.loads(ended_badly.stdout)["error"]["reason"] == "START_FAILED"


def test_a_refusal_for_people_says_every_blocker_and_the_next_step(hvctl: Hvctl, fake: FakeHvsvc) -> None:
    message = "8 vCPUs are above the ceiling of 2: allow a reboot"
    blockers = [PreconditionFailure.Violation(description=text) for text in (message, "the host has 4 CPUs")]
    details = [error_info("REBOOT_REQUIRED"), PreconditionFailure(violations=blockers)]
    fake.errors["ScaleDomain"] = [status(9, message, details)]
    done = hvctl("scale", "web-1", "--vcpus", "8")
    assert (done.returncode, done.stdout) == (4, "")
    assert done.stderr.splitlines() == [
        f"hvctl: {message}",
        "  reason: REBOOT_REQUIRED (FAILED_PRECONDITION)",
        "  also: the host has 4 CPUs",
        "  next: add --reboot soft if the guest may be rebooted",
    ]


def test_details_that_are_garbage_leave_a_clear_error(hvctl: Hvctl, fake: FakeHvsvc) -> None:
    fake.errors["ScaleDomain"] = [b"\xff\xfe garbage"]
    done = hvctl("scale", "web-1", "--vcpus", "8", "-f", "json")
    assert done.returncode == 4
    assert json.loads(done.stdout) == {
        "error": {"code": "FAILED_PRECONDITION", "message": "refused", "metadata": {}}
    }
    assert done.stderr.splitlines() == ["hvctl: refused", "  code: FAILED_PRECONDITION"]


def test_a_lost_connection_is_repeated_with_the_same_request_id(hvctl: Hvctl, fake: FakeHvsvc) -> None:
    fake.errors["ScaleDomain"] = [status(14, "connection reset"), None]
    fake.reports = [ended()]
    assert hvctl("scale", "web-1", "--vcpus", "8").returncode == 0
    first, second = fake.requests("ScaleDomain")
    assert first == second


def test_no_answer_says_how_to_repeat_it_safely(hvctl: Hvctl, fake: FakeHvsvc) -> None:
    fake.errors["ScaleDomain"] = [status(14, "connection reset")] * 3
    done = hvctl("scale", "web-1", "--vcpus", "8")
    assert done.returncode == 6
    assert f"--request-id {fake.requests('ScaleDomain')[0].request_id}" in done.stderr


def test_no_wait_prints_the_running_operation(hvctl: Hvctl, fake: FakeHvsvc) -> None:
    fake.reports = [running(growth_steps(0)), ended()]
    done = hvctl("scale", "web-1", "--vcpus", "8", "--no-wait", "-f", "json")
    assert done.returncode == 0
    document = json.loads(done.stdout)
    assert (document["name"], document["done"], document["domain"]) == (
        "operations/0b7c",
        False,
        f"domains/{UUID}",
    )
    assert "hvctl operations watch operations/0b7c" in done.stderr
    assert fake.requests("WatchOperation") == []


def test_the_end_of_the_wait_is_not_the_end_of_the_operation(hvctl: Hvctl, fake: FakeHvsvc) -> None:
    fake.reports = [running(growth_steps(0)), running(growth_steps(1)), ended()]
    fake.released.clear()
    done = hvctl("scale", "web-1", "--vcpus", "8", "--timeout", "0.5", "-f", "json")
    assert done.returncode == 6
    document = json.loads(done.stdout)
    assert document["done"] is False
    assert [step["state"] for step in document["steps"]] == ["DONE", "RUNNING", "PENDING"]
    assert (document["error"]["code"], document["error"]["reason"]) == ("DEADLINE_EXCEEDED", "CALL_TIMED_OUT")
    assert "next: hvctl operations watch operations/0b7c" in done.stderr


@pytest.mark.parametrize(
    "args",
    [
        ("setmem", "web-1", "1024"),
        ("setvcpus", "web-1", "0"),
        ("setvcpus", "web-1", "4294967296"),
        ("raise", "web-1", "--topology", "8"),
        ("scale", "web-1", "--reboot", "hard"),
        ("scale", "web-1", "--request-id", "not-a-uuid"),
        ("scale", "web-1", "--timeout", "0"),
        ("scale", "web-1", "-c", "nothing.there"),
        ("scale",),
    ],
)
def test_bad_usage_sends_nothing(hvctl: Hvctl, fake: FakeHvsvc, args: tuple[str, ...]) -> None:
    assert hvctl(*args).returncode == 2
    assert fake.seen == []
