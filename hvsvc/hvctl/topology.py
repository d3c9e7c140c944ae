"""The `--topology` option: a policy, or exact factors."""

from __future__ import annotations

import re
from typing import Final

import click

from hvsvc.v1 import domain_pb2, scaling_pb2

_FACTORS: Final = re.compile(r"[1-9][0-9]{0,8}(?:x[1-9][0-9]{0,8}){3,4}", re.ASCII)
_POLICIES: Final = {
    "sockets": scaling_pb2.TopologyPolicy.MODE_GROW_SOCKETS,
    "cores": scaling_pb2.TopologyPolicy.MODE_GROW_CORES,
}


def parse_topology(text: str) -> scaling_pb2.TopologyPolicy:
    """Policy of `sockets`, `cores`, SxDxCxT or SxDxLxCxT.

    The letters are sockets, dies, clusters (L), cores and threads, as libvirt orders
    them. Whether the product fits the maximum is for the service to say.

    :raise ValueError: for anything else.
    """
    if mode := _POLICIES.get(text):
        return scaling_pb2.TopologyPolicy(mode=mode)
    if not _FACTORS.fullmatch(text):
        raise ValueError(
            f"{text!r} is not a topology: write sockets, cores, or exact factors as "
            "SOCKETSxDIESxCORESxTHREADS (8x1x1x1) or SOCKETSxDIESxCLUSTERSxCORESxTHREADS (2x1x1x2x2)"
        )
    sockets, dies, *clusters, cores, threads = (int(factor) for factor in text.split("x"))
    return scaling_pb2.TopologyPolicy(
        mode=scaling_pb2.TopologyPolicy.MODE_EXACT,
        exact=domain_pb2.Topology(
            sockets=sockets, dies=dies, clusters=clusters[0] if clusters else 1, cores=cores, threads=threads
        ),
    )


def topology_policy(text: str) -> scaling_pb2.TopologyPolicy:
    """Option type: as `parse_topology`, with a usage error."""
    try:
        return parse_topology(text)
    except ValueError as err:
        raise click.BadParameter(str(err)) from err
