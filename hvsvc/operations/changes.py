"""Begins changes: find, lock, read, plan, refuse or run. One path for every RPC (case API-03)."""

from __future__ import annotations

import asyncio
import contextlib
import uuid as uuids
from collections.abc import Coroutine
from dataclasses import dataclass, replace
from weakref import WeakValueDictionary

from hvsvc.domain.desired import DesiredState, record_target
from hvsvc.domain.facts import DomainFacts
from hvsvc.domain.operation import OperationRecord, Result
from hvsvc.domain.outcome import Outcome
from hvsvc.domain.plan import Plan, plan_change
from hvsvc.domain.plan_reboot import plan_reboot, warn_unstored
from hvsvc.domain.resize_road import ResizeRoad
from hvsvc.domain.target import Method, Target
from hvsvc.domain.world import World
from hvsvc.errors import AbortedError, AlreadyExistsError, HvsvcError, Reason
from hvsvc.operations.apply import Application, planned
from hvsvc.operations.context import Deadline, Tools
from hvsvc.operations.domain_locks import DomainLocks
from hvsvc.operations.reads import DomainReads
from hvsvc.operations.resize_road import read_resize_road
from hvsvc.operations.running import Operations, Running

#: how long a request_id answers with the operation it began
REPLAY_S = 24 * 3600.0


@dataclass(frozen=True, slots=True)
class PlanReport:
    """A plan, the domain it was made from, and the other road; None where Nova has none to tell."""

    plan: Plan
    facts: DomainFacts
    resize: ResizeRoad | None = None


@dataclass(frozen=True, slots=True)
class Asked:
    """A desired state as this change recorded it, and the one there was before."""

    known: DesiredState | None
    wanted: DesiredState


