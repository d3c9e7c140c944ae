"""What the log says of a lost ceiling."""

from __future__ import annotations

from dataclasses import replace

from structlog.testing import capture_logs

from hvsvc.domain.desired import DesiredState
from hvsvc.operations.drift_log import DriftLog
from tests.fakes.worlds import UUID, facts

DESIRED = DesiredState(UUID, "instance-00000001", "unix", 1000.0, max_vcpus=8, server_name="web-1")
THERE, LOST = facts({"maximum": 8}), facts({"maximum": 2})


def test_a_loss_is_told_once_until_the_ceiling_was_there_again() -> None:
    log, counts = DriftLog(), []
    with capture_logs() as lines:
        for found in (THERE, LOST, LOST, THERE, LOST):
            log.tell(DESIRED, found)
            counts.append(log.lost)
        log.tell(replace(DESIRED, record_time_s=2000.0), LOST)
    assert [(line["event"], line["log_level"]) for line in lines] == [("ceiling_lost", "warning")] * 3
    assert (lines[0]["server"], lines[0]["differences"]) == (
        "web-1",
        "stored maximum vCPUs: 8 asked, 2 found",
    )
    assert counts == [0, 1, 1, 0, 1]
    log.forget(UUID)
    assert log.lost == 0
