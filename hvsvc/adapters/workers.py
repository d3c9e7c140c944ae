"""A bounded pool of daemon threads for native calls that may never come back.

`concurrent.futures.ThreadPoolExecutor` joins its threads when the interpreter exits, so one
call stuck in libvirt would keep the daemon from ever stopping; these threads do not.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")


class Workers:
    """At most `size` threads, started when needed, that run calls in the order they came."""

    def __init__(self, size: int, name: str) -> None:
        self._size = size
        self._name = name
        self._calls: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._threads = 0
        self._idle = threading.Semaphore(0)

    def submit(self, function: Callable[[], T]) -> Future[T]:
        """Runs `function` in a thread; only one thread may submit."""
        future: Future[T] = Future()

        def run() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                result = function()
            except BaseException as err:  # noqa: BLE001  whoever waits gets it, whatever it is
                future.set_exception(err)
            else:
                future.set_result(result)

        self._calls.put(run)
        if not self._idle.acquire(blocking=False) and self._threads < self._size:
            self._threads += 1
            threading.Thread(target=self._work, name=f"{self._name}-{self._threads}", daemon=True).start()
        return future

    def stop(self) -> None:
        """Ends the threads once the calls submitted before are done; it does not wait."""
        for _ in range(self._threads):
            self._calls.put(None)

    def _work(self) -> None:
        while (call := self._calls.get()) is not None:
            call()
            del call  # a waiting thread must not keep the last result alive
            self._idle.release()
