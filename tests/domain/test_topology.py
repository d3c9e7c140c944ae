"""Topology: the product is always the maximum, and the policy says which factor gives way."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hvsvc.domain.topology import Topology, TopologyMode, TopologyPolicy, factor
from hvsvc.errors import InvalidArgumentError, Reason

SOCKETS = TopologyPolicy(TopologyMode.GROW_SOCKETS)
CORES = TopologyPolicy(TopologyMode.GROW_CORES)

factors = st.integers(1, 6)
topologies = st.builds(
    Topology, sockets=factors, dies=factors, clusters=factors, cores=factors, threads=factors
)


def refused(current: Topology | None, maximum: int, policy: TopologyPolicy) -> InvalidArgumentError:
    with pytest.raises(InvalidArgumentError) as caught:
        factor(current, maximum, policy)
    return caught.value


def test_topo_01_a_topology_that_does_not_fit_its_maximum_is_repaired() -> None:
    # <vcpu current="2">6</vcpu> with sockets 1, cores 1, threads 2: the product is 2
    assert factor(Topology(1, cores=1, threads=2), 8, SOCKETS) == Topology(4, cores=1, threads=2)


def test_topo_03_dies_and_clusters_count() -> None:
    dies = Topology(sockets=2, dies=2, cores=2)
    assert dies.product == 8
    assert factor(dies, 16, SOCKETS) == Topology(sockets=4, dies=2, cores=2)
    assert factor(dies, 16, CORES) == Topology(sockets=2, dies=2, cores=4)
    clusters = Topology(sockets=1, clusters=2, cores=2)
    assert factor(clusters, 12, SOCKETS) == Topology(sockets=3, clusters=2, cores=2)


@pytest.mark.parametrize(
    ("maximum", "below", "above"), [(383, "382", "384"), (7, "6", "8"), (1, "", "2"), (15, "14", "16")]
)
def test_topo_05_an_odd_count_of_two_threads_names_its_neighbours(
    maximum: int, below: str, above: str
) -> None:
    err = refused(Topology(1, cores=1, threads=2), maximum, SOCKETS)
    assert err.reason is Reason.TOPOLOGY_NOT_FACTORABLE
    assert err.field == "max_vcpus"
    assert err.metadata == {
        "asked": str(maximum),
        "policy": "sockets",
        "multipleOf": "2",
        "nearestBelow": below,
        "nearestAbove": above,
        "threads": "2",
    }
    assert above in err.message
    assert "2 threads" in err.message


def test_topo_05_a_prime_count_stays_one_socket_each() -> None:
    assert factor(Topology(2), 383, SOCKETS) == Topology(383)
    assert factor(Topology(1, cores=2, threads=2), 12, SOCKETS) == Topology(3, cores=2, threads=2)


def test_topo_07_sockets_stay_where_cores_are_to_grow() -> None:
    assert factor(Topology(2, cores=2), 8, CORES) == Topology(2, cores=4)
    assert factor(Topology(2, cores=2), 8, SOCKETS) == Topology(4, cores=2)
    err = refused(Topology(2, cores=2), 7, CORES)
    assert (err.metadata["nearestBelow"], err.metadata["nearestAbove"]) == ("6", "8")
    assert err.metadata["sockets"] == "2"
    assert "cores" not in err.metadata


def test_without_a_topology_sockets_need_none_and_cores_get_one_socket() -> None:
    assert factor(None, 7, SOCKETS) is None
    assert factor(None, 7, CORES) == Topology(1, cores=7)


def test_exact_factors_must_give_the_maximum() -> None:
    exact = Topology(2, cores=4, threads=2)
    policy = TopologyPolicy(TopologyMode.EXACT, exact)
    assert factor(None, 16, policy) == exact
    assert factor(Topology(1), 16, policy) == exact
    high = refused(None, 12, policy)
    assert high.reason is Reason.TOPOLOGY_NOT_FACTORABLE
    assert high.field == "topology"
    assert (high.metadata["nearestBelow"], high.metadata["nearestAbove"]) == ("", "16")
    low = refused(None, 20, policy)
    assert (low.metadata["nearestBelow"], low.metadata["nearestAbove"]) == ("16", "")


@pytest.mark.parametrize("exact", [None, Topology(0), Topology(-2, cores=-4), Topology(8, threads=0)])
def test_exact_factors_below_one_are_no_topology(exact: Topology | None) -> None:
    err = refused(None, 8, TopologyPolicy(TopologyMode.EXACT, exact))
    assert err.reason is Reason.INVALID_VALUE
    assert err.field == "topology"


@pytest.mark.parametrize("maximum", [0, -8])
@pytest.mark.parametrize("policy", [SOCKETS, CORES, TopologyPolicy(TopologyMode.EXACT, Topology(1))])
def test_cpu_08_counts_below_one_are_refused(maximum: int, policy: TopologyPolicy) -> None:
    err = refused(Topology(1), maximum, policy)
    assert err.reason is Reason.INVALID_VALUE
    assert err.field == "max_vcpus"


@given(current=topologies, maximum=st.integers(1, 5000), policy=st.sampled_from([SOCKETS, CORES]))
def test_topo_05_every_count_is_factored_or_refused_with_counts_that_work(
    current: Topology, maximum: int, policy: TopologyPolicy
) -> None:
    step = (replace(current, sockets=1) if policy is SOCKETS else replace(current, cores=1)).product
    if maximum % step == 0:
        found = factor(current, maximum, policy)
        assert found is not None
        assert found.product == maximum
        kept = {"sockets", "dies", "clusters", "cores", "threads"} - {policy.mode.value}
        assert all(getattr(found, name) == getattr(current, name) for name in kept)
        return
    err = refused(current, maximum, policy)
    assert err.reason is Reason.TOPOLOGY_NOT_FACTORABLE
    below, above = err.metadata["nearestBelow"], int(err.metadata["nearestAbove"])
    assert maximum < above < maximum + step
    assert (int(below) == above - step) if below else above == step
    for count in [above, *([int(below)] if below else [])]:
        works = factor(current, count, policy)
        assert works is not None
        assert works.product == count
