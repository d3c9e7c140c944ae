"""Room to grow in words."""

from __future__ import annotations

import pytest

from hvsvc.hvctl.document import Document, document_of
from hvsvc.hvctl.room_text import host_lines, room_lines, room_text
from tests.fakes.service_messages import GIB, domain, host, off_domain

GROWABLE = document_of(domain(max_vcpus=8))
FULL = document_of(domain(memory_kib=GIB))
OFF = document_of(off_domain())
HOST = document_of(host())


@pytest.mark.parametrize(
    ("found", "text"), [(GROWABLE, "+6 vCPUs, +512 MiB"), (FULL, "none"), (OFF, "-"), ({"id": 3}, "-")]
)
def test_of_one_domain(found: Document, text: str) -> None:
    assert room_text(found) == text


def test_the_sum_beside_what_the_host_could_give() -> None:
    assert room_lines([GROWABLE, GROWABLE, FULL, OFF], HOST) == [
        "",
        "Room to grow together: +12 vCPUs, +1 GiB; the host could give 124 vCPUs and 94 GiB more",
    ]
    assert room_lines([OFF], HOST) == []


def test_ceilings_beyond_the_host_are_told() -> None:
    lines = room_lines([GROWABLE], HOST | {"vcpus_left": 5})
    assert lines[-1] == "The host could not give all of it at once."


def test_odd_sizes_of_a_host_are_whole_mib() -> None:
    assert "Memory:          61 GiB" in host_lines(HOST | {"memory_kib": 61 * GIB + 3})
