"""A TCP forwarder before one of the lab's services, which a test can cut and mend without touching the service."""

from __future__ import annotations

import contextlib
import socket
import threading
from types import TracebackType
from typing import Self


class Forwarder:
    """Forwards from a free port of its own to `port`; while cut, it refuses whoever comes, or lets them hang."""

    def __init__(self, port: int) -> None:
        self._target = ("127.0.0.1", port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._state = "open"
        self._sockets: set[socket.socket] = set()

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
                server = socket.create_connection(self._target)
                self._sockets.add(server)
                for pair in ((client, server), (server, client)):
                    threading.Thread(target=_pump, args=pair, daemon=True).start()


def _pump(source: socket.socket, sink: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            sink.sendall(data)
    for each in (source, sink):
        with contextlib.suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)
