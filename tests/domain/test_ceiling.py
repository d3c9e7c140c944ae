"""A ceiling as one thing."""

from __future__ import annotations

from dataclasses import replace

from hvsvc.domain.ceiling import format_ceiling, same_ceiling
from hvsvc.domain.read_definition import parse_definition
from hvsvc.domain.topology import Topology
from tests.fakes.worlds import GIB, domain_xml

ONE = parse_definition(domain_xml(maximum=8, current=2, memory_kib=2 * GIB))


def test_vcpus_topology_and_memory_make_a_ceiling_and_current_values_do_not() -> None:
    assert same_ceiling(ONE, replace(ONE, current_vcpus=4, current_memory_kib=GIB))
    assert not same_ceiling(ONE, replace(ONE, maximum_vcpus=7))
    assert not same_ceiling(ONE, replace(ONE, topology=Topology(sockets=1, cores=8)))
    assert not same_ceiling(ONE, replace(ONE, memory_kib=GIB))


def test_mem_08_sizes_that_a_start_rounds_to_the_same_are_the_same() -> None:
    assert same_ceiling(replace(ONE, memory_kib=2 * GIB - 5), ONE)


def test_it_reads_as_people_say_it() -> None:
    assert format_ceiling(ONE) == "8 vCPUs and 2 GiB"
