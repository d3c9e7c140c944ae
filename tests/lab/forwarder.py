"""A TCP forwarder before one of the lab's services, which a test can cut, and which acts at a chosen request."""

from __future__ import annotations

import contextlib
import re
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self


@dataclass
class Moment:
    """Once: the first request that fits `pattern`, or the answer to it. `over` is set when `act` has run."""

    pattern: re.Pattern[bytes]
    act: Callable[[], object]
    answered: bool
    over: threading.Event = field(default_factory=threading.Event)
    taken: bool = False

    def wait(self, timeout_s: float = 60) -> None:
        """AssertionError where it does not come in time."""
        assert self.over.wait(timeout_s), f"no {self.pattern.pattern!r} within {timeout_s:g} s"


class Forwarder:
    """Forwards from a free port of its own to `port`; while cut, it refuses whoever comes, or lets them hang."""

    def __init__(self, port: int) -> None:
        self._target = ("127.0.0.1", port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._state = "open"
        self._sockets: set[socket.socket] = set()
        self._moments: list[Moment] = []

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.cut()
        self._listener.close()

    def cut(self) -> None:
        """Ends every connection, and every new one at once."""
        self._state = "cut"
        self._end_all()

    def hang(self) -> None:
        """Ends every connection; new ones are taken and get no answer."""
        self._state = "hang"
        self._end_all()

    def mend(self) -> None:
        """Forwards again."""
        self._state = "open"
        self._end_all()

    def at(self, pattern: bytes, act: Callable[[], object], *, answered: bool = False) -> Moment:
        """Calls `act` once: right before the next request that fits `pattern` is passed on to the service.

        With `answered`, right before the service's answer to it is passed on: the service has done it.
        """
        moment = Moment(re.compile(pattern), act, answered)
        self._moments.append(moment)
        return moment

    def _end_all(self) -> None:
        for each in tuple(self._sockets):
            self._sockets.discard(each)
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            if self._state == "cut":
                client.close()
                continue
            self._sockets.add(client)
            if self._state == "open":
                self._connect(client)

    def _connect(self, client: socket.socket) -> None:
        try:
            server = socket.create_connection(self._target)
        except OSError:
            client.close()
            return
        self._sockets.add(server)
        waiting: list[Moment] = []  # for the answer on this connection
        for source, sink, pass_on in ((client, server, self._requested), (server, client, self._answered)):
            threading.Thread(target=_pump, args=(source, sink, pass_on, waiting), daemon=True).start()

    def _requested(self, data: bytes, waiting: list[Moment]) -> None:
        for moment in self._moments:
            if not moment.taken and moment.pattern.search(data):
                moment.taken = True
                if moment.answered:
                    waiting.append(moment)
                else:
                    moment.act()
                    moment.over.set()

    def _answered(self, _: bytes, waiting: list[Moment]) -> None:
        while waiting:
            moment = waiting.pop()
            moment.act()
            moment.over.set()


def _pump(
    source: socket.socket,
    sink: socket.socket,
    pass_on: Callable[[bytes, list[Moment]], None],
    waiting: list[Moment],
) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            pass_on(data, waiting)
            sink.sendall(data)
    for each in (source, sink):
        with contextlib.suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)
