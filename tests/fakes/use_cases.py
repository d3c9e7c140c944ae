"""Use cases that answer from tables, so that the service floor can be tested through its socket alone.

`errors` names a method and what it raises; `calls` holds what each was called with.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from hvsvc.domain.desired import DesiredState, ReapplyPolicy
from hvsvc.domain.drift_report import DriftReport
from hvsvc.domain.facts import DomainFacts, DomainState
from hvsvc.domain.host_room import HostResources, HostRoom, sum_host
from hvsvc.domain.limits import HostLimits
from hvsvc.domain.operation import OperationRecord
from hvsvc.domain.plan import Plan
from hvsvc.domain.target import Target
from hvsvc.domain.unread import DomainList, UnreadDomain
from hvsvc.errors import NotFoundError, Reason
from hvsvc.operations.changes import Changes, PlanReport
from hvsvc.operations.drifts import Drifts
from hvsvc.operations.reads import DomainReads, WatchItem
from hvsvc.operations.running import Operations


class Table:
    """What a fake was called with, and what it raises instead of an answer."""

    def __init__(self) -> None:
        self.errors: dict[str, BaseException] = {}
        self.calls: list[tuple[str, dict[str, Any]]] = []

    def called(self, method: str, **arguments: Any) -> None:
        """Notes a call, or raises what the table says."""
        self.calls.append((method, arguments))
        if method in self.errors:
            raise self.errors[method]

    @property
    def last(self) -> dict[str, Any]:
        """Arguments of the last call."""
        return self.calls[-1][1]


class FakeReads(DomainReads):
    """Knows the domains it was given; `resolve` takes `domains/{uuid}` or a libvirt name."""

    def __init__(self, domains: Sequence[DomainFacts]) -> None:
        self.table = Table()
        self.domains = sorted(domains, key=lambda facts: facts.uuid)
        #: domains that a list tells as unread
        self.unread: list[UnreadDomain] = []
        self.items: list[WatchItem] = []
        #: set when a watch was left
        self.watch_left = asyncio.Event()

    async def resolve(self, name: str) -> str:
        self.table.called("resolve", name=name)
        return self._find(name).uuid

    async def get(self, name: str, *, full: bool) -> DomainFacts:
        self.table.called("get", name=name, full=full)
        return self._find(name)

    async def list(
        self, *, states: frozenset[DomainState], nova_server: str, after_uuid: str, limit: int, full: bool
    ) -> Sequence[DomainFacts | UnreadDomain]:
        self.table.called(
            "list", states=states, nova_server=nova_server, after_uuid=after_uuid, limit=limit, full=full
        )
        every: list[DomainFacts | UnreadDomain] = [*self.domains, *self.unread]
        return [
            facts
            for facts in sorted(every, key=lambda one: one.uuid)
            if facts.uuid > after_uuid and (not states or facts.state in states)
        ][:limit]

    async def host(self) -> HostRoom:
        self.table.called("host")
        return sum_host(HostResources(8, 64 << 20), HostLimits(), DomainList(self.domains))

    async def watch(self, names: Sequence[str]) -> AsyncIterator[WatchItem]:
        self.table.called("watch", names=names)
        try:
            for item in self.items:
                yield item
            await asyncio.Event().wait()
        finally:
            self.watch_left.set()

    def _find(self, name: str) -> DomainFacts:
        for facts in self.domains:
            if name in (f"domains/{facts.uuid}", facts.libvirt_name):
                return facts
        raise NotFoundError(Reason.DOMAIN_NOT_FOUND, f"no domain {name!r} on this host")


class FakeChanges(Changes):
    """Plans and begins what it was given."""

    def __init__(self, facts: DomainFacts, plan: Plan, record: OperationRecord) -> None:
        self.table = Table()
        self.facts = facts
        self.planned = plan
        self.record = record

    async def plan(self, name: str, target: Target) -> PlanReport:
        self.table.called("plan", name=name, target=target)
        return PlanReport(plan=self.planned, facts=self.facts)

    async def begin(
        self,
        name: str,
        target: Target,
        *,
        etag: str,
        request_id: str,
        caller: str,
        validate_only: bool,
        records: bool = True,
    ) -> OperationRecord:
        assert records, "a caller's change is always recorded"
        self.table.called(
            "begin",
            name=name,
            target=target,
            etag=etag,
            request_id=request_id,
            caller=caller,
            validate_only=validate_only,
        )
        return self.record


class FakeDrifts(Drifts):
    """Knows the reports it was given, by `domains/{uuid}` or libvirt name."""

    def __init__(self, reports: Sequence[DriftReport]) -> None:
        self.table = Table()
        self.reports = list(reports)

    async def of_many(self, many: Sequence[DomainFacts]) -> Mapping[str, DriftReport]:
        uuids = {facts.uuid for facts in many}
        return {report.desired.uuid: report for report in self.reports if report.desired.uuid in uuids}

    async def get(self, name: str) -> DriftReport:
        self.table.called("get", name=name)
        return self._known(name)

    async def list(self) -> Sequence[DriftReport]:
        self.table.called("list")
        return self.reports

    async def set_policy(self, name: str, policy: ReapplyPolicy | None) -> DriftReport:
        self.table.called("set_policy", name=name, policy=policy)
        return self._known(name)

    async def forget(self, name: str) -> DesiredState:
        self.table.called("forget", name=name)
        return self._known(name).desired

    def _known(self, name: str) -> DriftReport:
        for report in self.reports:
            if name in (f"domains/{report.desired.uuid}", report.desired.libvirt_name):
                return report
        raise NotFoundError(Reason.NOTHING_RECORDED, f"nothing is recorded for {name!r}")


class FakeOperations(Operations):
    """Knows the operations it was given; a watch yields the states in `history`."""

    def __init__(self, records: Sequence[OperationRecord]) -> None:
        self.table = Table()
        self.records = {record.id: record for record in records}
        self.history: list[OperationRecord] = []

    async def get(self, operation_id: str) -> OperationRecord:
        self.table.called("get", operation_id=operation_id)
        return self._find(operation_id)

    async def list(
        self, *, uuid: str | None, done: bool | None, before: tuple[float, str] | None, limit: int
    ) -> Sequence[OperationRecord]:
        self.table.called("list", uuid=uuid, done=done, before=before, limit=limit)
        newest_first = sorted(
            self.records.values(), key=lambda record: (record.create_time_s, record.id), reverse=True
        )
        return [
            record
            for record in newest_first
            if (before is None or (record.create_time_s, record.id) < before)
            and (uuid is None or record.uuid == uuid)
            and (done is None or record.done == done)
        ][:limit]

    async def wait(self, operation_id: str, timeout_s: float | None) -> OperationRecord:
        self.table.called("wait", operation_id=operation_id, timeout_s=timeout_s)
        record = self._find(operation_id)
        if not record.done:
            await asyncio.sleep(3600 if timeout_s is None else timeout_s)
        return record

    async def cancel(self, operation_id: str) -> None:
        self.table.called("cancel", operation_id=operation_id)
        self._find(operation_id)

    async def delete(self, operation_id: str) -> None:
        self.table.called("delete", operation_id=operation_id)
        self._find(operation_id)

    async def watch(self, operation_id: str) -> AsyncIterator[OperationRecord]:
        self.table.called("watch", operation_id=operation_id)
        self._find(operation_id)
        for record in self.history:
            yield record

    def _find(self, operation_id: str) -> OperationRecord:
        if operation_id not in self.records:
            raise NotFoundError(
                Reason.OPERATION_NOT_FOUND, f"there is no operation operations/{operation_id}"
            )
        return self.records[operation_id]
