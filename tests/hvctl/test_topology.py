"""The --topology option."""

from __future__ import annotations

import pytest

from hvsvc.hvctl.topology import parse_topology
from hvsvc.v1 import scaling_pb2

Policy = scaling_pb2.TopologyPolicy


def test_policies() -> None:
    assert parse_topology("sockets").mode == Policy.MODE_GROW_SOCKETS
    assert parse_topology("cores").mode == Policy.MODE_GROW_CORES


@pytest.mark.parametrize(
    ("text", "factors"),
    [("8x1x3x2", (8, 1, 1, 3, 2)), ("2x3x4x5x6", (2, 3, 4, 5, 6)), ("1x1x128x2", (1, 1, 1, 128, 2))],
)
def test_exact_factors_in_libvirts_order(text: str, factors: tuple[int, ...]) -> None:
    policy = parse_topology(text)
    exact = policy.exact
    assert policy.mode == Policy.MODE_EXACT
    assert (exact.sockets, exact.dies, exact.clusters, exact.cores, exact.threads) == factors


@pytest.mark.parametrize(
    "text",
    [
        "",
        "threads",
        "8",
        "8x1",
        "8x1x1",
        "0x1x1x8",
        "8x1x1x1x1x1",
        "8x1x1x-1",
        "8X1X1X1",
        "8x1x1x1 ",
        "٨x1x1x1",
    ],
)
def test_refused_with_the_forms(text: str) -> None:
    with pytest.raises(ValueError, match="SOCKETSxDIESxCORESxTHREADS"):
        parse_topology(text)
