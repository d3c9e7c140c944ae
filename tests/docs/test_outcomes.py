"""docs/outcomes.md: outcomes and exit codes as the program has them; names in the documents exist."""

from __future__ import annotations

import re
from pathlib import Path

import grpc
import pytest
from prometheus_client import generate_latest

from hvsvc.errors import Reason
from hvsvc.hvctl.exit_codes import BY_OUTCOME, for_outcome
from hvsvc.service.metrics import Metrics
from hvsvc.v1 import scaling_pb2
from tests.documents import DOCUMENTS, ROOT

DOCUMENT = ROOT / "docs" / "outcomes.md"
#: words in capitals with an underscore that are no reason, status or outcome
OTHER = {
    "NOT_SERVING",
    "HVCTL_CLOUD",
    "HVCTL_CLOUD_TARGET",
    "HVCTL_TARGET",
    "HVCTL_TLS_CA",
    "HVCTL_TLS_CERT",
    "HVCTL_TLS_KEY",
    "OS_CLIENT_CONFIG_FILE",
    "OS_PASSWORD",
    "OS_PROJECT_NAME",
    "OS_USERNAME",
    "MEMORY_MB",
    "SET_ALLOCATION",
}
_FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def test_the_table_of_outcomes_is_complete() -> None:
    rows = re.findall(r"^\| `([A-Z_]+)` \| .* \| (\d) \|$", DOCUMENT.read_text("utf-8"), re.MULTILINE)
    assert {name: int(code) for name, code in rows} == BY_OUTCOME
    names = {name.removeprefix("OUTCOME_") for name in scaling_pb2.Outcome.keys()}  # noqa: SIM118  no mapping
    assert set(dict(rows)) == names - {"UNSPECIFIED"}


def test_a_ceiling_that_waits_though_a_reboot_was_asked_for_is_no_success() -> None:
    assert "the exit code is 7" in DOCUMENT.read_text("utf-8")
    assert for_outcome("PENDING_REBOOT", reboot_asked=True) == 7


@pytest.mark.parametrize("path", [*DOCUMENTS, ROOT / "CHANGELOG.md"], ids=lambda path: path.name)
def test_words_in_capitals_exist(path: Path) -> None:
    words = set(re.findall(r"\b[A-Z]+(?:_[A-Z]+)+\b", _FENCED.sub("", path.read_text("utf-8"))))
    known = {
        *(reason.value for reason in Reason),
        *(code.name for code in grpc.StatusCode),
        *BY_OUTCOME,
        *OTHER,
    }
    assert words - known == set()


def test_the_metrics_are_those_that_are_served() -> None:
    metrics = Metrics()
    metrics.began("m")
    metrics.ended("m", "OK", 1.0)
    kinds = dict(
        re.findall(r"^# TYPE (hvsvc_\w+) (\w+)$", generate_latest(metrics.registry).decode(), re.MULTILINE)
    )
    served = {name for name in kinds if not name.endswith("_created")}
    text = (ROOT / "docs" / "operating.md").read_text("utf-8")
    assert set(re.findall(r"^\| `(hvsvc_\w+)", text, re.MULTILINE)) == served
