"""Begins changes: find, lock, read, plan, refuse or run. One path for every RPC (case API-03)."""

from __future__ import annotations

import asyncio
import uuid as uuids
from dataclasses import dataclass, replace

from hvsvc.domain.facts import DomainFacts
from hvsvc.domain.operation import OperationRecord, Result
from hvsvc.domain.outcome import Outcome
from hvsvc.domain.plan import Plan, plan_change
from hvsvc.domain.target import Target
from hvsvc.domain.world import World
from hvsvc.errors import AbortedError, AlreadyExistsError, Reason
from hvsvc.operations.apply import Application, planned
from hvsvc.operations.context import Tools
from hvsvc.operations.domain_locks import DomainLocks
from hvsvc.operations.reads import DomainReads
from hvsvc.operations.running import Operations, Running

#: how long a request_id answers with the operation it began
REPLAY_S = 24 * 3600.0


@dataclass(frozen=True, slots=True)
class PlanReport:
    """A plan and the domain it was made from."""

    plan: Plan
    facts: DomainFacts


class Changes:
    """The use cases that change domains."""

    def __init__(self, tools: Tools, reads: DomainReads, operations: Operations, locks: DomainLocks) -> None:
        self._tools = tools
        self._reads = reads
        self._operations = operations
        self._locks = locks

    async def plan(self, name: str, target: Target) -> PlanReport:
        """Says what a target needs and what forbids it; changes nothing.

        :raises NotFoundError, InvalidArgumentError: as `DomainReads.resolve`.
        """
        uuid = await self._reads.resolve(name)
        world = await self._tools.around.read_world(uuid, ask_guest=True)
        return PlanReport(plan_change(world, target), world.domain)

    async def begin(
        self, name: str, target: Target, *, etag: str, request_id: str, caller: str, validate_only: bool
    ) -> OperationRecord:
        """Begins a change and returns its operation, or refuses before anything is touched.

        A caller that goes away meanwhile ends neither the check nor the operation: the
        same request_id finds it.

        :raises HvsvcError: every blocker of the plan (the first, with `others`);
            AbortedError DOMAIN_BUSY or DEFINITION_CHANGED; AlreadyExistsError
            REQUEST_ID_REUSED.
        """
        work = self._begin(name, target, etag, request_id, caller, validate_only=validate_only)
        return await asyncio.shield(asyncio.create_task(work, name=f"begin {target.method.value}"))

    async def _begin(
        self, name: str, target: Target, etag: str, request_id: str, caller: str, *, validate_only: bool
    ) -> OperationRecord:
        uuid = await self._reads.resolve(name)
        if request_id:
            earlier = await self._replay(uuid, target, request_id, caller)
            if earlier is not None:
                return earlier
        self._operations.check_room()
        operation_id = str(uuids.uuid4())
        self._locks.acquire(uuid, operation_id)
        started = False
        try:
            if request_id and (earlier := await self._replay(uuid, target, request_id, caller)) is not None:
                return earlier  # begun and ended while this call looked for it
            world = await self._tools.around.read_world(uuid, ask_guest=True)
            plan = _checked_plan(world, target, etag)
            record = OperationRecord(
                id=operation_id,
                uuid=uuid,
                libvirt_name=world.domain.libvirt_name,
                target=target,
                caller=caller,
                request_id=request_id,
                create_time_s=self._tools.clock.now_s(),
                steps=planned(plan.steps),
            )
            if validate_only:
                return self._validated(record, plan, world)
            await self._operations.start(record, lambda running: self._run(running, plan, world))
            started = True
        finally:
            if not started:
                self._locks.release(uuid, operation_id)
        return await self._operations.get(operation_id)

    async def _replay(
        self, uuid: str, target: Target, request_id: str, caller: str
    ) -> OperationRecord | None:
        since_s = self._tools.clock.now_s() - REPLAY_S
        earlier = await self._tools.journal.read_by_request(caller, request_id, since_s)
        if earlier is None:
            return None
        if (earlier.uuid, earlier.target) != (uuid, target):
            raise AlreadyExistsError(
                Reason.REQUEST_ID_REUSED,
                f"request_id {request_id} already began operations/{earlier.id}, another request "
                f"({earlier.target.method.value} of domains/{earlier.uuid}); nothing was changed; use a new one",
                {"requestId": request_id, "operation": f"operations/{earlier.id}"},
            )
        return await self._operations.get(earlier.id)

    async def _run(self, running: Running, plan: Plan, world: World) -> None:
        try:
            await Application(self._tools, running, plan, world).run()
        finally:
            self._locks.release(running.record.uuid, running.record.id)

    def _validated(self, record: OperationRecord, plan: Plan, world: World) -> OperationRecord:
        result = Result(
            Outcome.VALIDATED, plan.warnings, changed=False, before=world.domain, after=world.domain
        )
        return replace(record, id="", result=result, end_time_s=self._tools.clock.now_s())


def _checked_plan(world: World, target: Target, etag: str) -> Plan:
    if etag and etag != world.domain.etag:
        raise AbortedError(
            Reason.DEFINITION_CHANGED,
            f"the stored definition has etag {world.domain.etag}, not {etag}: it changed since it was read; nothing "
            "was changed; read the domain again, then redo the request",
            {"asked": etag, "found": world.domain.etag},
        )
    plan = plan_change(world, target)
    if plan.blockers:
        first = plan.blockers[0]
        first.others = plan.blockers[1:]
        raise first
    return plan
