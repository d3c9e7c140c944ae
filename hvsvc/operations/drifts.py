"""Reading and dropping what was asked for, and how it compares with what is there."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace

import structlog

from hvsvc.domain.desired import DesiredState, ReapplyPolicy
from hvsvc.domain.drift import Drift, judge_absence, judge_unread
from hvsvc.domain.drift_report import DriftReport, report_drift
from hvsvc.domain.facts import DomainFacts
from hvsvc.errors import HvsvcError, InvalidArgumentError, NotFoundError, Reason
from hvsvc.operations.ports import Journal
from hvsvc.operations.reads import DomainReads, is_uuid
from hvsvc.operations.reapply import Reapplier
from hvsvc.operations.surroundings import Surroundings

_log = structlog.stdlib.get_logger("hvsvc.drift")


class Drifts:
    """The use cases of drift. Every comparison is made when it is asked for."""

    def __init__(
        self, around: Surroundings, journal: Journal, reads: DomainReads, reapplier: Reapplier
    ) -> None:
        self._around = around
        self._journal = journal
        self._reads = reads
        self._reapplier = reapplier

    async def of(self, facts: DomainFacts) -> DriftReport | None:
        """The drift of a domain just read; None where nothing is recorded, or the journal cannot tell."""
        return (await self.of_many([facts])).get(facts.uuid)

    async def of_many(self, many: Sequence[DomainFacts]) -> Mapping[str, DriftReport]:
        """The drifts of domains just read, by uuid, as `of`.

        A report of a domain must not fail for its journal: what is not known is absent.
        """
        try:
            recorded = {desired.uuid: desired for desired in await self._journal.read_all_desired()}
        except HvsvcError as err:
            _log.warning("drift_not_known", error=err.message)
            return {}
        return {
            facts.uuid: self._compared(desired, facts)
            for facts in many
            if (desired := recorded.get(facts.uuid)) is not None
        }

    async def get(self, name: str) -> DriftReport:
        """Compares one record; `name` may be that of a domain that left the host.

        :raises NotFoundError: DOMAIN_NOT_FOUND, or NOTHING_RECORDED.
        :raises InvalidArgumentError: AMBIGUOUS_NAME.
        """
        return await self._compare(await self._find(name), ask_guest=True)

    async def list(self) -> Sequence[DriftReport]:
        """Compares every record, ordered by uuid; guests are not asked."""
        domains = await self._around.hypervisor.read_domains()
        here = {facts.uuid: facts for facts in domains.read}
        errors = {unread.uuid: unread.error for unread in domains.unread}

        async def compare(desired: DesiredState) -> DriftReport:
            if (facts := here.get(desired.uuid)) is not None:
                return self._compared(desired, facts)
            if (error := errors.get(desired.uuid)) is not None:
                return self._not_compared(desired, judge_unread(error))
            return await self._compare(desired, ask_guest=False)

        # all at once: a Nova that does not answer takes its time, and it must take it once
        return await asyncio.gather(*map(compare, await self._journal.read_all_desired()))

    async def set_policy(self, name: str, policy: ReapplyPolicy | None) -> DriftReport:
        """Sets what hvsvc may do by itself for this domain; None follows the configured default.

        :raises NotFoundError, InvalidArgumentError: as `get`.
        """
        while True:
            known = await self._find(name)
            wanted = replace(known, policy=policy)
            if await self._journal.replace_desired(known.uuid, known, wanted):
                self._reapplier.poke(known.uuid)
                return await self._compare(wanted, ask_guest=True)

    async def forget(self, name: str) -> DesiredState:
        """Drops a record and returns it as it was; the domain is not touched.

        :raises NotFoundError, InvalidArgumentError: as `get`.
        """
        while True:
            known = await self._find(name)
            if await self._journal.replace_desired(known.uuid, known, None):
                return known

    async def _compare(self, desired: DesiredState, *, ask_guest: bool) -> DriftReport:
        try:
            facts = await self._around.read_domain(desired.uuid, ask_guest=ask_guest, hasty=True)
        except NotFoundError:
            server, error = await self._around.read_server(desired.uuid, is_server=desired.is_server)
            return self._not_compared(desired, judge_absence(desired, server, error))
        except HvsvcError as err:
            return self._not_compared(desired, judge_unread(err))
        return self._compared(desired, facts)

    def _compared(self, desired: DesiredState, facts: DomainFacts) -> DriftReport:
        policy, progress = self._reapplier.policy_of(desired), self._reapplier.progress(desired)
        return report_drift(desired, facts, policy, progress)

    def _not_compared(self, desired: DesiredState, drift: Drift) -> DriftReport:
        policy, progress = self._reapplier.policy_of(desired), self._reapplier.progress(desired)
        return DriftReport(desired, drift, policy, progress)

    async def _find(self, name: str) -> DesiredState:
        """The record that a name means: a domain of the host first, then one that left it."""
        try:
            uuid = await self._reads.resolve(name)
        except NotFoundError:
            return await self._find_left(name)
        desired = await self._journal.read_desired(uuid)
        if desired is None:
            raise NotFoundError(
                Reason.NOTHING_RECORDED,
                f"nothing is recorded for domains/{uuid}: hvsvc was not asked to change it, or the record was dropped",
                {"asked": name},
            )
        return desired

    async def _find_left(self, name: str) -> DesiredState:
        wanted = name.removeprefix("domains/")
        found = [desired for desired in await self._journal.read_all_desired() if _is_meant(desired, wanted)]
        if not found:
            raise NotFoundError(
                Reason.NOTHING_RECORDED,
                f"no domain of this host has the name {name!r}, and nothing is recorded under it; list the records "
                "(hvctl drift)",
                {"asked": name},
            )
        if len(found) > 1:
            candidates = ", ".join(f"domains/{desired.uuid}" for desired in found)
            raise InvalidArgumentError(
                Reason.AMBIGUOUS_NAME,
                f"{name!r} names {len(found)} records: {candidates}; give one of their uuids",
                {"asked": name, "candidates": candidates},
                field="name",
            )
        return found[0]


def _is_meant(desired: DesiredState, wanted: str) -> bool:
    """A server may be called by the uuid of another: its name then means nothing, as for domains that are here."""
    if is_uuid(wanted):
        return wanted.lower() in (desired.uuid, desired.libvirt_name)
    return wanted in (desired.libvirt_name, desired.server_name)
