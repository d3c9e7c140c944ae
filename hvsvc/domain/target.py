"""What a caller wants, as one value for every kind of change."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from hvsvc.domain.topology import TopologyMode, TopologyPolicy


class Affect(Enum):
    """What a current value is set in (case CPU-10)."""

    LIVE_AND_CONFIG = "live_and_config"
    LIVE = "live"
    CONFIG = "config"

    @property
    def live(self) -> bool:
        """Whether the running domain is meant."""
        return self is not Affect.CONFIG

    @property
    def config(self) -> bool:
        """Whether the stored definition is meant."""
        return self is not Affect.LIVE


class RebootMode(Enum):
    """Consent to a reboot."""

    NEVER = "never"
    SOFT = "soft"


class GuestCpuMode(Enum):
    """Which CPUs are brought online in the guest."""

    NEW = "new"
    ALL = "all"


class Method(Enum):
    """Which act of the product is asked, named as its RPC."""

    RAISE_CEILING = "RaiseCeiling"
    SET_VCPUS = "SetVcpus"
    SET_MEMORY = "SetMemory"
    SCALE_DOMAIN = "ScaleDomain"
    REBOOT_DOMAIN = "RebootDomain"


@dataclass(frozen=True, slots=True)
class Target:
    """A wanted state; None leaves a value as it is. Sizes in KiB.

    `max_*` are ceilings, `boot_*` the stored current values written together with a
    ceiling, `vcpus` and `memory_kib` the current values (`affect` says of what).
    """

    method: Method
    max_vcpus: int | None = None
    max_memory_kib: int | None = None
    topology: TopologyPolicy = field(default_factory=TopologyPolicy)
    boot_vcpus: int | None = None
    boot_memory_kib: int | None = None
    vcpus: int | None = None
    memory_kib: int | None = None
    affect: Affect = Affect.LIVE_AND_CONFIG
    reboot: RebootMode = RebootMode.NEVER
    guest_cpus: GuestCpuMode = GuestCpuMode.NEW

    @property
    def names_topology(self) -> bool:
        """Whether it says what the topology should be.

        Exact factors do; RaiseCeiling does with a maximum to factor, or with a topology
        alone, which rewrites the factors of the same maximum. ScaleDomain's policy only
        says how, where it must raise the ceiling.
        """
        if self.topology.mode is TopologyMode.EXACT:
            return True
        others = (self.max_memory_kib, self.boot_vcpus, self.boot_memory_kib)
        alone = all(value is None for value in others)
        return self.method is Method.RAISE_CEILING and (self.max_vcpus is not None or alone)
