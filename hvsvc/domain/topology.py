"""CPU topology: five factors whose product is the maximum number of vCPUs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

from hvsvc.errors import InvalidArgumentError, Reason


@dataclass(frozen=True, slots=True)
class Topology:
    """Sockets, dies, clusters, cores and threads, each 1 or more.

    The product covers all five factors (case TOPO-03: tools that forget dies).
    """

    sockets: int
    dies: int = 1
    clusters: int = 1
    cores: int = 1
    threads: int = 1

    @property
    def product(self) -> int:
        """The maximum number of vCPUs that this topology stands for."""
        return self.sockets * self.dies * self.clusters * self.cores * self.threads

    def __str__(self) -> str:
        return f"{self.sockets}x{self.dies}x{self.clusters}x{self.cores}x{self.threads}"


class TopologyMode(Enum):
    """Which factor follows the maximum (case TOPO-07: the policy must be explicit)."""

    GROW_SOCKETS = "sockets"
    GROW_CORES = "cores"
    EXACT = "exact"


@dataclass(frozen=True, slots=True)
class TopologyPolicy:
    """How the factors for a new maximum are found; `exact` only with EXACT."""

    mode: TopologyMode = TopologyMode.GROW_SOCKETS
    exact: Topology | None = None
