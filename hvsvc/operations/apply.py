"""Runs the steps of a plan: intent journaled before, result after, read back, judged at the end."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import replace

from hvsvc.domain.allocation import PlacementPolicy
from hvsvc.domain.facts import DomainFacts
from hvsvc.domain.operation import OperationRecord, Result
from hvsvc.domain.outcome import Note
from hvsvc.domain.plan import Plan, plan_change
from hvsvc.domain.steps import Step, StepKind, StepRecord, StepState
from hvsvc.domain.target import Method, RebootMode, Target
from hvsvc.domain.verify import verify_target
from hvsvc.domain.world import World
from hvsvc.errors import (
    UNANSWERED,
    FailedPreconditionError,
    HvsvcError,
    InternalError,
    Reason,
)
from hvsvc.operations.context import Context, Deadline, Evidence, Tools
from hvsvc.operations.running import Running
from hvsvc.operations.step_allocation import plan_settling, set_allocation
from hvsvc.operations.step_define import define_config
from hvsvc.operations.step_memory import set_memory_live
from hvsvc.operations.step_reboot import reboot
from hvsvc.operations.step_vcpus import online_guest_cpus, set_vcpus_live
from hvsvc.operations.step_wait import wait_for_guest
from hvsvc.operations.wait_domain import read_patiently

Executor = Callable[[Tools, Context, Step], Awaitable[Evidence]]

EXECUTORS: Mapping[StepKind, Executor] = {
    StepKind.DEFINE_CONFIG: define_config,
    StepKind.REBOOT: reboot,
    StepKind.WAIT_GUEST: wait_for_guest,
    StepKind.SET_MEMORY_LIVE: set_memory_live,
    StepKind.SET_VCPUS_LIVE: set_vcpus_live,
    StepKind.ONLINE_GUEST_CPUS: online_guest_cpus,
    StepKind.SET_ALLOCATION: set_allocation,
}


#: of a domain that goes on changing while it is read
_READS = 3
#: looks at the allocation of a domain whose size goes on moving
_SETTLINGS = 3
#: steps that change nothing of the domain, though its balloon may move meanwhile
_LOOKING_ON = (StepKind.SET_ALLOCATION, StepKind.WAIT_GUEST)


def planned(steps: tuple[Step, ...]) -> tuple[StepRecord, ...]:
    """The records of steps not begun."""
    return tuple(
        StepRecord(
            step.kind, step.effect, step.why, xml=step.xml, value=step.value, allocation=step.allocation
        )
        for step in steps
    )


class Application:
    """One operation from its plan to its end; ends the record whatever happens.

    :param take_back: takes back what was recorded as asked, where it fails before anything changed.
    """

    def __init__(
        self,
        tools: Tools,
        running: Running,
        plan: Plan,
        before: World,
        take_back: Callable[[], Awaitable[None]],
    ) -> None:
        self._tools = tools
        self._take_back = take_back
        self._running = running
        self._plan = plan
        self._before = before.domain
        self._step = 0
        self._context = Context(
            operation_id=running.record.id,
            uuid=running.record.uuid,
            target=self._verified_target(),
            domain=before.domain,
            planned_from=before.domain,
        )
        self._context.notes += plan.warnings

    async def run(self) -> None:
        """Runs the plan; after a reboot, plans afresh from what is true then."""
        try:
            await self._run_plan(self._plan)
            if self._plan.needs_reboot and self._plan.target.method is Method.SCALE_DOMAIN:
                await self._run_plan(await self._plan_afresh(self._plan.target))
            elif self._plan.growth is not None:
                await self._grow_again(self._plan.growth)
            record = await self._settled_and_judged()
        except HvsvcError as err:
            record = await self._failed(err)
        except Exception as err:  # noqa: BLE001 a bug must end the operation too, and be told as one
            record = await self._failed(_bug(err))
        await self._publish_end(record)

    async def _run_plan(self, plan: Plan) -> None:
        for step in plan.certain:
            self._running.require_going_on(reboots=step.kind is StepKind.REBOOT)
            await self._run_step(step)

    async def _run_step(self, step: Step) -> None:
        try:
            await self._mark(state=StepState.RUNNING, start_time_s=self._tools.clock.now_s())
            evidence = await EXECUTORS[step.kind](self._tools, self._context, step)
        except BaseException:
            # the end of the operation journals it; here it only must not look done
            self._set(state=StepState.FAILED, end_time_s=self._tools.clock.now_s())
            raise
        state = StepState.DONE if evidence.confirmed else StepState.UNCONFIRMED
        await self._mark(state=state, end_time_s=self._tools.clock.now_s(), evidence=evidence.text)
        self._step += 1

    async def _settled_and_judged(self) -> OperationRecord:
        """Once more where the size moved on after the allocation was set, as when the guest resets itself."""
        looks = 0
        while True:
            await self._settle_allocation()
            record, looks = await self._judged(), looks + 1
            if looks == _SETTLINGS or not self._allocation_was_left(record):
                return record

    def _allocation_was_left(self, record: OperationRecord) -> bool:
        refused = any(step.settles and step.state is StepState.UNCONFIRMED for step in record.steps)
        if refused or record.result is None or self._tools.around.policy is not PlacementPolicy.ENFORCE:
            return False
        return any(note.reason is Reason.ALLOCATION_DIFFERS for note in record.result.reasons)

    async def _settle_allocation(self) -> None:
        """Brings the allocation to the truth as a last step, planned or not, however the others ended."""
        record = self._running.record
        waits = (
            bool(record.steps) and record.steps[-1].settles and record.steps[-1].state is StepState.PENDING
        )
        step = await plan_settling(self._tools, self._context.uuid, even_if_there=waits)
        if step is None:
            return
        if not waits:
            await self._running.publish(replace(record, steps=(*record.steps, *planned((step,)))))
        self._step = len(self._running.record.steps) - 1
        await self._run_step(step)

    def _set(self, **changes: object) -> OperationRecord:
        record = self._running.record
        steps = list(record.steps)
        steps[self._step] = replace(steps[self._step], **changes)  # type: ignore[arg-type]
        self._running.record = replace(record, steps=tuple(steps))
        return self._running.record

    async def _mark(self, **changes: object) -> None:
        await self._running.publish(self._set(**changes))

    async def _grow_again(self, growth: Target) -> None:
        """Grows to the recorded size after a reboot that was asked for as such, which is done and stays so."""
        try:
            plan = await self._plan_afresh(growth)
        except FailedPreconditionError as err:
            self._context.notes += (Note.of(error) for error in (err, *err.others))
            done = self._running.record.steps[: self._step]
            await self._running.publish(replace(self._running.record, steps=done))
        else:
            await self._run_plan(plan)

    async def _plan_afresh(self, target: Target) -> Plan:
        """Plans what a reboot brought within reach; another reboot is not consented to."""
        target = replace(target, reboot=RebootMode.NEVER)
        world = await self._read_world()
        self._context.domain = self._context.planned_from = world.domain
        plan = plan_change(world, target)
        if plan.blockers:
            first = plan.blockers[0]
            first.others = plan.blockers[1:]
            raise first
        done = self._running.record.steps[: self._step]
        await self._running.publish(replace(self._running.record, steps=(*done, *planned(plan.steps))))
        return plan

    async def _read_world(self) -> World:
        """Through a restart of libvirt: what was changed so far must not go unjudged for it.

        :raises FailedPreconditionError: CEILING_LOST, where what a reboot brought is gone again.
        """
        tools = self._tools
        deadline = Deadline(tools.clock, tools.timeouts.guest_ready_timeout_s)
        world = await read_patiently(tools, self._read_standing, deadline)
        self._context.require_brought(world.domain)
        return world

    async def _read_standing(self) -> World:
        """Reads anew where the domain changed meanwhile: its guest and Nova may take seconds to answer."""
        tools, uuid = self._tools, self._context.uuid
        reads = 0
        while True:
            world, reads = await tools.around.read_world(uuid, ask_guest=True), reads + 1
            now = await tools.hypervisor.read_domain(uuid)
            if _moment(now) == _moment(world.domain) or reads == _READS:
                return world

    async def _judged(self) -> OperationRecord:
        context = self._context
        world = await self._read_world()
        world = replace(world, domain=_without_stale_statistics(world.domain, context.balloon_moved_s))
        verdict = verify_target(world, self._verified_target(), rebooted=context.rebooted)
        result = Result(
            outcome=verdict.outcome,
            reasons=(*verdict.reasons, *(note for note in context.notes if note not in verdict.reasons)),
            changed=context.changed or context.allocated,
            before=self._before,
            after=world.domain,
        )
        return replace(self._running.record, result=result, end_time_s=self._tools.clock.now_s())

    def _verified_target(self) -> Target:
        target, growth = self._plan.target, self._plan.growth
        if growth is None:
            return target
        return replace(target, vcpus=growth.vcpus, memory_kib=growth.memory_kib)

    async def _failed(self, error: HvsvcError) -> OperationRecord:
        steps = self._running.record.steps
        failed = next((i for i, step in enumerate(steps) if step.state is StepState.FAILED), None)
        around, now = self._tools.around, None
        with suppress(Exception):  # the domain as it is now says that the allocation differs
            await self._settle_allocation()
        try:
            now = await around.in_full(await around.read_domain(self._context.uuid, ask_guest=False))
        except Exception:  # noqa: BLE001 the bug that ended the operation may lie in the reading
            now = None  # the error says what failed; what is true now could not be read
        onlooker = failed is not None and steps[failed].kind in _LOOKING_ON
        unknown = isinstance(error, UNANSWERED) and not onlooker and self._differs(now)
        if not (self._context.changed or unknown):
            await self._take_back()
        return replace(
            self._running.record,
            error=error,
            failed_step=failed,
            now=now,
            end_time_s=self._tools.clock.now_s(),
        )

    def _differs(self, now: DomainFacts | None) -> bool:
        """Whether something was changed, or may have been: what failed for want of an answer may be done."""
        return now is None or _traces(now) != _traces(self._before)

    async def _publish_end(self, record: OperationRecord) -> None:
        try:
            await self._running.publish(record)
        except HvsvcError:
            return  # the journal is gone: readers still see the end, the next start marks it interrupted


def _traces(domain: DomainFacts) -> tuple[str, int | None, int | None]:
    vcpus = None if domain.live is None else domain.live.current_vcpus
    return domain.etag, vcpus, domain.used_memory_kib


def _moment(domain: DomainFacts) -> tuple[object, ...]:
    """What a verdict looks at that can change from one read to the next."""
    return domain.id, domain.state, domain.etag, domain.live, domain.balloon.actual_kib


def _bug(err: Exception) -> HvsvcError:
    bug = InternalError(
        Reason.INTERNAL,
        f"a bug of hvsvc ended the operation ({type(err).__name__}); read the domain to see what is true; report "
        "it with the daemon's log",
    )
    bug.__cause__ = err
    return bug


def _without_stale_statistics(domain: DomainFacts, moved_s: float | None) -> DomainFacts:
    """Drops guest memory figures from before the balloon's last move: not known is absent."""
    balloon = domain.balloon
    if moved_s is None or balloon.last_update_s is None or balloon.last_update_s >= int(moved_s):
        return domain
    return replace(
        domain, balloon=replace(balloon, guest_total_kib=None, guest_available_kib=None, last_update_s=None)
    )
