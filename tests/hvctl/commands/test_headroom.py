"""headroom as a process."""

from __future__ import annotations

import pytest

from hvsvc.v1 import domain_pb2, scaling_pb2
from tests.fakes.hvsvc_server import FakeHvsvc
from tests.fakes.service_messages import GIB, MIB, domain, ended, error_info, off_domain, status
from tests.hvctl.conftest import Hvctl


@pytest.fixture(autouse=True)
def reports(fake: FakeHvsvc) -> None:
    fake.domains = [domain(max_vcpus=4)]  # of 1 GiB at most, its flavor 2 vCPUs and 512 MiB
    fake.reports = [ended(scaling_pb2.OUTCOME_PENDING_REBOOT)]


@pytest.mark.parametrize(
    ("words", "max_vcpus", "max_memory_kib"),
    [
        (("--vcpus", "16"), 16, None),
        (("--memory", "8GiB"), None, 8 * GIB),
        (("--vcpus", "16", "--memory", "8GiB"), 16, 8 * GIB),
        (("--factor", "4"), 8, 2 * GIB),
        (("--factor", "3.3"), 7, 1690 * MIB),
        # never a lower ceiling than there is
        (("--vcpus", "3"), 4, None),
        (("--factor", "1"), 4, GIB),
    ],
)
def test_a_ceiling_is_asked_without_a_reboot(
    hvctl: Hvctl, fake: FakeHvsvc, words: tuple[str, ...], max_vcpus: int | None, max_memory_kib: int | None
) -> None:
    assert hvctl("headroom", "web-1", *words).returncode == 0
    (request,) = fake.requests("RaiseCeiling")
    asked = [
        getattr(request, name) if request.HasField(name) else None for name in ("max_vcpus", "max_memory_kib")
    ]
    assert asked == [max_vcpus, max_memory_kib]
    assert (request.name, request.reboot, request.etag) == ("web-1", scaling_pb2.REBOOT_MODE_NEVER, "aa11")
    assert fake.requests("GetDomain")[0].view == domain_pb2.DOMAIN_VIEW_BASIC


@pytest.mark.parametrize("words", [(), ("--factor", "2", "--vcpus", "8"), ("--factor", "0.5")])
def test_what_says_nothing_or_two_things_is_refused_before_a_call(
    hvctl: Hvctl, fake: FakeHvsvc, words: tuple[str, ...]
) -> None:
    assert hvctl("headroom", "web-1", *words).returncode == 2
    assert fake.seen == []


def test_a_factor_needs_a_flavor(hvctl: Hvctl, fake: FakeHvsvc) -> None:
    fake.domains = [off_domain()]
    done = hvctl("headroom", "backup", "--factor", "4")
    assert done.returncode == 2
    assert "--vcpus and --memory" in done.stderr
    assert fake.requests("RaiseCeiling") == []


def test_a_domain_that_is_not_there_ends_it(hvctl: Hvctl, fake: FakeHvsvc) -> None:
    fake.errors["GetDomain"] = [status(5, "no such domain", [error_info("DOMAIN_NOT_FOUND")])]
    assert hvctl("headroom", "web-1", "--factor", "4").returncode == 3
    assert fake.requests("RaiseCeiling") == []
