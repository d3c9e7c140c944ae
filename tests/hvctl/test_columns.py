"""Dotted columns."""

from __future__ import annotations

import click
import pytest

from hvsvc.hvctl.columns import check_columns, find, select
from hvsvc.hvctl.document import document_of, shape_of
from hvsvc.v1 import domain_pb2, scaling_pb2
from tests.fakes.service_messages import domain

SHAPE = shape_of(domain_pb2.Domain.DESCRIPTOR)


def test_columns_that_can_be_there_pass_even_where_they_are_absent() -> None:
    check_columns(["uuid", "vcpus.maximum_live", "placement.vcpu_pins.vcpu", "vcpus"], SHAPE)
    check_columns(["reasons.metadata.anyKey"], shape_of(scaling_pb2.ScaleResult.DESCRIPTOR))


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ("vcpu", "no column 'vcpu'; there are: name, uuid"),
        ("vcpus.max", "no column 'max' in 'vcpus.max'; there are: maximum_config"),
        ("uuid.x", "no column 'x' in 'uuid.x'; there is nothing below"),
        ("", "no column ''"),
        ("vcpus.", "no column '' in 'vcpus.'"),
    ],
)
def test_others_are_refused_with_those_there_are(column: str, message: str) -> None:
    with pytest.raises(click.UsageError, match=message):
        check_columns([column], SHAPE)


def test_find_goes_through_lists() -> None:
    document = document_of(domain())
    assert find(document, "vcpus.maximum_live") == 2
    assert find(document, "placement.vcpu_pins.cpuset") == ["3"]
    assert find(document, "memory.guest_total_kib") is None
    assert find(document, "uuid.x") is None


def test_select_keeps_the_nesting_and_leaves_the_absent_out() -> None:
    document = document_of(domain())
    columns = [
        "vcpus.maximum_live",
        "vcpus.current_live",
        "placement.vcpu_pins.vcpu",
        "memory.guest_total_kib",
    ]
    assert select(document, columns) == {
        "vcpus": {"maximum_live": 2, "current_live": 2},
        "placement": {"vcpu_pins": [{"vcpu": 0}]},
        "memory": {},
    }
    assert select(document, []) is document
