"""Reports of drift for tests of the service floor."""

from __future__ import annotations

from dataclasses import replace

from hvsvc.domain.desired import DesiredState, ReapplyPolicy
from hvsvc.domain.drift import Drift, DriftStatus
from hvsvc.domain.drift_report import DriftReport, Progress
from hvsvc.domain.topology import Topology, TopologyMode, TopologyPolicy
from tests.fakes.domains import WEB_UUID

DESIRED = DesiredState(
    WEB_UUID,
    "instance-0000335c",
    "uri:spiffe://ops",
    1_700_000_000.5,
    max_vcpus=8,
    max_memory_kib=2 << 20,
    topology=TopologyPolicy(TopologyMode.EXACT, Topology(2, cores=4)),
    vcpus=4,
    policy=ReapplyPolicy.CONFIG,
    server_name="web-1",
    is_server=True,
    flavor="small",
    flavor_vcpus=2,
    flavor_memory_mib=512,
)


def report(status: DriftStatus = DriftStatus.CEILING_LOST, **desired: object) -> DriftReport:
    """A drift with a difference, in its second attempt."""
    return DriftReport(
        replace(DESIRED, **desired),  # type: ignore[arg-type]
        Drift(status, ("stored maximum vCPUs: 8 asked, 2 found",), "write it again"),
        ReapplyPolicy.CONFIG,
        Progress(2, 1_700_000_010.0, "the next attempt waits"),
    )
