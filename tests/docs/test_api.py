"""docs/api.md: every service of hvsvc with every call it has."""

from __future__ import annotations

import re

import pytest

from hvsvc.v1 import domain_pb2, drift_pb2, operation_pb2, scaling_pb2
from tests.documents import ROOT

SERVICES = {
    service.full_name: {method.name for method in service.methods}
    for module in (domain_pb2, drift_pb2, operation_pb2, scaling_pb2)
    for service in module.DESCRIPTOR.services_by_name.values()
}


@pytest.mark.parametrize("service", SERVICES)
def test_the_table_names_every_call(service: str) -> None:
    document = (ROOT / "docs" / "api.md").read_text("utf-8")
    (row,) = re.findall(rf"^\| `{re.escape(service)}` \| (.*) \|$", document, re.MULTILINE)
    assert SERVICES[service] <= set(re.findall(r"\w+", row))
