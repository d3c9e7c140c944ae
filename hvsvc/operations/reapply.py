"""Watches what was asked for, and brings it back where the policy says so; never by a reboot."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import structlog

from hvsvc.domain.desired import DesiredState, ReapplyPolicy
from hvsvc.domain.drift import DriftStatus, judge_absence
from hvsvc.domain.drift_report import Progress
from hvsvc.domain.facts import LifecycleEvent, ServerFacts
from hvsvc.domain.reapply import (
    BUSY,
    Backoff,
    Tries,
    describe_giving_up,
    ends_unheard,
    find_hindrance,
    plan_reapply,
)
from hvsvc.domain.target import Target
from hvsvc.errors import UNANSWERED, HvsvcError, NotFoundError
from hvsvc.operations.changes import Changes
from hvsvc.operations.context import Tools
from hvsvc.operations.domain_watch import DomainWatch
from hvsvc.operations.drift_log import DriftLog
from hvsvc.operations.running import Operations

#: who asks, in the journal and the log
CALLER = "hvsvc (re-apply)"

#: events that say nothing about a definition, a start or a size
_UNRELATED = frozenset(
    {
        LifecycleEvent.AGENT_DISCONNECTED,
        LifecycleEvent.REBOOTED,
        LifecycleEvent.SHUTDOWN,
        LifecycleEvent.SUSPENDED,
    }
)

_log = structlog.stdlib.get_logger("hvsvc.reapply")


@dataclass(frozen=True, slots=True)
class ReapplySettings:
    """What the daemon's configuration says in [drift]; times in seconds.

    `debounce_s` lets the several events of one action come in before it is looked at;
    `busy_timeout_s` bounds how long a server Nova is at work on is looked at again and
    again; after that the next event or sweep does.
    """

    policy: ReapplyPolicy = ReapplyPolicy.REPORT
    sweep_interval_s: float = 300.0
    backoff: Backoff = field(default_factory=Backoff)
    debounce_s: float = 0.3
    busy_timeout_s: float = 300.0


@dataclass(slots=True)
class _Watched:
    """One record under watch."""

    desired: DesiredState
    tries: Tries = field(default_factory=Tries)
    #: libvirt's id of the running domain at the last attempt: another one means a start since
    tried_id: int | None = None
    busy_since_s: float | None = None
    #: since the epoch, for readers; all other times are of a clock that never jumps
    next_attempt_s: float | None = None
    waits_for: str = ""
    #: how the last attempt failed; "" where it did not
    failure: str = ""


class Reapplier:
    """One watcher for the host. Its memory is of attempts alone; everything else is read anew each time."""

    def __init__(
        self, tools: Tools, changes: Changes, operations: Operations, settings: ReapplySettings
    ) -> None:
        self._tools = tools
        self._changes = changes
        self._operations = operations
        self._settings = settings
        self._watched: dict[str, _Watched] = {}
        self._drift_log = DriftLog()
        self._watch = DomainWatch(
            tools.hypervisor,
            self.look,
            self._list_recorded,
            ignored=_UNRELATED,
            debounce_s=settings.debounce_s,
            sweep_interval_s=settings.sweep_interval_s,
        )

    def policy_of(self, desired: DesiredState) -> ReapplyPolicy:
        """The policy in force for a record."""
        return desired.policy or self._settings.policy

    def progress(self, desired: DesiredState) -> Progress:
        """How far re-applying this record got."""
        watched = self._watched.get(desired.uuid)
        if watched is None or watched.desired != desired:
            return Progress()
        given_up = watched.tries.next_s(self._settings.backoff) is None
        return Progress(watched.tries.count, watched.next_attempt_s, watched.waits_for, given_up)

    def count_lost(self) -> int:
        """How many ceilings were found lost at the last look at each."""
        return self._drift_log.lost

    async def run(self) -> None:
        """Watches until cancelled: at the start, at each event, and in a sweep."""
        await self._watch.run()

    def poke(self, uuid: str) -> None:
        """Has a domain looked at soon."""
        self._watch.poke(uuid)

    async def _list_recorded(self, sweep: bool) -> Iterable[str]:
        records = await self._tools.journal.read_all_desired()
        self._forget_others(desired.uuid for desired in records)
        if sweep:
            for desired in records:
                await self._drop_plain(desired)
        return [desired.uuid for desired in records]

    def _forget_others(self, uuids: Iterable[str]) -> None:
        for uuid in self._watched.keys() - set(uuids):
            self._unwatch(uuid)

    def _unwatch(self, uuid: str) -> None:
        self._watched.pop(uuid, None)
        self._drift_log.forget(uuid)

    async def _drop_plain(self, desired: DesiredState) -> None:
        """Drops the record of an undefined domain that is not Nova's: not at its event, since tools define anew."""
        if desired.is_server:
            return
        try:
            if not await self._tools.hypervisor.find_uuids(desired.uuid):
                await self._drop(desired)
        except HvsvcError as err:
            _log.warning("drift_not_looked_at", domain=desired.uuid, error=err.message)

    async def look(self, uuid: str) -> float | None:
        """Looks at one domain and acts where it should; returns after how many seconds to look again.

        :raises HvsvcError: where the journal or libvirt cannot tell.
        """
        desired = await self._tools.journal.read_desired(uuid)
        if desired is None:
            self._unwatch(uuid)
            return None
        watched = self._watched.get(uuid)
        if watched is None or watched.desired != desired:
            watched = self._watched[uuid] = _Watched(desired)
        try:
            facts = await self._tools.around.read_domain(uuid, ask_guest=False)
        except NotFoundError:
            self._drift_log.forget(uuid)
            return await self._look_at_absent(watched)
        self._drift_log.tell(desired, facts)
        targets = plan_reapply(desired, facts, self.policy_of(desired))
        if not targets:
            watched.waits_for, watched.next_attempt_s, watched.busy_since_s = "", None, None
            watched.tries = replace(watched.tries, held=True)
            return None
        started = facts.id != watched.tried_id
        watched.tries = watched.tries.at_loss(self._settings.backoff, self._now_s(), started=started)
        return await self._bring_back(watched, targets, facts.id)

    async def _look_at_absent(self, watched: _Watched) -> float | None:
        """Drops the record of a server that Nova says is deleted."""
        desired = watched.desired
        server, error = await self._tools.around.read_server(desired.uuid, is_server=desired.is_server)
        if desired.is_server and judge_absence(desired, server, error).status is DriftStatus.GONE:
            await self._drop(desired)
            return None
        watched.waits_for = ""
        return self._again_for_nova(watched, server, error)

    async def _drop(self, desired: DesiredState) -> None:
        if await self._tools.journal.replace_desired(desired.uuid, desired, None):  # nobody asked anew
            self._unwatch(desired.uuid)
            _log.info("desired_state_dropped", domain=desired.uuid, server=desired.server_name)

    async def _bring_back(
        self, watched: _Watched, targets: tuple[Target, ...], domain_id: int | None
    ) -> float | None:
        desired, now_s = watched.desired, self._now_s()
        server, error = await self._tools.around.read_server(desired.uuid, is_server=desired.is_server)
        watched.waits_for = find_hindrance(desired, server, error)
        watched.next_attempt_s = None
        if watched.waits_for:
            return self._again_for_nova(watched, server, error, unheard=ends_unheard(server))
        next_s = watched.tries.next_s(self._settings.backoff)
        if next_s is None:
            watched.waits_for = describe_giving_up(watched.tries.count, watched.failure)
            _log.error("reapply_given_up", domain=desired.uuid, attempts=watched.tries.count)
            return None
        if next_s > now_s:
            watched.waits_for = (
                watched.failure or "it was re-applied a moment ago and lost again: the next attempt waits"
            )
            return self._wait_until(watched, next_s)
        watched.tried_id = domain_id
        return await self._attempt(watched, targets)

    def _wait_until(self, watched: _Watched, next_s: float) -> float:
        wait_s = max(next_s - self._now_s(), 0.0)
        watched.next_attempt_s = self._tools.clock.now_s() + wait_s
        return wait_s

    async def _attempt(self, watched: _Watched, targets: tuple[Target, ...]) -> float | None:
        before = watched.tries
        watched.tries = Tries(before.count + 1, self._now_s())
        try:
            for target in targets:
                await self._change(watched.desired, target, watched.tries.count)
        except HvsvcError as err:
            if err.reason in BUSY:
                watched.tries, watched.waits_for = before, f"{BUSY[err.reason]}; then it is looked at again"
                return self._again_while_busy(watched, busy=True)
            if isinstance(err, UNANSWERED):
                watched.tries = before.at_outage(self._now_s())
            watched.waits_for = watched.failure = f"the last attempt failed: {err.message}"
            next_s = watched.tries.next_s(self._settings.backoff)
            _log.warning(
                "reapply_failed", domain=watched.desired.uuid, reason=err.reason.value, error=err.message
            )
            return None if next_s is None else self._wait_until(watched, next_s)
        watched.busy_since_s, watched.failure = None, ""
        return 0.0  # look whether it is there

    async def _change(self, desired: DesiredState, target: Target, attempt: int) -> None:
        record = await self._changes.begin(
            f"domains/{desired.uuid}",
            target,
            etag="",
            request_id="",
            caller=CALLER,
            validate_only=False,
            records=False,
        )
        _log.info(
            "reapplying",
            domain=desired.uuid,
            server=desired.server_name,
            method=target.method.value,
            operation=record.id,
            attempt=attempt,
        )
        record = await self._operations.wait(record.id, None)
        if record.error is not None:
            raise record.error
        assert record.result is not None, "an operation that is done has a result or an error"
        _log.info("reapplied", domain=desired.uuid, operation=record.id, outcome=record.result.outcome.value)

    def _again_for_nova(
        self,
        watched: _Watched,
        server: ServerFacts | None,
        error: HvsvcError | None,
        *,
        unheard: bool = False,
    ) -> float | None:
        """A task ends soon. Where a Nova is away, or somebody has to confirm, it is asked less the longer it is."""
        task = server is not None and server.task_state is not None
        open_end = isinstance(error, UNANSWERED) or (unheard and not task)
        wait_s = self._again_while_busy(watched, task or open_end)
        if wait_s is None or not open_end or watched.busy_since_s is None:
            return wait_s
        return max(wait_s, (self._now_s() - watched.busy_since_s) / 20)

    def _again_while_busy(self, watched: _Watched, busy: bool) -> float | None:
        if not busy:
            watched.busy_since_s = None
            return None
        now_s = self._now_s()
        watched.busy_since_s = now_s if watched.busy_since_s is None else watched.busy_since_s
        if now_s - watched.busy_since_s >= self._settings.busy_timeout_s:
            watched.busy_since_s = None
            return None  # the next event or sweep looks again
        return self._tools.timeouts.nova_poll_interval_s

    def _now_s(self) -> float:
        return self._tools.clock.monotonic_s()
