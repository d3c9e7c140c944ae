"""plan as a process."""

from __future__ import annotations

import json

from hvsvc.v1 import scaling_pb2
from tests.fakes.hvsvc_server import FakeHvsvc
from tests.fakes.service_messages import domain, step
from tests.hvctl.conftest import Hvctl


def test_every_option_is_a_field_of_the_request(hvctl: Hvctl, fake: FakeHvsvc) -> None:
    done = hvctl(
        *("plan", "web-1", "--vcpus", "8", "--memory", "1GiB", "--max-vcpus", "16", "--max-memory", "4GiB"),
        *("--topology", "cores", "--reboot", "soft", "--online", "all"),
    )
    assert done.returncode == 0, done.stderr
    assert fake.requests("PlanScale") == [
        scaling_pb2.PlanScaleRequest(
            name="web-1",
            vcpus=8,
            memory_kib=1 << 20,
            max_vcpus=16,
            max_memory_kib=4 << 20,
            topology=scaling_pb2.TopologyPolicy(mode=scaling_pb2.TopologyPolicy.MODE_GROW_CORES),
            reboot=scaling_pb2.REBOOT_MODE_SOFT,
            guest_cpus=scaling_pb2.GUEST_CPUS_ALL,
        )
    ]


def test_what_is_not_asked_is_not_sent(hvctl: Hvctl, fake: FakeHvsvc) -> None:
    hvctl("plan", "web-1", "--vcpus", "8")
    assert fake.requests("PlanScale") == [scaling_pb2.PlanScaleRequest(name="web-1", vcpus=8)]


def test_blockers_are_part_of_the_answer(hvctl: Hvctl, fake: FakeHvsvc) -> None:
    fake.plan = scaling_pb2.PlanScaleResponse(
        domain=domain(),
        steps=[step(scaling_pb2.Step.KIND_SET_VCPUS_LIVE, scaling_pb2.Step.STATE_PENDING, why="2 to 8")],
        blockers=[scaling_pb2.Reason(reason="NO_ACPI", message="no ACPI", metadata={"a": "b"})],
        xml_diff="-<a/>\n+<b/>\n",
        etag="e1",
    )
    done = hvctl("plan", "web-1", "--vcpus", "8", "-f", "json")
    assert done.returncode == 0
    plan = json.loads(done.stdout)
    assert plan["needs_reboot"] is False
    assert plan["blockers"] == [{"reason": "NO_ACPI", "message": "no ACPI", "metadata": {"a": "b"}}]
    assert plan["steps"] == [
        {"kind": "SET_VCPUS_LIVE", "effect": "LIVE", "why": "2 to 8", "state": "PENDING"}
    ]
    assert "topology" not in plan
    assert (
        hvctl("plan", "web-1", "--vcpus", "8", "-f", "value", "-c", "xml_diff").stdout == "-<a/>\n+<b/>\n\n"
    )


def test_nothing_asked_names_the_options(hvctl: Hvctl, fake: FakeHvsvc) -> None:
    for words, options in (
        ("plan web-1", "--vcpus, --memory, --max-vcpus, --max-memory or --topology"),
        ("scale web-1 --topology cores", "--vcpus, --memory, --max-vcpus or --max-memory"),
        ("raise web-1 --boot-vcpus 2", "--max-vcpus, --max-memory or --topology"),
    ):
        done = hvctl(*words.split())
        assert (done.returncode, fake.seen) == (2, []), words
        assert f"nothing is asked; give {options}\n" in done.stderr
