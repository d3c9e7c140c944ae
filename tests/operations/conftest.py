"""The operations floor wired to fakes."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from hvsvc.domain.allocation import PlacementPolicy
from hvsvc.domain.limits import HostLimits
from hvsvc.domain.operation import OperationRecord, Result
from hvsvc.domain.target import Target
from hvsvc.errors import HvsvcError
from hvsvc.operations.changes import Changes
from hvsvc.operations.context import Tools
from hvsvc.operations.domain_locks import DomainLocks
from hvsvc.operations.drifts import Drifts
from hvsvc.operations.reads import DomainReads
from hvsvc.operations.reapply import Reapplier, ReapplySettings
from hvsvc.operations.running import Operations
from hvsvc.operations.settings import Timeouts
from hvsvc.operations.surroundings import Surroundings
from tests.fakes.host import FakeHost, FakeJournal
from tests.fakes.placement import FakePlacement
from tests.fakes.worlds import UUID


@dataclass
class Floor:
    """The use cases over one fake host."""

    host: FakeHost
    journal: FakeJournal
    operations: Operations
    changes: Changes
    reads: DomainReads
    tools: Tools
    locks: DomainLocks
    reapplier: Reapplier
    drifts: Drifts

    async def run(self, target: Target, *, etag: str = "", request_id: str = "") -> OperationRecord:
        """Begins a change and waits for its end."""
        begun = await self.changes.begin(
            f"domains/{UUID}", target, etag=etag, request_id=request_id, caller="tester", validate_only=False
        )
        return await self.operations.wait(begun.id, 30)

    async def result(self, target: Target) -> Result:
        """The result of a change that must not fail."""
        record = await self.run(target)
        assert record.error is None, record.error
        assert record.result is not None
        return record.result

    async def error(self, target: Target) -> HvsvcError:
        """The error of a change that must fail after it began."""
        record = await self.run(target)
        assert record.result is None, record.result
        assert record.error is not None
        return record.error


@pytest.fixture
def floor_of():  # type: ignore[no-untyped-def]
    """`floor_of(host)` wires a floor to a fake host; `nova=False` leaves Nova out."""

    def make(
        host: FakeHost,
        *,
        nova: bool = True,
        max_operations: int = 4,
        placement: FakePlacement | None = None,
        policy: PlacementPolicy = PlacementPolicy.OFF,
        reapply: ReapplySettings = ReapplySettings(),  # noqa: B008 frozen
    ) -> Floor:
        journal = FakeJournal()
        around = Surroundings(host, host, host if nova else None, HostLimits(), placement, policy)
        operations = Operations(journal, host.clock, max_operations=max_operations)
        reads = DomainReads(around)
        tools = Tools(around, journal, host.clock, Timeouts())
        locks = DomainLocks()
        changes = Changes(tools, reads, operations, locks)
        reapplier = Reapplier(tools, changes, operations, reapply)
        drifts = Drifts(around, journal, reads, reapplier)
        return Floor(host, journal, operations, changes, reads, tools, locks, reapplier, drifts)

    return make
