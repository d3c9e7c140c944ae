"""Flavor, allocation and domain side by side."""

from __future__ import annotations

from hvsvc.hvctl.accounting_text import accounting_lines
from hvsvc.hvctl.document import document_of
from hvsvc.hvctl.domain_text import dominfo_lines
from hvsvc.v1 import domain_pb2
from tests.fakes.service_messages import domain, off_domain


def test_three_columns() -> None:
    report = domain(allocation=domain_pb2.Allocation(vcpus=8, memory_mib=2048))
    report.vcpus.current_live = 4
    lines = accounting_lines(document_of(report))
    assert [line.split() for line in lines] == [
        ["flavor", "allocation", "domain"],
        ["vCPUs", "2", "8", "4"],
        ["Memory", "512", "MiB", "2", "GiB", "512", "MiB"],
    ]
    assert lines[0].index("allocation") == lines[1].index("8")
    assert lines[-1] in dominfo_lines(document_of(report))


def test_what_is_not_known_has_a_dash() -> None:
    lines = accounting_lines(document_of(domain()))
    assert lines[1].split() == ["vCPUs", "2", "-", "2"]


def test_a_domain_that_is_not_novas_has_none() -> None:
    assert accounting_lines(document_of(off_domain())) == []
