"""A target says what it names."""

from __future__ import annotations

import pytest

from hvsvc.domain.target import Affect, Method, Target
from hvsvc.domain.topology import Topology, TopologyMode, TopologyPolicy

EXACT = TopologyPolicy(TopologyMode.EXACT, Topology(8))


@pytest.mark.parametrize(
    ("target", "named"),
    [
        (Target(Method.RAISE_CEILING, max_vcpus=8), True),
        (Target(Method.RAISE_CEILING), True),
        (Target(Method.RAISE_CEILING, max_memory_kib=1024), False),
        (Target(Method.RAISE_CEILING, boot_vcpus=2), False),
        (Target(Method.RAISE_CEILING, max_memory_kib=1024, topology=EXACT), True),
        (Target(Method.SCALE_DOMAIN, max_vcpus=8), False),
        (Target(Method.SCALE_DOMAIN, max_vcpus=8, topology=EXACT), True),
        (Target(Method.SET_VCPUS, vcpus=8), False),
    ],
)
def test_topo_06_topo_07_which_targets_say_something_of_the_topology(target: Target, named: bool) -> None:
    assert target.names_topology is named


def test_cpu_10_affect_is_explicit() -> None:
    assert [(affect.live, affect.config) for affect in Affect] == [(True, True), (True, False), (False, True)]
