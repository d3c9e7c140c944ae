"""What was asked for and how it compares, to their messages."""

from __future__ import annotations

from typing import Final

from hvsvc.domain.desired import DesiredState, ReapplyPolicy
from hvsvc.domain.drift import DriftStatus
from hvsvc.domain.drift_report import DriftReport
from hvsvc.domain.topology import TopologyPolicy
from hvsvc.service.conversion.domains import resource_name, timestamp
from hvsvc.service.status import clean
from hvsvc.v1 import desired_pb2

POLICIES: Final = {
    ReapplyPolicy.REPORT: desired_pb2.REAPPLY_POLICY_REPORT,
    ReapplyPolicy.CONFIG: desired_pb2.REAPPLY_POLICY_CONFIG,
    ReapplyPolicy.LIVE: desired_pb2.REAPPLY_POLICY_LIVE,
}
STATUSES: Final = {
    DriftStatus.IN_SYNC: desired_pb2.Drift.STATUS_IN_SYNC,
    DriftStatus.PENDING_REBOOT: desired_pb2.Drift.STATUS_PENDING_REBOOT,
    DriftStatus.CEILING_LOST: desired_pb2.Drift.STATUS_CEILING_LOST,
    DriftStatus.SHRUNK: desired_pb2.Drift.STATUS_SHRUNK,
    DriftStatus.FLAVOR_CHANGED: desired_pb2.Drift.STATUS_FLAVOR_CHANGED,
    DriftStatus.MOVED: desired_pb2.Drift.STATUS_MOVED,
    DriftStatus.GONE: desired_pb2.Drift.STATUS_GONE,
    DriftStatus.UNKNOWN: desired_pb2.Drift.STATUS_UNKNOWN,
}


def to_drift(report: DriftReport) -> desired_pb2.Drift:
    """The whole comparison."""
    desired, progress = report.desired, report.progress
    return desired_pb2.Drift(
        domain=resource_name(desired.uuid),
        libvirt_name=clean(desired.libvirt_name),
        server_name=clean(desired.server_name),
        status=STATUSES[report.drift.status],
        differences=[clean(difference) for difference in report.drift.differences],
        next_step=clean(report.drift.next_step),
        desired=to_desired(desired),
        policy=POLICIES[report.policy],
        attempts=progress.attempts,
        next_attempt_time=None if progress.next_attempt_s is None else timestamp(progress.next_attempt_s),
        waits_for=clean(progress.waits_for),
    )


def to_desired(desired: DesiredState) -> desired_pb2.DesiredState:
    """The record itself."""
    return desired_pb2.DesiredState(
        max_vcpus=desired.max_vcpus,
        max_memory_kib=desired.max_memory_kib,
        topology=_topology(desired.topology),
        vcpus=desired.vcpus,
        memory_kib=desired.memory_kib,
        caller=clean(desired.caller),
        record_time=timestamp(desired.record_time_s),
        reapply_policy=desired_pb2.REAPPLY_POLICY_UNSPECIFIED
        if desired.policy is None
        else POLICIES[desired.policy],
        flavor=clean(desired.flavor),
        flavor_vcpus=desired.flavor_vcpus,
        flavor_memory_mib=desired.flavor_memory_mib,
    )


def _topology(policy: TopologyPolicy) -> str:
    return policy.mode.value if policy.exact is None else str(policy.exact)
