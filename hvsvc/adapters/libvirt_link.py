"""Bounded access to libvirt for one kind of calls, so that one domain that hangs never slows another.

A call into libvirt cannot be taken back: where QEMU or a guest agent hangs, its thread, and
the worker of libvirtd that serves it, hang with it (case GA-07). So a link

* gives every caller a deadline of its own, whatever the native call does;
* lets one call that may hang run per domain (`domain=`): further ones of that domain wait
  for it, up to their own deadline, and take no thread meanwhile;
* leaves a connection once half of its places are held by calls past their deadline, and
  opens another one, up to a bound; what was in flight on the old one may finish there.

A connection found dead is opened again by the next call. No call is ever repeated: whether
a mutation was done before the connection broke is for the caller to read.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import libvirt

from hvsvc.adapters.libvirt_connection import Connection, Prepare
from hvsvc.adapters.libvirt_settings import LibvirtSettings
from hvsvc.errors import DeadlineError, Reason

_logger = logging.getLogger(__name__)
T = TypeVar("T")


class Link:
    """The connections of one kind: `reads`, `changes`, `agent` or `watching`.

    For one event loop; everything but the native call itself runs on it.
    """

    def __init__(
        self,
        settings: LibvirtSettings,
        name: str,
        *,
        read_only: bool = False,
        prepare: Prepare | None = None,
        on_closed: Callable[[], None] | None = None,
    ) -> None:
        """`prepare` and `on_closed` are those of each `Connection`."""
        self._settings = settings
        self._name = name
        self._read_only = read_only
        self._prepare = prepare
        self._on_closed = on_closed
        self._current: Connection | None = None
        self._left: set[Connection] = set()
        self._turns: dict[str, asyncio.Future[None]] = {}
        self._overdue: set[str] = set()

    async def call(
        self,
        function: Callable[[libvirt.virConnect], T],
        asked: str,
        *,
        timeout_s: float | None = None,
        refusal: Reason = Reason.HYPERVISOR_REFUSED,
        domain: str | None = None,
        grace: Callable[[], Awaitable[float]] | None = None,
    ) -> T:
        """Runs `function` with the connection in a native thread.

        :param asked: what is asked, for messages: "read domain …".
        :param timeout_s: `call_timeout_s` of the settings where None.
        :param refusal: the reason where libvirt refuses.
        :param domain: uuid of the domain whose state could make the call hang.
        :param grace: asked once when the deadline has passed; more seconds to wait.
        :raises DeadlineError: CALL_TIMED_OUT; the native call may go on.
        :raises UnavailableError: LIBVIRT_UNAVAILABLE when no connection can be opened.
        :raises HvsvcError: what `function` raises, libvirt's own errors translated.
        """
        timeout_s = self._settings.call_timeout_s if timeout_s is None else timeout_s
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_s
        turn: asyncio.Future[None] | None = None
        try:
            async with asyncio.timeout_at(deadline):
                if domain is not None:
                    turn = await self._take_turn(domain)
                connection = await self._take_place()
        except TimeoutError as err:
            self._end_turn(domain, turn)
            raise self.timed_out(asked, timeout_s) from err
        except BaseException:
            self._end_turn(domain, turn)
            raise
        call = connection.run(function, asked, refusal)
        call.add_done_callback(lambda _: self._end_turn(domain, turn))
        try:
            await asyncio.wait({call}, timeout=max(deadline - loop.time(), 0))
            if not call.done() and grace is not None and (more_s := await grace()) > 0:
                await asyncio.wait({call}, timeout=more_s)
        except asyncio.CancelledError:
            self._leave_behind(connection, call)
            loop.call_at(deadline, self._note_overdue, domain, call)
            raise
        if call.done():
            return call.result()
        self._note_overdue(domain, call)
        _logger.warning("a libvirt call is past its deadline", extra={"link": self._name, "asked": asked})
        self._leave_behind(connection, call)
        raise self.timed_out(asked, timeout_s)

    def hangs(self, domain: str) -> bool:
        """Whether a call of this domain is past its deadline and has not come back."""
        return domain in self._overdue

    @property
    def crowded(self) -> bool:
        """Whether calls past their deadline hold half of all the places there can be: safe to ask in any thread.

        A call that can hang, and can be done without, is better left out then.
        """
        connections = [one for one in (self._current, *self._left) if one is not None]
        places = self._settings.calls_in_flight * self._settings.max_connections
        return 2 * sum(len(connection.overdue) for connection in connections) >= places

    def timed_out(self, asked: str, timeout_s: float) -> DeadlineError:
        """The error of a call that was given up."""
        return DeadlineError(
            Reason.CALL_TIMED_OUT,
            f"Could not {asked}: no answer in {timeout_s:g} s. libvirt may still do it: read again.",
            {"timeoutS": f"{timeout_s:g}"},
        )

    def close(self) -> None:
        """Closes the connections; one whose calls hang is left to the end of the process."""
        for connection in (self._current, *self._left):
            if connection is not None:
                connection.retire()
        self._current = None
        self._left.clear()

    async def _take_turn(self, domain: str) -> asyncio.Future[None]:
        while (before := self._turns.get(domain)) is not None:
            await asyncio.wait({before})
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._turns[domain] = turn
        return turn

    def _note_overdue(self, domain: str | None, call: asyncio.Future[Any]) -> None:
        if domain is not None and not call.done():
            self._overdue.add(domain)

    def _end_turn(self, domain: str | None, turn: asyncio.Future[None] | None) -> None:
        if domain is None or turn is None:
            return
        del self._turns[domain]
        self._overdue.discard(domain)
        turn.set_result(None)

    async def _take_place(self) -> Connection:
        while True:
            connection = await self._open_connection()
            await connection.slots.acquire()
            if connection is self._current and not connection.dead:
                return connection
            connection.slots.release()  # left meanwhile: the next one in the queue looks again, too

    async def _open_connection(self) -> Connection:
        """The current connection, open; a dead one is replaced, once for each caller."""
        connection = self._current
        if connection is None or connection.dead:
            if connection is not None:
                connection.retire()
            connection = self._current = Connection(
                self._settings,
                self._name,
                read_only=self._read_only,
                prepare=self._prepare,
                on_closed=self._on_closed,
            )
        await connection.wait_open()
        return connection

    def _leave_behind(self, connection: Connection, call: asyncio.Future[Any]) -> None:
        """Gives up waiting for a call; leaves its connection when too few places are left there."""
        connection.overdue.add(call)
        self._left = {left for left in self._left if not left.finished}
        crowded = 2 * len(connection.overdue) >= self._settings.calls_in_flight
        if crowded and connection is self._current and len(self._left) + 1 < self._settings.max_connections:
            connection.retire()
            self._left.add(connection)
            self._current = None
