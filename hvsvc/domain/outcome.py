"""How a change ended, as a value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from hvsvc.errors import HvsvcError, Reason


class Outcome(Enum):
    """How a change ended; COMPLETE only with evidence read back from every part."""

    COMPLETE = "complete"
    PENDING_REBOOT = "pending_reboot"
    PARTIAL = "partial"
    UNCONFIRMED = "unconfirmed"
    VALIDATED = "validated"


@dataclass(frozen=True, slots=True)
class Note:
    """A reason for an outcome, a warning, or a condition: for machines and in words."""

    reason: Reason
    message: str
    metadata: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, error: HvsvcError) -> Note:
        """The same thing said of an error that ends nothing."""
        return cls(error.reason, error.message, dict(error.metadata))
