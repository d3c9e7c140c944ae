"""The steps a plan is made of, which say what to do, and their records, which say how far it got."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from hvsvc.domain.allocation import Size
from hvsvc.domain.outcome import Note
from hvsvc.errors import HvsvcError


class StepKind(Enum):
    """What a step does."""

    DEFINE_CONFIG = "define_config"
    REBOOT = "reboot"
    WAIT_GUEST = "wait_guest"
    SET_MEMORY_LIVE = "set_memory_live"
    SET_VCPUS_LIVE = "set_vcpus_live"
    ONLINE_GUEST_CPUS = "online_guest_cpus"
    SET_ALLOCATION = "set_allocation"


class Effect(Enum):
    """What a step costs the guest."""

    LIVE = "live"
    REBOOT = "reboot"


@dataclass(frozen=True, slots=True)
class Step:
    """One step.

    `xml` is the whole new inactive definition for DEFINE_CONFIG; `value` the vCPUs
    of SET_VCPUS_LIVE, the KiB of SET_MEMORY_LIVE; `allocation` what SET_ALLOCATION sets,
    None where it sets what is true when its turn comes; None for the other kinds.
    """

    kind: StepKind
    effect: Effect
    why: str
    xml: str | None = None
    value: int | None = None
    allocation: Size | None = None

    @property
    def settles(self) -> bool:
        """Whether it brings the allocation to what is true when its turn comes."""
        return self.kind is StepKind.SET_ALLOCATION and self.allocation is None


class StepState(Enum):
    """How far a step got."""

    PENDING = "pending"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    UNCONFIRMED = "unconfirmed"


@dataclass(frozen=True, slots=True)
class StepRecord(Step):
    """A step of an operation as the journal keeps it; times in seconds since the epoch.

    What it writes or sets is kept too: a recovery after a crash needs the intent.
    """

    state: StepState = StepState.PENDING
    start_time_s: float | None = None
    end_time_s: float | None = None
    #: what was read back, in words
    evidence: str = ""


@dataclass(frozen=True, slots=True)
class Part:
    """What one part of planning found: steps, refusals, warnings."""

    steps: tuple[Step, ...] = ()
    blockers: tuple[HvsvcError, ...] = ()
    warnings: tuple[Note, ...] = ()


def last_xml(steps: Sequence[Step]) -> str | None:
    """The definition that is stored when the steps are done; None where they write none."""
    return next((step.xml for step in reversed(steps) if step.xml is not None), None)