class Changes:
    """The use cases that change domains."""

    def __init__(self, tools: Tools, reads: DomainReads, operations: Operations, locks: DomainLocks) -> None:
        self._tools = tools
        self._reads = reads
        self._operations = operations
        self._locks = locks
        #: by caller and request_id, as long as somebody begins something with it
        self._requests: WeakValueDictionary[tuple[str, str], asyncio.Lock] = WeakValueDictionary()

    async def plan(self, name: str, target: Target) -> PlanReport:
        """Says what a target needs and what forbids it; changes nothing.

        :raises NotFoundError, InvalidArgumentError: as `DomainReads.resolve`.
        """
        uuid = await self._reads.resolve(name)
        world = await self._tools.around.read_world(uuid, ask_guest=True, hasty=True)
        resize = await read_resize_road(self._tools.servers, world, target)
        plan = await self._warned(world, plan_change(world, target))
        return PlanReport(plan, world.domain, resize)

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
        """Begins a change and returns its operation, or refuses before anything is touched.

        A caller that goes away meanwhile ends neither the check nor the operation: the
        same request_id finds it. It is one request's alone: who comes with it while that
        is begun waits until it is known what it began.

        :param records: keep what is asked as the domain's desired state; not where the
            record itself is what asks.
        :raises HvsvcError: every blocker of the plan (the first, with `others`);
            AbortedError DOMAIN_BUSY or DEFINITION_CHANGED; AlreadyExistsError
            REQUEST_ID_REUSED.
        """
        work = self._begin(
            name, target, etag, request_id, caller, validate_only=validate_only, records=records
        )
        alone = self._alone(work, caller, request_id or str(uuids.uuid4()))
        return await asyncio.shield(asyncio.create_task(alone, name=f"begin {target.method.value}"))

    async def _alone(
        self, work: Coroutine[None, None, OperationRecord], caller: str, request_id: str
    ) -> OperationRecord:
        async with self._requests.setdefault((caller, request_id), asyncio.Lock()):
            return await work

    async def _begin(
        self,
        name: str,
        target: Target,
        etag: str,
        request_id: str,
        caller: str,
        *,
        validate_only: bool,
        records: bool,
    ) -> OperationRecord:
        uuid = await self._reads.resolve(name)
        if request_id:
            earlier = await self._replay(uuid, target, request_id, caller)
            if earlier is not None:
                return earlier
        self._operations.check_room()
        operation_id = str(uuids.uuid4())
        await self._let_own_work_end(uuid)
        self._locks.acquire(uuid, operation_id, own_work=not records)
        started = False
        try:
            world = await self._tools.around.read_world(uuid, ask_guest=True, hasty=True)
            plan = await self._checked_plan(world, target, etag, records=records)
            record = OperationRecord(
                id=operation_id,
                uuid=uuid,
                libvirt_name=world.domain.libvirt_name,
                server_name="" if world.domain.nova is None else world.domain.nova.name,
                target=target,
                caller=caller,
                request_id=request_id,
                create_time_s=self._tools.clock.now_s(),
                steps=planned(plan.steps),
            )
            if validate_only:
                return self._validated(record, plan, world)
            asked = await self._record(record, plan, world) if records else None
            try:
                await self._operations.start(record, lambda running: self._run(running, plan, world, asked))
            except HvsvcError:
                await self._take_back(asked)
                raise
            started = True
        finally:
            if not started:
                self._locks.release(uuid, operation_id)
        return await self._operations.get(operation_id)

    async def _let_own_work_end(self, uuid: str) -> None:
        deadline = Deadline(self._tools.clock, self._tools.timeouts.own_work_timeout_s)
        while self._locks.has_own_work(uuid) and not deadline.over:
            await deadline.pause(self._tools.timeouts.poll_interval_s)

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

    async def _record(self, record: OperationRecord, plan: Plan, world: World) -> Asked | None:
        """Keeps what is asked as the domain's desired state; None where that changes nothing."""
        while True:
            known = await self._tools.journal.read_desired(record.uuid)
            wanted = record_target(
                known,
                plan.target,
                world.domain,
                world.server,
                caller=record.caller,
                now_s=record.create_time_s,
            )
            if wanted is None or wanted == known:
                return None
            if await self._tools.journal.replace_desired(record.uuid, known, wanted):
                return Asked(known, wanted)

    async def _take_back(self, asked: Asked | None) -> None:
        """What failed before anything was changed is not wanted in the end; a newer record stays."""
        if asked is not None:
            with contextlib.suppress(HvsvcError):  # it then says what was asked, as the operation does
                await self._tools.journal.replace_desired(asked.wanted.uuid, asked.wanted, asked.known)

    async def _run(self, running: Running, plan: Plan, world: World, asked: Asked | None) -> None:
        try:
            await Application(self._tools, running, plan, world, lambda: self._take_back(asked)).run()
        finally:
            self._locks.release(running.record.uuid, running.record.id)

    def _validated(self, record: OperationRecord, plan: Plan, world: World) -> OperationRecord:
        result = Result(
            Outcome.VALIDATED, plan.warnings, changed=False, before=world.domain, after=world.domain
        )
        return replace(record, id="", result=result, end_time_s=self._tools.clock.now_s())

    async def _checked_plan(self, world: World, target: Target, etag: str, *, records: bool) -> Plan:
        if etag and etag != world.domain.etag:
            raise AbortedError(
                Reason.DEFINITION_CHANGED,
                f"the stored definition has etag {world.domain.etag}, not {etag}: it changed since it was read; "
                "nothing was changed; read the domain again, then redo the request",
                {"asked": etag, "found": world.domain.etag},
            )
        if target.method is Method.REBOOT_DOMAIN:
            plan = plan_reboot(world, target, await self._tools.journal.read_desired(world.domain.uuid))
        else:
            plan = plan_change(world, target)
        if plan.blockers:
            first = plan.blockers[0]
            first.others = plan.blockers[1:]
            raise first
        return await self._warned(world, plan) if records else plan

    async def _warned(self, world: World, plan: Plan) -> Plan:
        """Says where what is on record stays lost; a journal that cannot tell makes no plan fail."""
        try:
            known = await self._tools.journal.read_desired(world.domain.uuid)
        except HvsvcError:
            return plan
        wanted = record_target(known, plan.target, world.domain, world.server, caller="", now_s=0)
        return plan if wanted is None else warn_unstored(wanted, world.domain, plan)
