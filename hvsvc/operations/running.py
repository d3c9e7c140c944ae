"""Operations under way and past: one place to follow, wait for, cancel and forget them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import replace

from hvsvc.domain.operation import OperationRecord
from hvsvc.domain.steps import StepKind, StepState
from hvsvc.errors import (
    AbortedError,
    CancelledError,
    ExhaustedError,
    FailedPreconditionError,
    HvsvcError,
    NotFoundError,
    Reason,
    UnavailableError,
)
from hvsvc.operations.ports import Clock, Journal

_PAGE = 100
#: between two attempts to store how an operation ended
_STORE_AGAIN_S = 1.0


class Running:
    """One operation while it runs; each change is on disk before anyone sees it."""

    def __init__(
        self, record: OperationRecord, journal: Journal, stopping: Callable[[], bool] = lambda: False
    ) -> None:
        self.record = record
        self._journal = journal
        self._stopping = stopping
        self._changed = asyncio.Condition()

    async def publish(self, record: OperationRecord) -> None:
        """Stores and announces a new state.

        :raises UnavailableError: JOURNAL_UNAVAILABLE; readers see the new state all the
            same, since it is true.
        """
        # a cancel request that came in meanwhile must not be overwritten
        self.record = replace(
            record, cancel_requested=record.cancel_requested or self.record.cancel_requested
        )
        try:
            await self._journal.update(self.record)
        finally:
            async with self._changed:
                self._changed.notify_all()

    def require_going_on(self, *, reboots: bool) -> None:
        """Ends the operation before its next step, where that is asked for, or must be.

        :param reboots: the step would shut the guest down; a daemon that stops may not be
            there to start it again.
        :raises CancelledError: CANCELLED.
        :raises UnavailableError: SHUTTING_DOWN.
        """
        if self.record.cancel_requested:
            raise CancelledError(
                Reason.CANCELLED,
                "someone cancelled the operation; it ended before its next step, what was done stays",
            )
        if reboots and self._stopping():
            raise UnavailableError(
                Reason.SHUTTING_DOWN,
                "hvsvc is stopping and begins no reboot, which it may not be there to end; nothing was rebooted, what "
                "was stored stays; repeat the request when hvsvc is back",
            )

    async def next_change(self, seen: OperationRecord) -> OperationRecord:
        """Waits until the record differs from `seen`."""
        async with self._changed:
            await self._changed.wait_for(lambda: self.record is not seen)
        return self.record


class Operations:
    """The registry of operations; those that have ended live in the journal alone."""

    def __init__(
        self,
        journal: Journal,
        clock: Clock,
        *,
        max_operations: int,
        ended: Callable[[OperationRecord], None] = lambda record: None,
    ) -> None:
        """`ended` is told of each operation that ends."""
        self._journal = journal
        self._clock = clock
        self._max = max_operations
        self._ended = ended
        self._running: dict[str, Running] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._ends: set[asyncio.Task[None]] = set()
        self._beginning = 0
        self._draining = False

    def check_room(self) -> None:
        """Refuses a new operation while stopping, or above the configured number.

        :raises UnavailableError: SHUTTING_DOWN.
        :raises ExhaustedError: TOO_MANY_OPERATIONS.
        """
        if self._draining:
            raise UnavailableError(
                Reason.SHUTTING_DOWN,
                "hvsvc is stopping and begins nothing new; nothing was changed; retry shortly",
            )
        running = len(self._tasks) + self._beginning
        if running >= self._max:
            raise ExhaustedError(
                Reason.TOO_MANY_OPERATIONS,
                f"{running} operations are running, the configured limit; nothing was changed; retry later",
                {"limit": self._max},
            )

    async def start(
        self, record: OperationRecord, work: Callable[[Running], Awaitable[None]]
    ) -> OperationRecord:
        """Journals a new operation, then lets `work` run it in the background.

        `work` must end the record itself and raise nothing.

        :raises UnavailableError, ExhaustedError: as `check_room`, which many may have
            passed at once, or before a stop began.
        """
        self.check_room()
        self._beginning += 1
        try:
            await self._journal.begin(record)
        finally:
            self._beginning -= 1
        running = Running(record, self._journal, lambda: self._draining)
        self._running[record.id] = running
        task = asyncio.create_task(self._work(running, work), name=f"operation {record.id}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return record

    async def _work(self, running: Running, work: Callable[[Running], Awaitable[None]]) -> None:
        await work(running)
        if not running.record.done:
            return
        self._ended(running.record)
        if not await self._let_go(running):
            task = asyncio.create_task(self._store_end(running), name=f"end of {running.record.id}")
            self._ends.add(task)
            task.add_done_callback(self._ends.discard)

    async def _let_go(self, running: Running) -> bool:
        """Leaves an operation that has ended to the journal; False where its end is not stored there."""
        stored = await self._is_stored(running.record)
        if stored:
            self._running.pop(running.record.id, None)
        return stored

    async def _store_end(self, running: Running) -> None:
        """Stores an end once the journal works again: the next start would tell that hvsvc stopped meanwhile."""
        while running.record.id in self._running:
            await asyncio.sleep(_STORE_AGAIN_S)
            await self._store(running.record)
            await self._let_go(running)

    async def _store(self, record: OperationRecord) -> None:
        with suppress(HvsvcError):
            await self._journal.update(record)

    async def _is_stored(self, record: OperationRecord) -> bool:
        try:
            stored = await self._journal.read(record.id)
        except HvsvcError:
            return False  # its end could not be stored: it stays readable from memory
        return stored is not None and stored.done

    async def get(self, operation_id: str) -> OperationRecord:
        """Reads one operation.

        :raises NotFoundError: OPERATION_NOT_FOUND.
        """
        running = self._running.get(operation_id)
        if running is not None:
            return running.record
        record = await self._journal.read(operation_id)
        if record is None:
            raise NotFoundError(
                Reason.OPERATION_NOT_FOUND,
                f"there is no operation operations/{operation_id}; list them (hvctl operations list)",
                {"operation": f"operations/{operation_id}"},
            )
        return record

    async def list(
        self, *, uuid: str | None, done: bool | None, before: tuple[float, str] | None, limit: int
    ) -> Sequence[OperationRecord]:
        """Lists operations, newest first."""
        page = await self._journal.read_page(uuid=uuid, done=done, before=before, limit=limit)
        return [self._running[record.id].record if record.id in self._running else record for record in page]

    async def wait(self, operation_id: str, timeout_s: float | None) -> OperationRecord:
        """Waits until the operation is done, or `timeout_s` is over; returns it as it is then."""
        record = await self.get(operation_id)
        try:
            async with asyncio.timeout(timeout_s):
                async for record in self.watch(operation_id):  # noqa: B007 the last one is wanted
                    pass
        except TimeoutError:
            return await self.get(operation_id)
        return record

    async def watch(self, operation_id: str) -> AsyncIterator[OperationRecord]:
        """Yields the operation now and after each change, last when it is done; a slow reader skips some."""
        record = await self.get(operation_id)
        running = self._running.get(operation_id)
        yield record
        while running is not None and not record.done:
            record = await running.next_change(record)
            yield record

    async def cancel(self, operation_id: str) -> None:
        """Asks an operation to end before its next step; one that has ended stays as it is."""
        record = await self.get(operation_id)
        running = self._running.get(operation_id)
        if running is not None and not record.done:
            await running.publish(replace(running.record, cancel_requested=True))

    async def delete(self, operation_id: str) -> None:
        """Forgets an operation that has ended.

        :raises FailedPreconditionError: OPERATION_RUNNING.
        """
        record = await self.get(operation_id)
        running = self._running.get(operation_id)
        if not record.done:
            raise FailedPreconditionError(
                Reason.OPERATION_RUNNING,
                f"operations/{operation_id} is still running; cancel it or wait for it first",
                {"operation": f"operations/{operation_id}"},
            )
        if running is not None:
            await self._journal.update(
                running.record
            )  # its end may not be stored, and only what ended is deleted
        await self._journal.delete(operation_id)
        self._running.pop(operation_id, None)

    async def end_interrupted(self) -> int:
        """Ends what a process that is gone left running; returns how many. To be called before serving."""
        count = 0
        while page := await self._journal.read_page(uuid=None, done=False, before=None, limit=_PAGE):
            for record in page:
                await self._journal.update(interrupted(record, self._clock.now_s()))
                count += 1
        return count

    async def drain(self, grace_s: float) -> None:
        """Begins nothing new and waits for what runs; what is not done after `grace_s` is left to `end_interrupted`."""
        self._draining = True
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=grace_s)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for task in self._ends:
            task.cancel()
        ended = [running.record for running in self._running.values() if running.record.done]
        await asyncio.gather(*map(self._store, ended))


def interrupted(record: OperationRecord, now_s: float) -> OperationRecord:
    """The record of an operation whose process died: what it had begun may or may not have happened."""
    begun = next((i for i, step in enumerate(record.steps) if step.state is StepState.RUNNING), None)
    what, then = "", ""
    if begun is not None:
        kind = record.steps[begun].kind
        what = f" in its step {kind.value}, which may or may not have happened"
        if kind is StepKind.REBOOT:
            then = ", start it if it was shut down and not started again"
    return replace(
        record,
        steps=tuple(
            replace(step, state=StepState.FAILED, end_time_s=now_s) if i == begun else step
            for i, step in enumerate(record.steps)
        ),
        end_time_s=now_s,
        failed_step=begun,
        error=AbortedError(
            Reason.DAEMON_RESTARTED,
            f"hvsvc stopped while the operation ran{what}; read the domain{then}, then repeat the request",
        ),
    )
