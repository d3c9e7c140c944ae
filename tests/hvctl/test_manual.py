"""Every command in docs/hvctl.md runs, and prints what the document shows."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from hvsvc.hvctl import exit_codes
from hvsvc.hvctl.main import COMMANDS
from hvsvc.v1 import domain_pb2, scaling_pb2
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

MANUAL = Path(__file__).parents[2] / "docs" / "hvctl.md"
ABOVE = "16 vCPUs are above the ceiling of 8: raising it takes a reboot"


def examples() -> Iterator[tuple[str, list[str]]]:
    """Each command of the document and the output lines below it; none where the document shows none."""
    for block in re.findall(r"```console\n(.*?)```", MANUAL.read_text("utf-8"), re.DOTALL):
        for command in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            line, *output = command.rstrip("\n").split("\n")
            yield line, output


EXAMPLES = list(examples())


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


@pytest.mark.parametrize(("command", "output"), EXAMPLES, ids=[command for command, _ in EXAMPLES])
def test_example(hvctl: Hvctl, fake: FakeHvsvc, command: str, output: list[str]) -> None:
    program, *args = shlex.split(command)
    assert program == "hvctl"
    code = 0
    if args[0] == "watch":
        fake.released.clear()
    if output and output[-1].startswith("exit code "):
        code = int(output.pop().removeprefix("exit code "))
        fake.errors["ScaleDomain"] = [status(9, ABOVE, [error_info("REBOOT_REQUIRED")])]
    done = hvctl(*args)
    assert done.returncode == code, done.stderr
    if output:
        assert (done.stderr if code else done.stdout).splitlines() == output


def test_every_command_has_an_example() -> None:
    assert {shlex.split(command)[1] for command, _ in EXAMPLES} == set(COMMANDS)


def test_the_exit_code_table_is_complete() -> None:
    listed = {int(number) for number in re.findall(r"^\| (\d+) \|", MANUAL.read_text("utf-8"), re.MULTILINE)}
    assert listed == {*exit_codes.BY_STATUS.values(), *exit_codes.BY_OUTCOME.values(), exit_codes.INTERRUPTED}
