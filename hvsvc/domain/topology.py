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


def factor(current: Topology | None, maximum: int, policy: TopologyPolicy) -> Topology | None:
    """The factors for a new maximum: one follows it, the others stay (cases TOPO-01, TOPO-05, TOPO-07).

    Only the kept factors of `current` count, so that a topology that did not fit its
    own maximum is repaired. A domain without a topology has one socket a vCPU for its
    guest: with GROW_SOCKETS nothing needs to be written and the result is None. Whoever
    asks to grow cores there counts sockets, for a licence or for Windows' limit of two,
    and gets one socket with `maximum` cores, which fits every maximum.

    :param maximum: the new maximum number of vCPUs, 1 or more.
    :raises InvalidArgumentError: TOPOLOGY_NOT_FACTORABLE when no whole factor gives
        `maximum`; `nearestBelow` and `nearestAbove` in its metadata are counts that
        would work (empty where there is none). INVALID_VALUE for a count or a factor
        below 1, or EXACT without factors.
    """
    if maximum < 1:
        raise InvalidArgumentError(
            Reason.INVALID_VALUE,
            f"a maximum of {maximum} vCPUs was asked; ask for 1 or more",
            field="max_vcpus",
        )
    if policy.mode is TopologyMode.EXACT:
        return _exact(maximum, policy)
    if current is None:
        return None if policy.mode is TopologyMode.GROW_SOCKETS else Topology(sockets=1, cores=maximum)
    grown = "sockets" if policy.mode is TopologyMode.GROW_SOCKETS else "cores"
    fixed = replace(current, sockets=1) if grown == "sockets" else replace(current, cores=1)
    if maximum % fixed.product:
        raise _not_factorable(maximum, fixed, grown)
    count = maximum // fixed.product
    return replace(fixed, sockets=count) if grown == "sockets" else replace(fixed, cores=count)


def _exact(maximum: int, policy: TopologyPolicy) -> Topology:
    exact = policy.exact
    if exact is None or min(exact.sockets, exact.dies, exact.clusters, exact.cores, exact.threads) < 1:
        raise InvalidArgumentError(
            Reason.INVALID_VALUE,
            f"an exact topology was asked, but its factors are {exact}; name all of them, each 1 or more",
            {"topology": exact or ""},
            field="topology",
        )
    if exact.product != maximum:
        raise InvalidArgumentError(
            Reason.TOPOLOGY_NOT_FACTORABLE,
            f"the topology {exact} (sockets x dies x clusters x cores x threads) stands for {exact.product} vCPUs, "
            f"not for the maximum of {maximum}; ask for a maximum of {exact.product}, or for factors whose product "
            f"is {maximum}",
            {
                "asked": maximum,
                "policy": TopologyMode.EXACT.value,
                "topology": exact,
                "nearestBelow": exact.product if exact.product < maximum else "",
                "nearestAbove": exact.product if exact.product > maximum else "",
            },
            field="topology",
        )
    return exact


def _not_factorable(maximum: int, fixed: Topology, grown: str) -> InvalidArgumentError:
    step = fixed.product
    below = maximum // step * step
    above = below + step
    kept = {
        name: getattr(fixed, name)
        for name in ("sockets", "dies", "clusters", "cores", "threads")
        if name != grown and getattr(fixed, name) > 1
    }
    words = ", ".join(f"{value} {name}" for name, value in kept.items())
    counts = f"{below} or {above}" if below else str(above)
    return InvalidArgumentError(
        Reason.TOPOLOGY_NOT_FACTORABLE,
        f"a maximum of {maximum} vCPUs was asked; growing {grown} keeps {words}, so it must be a multiple of {step}; "
        f"ask for {counts}, or name another topology",
        {
            "asked": maximum,
            "policy": grown,
            "multipleOf": step,
            "nearestBelow": below or "",
            "nearestAbove": above,
            **{name: str(value) for name, value in kept.items()},
        },
        field="max_vcpus",
    )
