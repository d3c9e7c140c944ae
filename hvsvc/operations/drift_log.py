"""Tells the log of ceilings that are lost, whatever the policy does about them."""

from __future__ import annotations

import structlog

from hvsvc.domain.desired import DesiredState
from hvsvc.domain.drift import DriftStatus, judge_drift
from hvsvc.domain.facts import DomainFacts

_log = structlog.stdlib.get_logger("hvsvc.drift")


class DriftLog:
    """One line when a ceiling is found lost; another one only after it was found there, or asked for anew."""

    def __init__(self) -> None:
        #: when what was lost had been asked for, by uuid
        self._lost: dict[str, float] = {}

    @property
    def lost(self) -> int:
        """How many ceilings were found lost when they were last looked at."""
        return len(self._lost)

    def forget(self, uuid: str) -> None:
        """A domain that is no longer on record, or not on this host."""
        self._lost.pop(uuid, None)

    def tell(self, desired: DesiredState, facts: DomainFacts) -> None:
        """A look at a domain that is on record."""
        drift = judge_drift(desired, facts)
        if drift.status is not DriftStatus.CEILING_LOST:
            self.forget(desired.uuid)
        elif self._lost.get(desired.uuid) != desired.record_time_s:
            self._lost[desired.uuid] = desired.record_time_s
            _log.warning(
                "ceiling_lost",
                domain=desired.uuid,
                server=desired.server_name,
                differences="; ".join(drift.differences),
            )
