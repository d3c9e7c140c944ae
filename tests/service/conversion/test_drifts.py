"""Records and comparisons to messages."""

from __future__ import annotations

from google.protobuf import json_format

from hvsvc.domain.desired import ReapplyPolicy
from hvsvc.domain.drift import DriftStatus
from hvsvc.domain.drift_report import Progress
from hvsvc.domain.topology import TopologyMode, TopologyPolicy
from hvsvc.service.conversion import drifts
from hvsvc.v1 import desired_pb2
from tests.fakes.domains import WEB_UUID
from tests.fakes.drifts import DESIRED, report


def test_a_drift_in_full() -> None:
    message = json_format.MessageToDict(drifts.to_drift(report()), preserving_proto_field_name=True)
    assert message == {
        "domain": f"domains/{WEB_UUID}",
        "libvirt_name": "instance-0000335c",
        "server_name": "web-1",
        "status": "STATUS_CEILING_LOST",
        "differences": ["stored maximum vCPUs: 8 asked, 2 found"],
        "next_step": "write it again",
        "desired": {
            "max_vcpus": 8,
            "max_memory_kib": "2097152",
            "topology": "2x1x1x4x1",
            "vcpus": 4,
            "caller": "uri:spiffe://ops",
            "record_time": "2023-11-14T22:13:20.500Z",
            "reapply_policy": "REAPPLY_POLICY_CONFIG",
            "flavor": "small",
            "flavor_vcpus": 2,
            "flavor_memory_mib": "512",
        },
        "policy": "REAPPLY_POLICY_CONFIG",
        "attempts": 2,
        "next_attempt_time": "2023-11-14T22:13:30Z",
        "waits_for": "the next attempt waits",
    }


def test_what_was_not_asked_is_absent() -> None:
    plain = report(policy=None, vcpus=None, topology=TopologyPolicy(TopologyMode.GROW_CORES)).desired
    message = drifts.to_desired(plain)
    assert not message.HasField("vcpus")
    assert not message.HasField("memory_kib")
    assert message.reapply_policy == desired_pb2.REAPPLY_POLICY_UNSPECIFIED
    assert message.topology == "cores"


def test_every_status_and_policy_has_its_number() -> None:
    assert set(drifts.STATUSES) == set(DriftStatus)
    assert set(drifts.POLICIES) == set(ReapplyPolicy)
    assert sorted(drifts.STATUSES.values()) == [n for n in desired_pb2.Drift.Status.values() if n]
    assert sorted(drifts.POLICIES.values()) == [n for n in desired_pb2.ReapplyPolicy.values() if n]


def test_text_that_protobuf_cannot_carry_is_replaced() -> None:
    drift = drifts.to_drift(report(libvirt_name="n\udc80", caller="c\udc80"))
    assert (drift.libvirt_name, drift.desired.caller) == ("n?", "c?")


def test_no_next_attempt_is_absent() -> None:
    assert DESIRED.max_vcpus == 8
    message = drifts.to_drift(type(report())(DESIRED, report().drift, ReapplyPolicy.REPORT, Progress()))
    assert not message.HasField("next_attempt_time")
    assert (message.attempts, message.policy) == (0, desired_pb2.REAPPLY_POLICY_REPORT)
