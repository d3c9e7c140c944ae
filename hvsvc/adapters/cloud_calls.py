"""Calls of one service of the cloud: in threads, within a deadline, and reads repeated while it is unavailable.

keystoneauth repeats too, but in the thread, so that nobody could give the repetitions up, and without
a bound over them all.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial

import stamina

from hvsvc.adapters.cloud_session import CloudService, CloudSession, Order
from hvsvc.adapters.openstack_answer import Answer
from hvsvc.adapters.workers import Workers
from hvsvc.errors import DeadlineError, Reason, UnavailableError

#: calls at once; more wait, within their deadline
_THREADS = 4

_repeated = stamina.AsyncRetryingCaller(
    attempts=3, timeout=None, wait_initial=0.2, wait_max=2, wait_jitter=0.1
).on(UnavailableError)


class CloudCalls:
    """What an adapter calls its service through.

    It connects at the first call, and anew after Keystone or the service were gone.

    :param cloud: a name in clouds.yaml, or "envvars".
    :param call_timeout_s: bound of all that is called in one `within_timeout`.
    """

    def __init__(self, cloud: str, service: CloudService, call_timeout_s: float) -> None:
        self._service = service
        self._session = CloudSession(cloud, call_timeout_s, service)
        self._call_timeout_s = call_timeout_s
        self._workers = Workers(_THREADS, service.section)

    def check(self) -> None:
        """As `CloudSession.check`."""
        self._session.check()

    def close(self) -> None:
        """Ends the threads as their calls end; it does not wait."""
        self._workers.stop()

    @asynccontextmanager
    async def within_timeout(self, what: str) -> AsyncIterator[TimedCalls]:
        """Gives the calls of a block, which is left when its time is up; a `post` or `put` still to be sent is not.

        :param what: names the whole of the block in errors.
        :raises UnavailableError: the time is up, and the service had refused the read that is under
            way: only the repetitions came to no end.
        :raises DeadlineError: CALL_TIMED_OUT; the time is up.
        """
        order = Order(self._call_timeout_s)
        calls = TimedCalls(self._session, self._workers, order)
        try:
            async with asyncio.timeout(self._call_timeout_s):
                yield calls
        except TimeoutError as err:
            self._session.forget()
            raise calls.refusal or self._timed_out(what) from err
        finally:
            order.withdraw()  # a thread that still signs in must not ask for what nobody waits for

    def _timed_out(self, what: str) -> DeadlineError:
        section, name = self._service.section, self._service.section.title()
        return DeadlineError(
            Reason.CALL_TIMED_OUT,
            f"no answer of {name} for the {what} within {self._call_timeout_s:g} s ([{section}] call_timeout_s); see "
            f"whether Keystone and {name} work, then ask again",
            {"timeoutS": f"{self._call_timeout_s:g}"},
        )


class TimedCalls:
    """The calls of one `CloudCalls.within_timeout`; each raises what `CloudService.check` and the session do.

    :ivar refusal: the last answer to a read that was cut off between its repetitions.
    """

    def __init__(self, session: CloudSession, workers: Workers, order: Order) -> None:
        self._session = session
        self._workers = workers
        self._order = order
        self.refusal: UnavailableError | None = None

    async def read(self, path: str, what: str, *, microversion: str | None = None) -> Answer:
        """As `CloudSession.get`, repeated while the service is unavailable."""
        refusal: UnavailableError | None = None

        async def attempt() -> Answer:
            nonlocal refusal
            try:
                return await self._in_thread(
                    partial(self._session.get, path, what, microversion=microversion)
                )
            except UnavailableError as err:
                refusal = err
                raise

        try:
            return await _repeated(attempt)
        except asyncio.CancelledError:
            self.refusal = refusal or self.refusal
            raise

    async def post(self, path: str, body: object, what: str) -> Answer:
        """As `CloudSession.post`, once."""
        return await self._in_thread(partial(self._session.post, path, body, what, self._order))

    async def put(self, path: str, body: object, what: str) -> Answer:
        """As `CloudSession.put`, once."""
        return await self._in_thread(partial(self._session.put, path, body, what, self._order))

    async def _in_thread(self, call: Callable[[], Answer]) -> Answer:
        return await asyncio.wrap_future(self._workers.submit(call))
