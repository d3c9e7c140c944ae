"""An operation as the journal keeps it and its readers see it."""

from __future__ import annotations

from dataclasses import dataclass

from hvsvc.domain.facts import DomainFacts
from hvsvc.domain.outcome import Note, Outcome
from hvsvc.domain.steps import StepRecord
from hvsvc.domain.target import Target
from hvsvc.errors import HvsvcError


@dataclass(frozen=True, slots=True)
class Result:
    """How an operation ended without an error."""

    outcome: Outcome
    reasons: tuple[Note, ...]
    changed: bool
    before: DomainFacts
    after: DomainFacts


@dataclass(frozen=True, slots=True)
class OperationRecord:
    """One operation. Times in seconds since the epoch.

    `result` is set where it ended well, `error` where it failed (with `failed_step`,
    an index into `steps`, and `now`, the domain as read after the failure); neither
    while it runs.
    """

    id: str
    uuid: str
    libvirt_name: str
    target: Target
    caller: str
    request_id: str
    create_time_s: float
    steps: tuple[StepRecord, ...] = ()
    end_time_s: float | None = None
    result: Result | None = None
    error: HvsvcError | None = None
    failed_step: int | None = None
    now: DomainFacts | None = None
    cancel_requested: bool = False
    #: Nova's name of the server; "" for a domain that is not Nova's
    server_name: str = ""

    @property
    def done(self) -> bool:
        """Whether it has ended."""
        return self.end_time_s is not None
