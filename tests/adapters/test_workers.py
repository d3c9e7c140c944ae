"""Native threads that may never come back."""

from __future__ import annotations

import subprocess
import sys
import threading
from concurrent.futures import wait

import pytest

from hvsvc.adapters.workers import Workers


def test_no_more_calls_at_once_than_workers() -> None:
    workers = Workers(2, "test")
    go, entered = threading.Event(), threading.Semaphore(0)

    def call() -> str:
        entered.release()
        assert go.wait(10)
        return threading.current_thread().name

    calls = [workers.submit(call) for _ in range(6)]
    assert entered.acquire(timeout=10)
    assert entered.acquire(timeout=10)
    assert not entered.acquire(timeout=0.1)
    go.set()
    assert {call.result(timeout=10) for call in calls} == {"test-1", "test-2"}
    workers.stop()


def test_a_call_that_fails_leaves_its_worker_usable() -> None:
    workers = Workers(1, "test")
    failed = workers.submit(lambda: int("x"))
    with pytest.raises(ValueError, match="invalid literal"):
        failed.result(timeout=10)
    assert workers.submit(lambda: 7).result(timeout=10) == 7
    workers.stop()


def test_stop_ends_the_threads_after_what_was_submitted() -> None:
    workers = Workers(3, "ending")
    calls = [workers.submit(lambda: 1) for _ in range(10)]
    workers.stop()
    assert len(wait(calls, timeout=10).done) == 10
    for thread in [thread for thread in threading.enumerate() if thread.name.startswith("ending-")]:
        thread.join(timeout=10)
        assert not thread.is_alive()


def test_a_call_that_hangs_does_not_keep_the_process() -> None:
    script = (
        "import threading\n"
        "from hvsvc.adapters.workers import Workers\n"
        "Workers(1, 'hung').submit(threading.Event().wait)\n"
        "print('main ends')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=30, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "main ends\n", "")
