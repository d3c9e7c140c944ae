"""Whether a resized server is what its flavor says."""

from __future__ import annotations

from hvsvc.hvctl.document import document_of
from hvsvc.hvctl.resize_verdict import Size, find_differences, find_guest_differences
from hvsvc.v1 import domain_pb2
from tests.fakes.service_messages import GIB, domain

BIG = Size(4, GIB)


def test_every_number_must_be_the_flavors() -> None:
    assert find_differences(document_of(domain(vcpus=4, max_vcpus=4, memory_kib=GIB)), BIG) == []
    assert find_differences(document_of(domain(vcpus=4, max_vcpus=8, memory_kib=GIB)), BIG) == []
    found = find_differences(document_of(domain(vcpus=2, max_vcpus=4)), BIG)
    assert found == [
        "vcpus.current_config is 2, not 4",
        "vcpus.current_live is 2, not 4",
        "memory.current_config_kib is 512 MiB, not 1 GiB",
        "memory.current_live_kib is 512 MiB, not 1 GiB",
        "memory.balloon_actual_kib is 512 MiB, not 1 GiB",
    ]


def test_a_number_that_is_not_known_is_no_proof() -> None:
    report = domain(vcpus=4, max_vcpus=4, memory_kib=GIB)
    report.vcpus.ClearField("current_live")
    report.memory.ClearField("balloon_actual_kib")
    assert find_differences(document_of(report), BIG) == ["vcpus.current_live is not known, not 4"]


def test_a_domain_that_does_not_run_is_not_resized() -> None:
    report = domain(vcpus=4, max_vcpus=4, memory_kib=GIB, state=domain_pb2.DOMAIN_STATE_PAUSED)
    assert find_differences(document_of(report), BIG) == ["the domain is paused"]


def test_the_guest_must_use_every_cpu() -> None:
    report = domain(vcpus=4, max_vcpus=4, memory_kib=GIB)
    assert find_guest_differences(document_of(report), BIG) == []
    report.vcpus.guest_online = 3
    assert find_guest_differences(document_of(report), BIG) == ["the guest uses 3 of 4 CPUs"]
    report.vcpus.ClearField("guest_online")
    (silent,) = find_guest_differences(document_of(report), BIG)
    assert "does not say" in silent
