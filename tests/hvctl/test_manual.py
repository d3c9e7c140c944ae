"""Every hvctl command in the documents runs, and prints what the document shows.

The output that the README shows is that of a real cloud, and compared there (tests/lab/test_readme.py).
"""

from __future__ import annotations

import re
import shlex

import pytest

from hvsvc.hvctl import exit_codes
from hvsvc.hvctl.main import COMMANDS
from hvsvc.v1 import domain_pb2, scaling_pb2
from tests.documents import README, ROOT, Example, read_examples
from tests.fakes.hvsvc_server import FakeHvsvc
from tests.fakes.service_messages import (
    domain,
    drift,
    ended,
    error_info,
    growth_steps,
    off_domain,
    running,
    status,
    step,
)
from tests.fakes.service_messages import host as host_message
from tests.hvctl.conftest import Hvctl

MANUAL = ROOT / "docs" / "hvctl.md"
ABOVE = "16 vCPUs are above the ceiling of 8: raising it takes a reboot"
EXAMPLES = read_examples("hvctl")


@pytest.fixture(autouse=True)
def host(fake: FakeHvsvc) -> None:
    fake.domains = [domain(max_vcpus=8), off_domain()]
    fake.changes = [
        domain_pb2.WatchDomainsResponse(
            type=domain_pb2.WatchDomainsResponse.TYPE_SNAPSHOT, domain=domain(max_vcpus=8)
        )
    ]
    fake.host, fake.drifts = host_message(), [drift()]
    fake.reports = [running(growth_steps(0)), ended()]
    fake.plan = scaling_pb2.PlanScaleResponse(
        domain=domain(), steps=[step(scaling_pb2.Step.KIND_SET_VCPUS_LIVE, scaling_pb2.Step.STATE_PENDING)]
    )


@pytest.mark.parametrize("example", EXAMPLES, ids=str)
def test_example(hvctl: Hvctl, fake: FakeHvsvc, example: Example) -> None:
    _, *args = shlex.split(example.command)
    output = list(example.output)
    code = 0
    if args[0] == "watch":
        fake.released.clear()
    if output and output[-1].startswith("exit code "):
        code = int(output.pop().removeprefix("exit code "))
        fake.errors["ScaleDomain"] = [status(9, ABOVE, [error_info("REBOOT_REQUIRED")])]
    done = hvctl(*args)
    assert done.returncode == code, done.stderr
    if output and example.document != README:
        assert (done.stderr if code else done.stdout).splitlines() == output


def test_every_command_has_an_example() -> None:
    manual = [example.command for example in EXAMPLES if example.document == MANUAL]
    assert {shlex.split(command)[1] for command in manual} == set(COMMANDS)


def test_the_exit_code_table_is_complete() -> None:
    listed = {int(number) for number in re.findall(r"^\| (\d+) \|", MANUAL.read_text("utf-8"), re.MULTILINE)}
    assert listed == {*exit_codes.BY_STATUS.values(), *exit_codes.BY_OUTCOME.values(), exit_codes.INTERRUPTED}
