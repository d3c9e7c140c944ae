"""A connection to libvirt as its users see it, and the native threads that serve it.

Each thread has a native connection of its own, opened when the thread first needs it.
Threads that share one wait for each other: while a call of one of them gets no answer,
libvirt's client may leave the answers of the others unread until its next keepalive
(measured with libvirt 9.0: up to 5 s for reads of healthy domains beside one whose QEMU
hangs, case GA-07).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections.abc import Callable
from typing import Any, TypeVar

import libvirt

from hvsvc.adapters.libvirt_errors import translate_error, translate_open_error
from hvsvc.adapters.libvirt_event_loop import start_event_loop
from hvsvc.adapters.libvirt_settings import LibvirtSettings
from hvsvc.adapters.workers import Workers
from hvsvc.errors import Reason

_logger = logging.getLogger(__name__)

T = TypeVar("T")
#: runs on a connection before it is used; returns what must run before it is closed
Prepare = Callable[[libvirt.virConnect], Callable[[], None]]


class Connection:
    """Opens in the background when it is made; opened once, and thrown away when it is dead.

    Its methods are for the event loop; only the function given to `run` is run natively.
    """

    def __init__(
        self,
        settings: LibvirtSettings,
        name: str,
        *,
        read_only: bool,
        prepare: Prepare | None,
        on_closed: Callable[[], None] | None,
    ) -> None:
        """`on_closed` is called on the event loop when the connection breaks, not when it is retired."""
        self._settings = settings
        self._name = name
        self._read_only = read_only
        self._embedded = ":///embed" in settings.uri
        self._prepare = prepare
        self._undo: Callable[[], None] | None = None
        self._on_closed = on_closed
        self._loop = asyncio.get_running_loop()
        self._workers = Workers(settings.calls_in_flight, f"libvirt-{name}")
        self._own = threading.local()
        self._natives: list[libvirt.virConnect] = []
        self._in_flight = 0
        self._retired = False
        #: a place for each call that may be in flight
        self.slots = asyncio.Semaphore(settings.calls_in_flight)
        #: calls past their caller's deadline that have not come back
        self.overdue: set[asyncio.Future[Any]] = set()
        self.dead = False
        start_event_loop()
        self._opening = self._submit(self._open)

    async def wait_open(self) -> None:
        """Waits until it is open.

        :raises UnavailableError: LIBVIRT_UNAVAILABLE; NotPermittedError likewise.
        """
        await asyncio.shield(self._opening)

    def run(
        self, function: Callable[[libvirt.virConnect], T], asked: str, refusal: Reason
    ) -> asyncio.Future[T]:
        """Runs `function` in a native thread; needs a slot, which it gives back by itself."""

        def guarded() -> T:
            try:
                native = self._thread_native()
            except libvirt.libvirtError as err:
                self._tell_broken()
                raise translate_open_error(err, self._settings.uri) from err
            try:
                return function(native)
            except libvirt.libvirtError as err:
                alive = _is_alive(native)
                if not alive:
                    self._tell_broken()
                raise translate_error(err, asked, refusal=refusal, alive=alive) from err

        call = self._submit(guarded)
        call.add_done_callback(lambda _: self.slots.release())
        return call

    def retire(self) -> None:
        """Takes no further calls; closes when the last one has come back, if ever."""
        if not self._retired:
            self._retired = True
            for _ in range(self._settings.calls_in_flight):
                self.slots.release()  # whoever waits for a place here looks for another connection
            self._close_when_idle()

    @property
    def finished(self) -> bool:
        """Whether it is retired and nothing is left in flight."""
        return self._retired and self._in_flight == 0

    def _submit(self, function: Callable[[], T]) -> asyncio.Future[T]:
        self._in_flight += 1
        call = asyncio.wrap_future(self._workers.submit(function), loop=self._loop)
        call.add_done_callback(self._call_ended)
        return call

    def _call_ended(self, call: asyncio.Future[Any]) -> None:
        self._in_flight -= 1
        self.overdue.discard(call)
        if not call.cancelled():
            call.exception()  # taken: whoever asked may have stopped waiting
        self._close_when_idle()

    def _close_when_idle(self) -> None:
        if self.finished:
            self._workers.submit(self._close)
            self._workers.stop()

    def _break(self) -> None:
        if not self.dead:
            self.dead = True
            if self._on_closed is not None and not self._retired:
                self._on_closed()

    # ---- in native threads

    def _open(self) -> None:
        try:
            native = self._thread_native()
            if self._prepare is not None:
                self._undo = self._prepare(native)
        except libvirt.libvirtError as err:
            self.dead = True
            raise translate_open_error(err, self._settings.uri) from err

    def _thread_native(self) -> libvirt.virConnect:
        native: libvirt.virConnect | None = getattr(self._own, "native", None)
        if native is None:
            native = self._own.native = self._open_native()
            self._natives.append(native)
        return native

    def _open_native(self) -> libvirt.virConnect:
        settings = self._settings
        if self._embedded:
            return _open_embedded(settings.uri)
        native = (libvirt.openReadOnly if self._read_only else libvirt.open)(settings.uri)
        native.registerCloseCallback(self._closed, None)
        with contextlib.suppress(libvirt.libvirtError):  # the test driver has no transport to keep alive
            native.setKeepAlive(settings.keepalive_interval_s, settings.keepalive_count)
        return native

    def _closed(self, _native: libvirt.virConnect, reason: int, _opaque: object) -> None:
        _logger.warning("libvirt connection closed", extra={"link": self._name, "libvirtReason": reason})
        self._tell_broken()

    def _tell_broken(self) -> None:
        with contextlib.suppress(RuntimeError):  # the event loop may have ended
            self._loop.call_soon_threadsafe(self._break)

    def _close(self) -> None:
        # A registered callback holds the connection: without this, closing it would leak it.
        with contextlib.suppress(libvirt.libvirtError):
            if self._undo is not None:
                self._undo()
        natives, self._natives = self._natives, []
        if self._embedded:
            return
        for native in natives:
            with contextlib.suppress(libvirt.libvirtError):
                native.unregisterCloseCallback()
            with contextlib.suppress(libvirt.libvirtError):
                native.close()


_embedded: dict[str, libvirt.virConnect] = {}
_opening_embedded = threading.Lock()


def _open_embedded(uri: str) -> libvirt.virConnect:
    """The process's one connection to the embedded driver; it stays open to the end.

    Every open registers the driver once more, for which libvirt 9.0 has room some twenty
    times in the life of a process, and two at once crash it. There is no transport, so
    nothing is gained by a second connection.
    """
    with _opening_embedded:
        if uri not in _embedded:
            _embedded[uri] = libvirt.open(uri)
        return _embedded[uri]


def _is_alive(native: libvirt.virConnect) -> bool:
    try:
        return bool(native.isAlive())
    except libvirt.libvirtError:
        return False
