"""Every hvctl command in the documents runs, and prints what the document shows.

The output that the README shows is that of a real cloud, and compared there (tests/lab/test_readme.py).
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from google.longrunning.operations_pb2 import Operation

from hvsvc.hvctl import exit_codes
from hvsvc.hvctl.main import COMMANDS
from hvsvc.v1 import domain_pb2, scaling_pb2
from tests.documents import README, ROOT, Example, read_examples
from tests.fakes.cloud import CloudsYaml, FakeCloud, server
from tests.fakes.flavors import own_flavor
from tests.fakes.hvsvc_server import FakeHvsvc
from tests.fakes.service_messages import (
    GIB,
    UUID,
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
ABOVE = (
    "maximum vCPUs 8 to 16; that takes effect only by a reboot, to which the request does not consent; nothing was "
    "changed; consent with reboot SOFT (hvctl: --reboot soft), or stay below the ceiling: 8 vCPUs and 1 GiB"
)
OPERATION = "operations/0b7c3f5e-1d2a-4e6b-8c9d-a1b2c3d4e5f6"
STORED = "stored: maximum vCPUs 8, current 8, maximum memory 1 GiB, current 1 GiB, topology 8x1x1x1x1"
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
    fake.reports = [running(growth_steps(0), name=OPERATION), grown()]
    fake.plan = scaling_pb2.PlanScaleResponse(
        domain=domain(), steps=[step(scaling_pb2.Step.KIND_SET_VCPUS_LIVE, scaling_pb2.Step.STATE_PENDING)]
    )


def grown() -> Operation:
    """A growth of both sides, which stores its sizes last."""
    operation = ended(name=OPERATION)
    result = scaling_pb2.ScaleResult()
    operation.response.Unpack(result)
    kind, done = scaling_pb2.Step.KIND_DEFINE_CONFIG, scaling_pb2.Step.STATE_DONE
    result.steps.append(step(kind, done, took_s=0.1, evidence=STORED))
    operation.response.Pack(result)
    return operation


@pytest.fixture
def production(tmp_path: Path, target: str) -> Iterator[dict[str, str]]:
    """The environment in which clouds.yaml has a cloud of that name, where web-1 can be resized to flavor big."""
    big = own_flavor("big", 4, 1024)
    before_host, slash, host_part = target.rpartition("/")
    then = {"status": "VERIFY_RESIZE", "flavor": big}, {"status": "ACTIVE"}
    with FakeCloud(servers={UUID: server({"id": UUID, "OS-EXT-SRV-ATTR:host": host_part})}) as cloud:
        cloud.then = {"resize": [then[0]], "confirmResize": [then[1]]}
        cloud.write_clouds_yaml(CloudsYaml(tmp_path / "clouds.yaml"), "production")
        yield {
            "OS_CLIENT_CONFIG_FILE": str(tmp_path / "clouds.yaml"),
            "HVCTL_CLOUD_TARGET": f"{before_host}{slash}{{host}}",
        }


@pytest.mark.parametrize("example", EXAMPLES, ids=str)
def test_example(hvctl: Hvctl, fake: FakeHvsvc, production: dict[str, str], example: Example) -> None:
    _, *args = shlex.split(example.command)
    if "--via" in args:
        fake.plan.domain.CopyFrom(domain(max_vcpus=8))
        big = scaling_pb2.ResizeRoad.Flavor(id="f-big", name="big", vcpus=4, memory_mib=1024)
        fake.plan.resize.CopyFrom(scaling_pb2.ResizeRoad(exact=big))
        fake.domains = [domain(vcpus=4, max_vcpus=4, memory_kib=GIB)]
    output = list(example.output)
    code = 0
    if args[0] == "watch":
        fake.released.clear()
    if output and output[-1].startswith("exit code "):
        code = int(output.pop().removeprefix("exit code "))
        fake.errors["ScaleDomain"] = [status(9, ABOVE, [error_info("REBOOT_REQUIRED")])]
    done = hvctl(*args, **production)
    assert done.returncode == code, done.stderr
    if output and example.document != README:
        assert masked(done.stderr if code else done.stdout) == masked("\n".join(output))


def masked(text: str) -> list[str]:
    """The lines without what differs from run to run: how long the steps of a resize took."""
    return [re.sub(r"\d+\.\d s(?=  (status|libvirt))", "N s", line) for line in text.splitlines()]


def test_every_command_has_an_example() -> None:
    manual = [example.command for example in EXAMPLES if example.document == MANUAL]
    assert {shlex.split(command)[1] for command in manual} == set(COMMANDS)


def test_the_exit_code_table_is_complete() -> None:
    listed = {int(number) for number in re.findall(r"^\| (\d+) \|", MANUAL.read_text("utf-8"), re.MULTILINE)}
    assert listed == {*exit_codes.BY_STATUS.values(), *exit_codes.BY_OUTCOME.values(), exit_codes.INTERRUPTED}
